"""The rows of a CSV file with a header, each field checked, each fault with its line."""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cli.packing.text_lines import Place, TextLines
from domain.partitions import HIGHEST_ID, TopicPartition
from domain.speeds import HIGHEST_SPEED

_DIGITS = re.compile(r"[0-9]{1,10}")
_LONGEST_TOPIC = 249
"""As in Kafka."""


@dataclass(frozen=True, slots=True)
class Row:
    place: Place
    fields: dict[str, str]

    def id(self, column: str) -> int:
        """A number of a partition, a consumer or an iteration."""
        text = self.fields[column].strip()
        if not _DIGITS.fullmatch(text) or int(text) > HIGHEST_ID:
            self.place.fail(f"{column} is {shown(text)}: it must be a whole number from 0 to {HIGHEST_ID}")
        return int(text)

    def has(self, column: str) -> bool:
        """Whether there is such a column, and something in it."""
        return bool(self.fields.get(column, "").strip())

    @property
    def speed(self) -> float:
        text = self.fields["speed"].strip()
        if not text:
            self.place.fail("the speed is missing: it must be a number, 0 or more")
        try:
            # float() would take 1_000.
            speed = float(text) if "_" not in text else math.nan
        except ValueError:
            speed = math.nan
        if not 0 <= speed <= HIGHEST_SPEED:
            self.place.fail(f"speed is {shown(text)}: it must be a number from 0 to {HIGHEST_SPEED:g}")
        return speed

    @property
    def partition(self) -> TopicPartition:
        topic = self.fields["topic"]
        require_topic(topic, self.place)
        return TopicPartition(topic, self.id("partition"))


def require_topic(topic: str, place: Place) -> None:
    """Fails unless `topic` can be the name of one: short enough, and harmless to a terminal."""
    if not (topic and len(topic) <= _LONGEST_TOPIC and topic.isprintable()):
        place.fail(f"topic is {shown(topic)}: it must have 1 to {_LONGEST_TOPIC} printable characters")


def read_rows(
    source: TextLines, required: Sequence[str], optional: Sequence[str] = (), aside: Sequence[str] = ()
) -> Iterator[Row]:
    """The rows after the header, which names the columns in any order. Blank lines are left out.

    Args:
        source: the lines of the file.
        required: columns that must be there.
        optional: columns that may be there.
        aside: columns that may be there and are not read.

    Raises:
        UsageError: there is no header or no row, the columns are others, or a row has more or fewer fields.
    """
    reader = csv.reader(source.lines, strict=True)
    columns: list[str] | None = None
    rows = 0
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            Place(source.name, reader.line_num).fail(f"no CSV: {error}")
        if fields is None:
            break
        if not fields or (len(fields) == 1 and not fields[0].strip()):
            continue
        place = Place(source.name, reader.line_num)
        if columns is None:
            columns = [field.strip() for field in fields]
            _require_columns(columns, required, (*required, *optional, *aside), place)
            continue
        if len(fields) != len(columns):
            place.fail(f"there are {len(fields)} fields, and {len(columns)} columns: {','.join(columns)}")
        rows += 1
        yield Row(place, dict(zip(columns, fields, strict=True)))
    if columns is None:
        Place(source.name).fail(f"there is nothing in it: it must begin with a line of columns, {','.join(required)}")
    if not rows:
        Place(source.name).fail("there is no row after the line of columns")


def _require_columns(columns: list[str], required: Sequence[str], known: Sequence[str], place: Place) -> None:
    right = f"the first line must name the columns {','.join(required)}"
    if missing := [column for column in required if column not in columns]:
        place.fail(f"there is no column {shown(missing[0])}: {right}")
    for column in columns:
        if column not in known:
            place.fail(f"the column {shown(column)} is not known: {right}")
        if columns.count(column) > 1:
            place.fail(f"there are two columns {shown(column)}: {right}")


def shown(text: str) -> str:
    """`text` in quotes, in one short line."""
    quoted = repr(text)
    return quoted if len(quoted) <= 60 else f"{quoted[:56]}...{quoted[0]}"
