"""The readers: every file is a value or one clear error, and what is written is read as the same."""

import gzip
import io
import json
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import UsageError
from cli.files.snapshot_file import Present, line_of, read_current, read_snapshot
from cli.files.stream_file import Measurement, read_stream, write_stream
from cli.files.text_lines import LONGEST
from domain.assignment import Assignment
from domain.messages import WriteSpeedReport
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from tests.examples import PRINTABLE

HEADER = "topic,partition,speed\n"
CLICKS = TopicPartition("clicks", 0)

partitions = st.builds(
    TopicPartition,
    topic=st.text(PRINTABLE, min_size=1, max_size=10),
    partition=st.integers(0, 2**31 - 1),
)
speeds = st.floats(0, 1e18, allow_nan=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def written(folder: Path, content: bytes | str, name: str = "file.csv") -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "file.csv: there is nothing in it: it must begin with a line of columns, topic,partition,speed"),
        ("\n \n", "file.csv: there is nothing in it"),
        (HEADER, "file.csv: there is no row"),
        ("topic,partition\nclicks,0\n", "file.csv, line 1: there is no column 'speed'"),
        ("clicks,0,5\n", "file.csv, line 1: there is no column 'topic'"),
        ("topic,partition,speed,consumers\nclicks,0,5,1\n", "line 1: the column 'consumers' is not known"),
        ("topic,partition,speed,speed\nclicks,0,5,5\n", "line 1: there are two columns 'speed'"),
        (HEADER + "clicks,0,5\nclicks,1\n", "line 3: there are 2 fields, and 3 columns: topic,partition,speed"),
        (HEADER + "clicks,0,-1\n", "line 2: speed is '-1': it must be a number from 0 to"),
        (HEADER + "\nclicks,0,nan\n", "line 3: speed is 'nan'"),
        (HEADER + "clicks,0,inf\n", "line 2: speed is 'inf'"),
        (HEADER + "clicks,0,1e300\n", "line 2: speed is '1e300'"),
        (HEADER + "clicks,0,1_000\n", "line 2: speed is '1_000'"),
        (HEADER + "clicks,0,fast\n", "line 2: speed is 'fast'"),
        (HEADER + "clicks,0,\n", "line 2: speed is '': it must be a number from 0 to"),
        (HEADER + "clicks,0,5\r\nclicks,0,6\r\n", "line 3: clicks-0 is named twice"),
        (HEADER + "clicks,-1,5\n", "line 2: partition is '-1': it must be a whole number"),
        (HEADER + "clicks,1.5,5\n", "line 2: partition is '1.5'"),
        (HEADER + "clicks,2147483648,5\n", "line 2: partition is '2147483648'"),
        (HEADER + f"clicks,{'9' * 5000},5\n", "line 2: partition is '999"),
        (HEADER + ",0,5\n", "line 2: topic is '': it must have 1 to 249 printable characters"),
        (HEADER + "\x1b[2J,0,5\n", r"line 2: topic is '\x1b[2J'"),
        ("topic,partition,speed,consumer\nclicks,0,5,one\n", "line 2: consumer is 'one': it must be a whole number"),
        (HEADER + '"clicks,0,5\n', "line 2: no CSV"),
        (HEADER.encode() + b"cl\xffcks,0,5\n", "line 2: byte 3 is no UTF-8"),
        (gzip.compress(HEADER.encode() + b"clicks,0,5\n", mtime=0)[:-4], "the gzip data is damaged"),
    ],
)
def test_what_is_wrong_in_a_snapshot_is_named_with_its_line(folder: Path, content: bytes | str, reason: str) -> None:
    file = written(folder, content)
    with pytest.raises(UsageError) as caught:
        read_snapshot(file)
    assert reason in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).isprintable()


