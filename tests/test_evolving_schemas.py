"""Topics of a schema registry in a group under load, while their schemas change: a real broker, a real Spark, consumers
as processes."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from app.topics import Cluster
from consumer.session import open_session, release, rows_of
from consumer.table import SCHEMA
from consumer.verify import verify
from domain.partitions import TopicPartition
from sandbox.services import Services
from tests.consumer import shop_values as shop
from tests.fire.group import ANSWERS_WITHIN_S, CALM, CAPACITY, FASTER, configure, speeds
from tests.fire.witnessed_group import WitnessedGroup, partitions_of
from tests.schema_registry import SchemaRegistry, schema_registry
from tests.services import SharedBroker, SharedSpark

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow(120),
    pytest.mark.timeout(2400),
    pytest.mark.usefixtures("nothing_left_running"),
]

VALUE_BYTES = 1500
"""Few large values make the load, rather than many small ones, each of which costs time."""
LATEST, INCOMPATIBLE = 2, 3
"""Versions of schemas that the values of a topic have, the first being 0."""


class Producers:
    """Of the values of two topics, one in Avro, one in Protobuf; those of partition 0 never have a newer schema."""

    def __init__(self, name: str, registry: SchemaRegistry) -> None:
        self.avro, self.protobuf = (partitions_of(f"{name}.{kind}", 3) for kind in ("avro", "protobuf"))
        self.topics = [self.avro[0].topic, self.protobuf[0].topic]
        avro = [*shop.of_avro_each(registry), shop.of_avro(registry, shop.OTHER)]
        self._encode = dict(zip(self.topics, (avro, shop.of_protobuf_each(registry)), strict=True))
        self.version = dict.fromkeys(self.partitions, 0)
        self.versions: dict[TopicPartition, list[int]] = {partition: [] for partition in self.partitions}
        """Of each partition's values, in their order."""

    @property
    def partitions(self) -> list[TopicPartition]:
        return [*self.avro, *self.protobuf]

    def __call__(self, partition: TopicPartition) -> bytes:
        versions, version = self.versions[partition], self.version[partition]
        versions.append(version)
        return self._encode[partition.topic][version](self._value(len(versions) - 1, version))

    def _value(self, place: int, version: int) -> dict[str, Any]:
        note = f"{place} ".ljust(VALUE_BYTES, ".")
        if version == INCOMPATIBLE:
            return shop.value(place, note=note, number=str(place))
        return shop.VALUES[version](place, note=note)

    def turn_to(self, version: int) -> None:
        self.version.update({partition: version for partition in self.partitions if partition.partition > 0})

    def rows(self, partition: TopicPartition) -> Iterator[dict[str, Any]]:
        """As they are to be in the table, each at its offset."""
        shown: Callable[[int, dict[str, Any]], dict[str, Any]] = (
            shop.row if partition in self.avro else shop.row_of_protobuf
        )
        for offset, version in enumerate(self.versions[partition]):
            if version == INCOMPATIBLE:
                return
            found = self._value(offset, version)
            note = md5(found["note"].encode()).hexdigest()  # noqa: S324
            yield {**shown(partition.partition, found), "note": note, "offset": offset, "value": None, "error": None}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as registry:
        yield registry


@pytest.fixture
def producers(unique_name: str, registry: SchemaRegistry) -> Producers:
    return Producers(unique_name, registry)


@pytest.fixture
def session(spark_server: SharedSpark) -> Iterator[SparkSession]:
    session = open_session(spark_server.remote)
    yield session
    release(session)


@pytest.fixture
def group(
    tmp_path: Path,
    broker: SharedBroker,
    spark_server: SharedSpark,
    unique_name: str,
    registry: SchemaRegistry,
    producers: Producers,
) -> Iterator[WitnessedGroup]:
    """Under a load that one consumer reads; no component is begun."""
    services = Services(broker.bootstrap_servers, spark_server.remote, f"{unique_name}.")
    most, wait = "max_consumers = 12\n", "wait_time_secs = 3\n"
    topics = str(producers.topics)
    of_registry = f'registry_url = "{registry.url}"\nregistered = {topics}\nwithout_value = {topics}\n'
    other = {
        **FASTER,
        most: f"{FASTER[most]}park_after_s = 5\n",
        wait: f"{FASTER[wait]}{of_registry}most_dead_letters = 3\n",
    }
    settings = configure(tmp_path, services, producers.partitions, other)
    Cluster(broker.bootstrap_servers).create(Counter(partition.topic for partition in producers.partitions))
    with ExitStack() as stack:
        yield WitnessedGroup(stack, tmp_path, settings, speeds(producers.partitions, CALM), producers)


def require_rows(session: SparkSession, group: WitnessedGroup, producers: Producers) -> None:
    """Column for column what was produced, each once and in its order."""
    for partitions in (producers.avro, producers.protobuf):
        table = rows_of(session, group.settings.consumer.table(partitions[0].topic))
        left_out = ["note", *(name for name in SCHEMA.names if name not in ("partition", "offset", "value", "error"))]
        rows = table.orderBy("partition", "offset").selectExpr(
            f"* EXCEPT ({', '.join(f'`{name}`' for name in left_out)})", "md5(note) AS note"
        )
        found: list[dict[str, Any]] = rows.toArrow().to_pylist()
        expected = [row for partition in partitions for row in producers.rows(partition)]
        assert len(found) == len(expected) > 0
        for one, other in zip(found, expected, strict=True):
            assert one == other


def test_rows_are_what_was_produced_while_schemas_grow_and_consumers_come_and_go_and_what_does_not_fit_parks_its_topic(
    group: WitnessedGroup, producers: Producers, spark_server: SharedSpark, session: SparkSession
) -> None:
    def is_read(partition: TopicPartition) -> bool:
        return group.commits.offsets([partition], ANSWERS_WITHIN_S).get(partition) == len(producers.versions[partition])

    for component in ("controller", "monitor"):
        group.begin(component)
    group.converges("the first schemas are read")
    producers.turn_to(1)
    group.grows()
    producers.turn_to(LATEST)
    group.shrinks()
    for partition in producers.partitions[1:3] + producers.partitions[4:]:
        assert set(producers.versions[partition]) == {0, 1, LATEST}, "the test had all of them written"
    assert not group.parked

    group.load.step(dict.fromkeys(producers.avro, 0.0))
    group.wait("all that fits is read", lambda: all(map(is_read, producers.avro)))
    other = producers.avro[1]
    producers.version[other] = INCOMPATIBLE
    group.load.step({other: CAPACITY / 8})
    group.wait("it is parked", lambda: [each.topic for each in group.parked] == [other.topic])
    assert "number is STRING, and was BIGINT" in group.parked[0].reason
    group.reads(producers.protobuf, "the other is read on", lambda: other.topic not in group.held_topics)

    group.load.stop()
    group.reads(producers.protobuf, "all of the other is read")
    assert group.load.unacknowledged == 0
    require_rows(session, group, producers)
    accounts = verify(spark_server.remote, group.settings.consumer.lake_root, producers.topics)
    assert [accounts[partition].doubled for partition in producers.partitions] == [0] * len(producers.partitions)
    assert all(accounts[partition].dead_letters == 0 for partition in producers.partitions if partition != other)
    assert group.gave_up == []
    assert group.witness.most_readers.count == 1, group.witness.most_readers
