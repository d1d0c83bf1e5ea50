"""Records in Avro, as their producers make them."""

import io
from typing import Any

import fastavro


def record(**fields: Any) -> dict[str, Any]:
    """The schema of a record with these fields."""
    return {
        "type": "record",
        "name": "Value",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


def encoded(schema: Any, value: Any) -> bytes:
    """The value by its schema."""
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), value)
    return written.getvalue()