def report(*entries: dict[str, object], indent: int | None = None) -> str:
    record = {"version": 1, "kind": "write_speed", "measured_at": 1.5, "partitions": entries}
    return json.dumps(record, indent=indent)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "invalid json"),
        ('{\n"version": 1,\n"measured_at": }', "line 3"),
        ("[]", "line 1"),
        ("{}", "measured_at"),
        ("[" * 100_000, "not a message of monitor.writeSpeed"),
        (report({"topic": "clicks", "partition": 0, "speed": -1}), "line 1: not a message of monitor.writeSpeed"),
        (report({"topic": "clicks", "partition": 0, "speed": float("nan")}), "partitions.0.speed"),
        (report({"topic": "clicks", "partition": 0, "speed": "5"}), "partitions.0.speed"),
        (report({"topic": "clicks", "partition": 0}), "partitions.0.speed: field required"),
        (report({"topic": "clicks", "partition": 0, "speed": 1e300}), "partitions.0.speed: input should be less"),
        (report({"topic": "clicks", "partition": 2**40, "speed": 1}), "partitions.0.partition: input should be less"),
        (
            report({"topic": "\x1b", "partition": 0, "speed": 1}),
            r"'\x1b' has characters that are not printable",
        ),
        (report(*[{"topic": "clicks", "partition": 0, "speed": 1}] * 2), "clicks-0 is named twice"),
        (report(), "no partition has a known speed"),
        (report({"topic": "clicks", "partition": 0, "speed": None}), "no partition has a known speed"),
    ],
)
def test_what_is_wrong_in_a_message_is_named(folder: Path, content: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_snapshot(written(folder, content, "file.json"))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_line_of_a_wrong_value_in_json_is_where_it_stands(folder: Path) -> None:
    text = report(*({"topic": "clicks", "partition": n, "speed": 1 - 2 * (n == 7)} for n in range(9)), indent=1)
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "-1" in line)
    with pytest.raises(UsageError, match=f"file.json, line {line}: not a message"):
        read_snapshot(written(folder, text, "file.json"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(before=json_values, after=json_values)
def test_the_line_of_any_value_is_found(before: object, after: object) -> None:
    text = json.dumps([{"first": before, "second": "HERE"}, after], indent=2)
    expected = [number for number, line in enumerate(text.splitlines(), 1) if '"HERE"' in line]
    assert line_of(text, (0, "second")) in expected
    assert line_of(text, ()) == 1


@given(st.text())
def test_any_text_has_a_line_or_none(text: str) -> None:
    line_of(text, ("partitions", 0, "speed"))


def test_a_snapshot_may_begin_with_a_byte_order_mark_and_name_its_columns_in_any_order(folder: Path) -> None:
    snapshot = read_snapshot(
        written(folder, "\ufeffconsumer,speed,partition,topic\r\n4,2.5,0,clicks\r\n,0,1,clicks\r\n")
    )
    assert snapshot.speeds == {CLICKS: 2.5, TopicPartition("clicks", 1): 0}
    assert snapshot.current == Present(Assignment({CLICKS: 4}))


@given(known=st.dictionaries(partitions, speeds, min_size=1, max_size=8), unknown=st.frozensets(partitions, max_size=3))
def test_a_published_message_is_read_as_it_was_sent(
    folder: Path, known: dict[TopicPartition, float], unknown: frozenset[TopicPartition]
) -> None:
    sent = WriteSpeeds(1.0, known, unknown - known.keys())
    snapshot = read_snapshot(written(folder, WriteSpeedReport.of(sent).encode(), "file.json"))
    assert snapshot.speeds == known
    assert snapshot.unknown == sent.unknown
    assert snapshot.current is None


@given(
    st.lists(st.dictionaries(partitions, speeds, min_size=1, max_size=5), min_size=1, max_size=4),
    st.sampled_from(["stream.csv", "stream.csv.gz"]),
)
def test_a_stream_is_read_as_it_was_written(
    folder: Path, iterations: list[dict[TopicPartition, float]], name: str
) -> None:
    measurements = [Measurement(2 * number, speeds) for number, speeds in enumerate(iterations)]
    write_stream(folder / name, measurements)
    assert read_stream(folder / name) == measurements


def test_a_stream_that_is_written_again_has_the_same_bytes(folder: Path) -> None:
    for name in ("one.csv.gz", "other.csv.gz"):
        write_stream(folder / name, [Measurement(1, {CLICKS: 0.1})])
    assert (folder / "one.csv.gz").read_bytes() == (folder / "other.csv.gz").read_bytes()


def test_iterations_are_ordered_by_their_numbers_whatever_the_order_of_the_rows(folder: Path) -> None:
    stream = read_stream(written(folder, "iteration,topic,partition,speed\n10,a,0,1\n2,a,0,2\n10,a,1,3\n"))
    assert [measurement.iteration for measurement in stream] == [2, 10]
    assert stream[1].speeds == {TopicPartition("a", 0): 1, TopicPartition("a", 1): 3}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("iteration,topic,partition,speed\n1,a,0,1\n1,a,0,1\n", "line 3: a-0 is named twice in iteration 1"),
        ("iteration,topic,partition,speed\none,a,0,1\n", "line 2: iteration is 'one'"),
        (HEADER + "a,0,1\n", "line 1: there is no column 'iteration'"),
    ],
)
def test_what_is_wrong_in_a_stream_is_named_with_its_line(folder: Path, content: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        read_stream(written(folder, content))


def test_a_file_that_is_not_gzip_and_says_so_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"file\.csv\.gz is not gzip, which its name says"):
        read_stream(written(folder, "iteration,topic,partition,speed\n1,a,0,1\n", "file.csv.gz"))


