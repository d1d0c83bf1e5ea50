"""A sink that is a program: what it is asked, what it answers, and what becomes of one that does neither."""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from consumer.command_sink import CommandSink
from consumer.decide.batch import Record
from consumer.decide.reached import Reached
from consumer.decide.spans import Span
from consumer.sink import RefusedError, SinkError, TableError
from consumer.table import rows
from domain.partitions import TopicPartition
from tests.patience import PATIENCE_S, wait_until
from tests.sink_examples import Example


def records(first: int, end: int, partition: int = 0) -> pa.Table:
    place = TopicPartition("orders", partition)
    return rows([Record(place, offset, 1, b"k", b"v%d" % offset, ()) for offset in range(first, end)], date(2026, 1, 1))


def answering(*answers: str) -> list[str]:
    """A program that reads a request, says an answer, reads the next, and so on; and then reads on without a word."""
    program = (
        "import sys, json\n"
        "def read():\n"
        "    line = sys.stdin.buffer.readline()\n"
        "    if not line: sys.exit()\n"
        "    asked = json.loads(line); sys.stdin.buffer.read(asked['bytes']); return asked\n"
        f"for said in {answers!r}:\n"
        "    asked = read()\n"
        "    said = said.replace('x…', 2_000_000 * 'x').replace('N', str(asked['ask']))\n"
        "    sys.stdout.write(said); sys.stdout.flush()\n"
        "while True: read()\n"
    )
    return [sys.executable, "-c", program]


KEPT = 'SELECT partition, "offset" FROM records ORDER BY 1, 2'
SET_ASIDE = 'SELECT partition, "offset" FROM set_aside ORDER BY 1, 2'
POSTGRES = pytest.param("Postgres", marks=pytest.mark.integration)
EXAMPLES = pytest.mark.parametrize("example", ["SQLite", POSTGRES], indirect=True)
DONE = '{"ask": N}\n'
Open = Callable[..., CommandSink]


@pytest.fixture
def open_sink() -> Iterator[Open]:
    sinks: list[CommandSink] = []

    def open_sink(command: list[str], writer: str = "g/1/a", limit_s: float = PATIENCE_S) -> CommandSink:
        sinks.append(CommandSink(command, "g", writer, limit_s))
        return sinks[-1]

    yield open_sink
    for sink in sinks:
        sink.close()


def test_it_is_asked_in_lines_with_rows_in_arrow(open_sink: Open, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    program = (
        "import sys, json, pyarrow as pa\n"
        "with open(sys.argv[1], 'a') as seen:\n"
        "    for line in iter(sys.stdin.buffer.readline, b''):\n"
        "        asked = json.loads(line); body = sys.stdin.buffer.read(asked['bytes'])\n"
        "        offsets = pa.ipc.open_stream(body).read_all()['offset'].to_pylist() if body else None\n"
        "        print(json.dumps([asked, offsets]), file=seen, flush=True)\n"
        "        print(json.dumps({'ask': asked['ask']}), flush=True)\n"
    )
    sink = open_sink([sys.executable, "-c", program, str(seen)])
    sink.connect()
    sink.append("orders", 7, records(3, 5), {0: 9})
    sink.seal("orders", "g/2/b")
    asked = [json.loads(line) for line in seen.read_text().splitlines()]
    by = {"group": "g", "writer": "g/1/a"}
    assert [request for request, _ in asked] == [
        {"ask": 1, "do": "begin", "protocol": 1, "bytes": 0, **by},
        {
            "ask": 2,
            "do": "write",
            "topic": "orders",
            "sequence": 7,
            "epochs": {"0": 9},
            "bytes": asked[1][0]["bytes"],
            **by,
        },
        {"ask": 3, "do": "seal", "topic": "orders", "sealed": "g/2/b", "bytes": 0, **by},
    ]
    assert [offsets for _, offsets in asked] == [None, [3, 4], None]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("done\n", "says 'done', which is no answer: it: invalid json"),
        ('{"ask": N, "dune": 1}\n', "which is no answer: dune: extra inputs are not permitted"),
        ('{"ask": N, "last": {"0": 1}}\n', "which is no answer: last.0"),
        ('{"ask": 99}\n', "answers request 99, which waits for none"),
        ("x…", "says 1000000 bytes without the end of a line"),
        ('{"ask": N, "failed": "the disk is full"}\n', "the disk is full"),
    ],
)
def test_what_is_no_answer_is_told_and_the_next_program_is_asked_again(open_sink: Open, answer: str, why: str) -> None:
    sink = open_sink(answering(DONE, answer))
    sink.connect()
    with pytest.raises(SinkError) as error:
        sink.append("orders", 1, records(0, 3))
    assert why in str(error.value)
    assert not isinstance(error.value, RefusedError)
    sink.connect()


