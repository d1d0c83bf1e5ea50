"""`kcga acls`: the rights that components need, and how to grant them."""

import json
import shlex
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.settings import Settings, load
from cli.options import SettingsFile
from cli.rights import Resource, Right, rights
from domain.speeds import Source


class RightsFormat(StrEnum):
    COMMANDS = "commands"
    TABLE = "table"
    JSON = "json"


def acls(
    settings: SettingsFile,
    prefix: Annotated[
        str, typer.Option(help="What the users' names begin with; the component's name follows.")
    ] = "kcga-",
    source: Annotated[
        Source | None,
        typer.Option(help="In place of monitor.source: offsets, for a cluster that does not allow Describe on itself."),
    ] = None,
    output: Annotated[
        RightsFormat, typer.Option(help="commands: calls of kafka-acls.sh; json: one object a line.")
    ] = RightsFormat.COMMANDS,
) -> None:
    loaded = load(settings)
    if source is not None:
        loaded = loaded.model_copy(update={"monitor": loaded.monitor.model_copy(update={"source": source})})
    wanted = rights(loaded)
    if output is RightsFormat.TABLE:
        Console().print(table(wanted, prefix))
        return
    as_json = output is RightsFormat.JSON
    for line in json_lines(wanted, prefix) if as_json else commands(wanted, loaded, prefix):
        print(line)  # noqa: T201


def commands(wanted: Iterable[Right], settings: Settings, prefix: str) -> Iterator[str]:
    """A call of Kafka's own `kafka-acls.sh` for each right; it is to be made by who may alter the cluster's rights."""
    for right in wanted:
        words = ["kafka-acls.sh", "--bootstrap-server", settings.kafka.bootstrap_servers]
        words += ["--command-config", "admin.properties", "--add", "--allow-principal", principal(right, prefix)]
        for operation in right.operations:
            words += ["--operation", operation]
        if right.resource is Resource.CLUSTER:
            words += ["--cluster"]
        else:
            pattern, name = pattern_of(right)
            words += [f"--{right.resource}", name, "--resource-pattern-type", pattern]
        yield shlex.join(words)


def pattern_of(right: Right) -> tuple[str, str]:
    """The type of Kafka's resource pattern, and its name: what begins with nothing at all is `*`."""
    if right.prefixed and not right.name:
        return "literal", "*"
    return ("prefixed" if right.prefixed else "literal"), right.name


def principal(right: Right, prefix: str) -> str:
    return f"User:{prefix}{right.component}"


def json_lines(wanted: Iterable[Right], prefix: str) -> Iterator[str]:
    """One object for each right."""
    for right in wanted:
        pattern, name = pattern_of(right)
        yield json.dumps(
            {
                "principal": principal(right, prefix),
                "resource": right.resource.value,
                "pattern": pattern,
                "name": name,
                "operations": list(right.operations),
                "why": right.why,
            }
        )


def table(wanted: Iterable[Right], prefix: str) -> Table:
    """For people."""
    shown = Table(box=None, pad_edge=False)
    for heading in ("principal", "resource", "name", "operations", "why"):
        shown.add_column(heading, overflow="fold")
    for right in wanted:
        pattern, name = pattern_of(right)
        ending = "..." if pattern == "prefixed" else ""
        operations = ", ".join(right.operations)
        shown.add_row(principal(right, prefix), right.resource.value, f"{name}{ending}", operations, right.why)
    return shown
