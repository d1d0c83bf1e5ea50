"""Text files line by line, rows of CSV, tables that are written, and the ranges of numbers: each piece by itself."""

import gzip
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from app.errors import KcgaError, UsageError
from cli.files.csv_output import STANDARD_OUTPUT, CsvTable, number
from cli.files.csv_rows import Id, MaybeId, Row, Speed, read_rows, require_topic, shown
from cli.files.text_lines import STANDARD_INPUT, Place, TextLines, read_lines
from cli.ranges import require, require_capacity, require_time_limit
from domain.partitions import HIGHEST_ID, TopicPartition
from tests.examples import examples

PLACE = Place("file.csv", 3)


class Table(BaseModel):
    a: str
    b: str
    c: str = ""


class Figures(Row):
    speed: Speed = 0.0
    consumer: MaybeId = None
    iteration: Id = 0


def rows(text: str) -> list[dict[str, str]]:
    source = TextLines("file.csv", iter(text.splitlines(keepends=True)))
    return [row.model_dump(exclude_unset=True) for _, row in read_rows(source, Table)]


def figures(**fields: str) -> Figures:
    """The row with these fields, and those that it must have, on line 2."""
    fields = {"topic": "orders", "partition": "3", **fields}
    lines = iter([",".join(fields) + "\n", ",".join(fields.values()) + "\n"])
    ((place, row),) = read_rows(TextLines("file.csv", lines), Figures)
    assert place == Place("file.csv", 2)
    return row


def test_a_fault_is_told_with_its_file_and_line() -> None:
    with pytest.raises(UsageError, match=r"^file\.csv, line 3: no good$"):
        PLACE.fail("no good")
    with pytest.raises(UsageError, match=r"^file\.csv: no good$"):
        Place("file.csv").fail("no good")


@pytest.mark.parametrize("zipped", [False, True])
def test_lines_are_read_plain_or_gzipped_whatever_the_name_says(tmp_path: Path, zipped: bool) -> None:
    data = "\ufeffspeed\r\nä\nlast".encode()
    file = tmp_path / "snapshot.csv"
    file.write_bytes(gzip.compress(data) if zipped else data)
    assert list(read_lines(file).lines) == ["speed\r\n", "ä\n", "last"]


def test_lines_come_from_standard_input_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\n")))
    source = read_lines(STANDARD_INPUT)
    assert (source.name, source.text) == ("standard input", "one\ntwo\n")


def test_a_look_at_the_first_line_takes_nothing_away() -> None:
    source = TextLines("x", iter(["\n", "  \n", "first\n", "second\n"]))
    line, again = source.peeked()
    assert line == "first\n"
    assert again.text == "\n  \nfirst\nsecond\n"
    assert TextLines("x", iter([])).peeked()[0] == ""


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.csv", b"fine\nnot \xff fine\n", r"a\.csv, line 2: byte 5 is no UTF-8"),
        ("a.csv.gz", b"speed\n", r"a\.csv\.gz is not gzip"),
        ("a.csv", gzip.compress(b"speed\n" * 1000, mtime=0)[:-12], r"a\.csv, line \d+: the gzip data is damaged"),
    ],
)
def test_data_that_is_not_what_it_should_be_is_named(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(UsageError, match=reason):
        list(read_lines(file).lines)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.csv cannot be read: No such file"):
        list(read_lines(tmp_path / "none.csv").lines)


def test_rows_are_by_the_names_of_their_columns_and_blank_lines_are_none() -> None:
    assert rows("\nb, a\n\n1,2\n   \n3,4\n") == [{"b": "1", "a": "2"}, {"b": "3", "a": "4"}]
    assert rows('a,b,c\n"x\ny",2,3\n') == [{"a": "x\ny", "b": "2", "c": "3"}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"there is nothing in it: it must begin with a line of columns, a,b"),
        ("\n \n", r"there is nothing in it"),
        ("a,b\n", r"there is no row"),
        ("a\n1\n", r"line 1: there is no column 'b': the first line must name the columns a,b"),
        ("a,b,e\n1,2,3\n", r"line 1: the column 'e' is not known"),
        ("a,b,a\n1,2,3\n", r"line 1: there are two columns 'a'"),
        ("a,b\n1\n", r"line 2: there are 1 fields, and 2 columns: a,b"),
        ('a,b\n1,"2\n', r"line 2: no CSV"),
    ],
)
def test_what_is_wrong_with_rows_is_told(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        rows(text)


@given(st.integers(0, HIGHEST_ID), st.sampled_from(["", " "]))
@settings(max_examples=examples(30), deadline=None, derandomize=True)
def test_a_number_of_a_partition_is_read_with_or_without_spaces(value: int, space: str) -> None:
    assert figures(partition=f"{space}{value}{space}").partition == value
    assert figures(consumer=f"{space}{value}{space}").consumer == value


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "1e3", "0x1", "٣", str(HIGHEST_ID + 1), "9" * 5000])
def test_anything_else_is_no_number_of_a_partition(text: str) -> None:
    for column in ("partition", "iteration"):
        with pytest.raises(
            UsageError, match=rf"line 2: {column} is .*: it must be a whole number from 0 to 2147483647"
        ):
            figures(**{column: text})


