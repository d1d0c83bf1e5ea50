"""A schema registry as Confluent's client meets it, over HTTP, also one that is away, slow, or talks nonsense."""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress

import pytest

from consumer.decide.reader import UnreadableError
from consumer.registry import Registry
from consumer.sink import RegistryError
from tests.consumer.avro_records import encoded, record
from tests.patience import PATIENCE_S, wait_until
from tests.schema_registry import SchemaRegistry, framed, schema_registry

SCHEMA = record(amount="int")
VALUE = encoded(SCHEMA, {"amount": 7})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SchemaRegistry]:
    """Has all the time that it needs to answer."""
    monkeypatch.setattr("consumer.registry.REQUEST_LIMIT_S", PATIENCE_S)
    with schema_registry() as server:
        yield server


def test_a_value_is_read_by_the_schema_whose_number_it_begins_with_which_is_asked_for_once(
    server: SchemaRegistry,
) -> None:
    registry = Registry(server.url, {"basic.auth.user.info": "me:secret"})
    server.add("string")
    number = server.add(SCHEMA)
    for _ in range(3):
        (name, reader), rest = registry.of(framed(number, VALUE))
        assert (name, reader.read(rest)) == (f"schema {number}", {"amount": 7})
    assert len(server.asked) == 1
    assert server.authorizations == [f"Basic {b64encode(b'me:secret').decode()}"]


def test_a_schema_is_read_with_those_that_it_refers_to_and_they_to_others(server: SchemaRegistry) -> None:
    server.add({"type": "fixed", "name": "Day", "size": 4}, to="day")
    server.add("{}", to="item")
    day = {"name": "Day", "subject": "day", "version": 1}
    server.add(json.dumps(record(day="Day") | {"name": "Item"}), references=[day], to="item")
    item = {"name": "Item", "subject": "item", "version": 2}
    number = server.add(record(item="Item", day="Day"), references=[item, day])
    (_, reader), rest = Registry(server.url, {}).of(framed(number, b"abcdefgh"))
    assert reader.read(rest) == {"item": {"day": b"abcd"}, "day": b"efgh"}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"", "not in the format of a schema registry: it begins with ''"),
        (b"\x00\x00\x00\x01", "begins with '00 00 00 01'"),
        (b'{"amount": 7}', "begins with '7b 22 61 6d 6f'"),
        (framed(99, VALUE), "there is no schema 99 in the registry http"),
        (framed(1, VALUE), "schema 1: it is no schema of Avro"),
        (framed(2, VALUE), "schema 2: its format is 'XML': it must be AVRO, JSON, PROTOBUF"),
        (framed(3, VALUE), "schema 3: it refers to version 1 of nothing, which is not there"),
    ],
)
def test_a_value_that_has_no_schema_is_at_fault_itself(server: SchemaRegistry, value: bytes, says: str) -> None:
    server.add("no schema")
    server.add("<xml/>", kind="XML")
    server.add(SCHEMA, references=[{"name": "N", "subject": "nothing", "version": 1}])
    with pytest.raises(UnreadableError, match=says):
        Registry(server.url, {}).of(value)


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html>"),
        (200, b""),
        (200, b"[]"),
        (200, b'{"no": "schema"}'),
        (200, b'{"schema": 7}'),
        (401, b'{"error_code": 401, "message": "Unauthorized"}'),
        (404, b'{"error_code": 404, "message": "HTTP 404 Not Found"}'),
        (404, b"no such page"),
        (500, b'{"error_code": 50001, "message": "the store"}'),
        (503, b"later"),
    ],
)
def test_a_registry_that_talks_nonsense_may_do_better_later(server: SchemaRegistry, answer: tuple[int, bytes]) -> None:
    number = server.add(SCHEMA)
    registry = Registry(server.url, {})
    server.answer = answer
    with pytest.raises(RegistryError, match=server.url):
        registry.of(framed(number, VALUE))
    server.answer = None
    assert registry.of(framed(number, VALUE))[0].name == f"schema {number}"


def test_a_registry_that_is_away_or_slow_is_told_and_asked_again(
    server: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumer.registry.REQUEST_LIMIT_S", 0.1)
    registry = Registry(server.url, {})
    number = server.add(SCHEMA)
    server.answers.clear()
    with pytest.raises(RegistryError, match=f"{server.url} does not answer: ReadTimeout"):
        registry.of(framed(number, VALUE))
    server.answers.set()

    def name() -> str | None:
        with suppress(RegistryError):  # it may be slow once more
            return registry.of(framed(number, VALUE))[0].name
        return None

    assert wait_until(name) == f"schema {number}"
    with pytest.raises(RegistryError, match=r"http://127\.0\.0\.1:1 does not answer: ConnectError"):
        Registry("http://127.0.0.1:1", {}).formats()


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"ssl.ca.location": "/no/such/file"}, "No such file"),
        ({"basic.auth.user.info": "nobody"}, "basic.auth.user.info must be in the form"),
        ({"no.such": "setting"}, "Unrecognized properties: no.such"),
    ],
)
def test_settings_that_the_client_refuses_are_told(setting: dict[str, str], says: str) -> None:
    with pytest.raises(RegistryError, match=f"refuses its settings: .*{says}"):
        Registry("http://127.0.0.1:1", setting)