def test_a_record_that_is_refused_is_told_from_what_failed(open_sink: Open) -> None:
    sink = open_sink(answering(DONE, '{"ask": N, "refused": "no customer"}\n', DONE))
    sink.connect()
    with pytest.raises(RefusedError, match="no customer"):
        sink.append("orders", 1, records(0, 3))
    sink.append("orders", 2, records(0, 1))


def test_a_topic_that_is_refused_is_told_from_a_record(open_sink: Open) -> None:
    sink = open_sink(answering(DONE, '{"ask": N, "topic_refused": "no such stream"}\n'))
    sink.connect()
    with pytest.raises(TableError, match="no such stream"):
        sink.append("orders", 1, records(0, 3))


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import sys; sys.exit(3)", "ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "ended with SIGKILL"),
    ],
)
def test_a_program_that_ends_is_told_with_how(
    open_sink: Open, program: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumer.command_sink.ENDS_WITHIN_S", PATIENCE_S)
    with pytest.raises(SinkError, match=why):
        open_sink([sys.executable, "-c", program]).connect()


def test_a_program_that_is_not_there_is_told(open_sink: Open) -> None:
    with pytest.raises(SinkError, match="/no/such cannot be started: No such file"):
        open_sink(["/no/such"]).connect()
    with pytest.raises(SinkError, match="/no/such was not begun"):
        open_sink(["/no/such"]).seal("orders", "g/2/b")


def test_one_that_does_not_answer_is_killed_and_nothing_of_what_waits_for_it_is_left_waiting(open_sink: Open) -> None:
    sink = open_sink(answering(DONE))
    sink.connect()
    sink._limit_s = 1.0
    faults: list[str] = []

    def seal(writer: str) -> None:
        with pytest.raises(SinkError) as error:
            sink.seal("orders", writer)
        faults.append(str(error.value))

    threads = [threading.Thread(target=seal, args=(f"g/{number}/b",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(faults) == 3
    assert all("did not answer within 1 s" in fault for fault in faults)
    assert not psutil.pid_exists(sink._program._process.pid)  # type: ignore[union-attr]


@pytest.mark.slow
def test_one_that_reads_nothing_holds_nobody_up_once_it_is_begun_anew(open_sink: Open) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys, time; sys.stdin.readline(); print('{\"ask\": 1}', flush=True); time.sleep(999)",
    ]
    sink = open_sink(command)
    sink.connect()
    big = pa.concat_tables([records(0, 20_000)] * 10)  # more than a pipe takes
    failed = threading.Event()

    def append() -> None:
        with pytest.raises(SinkError, match="is begun anew"):
            sink.append("orders", 1, big)
        failed.set()

    threading.Thread(target=append).start()
    wait_until(lambda: sink._program._asking.locked())  # type: ignore[union-attr]
    assert not failed.is_set()
    sink.connect()
    assert failed.wait(PATIENCE_S)


def test_what_it_started_itself_ends_with_it(open_sink: Open) -> None:
    program = (
        "import subprocess, sys, json\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(999)'])\n"
        "print(json.dumps({'ask': 1, 'last': {'0': [child.pid, None]}}), flush=True)\n"
        "sys.stdin.read()\n"
    )
    sink = open_sink([sys.executable, "-c", program])
    sink.connect()
    parent = sink._program._process.pid  # type: ignore[union-attr]
    (child,) = psutil.Process(parent).children()
    sink.close()
    child.wait(PATIENCE_S)
    assert not psutil.pid_exists(parent)


Begin = Callable[[str], CommandSink]


@pytest.fixture
def begin(open_sink: Open, example: Example) -> Begin:
    def begin(writer: str) -> CommandSink:
        sink = open_sink([*example.command], writer)
        sink.connect()
        return sink

    return begin


@EXAMPLES
def test_the_example_takes_each_sequence_once(begin: Begin, example: Example) -> None:
    sink = begin("g/1/a")
    for version in (1, 1, 2, 1, 2):
        sink.append("orders", version, records(5 * version, 5 * version + 5), {0: 4})
    assert example.held(KEPT) == [(0, offset) for offset in range(5, 15)]
    assert sink.last_appended("orders", [0, 1]) == {0: Reached(14, 4)}
    assert sink.last_offsets("orders", {0: Span(0, 14), 1: Span(0, 9)}) == {0: 14}
    assert sink.last_offsets("orders", {0: Span(0, 13)}) == {}


@EXAMPLES
def test_the_example_takes_nothing_of_a_writer_that_is_sealed(begin: Begin, example: Example) -> None:
    former, sink = begin("g/1/a"), begin("g/2/b")
    former.append("orders", 1, records(0, 3))
    for _ in range(2):
        sink.seal("orders", "g/1/a")
    former.append("orders", 2, records(3, 6))
    former.set_aside("orders", records(6, 7), "no customer")
    former.append("clicks", 3, records(3, 6))
    assert example.held(KEPT) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]
    assert example.held(SET_ASIDE) == []
    assert sink.last_appended("orders", [0]) == {0: Reached(2, None)}


@EXAMPLES
def test_the_example_sets_a_record_aside_once(begin: Begin, example: Example) -> None:
    sink = begin("g/1/a")
    for _ in range(2):
        sink.set_aside("orders", records(6, 7), "no customer", {0: 2})
    assert example.held(SET_ASIDE) == [(0, 6)]
    assert sink.last_appended("orders", [0]) == {0: Reached(6, 2)}


@pytest.mark.parametrize("example", [POSTGRES], indirect=True)
def test_the_example_refuses_what_a_constraint_of_its_table_does(begin: Begin, example: Example) -> None:
    sink = begin("g/1/a")
    example.held('ALTER TABLE records ADD CONSTRAINT odd CHECK ("offset" <> 4)')
    with pytest.raises(RefusedError, match="odd"):
        sink.append("orders", 1, records(3, 6))
    sink.append("orders", 2, records(3, 4))
    sink.set_aside("orders", records(4, 5), "odd")
    sink.append("orders", 3, records(5, 6))
    assert (example.held(KEPT), example.held(SET_ASIDE)) == ([(0, 3), (0, 5)], [(0, 4)])


@EXAMPLES
@pytest.mark.slow(5)
def test_the_example_killed_at_any_moment_has_all_of_a_sequence_or_nothing(begin: Begin, example: Example) -> None:
    sink = begin("g/1/a")
    for version in range(1, 9):
        batch = records(1_000 * version, 1_000 * version + 1_000)
        outcome = threading.Thread(target=lambda v=version, b=batch: _try(sink, v, b))
        outcome.start()
        time.sleep(0.004 * version)
        sink.send_signal(signal.SIGKILL)
        outcome.join(PATIENCE_S)
        sink.connect()
        sink.append("orders", version, batch)
    assert example.held(KEPT) == [(0, offset) for offset in range(1_000, 9_000)]


def _try(sink: CommandSink, version: int, batch: pa.Table) -> None:
    try:
        sink.append("orders", version, batch)
    except SinkError:
        return
