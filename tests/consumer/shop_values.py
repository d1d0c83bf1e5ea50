"""Values whose schema grows, in Avro and in Protobuf, and what Spark says of them."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

from tests.consumer.avro_records import encoded, record
from tests.consumer.protobuf_records import as_registered, class_of, file, message
from tests.schema_registry import SchemaRegistry, framed

Encode = Callable[[dict[str, Any]], bytes]

PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
SKU: dict[str, Any] = {"sku": "string", "price": PRICE}
COUNTED = {**SKU, "count": ["null", "long"]}


def items(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": {**record(**fields), "name": "Item"}}


FIRST: dict[str, Any] = {
    "number": "int",
    "timestamp": {"type": "long", "logicalType": "timestamp-millis"},
    "items": items(SKU),
    "tags": {"type": "map", "values": "long"},
    "day": ["null", {"type": "int", "logicalType": "date"}],
    "share": "float",
    "note": "string",
}
MORE = {**FIRST, "number": "long", "share": "double", "user": ["null", "string"]}
MOST = {**MORE, "items": items(COUNTED)}
"""Each takes the values of those before it, too."""
VERSIONS = (FIRST, MORE, MOST)
OTHER = {**FIRST, "number": "string"}
"""No column takes its values and those of another."""

PROTO_SKU: dict[str, Any] = {"sku": Proto.TYPE_STRING, "price": Proto.TYPE_STRING}
PROTO_FIRST: dict[str, Any] = {
    "number": Proto.TYPE_INT32,
    "timestamp": ".google.protobuf.Timestamp",
    "items": [".shop.Item"],
    "tags": {Proto.TYPE_STRING: Proto.TYPE_INT64},
    "day": ".google.protobuf.Int32Value",
    "share": Proto.TYPE_FLOAT,
    "note": Proto.TYPE_STRING,
}
PROTO_MORE = {
    **PROTO_FIRST,
    "number": Proto.TYPE_INT64,
    "share": Proto.TYPE_DOUBLE,
    "user": Proto.TYPE_STRING,
}
PROTO_COUNTED = {**PROTO_SKU, "count": Proto.TYPE_INT64}
PROTO_VERSIONS = ((PROTO_FIRST, PROTO_SKU), (PROTO_MORE, PROTO_SKU), (PROTO_MORE, PROTO_COUNTED))


def value(place: int, **more: Any) -> dict[str, Any]:
    return {
        "number": place,
        "timestamp": datetime(2026, 1, 31, tzinfo=UTC) + timedelta(milliseconds=place),
        "items": [{"sku": f"s{each}", "price": Decimal(place) / 100} for each in range(place % 3)],
        "tags": {"m": -place, "n": place} if place % 2 else {},
        "day": date(2026, 1, 1) + timedelta(days=place % 100) if place % 5 else None,
        "share": place / 4,
        "note": "",
        **more,
    }


def grown(place: int, **more: Any) -> dict[str, Any]:
    """One that the first schema has no room for."""
    return value(place, number=place + 2**40, user=f"u{place}", share=place / 3, **more)


def grown_most(place: int, **more: Any) -> dict[str, Any]:
    """One that the second has no room for either."""
    of_first = value(place)["items"]
    return grown(place, items=[{**each, "count": place + number} for number, each in enumerate(of_first)], **more)


VALUES: tuple[Callable[..., dict[str, Any]], ...] = (value, grown, grown_most)
"""Of each version."""


def row(partition: int, found: dict[str, Any]) -> dict[str, Any]:
    """What Spark says of a value."""
    moment, tags = found["timestamp"], list(found["tags"].items())
    items = [{"count": None, **each} for each in found["items"]]
    rest = {name: each for name, each in found.items() if name not in ("timestamp", "tags")}
    return {"user": None, **rest, "items": items, "partition": partition, "timestamp_": moment, "tags": tags}


def row_of_protobuf(partition: int, found: dict[str, Any]) -> dict[str, Any]:
    items = [{**each, "price": str(each["price"])} for each in found["items"]]
    return row(partition, {**found, "items": items, "day": found["day"] and found["day"].toordinal()})


def of_avro(registry: SchemaRegistry, fields: dict[str, Any]) -> Encode:
    schema = record(**fields)
    number, parsed = registry.add(schema), fastavro.parse_schema(schema)
    return lambda found: framed(number, encoded(parsed, found))


def of_avro_each(registry: SchemaRegistry) -> list[Encode]:
    """By each version of the schema."""
    return [of_avro(registry, fields) for fields in VERSIONS]


def of_protobuf_each(registry: SchemaRegistry) -> list[Encode]:
    """By each version of the schema."""
    return [_of_protobuf(registry, *version) for version in PROTO_VERSIONS]


def _of_protobuf(registry: SchemaRegistry, fields: dict[str, Any], of_items: dict[str, Any]) -> Encode:
    described = file(message("Item", **of_items), message("Value", **fields))
    number, made = registry.add(as_registered(described), "PROTOBUF"), class_of(described, "shop.Value")

    def encode(found: dict[str, Any]) -> bytes:
        day = found["day"] and {"value": found["day"].toordinal()}
        items = [{**each, "price": str(each["price"])} for each in found["items"]]
        return framed(number, b"\x02\x02" + made(**{**found, "day": day, "items": items}).SerializeToString())

    return encode
