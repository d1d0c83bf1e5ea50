"""`kcga record`: the write speeds that the monitor publishes, as a stream that `kcga simulate` replays."""

import math
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from app.interrupts import stop_on_signals
from app.settings import Settings, load
from app.tail import tail
from cli.files.stream_file import Measurement, write_stream
from cli.options import SettingsFile
from domain.messages import MessageError, WriteSpeedReport

LOOK_EVERY_S = 0.5


def record(
    file: Annotated[Path, typer.Argument(help="Where to write it (.csv or .csv.gz); - is standard output.")],
    settings: SettingsFile,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0, help="End by itself after so many seconds; else with Ctrl-C.")
    ] = None,
    past: Annotated[float, typer.Option(min=0, help="Begin so many seconds back, as far as the topic goes.")] = 0,
) -> None:
    with stop_on_signals() as stop:
        written = record_speeds(load(settings), file, stop, past, seconds)
    print(f"kcga: {written:,} measurements were recorded", file=sys.stderr)  # noqa: T201


def record_speeds(
    settings: Settings, file: Path, stop: threading.Event, past_s: float = 0.0, seconds: float | None = None
) -> int:
    """Writes each report as one iteration, and returns how many there were. Partitions of unknown speed are left out.

    Args:
        settings: of the group.
        file: CSV `iteration,topic,partition,speed`, gzipped where its name ends in .gz.
        stop: ends it.
        past_s: how far back it begins; the topic keeps an hour unless it is set up otherwise.
        seconds: how long it goes on from now; until it is stopped where there is none.

    Raises:
        KcgaError, UsageError: the cluster does not answer, or the file cannot be written.
    """
    written = 0

    def measurements() -> Iterator[Measurement]:
        nonlocal written
        for report in _reports(settings, stop, past_s, seconds):
            if report.speeds.bytes_per_s:
                yield Measurement(written, report.speeds.bytes_per_s)
                written += 1

    write_stream(file, measurements())
    return written


def _reports(
    settings: Settings, stop: threading.Event, past_s: float, seconds: float | None
) -> Iterator[WriteSpeedReport]:
    """In the order in which they came; what comes twice is left aside."""
    began = time.time()
    until = None if seconds is None else began + seconds
    newest, newest_at, measured_at = -1, began - past_s, -math.inf
    with tail(settings) as reader:
        reader.compare_clocks((settings.topics.write_speed, 0))
        while True:
            over = stop.is_set() or (until is not None and time.time() >= until)
            for record in reader.since(settings.topics.write_speed, newest_at):
                if record.offset <= newest or (until is not None and record.at > until):
                    continue
                newest, newest_at = record.offset, record.at
                try:
                    report = WriteSpeedReport.decode(record.value)
                except MessageError:
                    continue
                if report.is_of(settings.kafka.group) and report.measured_at != measured_at:
                    measured_at = report.measured_at
                    yield report
            if over:
                return
            stop.wait(LOOK_EVERY_S)
