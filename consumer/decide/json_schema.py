"""JSON Schema: the columns of a schema, and its values, by the types that a table's settings can name.

A schema says more than types; what else it says, nobody looks at here. What may be of several types, and an object
inside of one of its own kind, is JSON text.
"""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from consumer.decide.columns import TYPES, ColumnType, array_of, map_of, struct_of
from consumer.decide.parsing import fitted, in_arrow, loaded
from consumer.decide.reader import WHOLE_VALUE, Reader, Referred, UnreadableError

_ANY = TYPES["json"]
_PLAIN = {"boolean": TYPES["boolean"], "integer": TYPES["bigint"], "number": TYPES["double"]}
_TEXTS = {"date-time": TYPES["timestamp"], "date": TYPES["date"]}


def json_schema_reader(schema: str, references: Sequence[Referred] = ()) -> Reader:  # noqa: ARG001
    """Reads the values of a schema.

    Args:
        schema: in JSON.
        references: what refers to another schema is JSON text.

    Raises:
        UnreadableError: it is no schema.
    """
    try:
        root = json.loads(schema)
        kind = _Compiler(root).taken(root, ())
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"it is no JSON Schema: {type(error).__name__}: {error}") from error
    if kind.fields is None:
        whole = pa.field(WHOLE_VALUE, in_arrow(kind))
        return Reader((whole,), lambda value: {WHOLE_VALUE: fitted(kind, loaded(value))})
    fields = tuple(pa.field(name, in_arrow(inner)) for name, inner in kind.fields.items())
    return Reader(fields, lambda value: fitted(kind, loaded(value)))


class _Compiler:
    """Of one schema."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def taken(self, schema: Any, inside: tuple[str, ...]) -> ColumnType:
        """The type of what lies within what was referred to by these."""
        if schema is True or schema == {}:
            return _ANY
        if (reference := schema.get("$ref")) is not None:
            found = self._referred(reference)
            return _ANY if reference in inside or found is None else self.taken(found, (*inside, reference))
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in schema:
                some = [each for each in schema[choice] if each != {"type": "null"}]
                return self.taken(some[0], inside) if len(some) == 1 else _ANY
        kinds = schema.get("type", "string" if _is_of_texts(schema.get("enum")) else None)
        named = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"]
        match named:
            case ["object"] if properties := schema.get("properties"):
                fields = {name: self.taken(each, inside) for name, each in properties.items()}
                return struct_of(fields)
            case ["object"] if isinstance(more := schema.get("additionalProperties"), dict):
                return map_of(self.taken(more, inside))
            case ["array"] if isinstance(items := schema.get("items"), dict):
                return array_of(self.taken(items, inside))
            case ["string"]:
                return _TEXTS.get(schema.get("format"), TYPES["string"])
            case [kind]:
                return _PLAIN.get(kind, _ANY)
            case _:
                return _ANY

    def _referred(self, reference: str) -> Any:
        """What lies in this schema under a JSON pointer; none for others."""
        if not reference.startswith("#"):
            return None
        found = self._root
        for name in reference[1:].split("/")[1:]:
            found = found[name.replace("~1", "/").replace("~0", "~")]
        return found


def _is_of_texts(values: Any) -> bool:
    return isinstance(values, list) and all(value is None or isinstance(value, str) for value in values)
