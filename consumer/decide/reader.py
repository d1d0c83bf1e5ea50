"""What a schema makes of a value: shared by all formats."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

WHOLE_VALUE = "value"
"""The field of a value that is no record."""


class UnreadableError(ValueError):
    """A schema that cannot be used, or a value that does not follow its schema; says why."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the values of one schema."""

    fields: tuple[pa.Field, ...]
    """Of a value, with the types of their columns."""
    read: Callable[[bytes], Mapping[str, Any]]
    """The fields of a value, as Arrow takes them; or an exception of any kind."""


class Referred(NamedTuple):
    """A schema that another one refers to."""

    name: str
    """By which it does so."""
    schema: str


def as_text(value: Any) -> str:
    """What has no type of its own in a table, as JSON."""
    return json.dumps(value, default=_in_json)


def _in_json(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)
