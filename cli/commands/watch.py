"""`kcga watch`: advice beside a group of any consumers, which goes on as it is."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

from app.errors import UsageError
from app.interrupts import stop_on_signals
from app.settings import Settings, checked, read
from app.watch.advice import Advice
from app.watch.decide import words
from app.watch.decide.watcher import Moment
from app.watch.looks import Look, look_at
from cli.files.stream_file import Measurement, write_stream
from cli.options import Classes, OutputFormat, parse_classes
from cli.terminal import standard_output
from cli.terminal.glyphs import TopicPalette
from cli.terminal.watch_screen import WatchScreen
from controller.settings import AUTO
from domain.assignment import HIGHEST_CONSUMER
from domain.consumer_class import ConsumerClass
from solver import Problem, Solution, solve

QUIET_S = 10.0
"""So long at most without a word where there is no terminal."""
UNUSED: Mapping[str, Any] = {"monitor": {"topics": ["^"]}}
"""What settings must say, and nobody looks at here."""


def watch(
    group: Annotated[str, typer.Option(help="The consumer group, of any consumers. It goes on as it is.")],
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="Its brokers (host:port), in place of those of the settings.")
    ] = None,
    capacity: Annotated[
        float | None,
        typer.Option(
            help="What one of its consumers reads at most, in bytes/s, in place of consumer_capacity; where neither is "
            "given, an estimate by what members read while they lag."
        ),
    ] = None,
    classes: Classes = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(help="A name, or a regular expression that begins with ^; all that the group reads unless given."),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings", "-s", help="A file (TOML) with the sections kafka, controller and monitor, as far as needed."
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--for", min=1, help="End by itself so many seconds after the first look; else with Ctrl-C."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(help="Also write the speeds as a stream that kcga simulate replays (.csv or .csv.gz)."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help="Serve a page there, with /metrics, /healthz, /readyz, at http.host; 0 for any.",
        ),
    ] = None,
    keda_port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Serve the advised number there as a KEDA external scaler (gRPC)."),
    ] = None,
    output: Annotated[
        OutputFormat, typer.Option(help="A picture, lines where there is no terminal, or a line of JSON each interval.")
    ] = OutputFormat.TEXT,
) -> None:
    topics = tuple(topic or ())
    asked = _settings(settings, group, bootstrap_servers, capacity, topics, parse_classes(classes))
    if keda_port is not None and asked.consumer.classes:
        raise UsageError("--keda-port advises a number of consumers that are all alike: leave their classes out")
    advice = Advice(group, asked.controller.speeds_timeout_s)
    with stop_on_signals() as stop, _served(asked, advice, port, keda_port), _shown(output) as show:

        def looks() -> Iterator[Look]:
            ends_at = math.inf
            for number, look in enumerate(look_at(asked, topics, stop, _solve)):
                if number == 0 and seconds is not None:
                    ends_at = time.monotonic() + seconds
                show(look.moment)
                advice.tell(look.moment)
                yield look
                if time.monotonic() >= ends_at:
                    return

        if record is None:
            deque(looks(), maxlen=0)
        else:
            write_stream(record, _measurements(looks()))


def _solve(problem: Problem, engine: str) -> Solution:
    with standard_output.kept_for_the_result():
        return solve(problem, engine)


def _measurements(looks: Iterable[Look]) -> Iterator[Measurement]:
    known = (look.speeds.bytes_per_s for look in looks if look.speeds is not None and look.speeds.bytes_per_s)
    yield from (Measurement(iteration, speeds) for iteration, speeds in enumerate(known))


def _settings(
    file: Path | None,
    group: str,
    bootstrap_servers: str | None,
    capacity: float | None,
    topics: tuple[str, ...],
    classes: tuple[ConsumerClass, ...],
) -> Settings:
    """Those of the file, if there is one, and in place of them what options say.

    Raises:
        UsageError: something is wrong, or missing.
    """
    if file is None and bootstrap_servers is None:
        raise UsageError(
            "where the brokers are is not known: give --bootstrap-servers, or --settings with a file that says it"
        )
    of_controller = {"max_consumers": HIGHEST_CONSUMER, "consumer_capacity": AUTO}
    values: dict[str, Any] = {"controller": of_controller} if file is None else read(file)
    values = {**UNUSED, **values}
    if isinstance(own := values.get("consumer", {}), Mapping):
        # Of consumers, too, only classes are looked at.
        spark = {} if {"spark_master", "spark_remote"} & own.keys() else {"spark_master": "local"}
        named = {"classes": [asdict(each) for each in classes]} if classes else {}
        values["consumer"] = {"lake_root": "/", **spark, **own, **named}
    options: tuple[tuple[str, str, Any], ...] = (
        ("kafka", "group", group),
        ("kafka", "bootstrap_servers", bootstrap_servers),
        ("controller", "consumer_capacity", capacity),
        ("monitor", "topics", topics or None),
    )
    for section, name, value in options:
        if value is not None and isinstance(own := values.get(section, {}), Mapping):
            values[section] = {**own, name: value}
    found = checked(values, "of the options" if file is None else f"in {file}")
    for section, name, value in options:
        if value is not None and getattr(getattr(found, section), name) != value:
            variable = f"KCGA_{section}__{name}".upper()
            raise UsageError(f"the environment says otherwise than the options: unset {variable}")
    return found


@contextmanager
def _served(settings: Settings, advice: Advice, port: int | None, keda_port: int | None) -> Iterator[None]:
    """Serves what is asked for.

    Raises:
        KcgaError: a port cannot be had.
    """
    host = settings.http.host
    with ExitStack() as serving:
        # Imported only now: each loads a framework.
        if port is not None:
            from app.watch.page import page_served

            serving.enter_context(page_served(settings.http, port, advice))
        if keda_port is not None:
            from cli.live.keda import scaler

            address = f"[{host}]" if ":" in host else host
            serving.enter_context(scaler(advice, address, keda_port))
        yield


@contextmanager
def _shown(output: OutputFormat) -> Iterator[Callable[[Moment], None]]:
    """What shows moments, one after the other."""
    console = Console()
    if output is OutputFormat.JSON:
        yield lambda moment: print(moment.model_dump_json(), flush=True)  # noqa: T201
    elif console.is_terminal and not console.is_dumb_terminal:
        palette = TopicPalette()
        # Drawn by update() alone.
        with Live(console=console, auto_refresh=False) as live:
            yield lambda moment: live.update(WatchScreen(moment, palette), refresh=True)
    else:
        lines = _Lines(console)
        yield lines.show
        lines.close()


class _Lines:
    """Says how things stand once in a while, at once what is new, and all of it at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._newest: Moment | None = None
        self._said: Moment | None = None
        self._known: frozenset[str] = frozenset()

    def show(self, moment: Moment) -> None:
        self._newest, remarks = moment, frozenset(words.remarks(moment))
        if self._said is None or moment.at - self._said.at >= QUIET_S or not remarks <= self._known:
            self._known = remarks
            self._say(moment)

    def close(self) -> None:
        if self._newest is not None and self._newest is not self._said:
            self._say(self._newest)

    def _say(self, moment: Moment) -> None:
        self._said = moment
        for sentence in words.account(moment):
            self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)
