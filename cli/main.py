"""The command line: which commands there are. Each is a module of `cli.commands`, imported once it is called."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

import typer
from typer.core import TyperCommand

from app.errors import KcgaError
from domain.printable import printable

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "up": """Start everything on this machine, under a load that rises and falls, and prove that nothing was lost.

        A component that ends without being asked to is begun anew, as Kubernetes would.""",
        "monitor": "Measure the write speed of each partition and publish it.",
        "controller": "Decide how many consumers there are and which partition each reads, and carry it out.",
        "consumer": "Read the partitions that the controller assigns and write them to the lake.",
        "spark": "Run a Spark Connect server that writes the tables for consumers whose spark_remote names it.",
        "validate": "Check the settings file without starting anything; every fault is named.",
        "acls": "Print the least rights that each component's user needs on the cluster. Nothing is granted.",
        "explain": "Say in words what the controller decided, and why: why it scaled or did not, why each "
        "partition moved.",
        "status": "Show the group as it stands: who reads what, how fast it is written to, what was decided last.",
        "watch": "Say live what kcga would do with a group of any consumers, and what that would save. Nothing is "
        "joined, and nothing written to Kafka.",
        "plan": "Say what the controller would do if it decided now, and why: a dry run that changes nothing.",
        "record": "Write the speeds that the monitor publishes as a stream that kcga simulate replays.",
        "doctor": "Check everything that kcga needs here: Java, brokers, rights, topics, clocks, Spark, the lake; say "
        "what to do.",
        "pause": "Have the controller move nothing any more, but for partitions that have no reader, until "
        "`kcga resume`.",
        "resume": "End a pause.",
        "replan": "Have the controller make a plan now, and carry it out if it is better, whatever would hold it back.",
        "unpark": "Have a topic read again that is parked because its table refused everything, now that it is mended.",
        "deploy": "Bring a group to the Kubernetes cluster that kubectl is set to: controllers, monitor, and all "
        "they need.",
        "solve": "Find the fewest consumers and the least migration for one snapshot of write speeds.",
        "simulate": "Replay a stream of write speeds through engines, each with its own assignment, and compare them.",
        "generate": "Make up a stream of write speeds as the paper does, in CSV iteration,topic,partition,speed.",
        "schema": "Print the JSON schema of the messages on a topic.",
    }
)
"""The help of each command, which is the function of its name in the module of its name."""

LAKE: Mapping[str, str] = MappingProxyType(
    {
        "verify": "Count each partition's rows, and find those that are doubled or missing.",
        "dead-letters": "Show the records that their topics' tables refused, and why.",
        "replay": "Bring the dead letters of a topic to its table, now that it is mended, each once.",
        "optimize": "Rewrite many small files as few large ones; consumers may go on writing.",
        "vacuum": "Delete the files that no table needs any more; consumers may go on writing.",
    }
)
"""The help of each command of `kcga lake`, which are the functions of one module."""


SINK: Mapping[str, str] = MappingProxyType(
    {"check": "Run a program through repeats, kills, a seal and a freeze, and say what it promises."}
)
"""The help of each command of `kcga sink`."""

ROLLOUT: Mapping[str, str] = MappingProxyType(
    {
        "status": "Say which consumers began with another image, template or settings than consumers begin with now.",
        "pause": "Have the controller replace no more consumers, until `kcga rollout resume`.",
        "resume": "Have it go on, also after a consumer that did not become ready.",
        "undo": "Bring back to the Kubernetes cluster what `kcga deploy` brought there before the last time.",
    }
)
"""The help of each command of `kcga rollout`, which are the functions of one module."""


class LazyCommand(TyperCommand):
    """A command of which the help alone is known: its callback imports the function that runs."""

    def load(self) -> Any:
        """The command itself, with its options."""
        alone = typer.Typer(add_completion=False)
        alone.command(self.name, help=self.help)(cast("Callable[[], Callable[..., None]]", self.callback)())
        return typer.main.get_command(alone)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, parent, **extra)


def _add(group: typer.Typer, module: str, name: str, summary: str) -> None:
    def function() -> Callable[..., None]:
        found: Callable[..., None] = getattr(import_module(f"cli.commands.{module}"), name.replace("-", "_"))
        return found

    group.command(name, help=summary, cls=LazyCommand)(function)


app = typer.Typer(
    name="kcga",
    help="Kafka Consumer Group Autoscaler: the fewest consumers that keep up, and the fewest partitions moved.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _name, _summary in COMMANDS.items():
    _add(app, _name, _name, _summary)
for _module, _help, _commands in (
    ("lake", "Look after the tables that consumers write.", LAKE),
    ("sink", "Try a program that records are to go to, in place of a lake.", SINK),
    ("rollout", "Follow how consumers are replaced when their image, template or settings change.", ROLLOUT),
):
    _group = typer.Typer(name=_module, help=_help, no_args_is_help=True)
    for _name, _summary in _commands.items():
        _add(_group, _module, _name, _summary)
    app.add_typer(_group)


def main() -> None:
    """Runs the command; an error that a person can do something about is one message and no traceback."""
    try:
        app()
    except KcgaError as error:
        lines = map(printable, str(error).splitlines())  # it may quote what came from anywhere
        print("kcga:", "\n".join(lines), file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
