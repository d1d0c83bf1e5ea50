"""`kcga record`: the write speeds that the monitor publishes, as a stream that `kcga simulate` replays."""

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.settings import Settings
from app.tail import tail
from cli.packing.stream_file import Measurement, write_stream
from domain.messages import MessageError, WriteSpeedReport

LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class RecordOptions:
    file: Path
    """CSV `iteration,topic,partition,speed`, gzipped where its name ends in .gz."""
    past_s: float = 0.0
    """How far back it begins; the topic keeps an hour unless it is set up otherwise."""
    seconds: float | None = None
    """How long it goes on from now; until it is stopped where there is none."""


def record(settings: Settings, options: RecordOptions, stop: threading.Event) -> int:
    """Writes each report as one iteration, and returns how many there were. Partitions of unknown speed are left out.

    Raises:
        KcgaError, UsageError: the cluster does not answer, or the file cannot be written.
    """
    written = 0

    def measurements() -> Iterator[Measurement]:
        nonlocal written
        for report in _reports(settings, options, stop):
            if report.speeds.bytes_per_s:
                yield Measurement(written, report.speeds.bytes_per_s)
                written += 1

    write_stream(options.file, measurements())
    return written


def _reports(settings: Settings, options: RecordOptions, stop: threading.Event) -> Iterator[WriteSpeedReport]:
    """In the order in which they came; what comes twice is left aside."""
    began = time.time()
    until = None if options.seconds is None else began + options.seconds
    newest, newest_at, measured_at = -1, began - options.past_s, -math.inf
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
