"""Records of a schema registry on their way from a real broker to real tables, while their schemas change."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto
from pyspark.sql import SparkSession

from consumer.decide.claims import RELEASED
from consumer.decide.location import dead_letters, location
from consumer.decoding import Decoding
from consumer.registry import Registry
from consumer.replay import replay
from consumer.session import open_session, release
from consumer.sink import RefusedError
from consumer.table import SCHEMA
from consumer.verify import PartitionAccount, verify
from domain.messages import ConsumerState
from domain.partitions import TopicPartition
from tests.consumer.avro_records import encoded, record
from tests.consumer.consumer_driver import PATIENCE_S, Driver, StartConsumer
from tests.consumer.protobuf_records import as_registered, class_of, file, message
from tests.schema_registry import SchemaRegistry, framed, schema_registry
from tests.services import SharedBroker, SharedSpark

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "sku", "type": "string"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}
FIRST: dict[str, Any] = {
    "number": "int",
    "timestamp": {"type": "long", "logicalType": "timestamp-millis"},
    "items": {"type": "array", "items": ITEM},
    "tags": {"type": "map", "values": "long"},
    "day": ["null", {"type": "int", "logicalType": "date"}],
    "share": "float",
}
MORE = {**FIRST, "number": "long", "share": "double", "user": ["null", "string"]}
OTHER = {**FIRST, "number": "string"}


def value(place: int, **more: Any) -> dict[str, Any]:
    return {
        "number": place,
        "timestamp": datetime(2026, 1, 31, tzinfo=UTC) + timedelta(milliseconds=place),
        "items": [{"sku": f"s{each}", "price": Decimal(place) / 100} for each in range(place % 3)],
        "tags": {"m": -place, "n": place} if place % 2 else {},
        "day": date(2026, 1, 1) + timedelta(days=place % 100) if place % 5 else None,
        "share": place / 4,
        **more,
    }


def row(partition: int, found: dict[str, Any]) -> dict[str, Any]:
    """What Spark says of a value."""
    moment, tags = found["timestamp"], list(found["tags"].items())
    rest = {name: each for name, each in found.items() if name not in ("timestamp", "tags")}
    return {"user": None, **rest, "partition": partition, "timestamp_": moment, "tags": tags}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as registry:
        yield registry


@pytest.fixture
def session(spark_server: SharedSpark) -> Iterator[SparkSession]:
    session = open_session(spark_server.remote)
    yield session
    release(session)


class Shop:
    """Produces, and looks at what is in the table."""

    def __init__(self, bootstrap_servers: str, partition: TopicPartition, session: SparkSession, root: Path) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap_servers})
        self._producer.list_topics(partition.topic)
        self.partition, self._session, self.table = partition, session, location(str(root), partition.topic)

    def produce(self, *values: bytes, partition: int = 0) -> None:
        for each in values:
            self._producer.produce(self.partition.topic, each, b"key", partition)
        assert self._producer.flush(PATIENCE_S) == 0

    def rows(self) -> list[dict[str, Any]]:
        """Each partition in its order, without what Kafka knows of records."""
        found = self._session.read.format("delta").load(self.table).orderBy("partition", "offset")
        others = [name for name in SCHEMA.names if name not in ("partition", "value")]
        return found.drop(*others).toArrow().to_pylist()  # type: ignore[no-any-return]


@pytest.fixture
def shop(broker: SharedBroker, data_topic: str, session: SparkSession, lake_root: Path) -> Shop:
    return Shop(broker.bootstrap_servers, TopicPartition(data_topic, 0), session, lake_root)


def of_avro(registry: SchemaRegistry, fields: dict[str, Any]) -> Callable[[dict[str, Any]], bytes]:
    schema = record(**fields)
    number = registry.add(schema)
    return lambda found: framed(number, encoded(schema, found))


def of_protobuf(registry: SchemaRegistry, **more: Any) -> Callable[[dict[str, Any]], bytes]:
    item = message("Item", sku=Proto.TYPE_STRING, price=Proto.TYPE_STRING)
    moment, day, tags = (
        ".google.protobuf.Timestamp",
        ".google.protobuf.Int32Value",
        {Proto.TYPE_STRING: Proto.TYPE_INT64},
    )
    fields = {"number": Proto.TYPE_INT32, "timestamp": moment, "items": [".shop.Item"], "tags": tags, "day": day}
    described = file(item, message("Value", **{**fields, "share": Proto.TYPE_FLOAT, **more}))
    number, made = registry.add(as_registered(described), "PROTOBUF"), class_of(described, "shop.Value")

    def encode(found: dict[str, Any]) -> bytes:
        day = found["day"] and {"value": found["day"].toordinal()}
        items = [{**each, "price": str(each["price"])} for each in found["items"]]
        return framed(number, b"\x02\x02" + made(**{**found, "day": day, "items": items}).SerializeToString())

    return encode


def row_of_protobuf(partition: int, found: dict[str, Any]) -> dict[str, Any]:
    items = [{**each, "price": str(each["price"])} for each in found["items"]]
    return row(partition, {**found, "items": items, "day": found["day"] and found["day"].toordinal()})


@pytest.mark.parametrize("kind", ["Avro", "Protobuf"])
def test_columns_follow_schemas_that_grow_and_rows_are_what_was_produced(
    kind: str, shop: Shop, driver: Driver, start_consumer: StartConsumer, registry: SchemaRegistry
) -> None:
    if kind == "Avro":
        first, more, shown = of_avro(registry, FIRST), of_avro(registry, MORE), row
    else:
        wider = {"number": Proto.TYPE_INT64, "share": Proto.TYPE_DOUBLE, "user": Proto.TYPE_STRING}
        first, more, shown = of_protobuf(registry), of_protobuf(registry, **wider), row_of_protobuf
    topic = shop.partition.topic
    settings = {"registry_url": registry.url, "registered": [topic], "without_value": [topic], "batch_bytes": 20_000}
    for number in (1, 2):
        start_consumer(number, **settings)
        reader = driver.wait_for(lambda report, n=number: report.consumer == n and report.state is ConsumerState.READY)  # type: ignore[misc]
        driver.start([TopicPartition(topic, number - 1)], reader)
    expected: list[list[dict[str, Any]]] = [[], []]
    for begin in range(0, 1_500, 100):  # the newer producer has numbers that the older one has no room for
        grown = begin >= 500
        values = [
            value(place, number=place + 2**40, user=f"u{place}") if grown else value(place)
            for place in range(begin, begin + 100)
        ]
        shop.produce(*map(more if grown else first, values))
        expected[0] += values
        values = [value(-place) for place in range(begin, begin + 100)]
        shop.produce(*map(first, values), partition=1)
        expected[1] += values
        driver.wait_until_read(begin)
    driver.wait_until_read(3_000)
    assert shop.rows() == [
        {"value": None, **shown(partition, each)} for partition in (0, 1) for each in expected[partition]
    ]
    assert {report.dead_letters for report in driver.reports} == {0}


def test_what_does_not_fit_is_set_aside_with_the_field_and_comes_back_once_it_fits(
    shop: Shop,
    driver: Driver,
    start_consumer: StartConsumer,
    registry: SchemaRegistry,
    spark_server: SharedSpark,
    session: SparkSession,
    lake_root: Path,
) -> None:
    first, other = of_avro(registry, FIRST), of_avro(registry, OTHER)
    topic = shop.partition.topic
    start_consumer(1, registry_url=registry.url, registered=[topic], most_dead_letters=3)
    driver.start([shop.partition], driver.wait_for(lambda report: report.state is ConsumerState.READY))
    shop.produce(first(value(1)), b"{}", first(value(2)), other({**value(3), "number": "three"}), first(value(4)))
    told = driver.wait_for(lambda report: report.dead_letters == 2 and report.state is ConsumerState.READY)
    assert "schema 2: number is STRING, and was INT" in str(told.reason)
    assert [each["number"] for each in shop.rows()] == [1, 2, 4]
    shop.produce(*(other({**value(number), "number": str(number)}) for number in range(10)))
    parked = driver.wait_for(lambda report: [each.topic for each in report.refusing] == [topic])
    assert "number is STRING, and was INT" in parked.refusing[0].reason
    driver.stop([shop.partition], parked)
    assert driver.note(shop.partition) == RELEASED
    mended = f"SELECT * EXCEPT (number), CAST(number AS STRING) number FROM delta.`{shop.table}`"  # noqa: S608
    session.sql(f"CREATE OR REPLACE TABLE delta.`{shop.table}` USING DELTA AS {mended}")
    driver.start([shop.partition], parked)
    driver.wait_for(lambda _: driver.committed([shop.partition]) == {shop.partition: 15}, seen=False)
    assert verify(spark_server.remote, str(lake_root), [topic]) == {
        shop.partition: PartitionAccount(15, 15, first_offset=0, last_offset=14, dead_letters=5)
    }
    decoding = Decoding(Registry(registry.url, {}), {topic}, {topic})
    with pytest.raises(RefusedError, match="not in the format of a schema registry"):
        replay(spark_server.remote, str(lake_root), topic, decoding=decoding)
    session.sql(f"DELETE FROM delta.`{dead_letters(str(lake_root))}` WHERE value = X'7b7d'")  # noqa: S608
    assert replay(spark_server.remote, str(lake_root), topic, decoding=decoding) == 4
    numbers = ["1", "2", "three", "4", *map(str, range(10))]
    assert [(each["number"], each["value"] is None) for each in shop.rows()] == [
        (number, number in ("three", "0", "1", "2") and place > 1) for place, number in enumerate(numbers)
    ]


def test_a_registry_that_is_away_holds_up_its_topics_alone(
    shop: Shop,
    driver: Driver,
    start_consumer: StartConsumer,
    registry: SchemaRegistry,
    create_topic: Callable[..., str],
) -> None:
    first = of_avro(registry, FIRST)
    topic = shop.partition.topic
    other = TopicPartition(create_topic(f"{topic}.other", partitions=1), 0)
    registry.answer = (503, b"later")
    start_consumer(1, registry_url=registry.url, registered=[topic])
    reader = driver.wait_for(lambda report: report.state is ConsumerState.READY)
    driver.start([shop.partition, other], reader)
    shop.produce(first(value(1)))
    told = driver.wait_for(lambda report: report.state is ConsumerState.DEGRADED)
    assert registry.url in str(told.reason)
    driver.produce(other, 0, 100)
    driver.wait_until_read(100)
    driver.stop([shop.partition], reader)
    assert driver.note(shop.partition) == RELEASED, "nothing was asked of the table"
    driver.start([shop.partition], reader)
    registry.answer = None
    driver.wait_until_read(101)
    assert [each["number"] for each in shop.rows()] == [1]
