"""`kcga acls`: the rights that components need, and how to grant them."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.table import Table

from app.errors import UsageError
from app.settings import Settings, load
from cli.iam import policies
from cli.options import SettingsFile
from cli.rights import Resource, Right, rights
from domain.speeds import Source


class RightsFormat(StrEnum):
    COMMANDS = "commands"
    TABLE = "table"
    JSON = "json"
    STRIMZI = "strimzi"
    MSK_IAM = "msk-iam"


_CLUSTER_OF_SERVICE = re.compile(r"([a-z0-9][a-z0-9-]*)-kafka-(?:\w+-)?bootstrap[.:]")
"""Strimzi's Service of a cluster, such as `my-cluster-kafka-bootstrap.kafka.svc:9093`."""
_OF_AN_OBJECT = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def acls(
    settings: SettingsFile,
    prefix: Annotated[
        str, typer.Option(help="What the users' names begin with; the component's name follows.")
    ] = "kcga-",
    source: Annotated[
        Source | None,
        typer.Option(help="In place of monitor.source: offsets, for a cluster that does not allow Describe on itself."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="For strimzi: the Kafka cluster's name, where kafka.bootstrap_servers does not tell it. For msk-iam: "
            "its ARN."
        ),
    ] = None,
    output: Annotated[
        RightsFormat,
        typer.Option(
            help="commands: calls of kafka-acls.sh; json: one object a line; strimzi: KafkaUsers, as YAML; msk-iam: "
            "policies of IAM, as JSON, by the users' names."
        ),
    ] = RightsFormat.COMMANDS,
) -> None:
    loaded = load(settings)
    if source is not None:
        loaded = loaded.model_copy(update={"monitor": loaded.monitor.model_copy(update={"source": source})})
    wanted = rights(loaded)
    if output is RightsFormat.TABLE:
        Console().print(table(wanted, prefix))
        return
    if output is RightsFormat.STRIMZI:
        print(yaml.safe_dump_all(kafka_users(wanted, loaded, prefix, cluster), sort_keys=False), end="")  # noqa: T201
        return
    if output is RightsFormat.MSK_IAM:
        print(json.dumps(policies(wanted, prefix, cluster), indent=2))  # noqa: T201
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


def kafka_users(
    wanted: Iterable[Right], settings: Settings, prefix: str, cluster: str | None = None
) -> Iterator[dict[str, Any]]:
    """A KafkaUser of Strimzi for each component.

    Raises:
        UsageError: the cluster's name is not known, or a user's is none for an object of Kubernetes.
    """
    told = _CLUSTER_OF_SERVICE.match(settings.kafka.bootstrap_servers)
    if cluster is None and told is None:
        raise UsageError(
            f"kafka.bootstrap_servers is {settings.kafka.bootstrap_servers}, which is no Service of Strimzi's: "
            "--cluster must name the Kafka cluster"
        )
    by_component: dict[str, list[Right]] = {}
    for right in wanted:
        by_component.setdefault(f"{prefix}{right.component}", []).append(right)
    for name, of_user in by_component.items():
        if not _OF_AN_OBJECT.fullmatch(name):
            raise UsageError(
                f"{name} is no name for an object of Kubernetes: --prefix must be of lower case letters, digits, '.' "
                "and '-', a letter or digit first"
            )
        yield {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "KafkaUser",
            "metadata": {"name": name, "labels": {"strimzi.io/cluster": cluster or (told and told[1])}},
            "spec": {
                **_authentication(settings.kafka.client),
                "authorization": {"type": "simple", "acls": [_rule(right) for right in of_user]},
            },
        }


def _authentication(client: Mapping[str, str]) -> dict[str, Any]:
    """As clients say who they are; nothing where that is not Strimzi's to hand out, as with access tokens."""
    if client.get("sasl.mechanism", client.get("sasl.mechanisms", "")).upper() == "SCRAM-SHA-512":
        return {"authentication": {"type": "scram-sha-512"}}
    if client.get("security.protocol", "").upper() == "SSL":
        return {"authentication": {"type": "tls"}}
    return {}


def _rule(right: Right) -> dict[str, Any]:
    if right.resource is Resource.CLUSTER:
        resource = {"type": "cluster"}
    else:
        pattern, name = pattern_of(right)
        kind = "transactionalId" if right.resource is Resource.TRANSACTIONAL_ID else str(right.resource)
        resource = {"type": kind, "name": name, "patternType": "prefix" if pattern == "prefixed" else pattern}
    return {"resource": resource, "operations": list(right.operations)}


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
