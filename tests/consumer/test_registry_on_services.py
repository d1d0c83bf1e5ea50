"""Records of a schema registry on their way from a real broker to real tables, while their schemas change."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from consumer.decide.claims import RELEASED
from consumer.decide.location import dead_letters, location
from consumer.decoding import Decoding
from consumer.registry import Registry
from consumer.replay import replay
from consumer.session import open_session, release, rows_of
from consumer.sink import RefusedError
from consumer.table import SCHEMA
from consumer.verify import PartitionAccount, verify
from domain.messages import ConsumerState
from domain.partitions import TopicPartition
from tests.consumer.consumer_driver import Driver, StartConsumer
from tests.consumer.shop_values import (
    FIRST,
    OTHER,
    VALUES,
    of_avro,
    of_avro_each,
    of_protobuf_each,
    row,
    row_of_protobuf,
    value,
)
from tests.patience import PATIENCE_S
from tests.schema_registry import SchemaRegistry, schema_registry
from tests.services import SharedBroker, SharedSpark

pytestmark = [pytest.mark.integration, pytest.mark.slow]


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

    def __init__(self, bootstrap_servers: str, partition: TopicPartition, session: SparkSession, root: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap_servers})
        self._producer.list_topics(partition.topic)
        self.partition, self._session, self.table = partition, session, location(root, partition.topic)

    def produce(self, *values: bytes, partition: int = 0) -> None:
        for each in values:
            self._producer.produce(self.partition.topic, each, b"key", partition)
        assert self._producer.flush(PATIENCE_S) == 0

    def rows(self) -> list[dict[str, Any]]:
        """Each partition in its order, without what Kafka knows of records."""
        found = rows_of(self._session, self.table).orderBy("partition", "offset")
        others = [name for name in SCHEMA.names if name not in ("partition", "value")]
        return found.drop(*others).toArrow().to_pylist()  # type: ignore[no-any-return]


@pytest.fixture
def root(request: pytest.FixtureRequest, lake_root: Path) -> str:
    """Of tables: a folder, or a schema of a catalog, where the test's parameter says so."""
    return str(request.getfixturevalue("schema") if getattr(request, "param", "path") == "name" else lake_root)


@pytest.fixture
def shop(broker: SharedBroker, data_topic: str, session: SparkSession, root: str) -> Shop:
    return Shop(broker.bootstrap_servers, TopicPartition(data_topic, 0), session, root)


@pytest.mark.parametrize(
    ("kind", "root"), [("Avro", "path"), ("Protobuf", "path"), ("Avro", "name")], indirect=["root"]
)
def test_columns_follow_schemas_that_grow_and_rows_are_what_was_produced(
    kind: str, root: str, shop: Shop, driver: Driver, start_consumer: StartConsumer, registry: SchemaRegistry
) -> None:
    versions, shown = (of_avro_each(registry), row) if kind == "Avro" else (of_protobuf_each(registry), row_of_protobuf)
    topic = shop.partition.topic
    settings = {"registry_url": registry.url, "registered": [topic], "without_value": [topic], "batch_bytes": 20_000}
    settings["lake_root"] = root
    for number in (1, 2):
        start_consumer(number, **settings)
        reader = driver.wait_for(lambda report, n=number: report.consumer == n and report.state is ConsumerState.READY)  # type: ignore[misc]
        driver.start([TopicPartition(topic, number - 1)], reader)
    expected: list[list[dict[str, Any]]] = [[], []]
    for begin in range(0, 1_500, 100):  # the newer producer has numbers that the older one has no room for
        version = begin // 500
        values = [VALUES[version](place) for place in range(begin, begin + 100)]
        shop.produce(*map(versions[version], values))
        expected[0] += values
        values = [value(-place) for place in range(begin, begin + 100)]
        shop.produce(*map(versions[0], values), partition=1)
        expected[1] += values
        driver.wait_until_read(begin)
    driver.wait_until_read(3_000)
    assert shop.rows() == [
        {"value": None, **shown(partition, each)} for partition in (0, 1) for each in expected[partition]
    ]
    assert {report.dead_letters for report in driver.reports} == {0}
    assert not any(report.refusing or report.reason for report in driver.reports), "nor was anything refused meanwhile"


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
    driver.wait_until_read(5)
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
    driver.wait_for(lambda report: report.state is ConsumerState.DEGRADED and registry.url in str(report.reason))
    driver.produce(other, 0, 100)
    driver.wait_until_read(100)
    driver.stop([shop.partition], reader)
    assert driver.note(shop.partition) == RELEASED, "nothing was asked of the table"
    driver.start([shop.partition], reader)
    registry.answer = None
    driver.wait_until_read(101)
    assert [each["number"] for each in shop.rows()] == [1]