@pytest.mark.parametrize("name", ["missing.csv", "."])
def test_a_file_that_cannot_be_read_is_named(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_snapshot(folder / name)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("topic,partition,consumer\nclicks,0,1\nclicks,0,2\n", "line 3: clicks-0 is named twice"),
        ("topic,partition,consumer\nclicks,0,\n", "line 2: consumer is '': it must be a whole number"),
        ("topic,partition,consumer\nclicks,0,-1\n", "line 2: consumer is '-1'"),
        (HEADER + "clicks,0,1\n", "there is no column 'consumer'"),
        ('{"assignment":\n[{"topic": "a", "partition": 0, "consumer": "1"}]}', "line 2: not a plan"),
        (json.dumps({"assignment": [{"topic": "a", "partition": 0, "consumer": 1}] * 2}), "a-0 is named twice"),
    ],
)
def test_what_is_wrong_in_a_current_assignment_is_named(folder: Path, content: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        read_current(written(folder, content))


BEGINNINGS = (
    "",
    HEADER,
    "topic,partition,consumer\n",
    "iteration,topic,partition,speed\n",
    '{"measured_at": 1, "partitions": [',
    '{"assignment": [',
)


@pytest.mark.parametrize("read", [read_snapshot, read_current, read_stream])
@given(
    beginning=st.sampled_from(BEGINNINGS),
    rest=st.binary(max_size=60) | st.text(',\n"0123456789.-eabc{}[]:', max_size=60).map(str.encode),
    zipped=st.booleans(),
    cut=st.integers(0, 40),
)
def test_any_bytes_are_a_value_or_a_clear_error(
    folder: Path, read: Callable[[Path], object], beginning: str, rest: bytes, zipped: bool, cut: int
) -> None:
    content = beginning.encode() + rest
    file = written(folder, gzip.compress(content)[: -cut or None] if zipped else content)
    with suppress(UsageError):
        read(file)


@pytest.mark.parametrize("read", [read_snapshot, read_current])
@given(content=json_values.map(json.dumps))
def test_any_json_is_a_value_or_a_clear_error(folder: Path, read: Callable[[Path], object], content: str) -> None:
    with suppress(UsageError):
        read(written(folder, content, "file.json"))


def bomb(first: bytes, part: bytes, parts: int) -> bytes:
    """A gzip file a thousandth the size of what is in it, made bit by bit."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as stream:
        stream.write(first)
        for _ in range(parts):
            stream.write(part)
    return packed.getvalue()


@pytest.mark.parametrize(
    "first",
    [HEADER.encode() + b'"', pytest.param(b'{"measured_at": 1, "partitions": [', marks=pytest.mark.slow(1))],
)
def test_a_line_without_end_is_refused_before_it_fills_the_memory(folder: Path, first: bytes) -> None:
    """Hole 24: one line of 2 GB, in 2 MB of gzip, took 5.9 GB of memory."""
    file = folder / "bomb.gz"
    file.write_bytes(bomb(first, bytes(2**20), 200))
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="a line must have no more than 67,108,864 bytes"):
            read_snapshot(file)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * LONGEST


def test_json_without_end_is_refused_though_its_lines_are_short(folder: Path) -> None:
    """Hole 24: only lines were bounded."""
    file = folder / "bomb.gz"
    file.write_bytes(bomb(b"{\n", b" " * 99_999 + b"1\n", 1_000))
    with pytest.raises(UsageError, match="JSON must have no more than 67,108,864 characters"):
        read_snapshot(file)


@pytest.mark.parametrize("first", [b"", HEADER.encode(), b"{\n"])
def test_blank_lines_without_end_are_refused(first: bytes) -> None:
    """Hole 24: they were read on and on."""
    endless = Endless(first, b"\n \n")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(endless)))
        with pytest.raises(UsageError, match=r"standard input, line \d+: more than 10,000 lines"):
            read_snapshot(Path("-"))


class Endless(io.RawIOBase):
    """What can be read for ever."""

    def __init__(self, first: bytes, then: bytes) -> None:
        self._first, self._then = first, then

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._first or self._then * (len(buffer) // len(self._then))
        self._first = b""
        buffer[: len(content)] = content
        return len(content)
