"""The schemas of a registry that others have written, by the API that it has like Confluent's."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

from consumer.decide.reader import UnreadableError
from consumer.registry import Registry
from tests.apicurio import Apicurio
from tests.consumer.avro_records import encoded, record
from tests.consumer.protobuf_records import as_registered, class_of, file, message
from tests.patience import PATIENCE_S
from tests.schema_registry import framed

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    with Apicurio(tmp_path_factory.mktemp("apicurio")) as server:
        yield server


class Producers:
    """Register schemas as Confluent's serializers do."""

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client

    def register(self, subject: str, text: str, kind: str, *references: SchemaReference) -> int:
        number: int = self._client.register_schema(subject, Schema(text, kind, list(references)))
        return number


@pytest.fixture
def producers(apicurio: Apicurio) -> Iterator[Producers]:
    with SchemaRegistryClient({"url": apicurio.url}) as client:
        yield Producers(client)


@pytest.fixture
def registry(apicurio: Apicurio, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setattr("consumer.registry.REQUEST_LIMIT_S", PATIENCE_S)
    registry = Registry(apicurio.url, {})
    yield registry
    registry._client.close()


def read(registry: Registry, value: bytes) -> Any:
    (_, reader), rest = registry.of(value)
    return reader.read(rest)


def test_values_are_read_by_each_version_of_a_schema_also_where_it_refers_to_others(
    producers: Producers, registry: Registry
) -> None:
    assert set(registry.formats()) == {"AVRO", "JSON", "PROTOBUF"}
    item = {**record(sku="string"), "name": "Item"}
    first, more = record(amount="int"), record(amount="long", item=["null", "Item"])
    producers.register("item", json.dumps(item), "AVRO")
    numbers = [
        producers.register("orders-value", json.dumps(first), "AVRO"),
        producers.register("orders-value", json.dumps(more), "AVRO", SchemaReference("Item", "item", 1)),
    ]
    written = encoded(record(amount="long", item=["null", item]), {"amount": 2**40, "item": {"sku": "a"}})
    assert read(registry, framed(numbers[0], encoded(first, {"amount": 7}))) == {"amount": 7}
    assert read(registry, framed(numbers[1], written)) == {"amount": 2**40, "item": {"sku": "a"}}
    text = json.dumps({"type": "object", "properties": {"amount": {"type": "integer"}}})
    number = producers.register("bills-value", text, "JSON")
    assert read(registry, framed(number, b'{"amount": 7}')) == {"amount": 7}
    with pytest.raises(UnreadableError, match="there is no schema 4711 in the registry"):
        registry.of(framed(4711, b""))


def test_schemas_of_protobuf_are_read_as_the_compiler_describes_them_and_not_as_text(
    producers: Producers, registry: Registry
) -> None:
    described = file(message("Value", number=Proto.TYPE_INT32))
    number = producers.register("described-value", as_registered(described), "PROTOBUF")
    value = class_of(described, "shop.Value")(number=7).SerializeToString()
    assert read(registry, framed(number, b"\x00" + value)) == {"number": 7}
    text = 'syntax = "proto3"; package shop; message Value { int32 number = 1; }'
    number = producers.register("text-value", text, "PROTOBUF")
    with pytest.raises(UnreadableError, match=rf"schema {number}: .* no file of Protobuf \(format=serialized\)"):
        registry.of(framed(number, b"\x00" + value))
