"""A sink that is a program of the user's, in any language: it is asked on its standard input, and answers on its
standard output (`docs/sinks.md`).

A request is one line of JSON; rows follow it as an Arrow IPC stream of as many bytes as it says. An answer is one line
of JSON with the request's number. What the program cannot be asked any more, because it ended, said nonsense or did not
answer in time, fails; it is begun anew with the next `connect`, and asked again.
"""

import io
import json
import os
import signal
import subprocess
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLateError
from contextlib import suppress
from itertools import count
from typing import IO, cast

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from consumer.decide.reached import Reached
from consumer.decide.spans import Span
from consumer.sink import NO_EPOCHS, RefusedError, SinkError, TableError

PROTOCOL = 1
LONGEST_ANSWER = 1_000_000
"""Bytes of a line: one that goes on is no answer."""
ENDS_WITHIN_S = 1.0
"""From the end of its output on."""
END_WITHIN_S = 5.0
"""From the end of its input on, before it is killed."""


class Answer(BaseModel):
    """What the program says to a request: that it is done, or why not."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ask: int
    """The number of the request."""
    refused: str | None = None
    """Why it takes none of the rows, and never will: of one of them."""
    topic_refused: str | None = None
    """Why it takes nothing of the topic, until somebody has mended that."""
    failed: str | None = None
    """Why it could not do it now."""
    last: Mapping[NonNegativeInt, tuple[NonNegativeInt, int | None]] = {}
    """By partition, the offset of the last row that there is, and the epoch that came with it, if any."""
    rows: NonNegativeInt | None = None
    """How many there are."""


class _Program:
    """One process of the program, from its beginning to its end."""

    def __init__(self, command: Sequence[str]) -> None:
        self._name = command[0]
        self._asking = threading.Lock()
        """A request goes out in one piece."""
        self._waiting: dict[int, Future[Answer]] = {}
        self._changing = threading.Lock()
        self._numbers = count(1)
        self._fault: str | None = None
        """Why it is asked nothing any more."""
        try:
            self._process = subprocess.Popen(
                command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise SinkError(f"{self._name} cannot be started: {error.strerror}") from error
        self._input = cast("IO[bytes]", self._process.stdin)
        threading.Thread(target=self._listen, name="sink", daemon=True).start()

    def ask(self, what: str, limit_s: float, rows: pa.Table | None = None, **details: object) -> Answer:
        """What it answers.

        Raises:
            RefusedError: it refuses a record.
            TableError: it takes nothing of the topic.
            SinkError: it failed, did not answer, or ended.
        """
        body = None if rows is None else _in_arrow(rows)
        number, answer = next(self._numbers), Future[Answer]()
        head = {"ask": number, "do": what, **details, "bytes": 0 if body is None else body.size}
        with self._changing:
            if self._fault is not None:
                raise SinkError(f"{self._name} {self._fault}")
            self._waiting[number] = answer
        try:
            with self._asking:
                self._write(json.dumps(head).encode() + b"\n")
                if body is not None:
                    self._write(body)
        except (OSError, ValueError):
            pass  # it has ended, or is being ended: why, is what the answer says
        try:
            said = answer.result(limit_s)
        except TooLateError:
            self.end(f"did not answer within {limit_s:g} s", within_s=0.0)
            said = answer.result()
        if said.refused is not None:
            raise RefusedError(f"{self._name}: {said.refused}")
        if said.topic_refused is not None:
            raise TableError(f"{self._name}: {said.topic_refused}")
        if said.failed is not None:
            raise SinkError(f"{self._name}: {said.failed}")
        return said

    def end(self, why: str, within_s: float = END_WITHIN_S) -> None:
        """Ends it, and whatever it started itself: nothing that it was asked goes on after that."""
        self._give_up(why)
        if within_s and self._asking.acquire(timeout=within_s):  # else it takes nothing in
            self._input.close()
            self._asking.release()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(within_s)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with self._asking:
            self._input.close()

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def _write(self, data: bytes | pa.Buffer) -> None:
        left = memoryview(data)
        while left:
            left = left[self._input.write(left) :]

    def _listen(self) -> None:
        """Until it says nothing more, or what is no answer."""
        with io.BufferedReader(cast("io.RawIOBase", self._process.stdout)) as output:
            while line := output.readline(LONGEST_ANSWER):
                if (fault := self._take(line)) is not None:
                    self.end(fault, within_s=0.0)
                    return
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDS_WITHIN_S)
        code = self._process.returncode
        self.end("closed its output" if code is None else f"ended with {_exit(code)}", within_s=0.0)

    def _take(self, line: bytes) -> str | None:
        """What is wrong with a line, if anything is."""
        if not line.endswith(b"\n"):
            return f"says {len(line)} bytes without the end of a line"
        try:
            said = Answer.model_validate_json(line)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"])) or "it"
            return f"says {_shown(line)}, which is no answer: {where}: {fault['msg'].lower()}"
        with self._changing:
            answer = self._waiting.pop(said.ask, None)
        if answer is None:
            return f"answers request {said.ask}, which waits for none"
        answer.set_result(said)
        return None

    def _give_up(self, why: str) -> None:
        with self._changing:
            self._fault = self._fault or why
            waiting, self._waiting = self._waiting, {}
        for number, answer in waiting.items():
            answer.set_result(Answer(ask=number, failed=self._fault))


class CommandSink:
    """See `consumer.sink.Sink`.

    Args:
        command: the program and its arguments.
        group: the consumer group.
        writer: who writes: no two processes ever under the same name.
        limit_s: an answer that takes longer does not come.
    """

    def __init__(self, command: Sequence[str], group: str, writer: str, limit_s: float) -> None:
        self._command = command
        self._group = group
        self.writer = writer
        self._limit_s = limit_s
        self._program: _Program | None = None

    def connect(self) -> None:
        if self._program is not None:
            self._program.end("is begun anew", within_s=0.0)
        self._program = _Program(self._command)
        self._ask("begin", protocol=PROTOCOL)

    def append(self, topic: str, version: int, rows: pa.Table, epochs: Mapping[int, int] = NO_EPOCHS) -> None:
        self._ask("write", rows, topic=topic, sequence=version, epochs=dict(epochs))

    def set_aside(self, topic: str, record: pa.Table, reason: str, epochs: Mapping[int, int] = NO_EPOCHS) -> None:
        self._ask("set_aside", record, topic=topic, reason=reason, epochs=dict(epochs))

    def seal(self, topic: str, writer: str) -> None:
        self._ask("seal", topic=topic, sealed=writer)

    def columns(self, topic: str) -> pa.StructType:  # noqa: ARG002
        """None: each write says of its rows what they have."""
        return pa.struct([])

    def last_appended(self, topic: str, partitions: Collection[int]) -> dict[int, Reached]:
        last = self._ask("last", topic=topic, partitions=sorted(partitions)).last
        return {number: Reached(*place) for number, place in last.items() if number in partitions}

    def last_set_aside(self, topic: str, partitions: Collection[int]) -> dict[int, Reached]:  # noqa: ARG002
        """None: what is last counts these in."""
        return {}

    def last_offsets(self, topic: str, spans: Mapping[int, Span]) -> dict[int, int]:
        last = self.last_appended(topic, spans)
        return {
            number: place.offset
            for number, place in last.items()
            if spans[number].low <= place.offset <= spans[number].high
        }

    def count(self, topic: str) -> int | None:
        """How many rows of the topic there are, if the program tells."""
        return self._ask("count", topic=topic).rows

    def send_signal(self, number: signal.Signals) -> None:
        """To the program, for whoever wants to see what becomes of that."""
        if self._program is not None:
            self._program.send_signal(number)

    def close(self) -> None:
        if self._program is not None:
            self._program.end("is not needed any more")

    def _ask(self, what: str, rows: pa.Table | None = None, **details: object) -> Answer:
        if self._program is None:
            raise SinkError(f"{self._command[0]} was not begun")
        return self._program.ask(what, self._limit_s, rows, group=self._group, writer=self.writer, **details)


def _in_arrow(rows: pa.Table) -> pa.Buffer:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write_table(rows)
    return stream.getvalue()


def _exit(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _shown(line: bytes) -> str:
    text = line[:60].decode(errors="replace").strip()
    return f"{text!r}..." if len(line) > 60 else repr(text)
