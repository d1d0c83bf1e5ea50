"""Runs a program that is to be a sink through repeats, kills, a seal and a freeze: what does it promise?"""

import signal
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from consumer.command_sink import CommandSink
from consumer.decide.batch import Record
from consumer.sink import SinkError
from consumer.table import rows
from consumer.threads import in_thread
from domain.partitions import TopicPartition

ROWS = 2_000
"""Of each write: some that a kill can come among."""
KILLS = 8
FIRST_KILL_S = 0.002
DAY = date(2026, 1, 1)


@dataclass(frozen=True, slots=True)
class Step:
    ok: bool
    text: str


class SinkCheck:
    """One run. `promise` says at its end what the program does: "exactly once", "at least once", or None."""

    def __init__(self, command: Sequence[str], limit_s: float) -> None:
        self.promise: str | None = None
        self._topic = f"kcga-sink-check-{uuid.uuid4().hex}"
        self._writers = [
            CommandSink(command, "kcga-sink-check", f"kcga-sink-check/{n}/{uuid.uuid4().hex}", limit_s) for n in (1, 2)
        ]
        self._written = 0
        """Rows that there must be."""
        self._version = 0

    def run(self) -> Iterator[Step]:
        """The steps as they are done; it ends with the first that every sink has to do and this one does not."""
        try:
            yield from self._at_least_once()
            self.promise = "at least once"
            yield from self._exactly_once()
        except SinkError as error:
            yield Step(False, str(error))
        finally:
            for each in self._writers:
                each.close()

    def _at_least_once(self) -> Iterator[Step]:
        first, _ = self._writers
        first.connect()
        yield Step(True, "it begins, and answers")
        self._write(first)
        yield Step(True, f"it takes {ROWS} rows")
        first.append(self._topic, self._version, self._rows(self._written - ROWS))
        yield Step(True, "it answers to the same rows again")
        for kill in range(KILLS):
            writing = in_thread(lambda: self._append_next(first))
            time.sleep(FIRST_KILL_S * 2**kill)
            first.send_signal(signal.SIGKILL)
            with suppress(SinkError):
                writing.result()
            first.connect()
            self._write(first)
        yield Step(True, f"killed {KILLS} times while it was asked, it takes the same rows when it is asked again")

    def _exactly_once(self) -> Iterator[Step]:
        first, second = self._writers
        last = first.last_appended(self._topic, [0])
        if not last:
            yield Step(False, "it tells no last row: after a consumer dies, rows come again")
            return
        steps: tuple[tuple[str, str, Callable[[], None]], ...] = (
            ("what it tells is last is", "after repeats and kills", lambda: None),
            ("a writer that is sealed adds nothing:", "after a seal", self._seal),
            ("a writer that was frozen and sealed adds nothing:", "after it woke up", self._freeze),
        )
        second.connect()
        for text, when, act in steps:
            act()
            count, reached = second.count(self._topic), second.last_appended(self._topic, [0])
            offset = reached[0].offset if 0 in reached else None
            if count is None:
                yield Step(False, "it does not count its rows: whether any is doubled cannot be told")
                return
            ok = (count, offset) == (self._written, self._written - 1)
            yield Step(ok, f"{text} offset {offset}, {count} of {self._written} rows {when}")
            if not ok:
                return
        self.promise = "exactly once"

    def _seal(self) -> None:
        first, second = self._writers
        second.seal(self._topic, first.writer)
        with suppress(SinkError):
            self._append_next(first)

    def _freeze(self) -> None:
        second, first = self._writers[1], self._writers[0]
        first.writer = f"{first.writer}-again"
        first.send_signal(signal.SIGSTOP)
        writing = in_thread(lambda: self._append_next(first))
        second.seal(self._topic, first.writer)
        first.send_signal(signal.SIGCONT)
        with suppress(SinkError):
            writing.result()

    def _write(self, sink: CommandSink) -> None:
        self._append_next(sink)
        self._written += ROWS
        self._version += 1

    def _append_next(self, sink: CommandSink) -> None:
        sink.append(self._topic, self._version + 1, self._rows(self._written))

    def _rows(self, first: int) -> pa.Table:
        place = TopicPartition(self._topic, 0)
        return rows([Record(place, first + n, 1, b"key", b"value", ()) for n in range(ROWS)], DAY)
