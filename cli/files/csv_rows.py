"""The rows of a CSV file with a header, each checked by its model, each fault with its line."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from cli.files.text_lines import Place, TextLines
from domain.messages import PartitionRef
from domain.partitions import HIGHEST_ID
from domain.speeds import HIGHEST_SPEED

_DIGITS = re.compile(r"[0-9]{1,10}")


def _whole(text: str) -> int:
    if not _DIGITS.fullmatch(text.strip()):
        raise ValueError("there is more than digits")
    return int(text)


def _speed(text: str) -> float:
    if "_" in text:
        raise ValueError("float() would take 1_000")
    return float(text)


Id = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=HIGHEST_ID)]
"""A number of a partition, a consumer or an iteration."""
MaybeId = Annotated[Id | None, BeforeValidator(lambda text: text if text.strip() else None)]
Speed = Annotated[float, BeforeValidator(_speed), Field(ge=0, le=HIGHEST_SPEED)]

_RIGHT = {
    "topic": "have 1 to 249 printable characters",
    "speed": f"be a number from 0 to {HIGHEST_SPEED:g}",
}
_ID_RIGHT = f"be a whole number from 0 to {HIGHEST_ID}"


class Row(PartitionRef):
    """What rows of every kind name."""

    partition: Id


_Row = TypeVar("_Row", bound=BaseModel)


def read_rows(source: TextLines, model: type[_Row]) -> Iterator[tuple[Place, _Row]]:
    """The rows after the header, which names the columns in any order. Blank lines are left out.

    Args:
        source: the lines of the file.
        model: of a row, with a field for each column; a column of a field with a default may be missing.

    Raises:
        UsageError: there is no header or no row, the columns are others, or a row is not as the model says.
    """
    reader = csv.reader(source.lines, strict=True)
    rows = (row for row in reader if len(row) > 1 or "".join(row).strip())
    row: list[str] | None = None
    try:
        columns = [field.strip() for field in next(rows, ())]
        _require_columns(columns, model, Place(source.name, reader.line_num))
        for row in rows:
            place = Place(source.name, reader.line_num)
            if len(row) != len(columns):
                place.fail(f"there are {len(row)} fields, and {len(columns)} columns: {','.join(columns)}")
            yield place, _checked(model, dict(zip(columns, row, strict=True)), place)
    except csv.Error as error:
        Place(source.name, reader.line_num).fail(f"no CSV: {error}")
    if row is None:
        Place(source.name).fail("there is no row after the line of columns")


def require_topic(topic: str, place: Place) -> None:
    """Fails unless `topic` can be the name of one: short enough, and harmless to a terminal."""
    _checked(PartitionRef, {"topic": topic, "partition": 0}, place)


def _checked(model: type[_Row], fields: Mapping[str, str | int], place: Place) -> _Row:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        column = str(error.errors(include_url=False, include_context=False)[0]["loc"][0])
        place.fail(f"{column} is {shown(str(fields[column]).strip())}: it must {_RIGHT.get(column, _ID_RIGHT)}")


def _require_columns(columns: Sequence[str], model: type[BaseModel], place: Place) -> None:
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    known = {field.alias or name for name, field in model.model_fields.items()}
    if not columns:
        Place(place.name).fail(f"there is nothing in it: it must begin with a line of columns, {','.join(required)}")
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