@pytest.mark.parametrize("text", ["0", " 12.5 ", "1e3", "1e300"])
def test_a_speed_is_any_number_that_is_not_too_high(text: str) -> None:
    if text == "1e300":
        with pytest.raises(UsageError, match="it must be a number from 0"):
            figures(speed=text)
    else:
        assert figures(speed=text).speed == float(text)


@pytest.mark.parametrize("text", ["", "-1", "nan", "inf", "fast", "1_000"])
def test_anything_else_is_no_speed(text: str) -> None:
    with pytest.raises(UsageError, match="it must be a number"):
        figures(speed=text)


def test_a_partition_is_its_topic_and_its_number() -> None:
    assert figures(topic="orders", partition="3").key == TopicPartition("orders", 3)


def test_a_consumer_may_be_left_out_and_0_is_one() -> None:
    assert figures(consumer=" ").consumer is None
    assert figures().consumer is None
    assert figures(consumer="0").consumer == 0


@pytest.mark.parametrize("topic", ["", "x" * 250, "a\x1b[2J", "a\nb"])
def test_what_a_terminal_would_suffer_from_is_no_topic(topic: str) -> None:
    require_topic("x" * 249, PLACE)
    with pytest.raises(UsageError, match="printable characters"):
        require_topic(topic, PLACE)


@given(st.text(st.sampled_from("a'\"\\\n\x1b\u202e ä€🙂"), max_size=70))
@settings(max_examples=examples(50), deadline=None, derandomize=True)
def test_any_text_is_shown_in_one_short_line_in_quotes(text: str) -> None:
    line = shown(text)
    assert len(line) <= 60
    assert line.isprintable()
    assert line[0] == line[-1]


def test_a_table_begins_with_its_columns_and_the_same_rows_are_the_same_bytes(tmp_path: Path) -> None:
    files = [tmp_path / "a.csv.gz", tmp_path / "b.csv.gz"]
    for file in files:
        with CsvTable(file, ("topic", "speed")) as table:
            table.write(("ä,b", 1.5))
    assert gzip.decompress(files[0].read_bytes()).decode() == 'topic,speed\n"ä,b",1.5\n'
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_table_may_go_to_standard_output_which_stays_open(capsys: pytest.CaptureFixture[str]) -> None:
    with CsvTable(STANDARD_OUTPUT, ("a",)) as table:
        table.write((1,))
    print("still open")  # noqa: T201
    assert capsys.readouterr().out == "a\n1\nstill open\n"


def test_a_table_that_cannot_be_made_or_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"cannot be written: No such file"),
        CsvTable(tmp_path / "no" / "a.csv", ("a",)),
    ):
        pass
    with pytest.raises(KcgaError, match="/dev/full cannot be written: No space left"):  # noqa: SIM117
        with CsvTable(Path("/dev/full"), ("a",)) as table:
            table.write(("x" * 100_000,))


@given(st.floats(0, allow_nan=False, allow_infinity=False))
@settings(max_examples=examples(50), deadline=None, derandomize=True)
def test_a_number_is_written_so_that_it_is_read_as_the_same(value: float) -> None:
    assert float(number(value)) == value
    assert not number(value).endswith(".0")


@pytest.mark.parametrize(
    ("check", "value", "reason"),
    [
        (require_capacity, 0.0, "--capacity is 0: it must be above 0"),
        (require_capacity, float("nan"), "--capacity is nan: it must be above 0"),
        (require_capacity, float("inf"), "--capacity is inf: it must be a number from"),
        (require_capacity, 1e-7, "--capacity is 1e-07: it must be a number from 1e-06"),
        (require_time_limit, -1.0, "--time-limit is -1: it must be a number of seconds above 0"),
        (require_time_limit, 1e-4, "--time-limit is 0.0001: it must be a number from 0.001 to 86400"),
        (require_time_limit, 86_401.0, "to 86400"),
        (lambda value: require("x", value, 0, 2), float("nan"), "x is nan: it must be a number from 0 to 2"),
    ],
)
def test_a_number_outside_its_range_is_an_error_that_says_the_range(
    check: Callable[[float], float], value: float, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        check(value)


def test_a_number_on_the_edge_of_its_range_is_in_it() -> None:
    assert (require("x", 0, 0, 2), require("x", 2, 0, 2)) == (0, 2)
    assert (require_capacity(1e-6), require_time_limit(86_400.0)) == (1e-6, 86_400.0)


def test_lines_are_read_once() -> None:
    lines: Iterator[str] = iter(["a\n"])
    source = TextLines("x", lines)
    assert (source.text, source.text) == ("a\n", "")
