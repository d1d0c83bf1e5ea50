"""Records that real tables refuse, and what becomes of them."""

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from consumer.decide.batch import Record
from consumer.decide.claims import RELEASED
from consumer.decide.columns import Column
from consumer.decide.location import dead_letters, location
from consumer.decide.reached import Reached
from consumer.lake import Lake
from consumer.session import open_session, release
from consumer.sink import RefusedError, TableError
from consumer.table import COLUMNS, rows
from consumer.verify import PartitionAccount, verify
from domain.messages import ConsumerState
from domain.partitions import TopicPartition
from tests.consumer.consumer_driver import Driver, StartConsumer
from tests.made_tables import constrain
from tests.services import SharedSpark

TODAY = date(2026, 1, 31)
SCHEMA = (Column("amount", "bigint", ("amount",)), Column("user", "string", ("user",)))
TAKEN, REFUSED = b'{"amount": 5, "user": "12"}', b'{"amount": 0, "user": null}'

Tables = Callable[..., None]
OpenLake = Callable[[str], Lake]


@pytest.fixture
def session(spark_server: SharedSpark) -> Iterator[SparkSession]:
    session = open_session(spark_server.remote)
    yield session
    release(session)


@pytest.fixture
def open_lake(spark_server: SharedSpark, lake_root: Path) -> Iterator[OpenLake]:
    lakes: list[Lake] = []

    def open_lake(writer: str) -> Lake:
        lakes.append(Lake([spark_server.remote], str(lake_root), writer, columns={"data": SCHEMA}))
        lakes[-1].connect()
        return lakes[-1]

    yield open_lake
    for lake in lakes:
        lake.close()


@pytest.fixture
def create(session: SparkSession, lake_root: Path) -> Callable[..., str]:
    """Creates a table of the topic as its owner wants it; where it is."""

    def create(topic: str, amount: str = "BIGINT", user: str = "STRING", more: str = "") -> str:
        table = location(str(lake_root), topic)
        columns = f"{COLUMNS}, amount {amount}, user {user}{more}"
        session.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING DELTA PARTITIONED BY (ingest_date)")
        return table

    return create


def batch(*values: bytes, first: int = 0) -> pa.Table:
    records = (
        Record(TopicPartition("data", 0), first + place, 1_700_000_000_123, b"\xffkey", value, (("h", b"\x00"),))
        for place, value in enumerate(values)
    )
    return rows(list(records), TODAY, SCHEMA)


@pytest.mark.parametrize(
    "table",
    [
        {"amount": "BIGINT", "user": "STRING NOT NULL"},
        {"more": ", share INT GENERATED ALWAYS AS (CAST(100 / amount AS INT))"},
        {"user": "VARCHAR(1)"},
    ],
    ids=["not null", "a computed column", "a length"],
)
def test_a_record_that_a_table_refuses_is_told_from_a_table_that_takes_none(
    table: dict[str, str], create: Callable[..., str], open_lake: OpenLake, session: SparkSession
) -> None:
    path, lake = create("data", **table), open_lake("group/1/a")
    is_length = "VARCHAR" in table.get("user", "")
    taken = b'{"amount": 5, "user": "1"}' if is_length else TAKEN
    refused = b'{"amount": 5, "user": "too long"}' if is_length else REFUSED
    lake.append("data", 1, batch(taken))
    for _ in range(2):
        with pytest.raises(RefusedError, match=path):
            lake.append("data", 2, batch(taken, refused, first=1))
    lake.append("data", 3, batch(taken, first=1))
    assert sorted(row[0] for row in session.sql(f"SELECT offset FROM delta.`{path}`").collect()) == [0, 1]  # noqa: S608


@pytest.mark.parametrize(
    "table",
    [{"amount": "DATE"}, {"amount": "STRING"}, {"more": ", must INT NOT NULL"}],
    ids=["another type", "one that could be cast", "a column that no record has"],
)
def test_a_table_that_takes_none_refuses_no_record(
    table: dict[str, str], create: Callable[..., str], open_lake: OpenLake
) -> None:
    path, lake = create("data", **table), open_lake("group/1/a")
    with pytest.raises(TableError, match=path):
        lake.append("data", 1, batch(TAKEN))


def test_a_writer_is_sealed_on_a_table_whose_columns_may_not_be_null(
    create: Callable[..., str], open_lake: OpenLake, session: SparkSession
) -> None:
    table, lake, former = create("data", user="STRING NOT NULL"), open_lake("group/1/a"), open_lake("group/2/b")
    lake.seal("data", "group/2/b")
    former.append("data", 1, batch(TAKEN))
    lake.append("data", 1, batch(TAKEN, first=1))
    assert [row[0] for row in session.sql(f"SELECT offset FROM delta.`{table}`").collect()] == [1]  # noqa: S608


def test_what_was_refused_never_comes_though_it_was_asked_for_before_and_the_table_takes_it_now(
    create: Callable[..., str], open_lake: OpenLake, session: SparkSession
) -> None:
    """The request of which no answer came may find the table mended."""
    table, lake, late = create("data"), open_lake("group/1/a"), open_lake("group/1/a")
    session.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT paid CHECK (amount > 0)")
    for _ in range(2):
        with pytest.raises(RefusedError, match="paid"):
            lake.append("data", 1, batch(TAKEN, REFUSED))
    session.sql(f"ALTER TABLE delta.`{table}` DROP CONSTRAINT paid")
    late.append("data", 1, batch(TAKEN, REFUSED))
    assert session.read.format("delta").load(table).count() == 0
    lake.append("data", 2, batch(TAKEN, REFUSED))
    assert session.read.format("delta").load(table).count() == 2


def test_a_record_is_set_aside_once_with_all_that_it_is_and_why(
    open_lake: OpenLake, session: SparkSession, lake_root: Path, spark_server: SharedSpark
) -> None:
    one, other = open_lake("group/1/a"), open_lake("group/2/b")
    assert one.last_set_aside("data", {0}) == {}, "no table"
    one.append("data", 1, batch(TAKEN))
    one.set_aside("data", batch(REFUSED, first=1), "because", {0: 4})
    other.set_aside("data", batch(REFUSED, first=1), "because of the same", {0: 4})
    other.set_aside("data", batch(TAKEN, first=1), "another record, of a log that was cut off")
    other.set_aside("data", batch(REFUSED, first=2), "because", {0: 4})
    held = session.read.format("delta").load(dead_letters(str(lake_root))).orderBy("offset", "reason")
    letters = held.toArrow().to_pylist()
    assert [(letter["offset"], letter["reason"]) for letter in letters] == [
        (1, "another record, of a log that was cut off"),
        (1, "because"),
        (2, "because"),
    ]
    kept = batch(REFUSED, first=1).select(["topic", "partition", "offset", "timestamp", "key", "value", "headers"])
    (record,) = kept.to_pylist()
    assert record.items() <= letters[1].items()
    assert one.last_set_aside("data", {0, 1}) == {0: Reached(2, 4)}
    assert one.last_set_aside("other", {0}) == {}
    assert verify(spark_server.remote, str(lake_root), ["data"]) == {
        TopicPartition("data", 0): PartitionAccount(4, 3, first_offset=0, last_offset=2, dead_letters=3)
    }


@pytest.mark.slow(60)
def test_records_that_are_refused_are_set_aside_and_all_others_of_all_topics_are_written(
    driver: Driver,
    start_consumer: StartConsumer,
    spark_server: SharedSpark,
    session: SparkSession,
    lake_root: Path,
    data_topic: str,
    create_topic: Callable[..., str],
) -> None:
    other = create_topic(f"{data_topic}.other", partitions=1)
    refusing, taking = TopicPartition(data_topic, 0), TopicPartition(other, 0)
    table = location(str(lake_root), data_topic)
    constrain(session, table, "offset NOT IN (0, 700, 701, 1999)")
    start_consumer(1, batch_bytes=5_000_000)
    driver.start([refusing, taking], driver.wait_for(lambda report: report.state is ConsumerState.READY))
    for partition in (refusing, taking):
        driver.produce(partition, 0, 2_000)
    driver.wait_until_read(4_000)
    told = driver.wait_for(lambda report: report.dead_letters == 4 and report.state is ConsumerState.READY)
    assert "CHECK constraint odd" in str(told.reason)
    driver.produce(refusing, 2_000, 10)
    driver.wait_until_read(4_010)
    assert verify(spark_server.remote, str(lake_root), [data_topic, other]) == {
        refusing: PartitionAccount(2_010, 2_010, first_offset=0, last_offset=2_009, dead_letters=4),
        taking: PartitionAccount(2_000, 2_000, first_offset=0, last_offset=1_999),
    }


@pytest.mark.slow
def test_a_table_that_refuses_everything_has_its_topic_wait_until_it_is_mended(
    driver: Driver,
    start_consumer: StartConsumer,
    spark_server: SharedSpark,
    session: SparkSession,
    lake_root: Path,
    data_topic: str,
) -> None:
    refusing, table = TopicPartition(data_topic, 0), location(str(lake_root), data_topic)
    constrain(session, table, "offset < 0", "none")
    start_consumer(1, most_dead_letters=2)
    driver.start([refusing], driver.wait_for(lambda report: report.state is ConsumerState.READY))
    driver.produce(refusing, 0, 100)
    told = driver.wait_for(lambda report: report.dead_letters == 2 and report.state is ConsumerState.DEGRADED)
    assert "CHECK constraint none" in str(told.reason)
    driver.wait_for(lambda report: report.sequence >= told.sequence + 30)  # it has been tried again meanwhile
    session.sql(f"ALTER TABLE delta.`{table}` DROP CONSTRAINT none")
    driver.wait_until_read(100)
    assert verify(spark_server.remote, str(lake_root), [data_topic]) == {
        refusing: PartitionAccount(100, 100, first_offset=0, last_offset=99, dead_letters=2)
    }


def test_what_a_table_does_not_take_is_released_behind_what_is_there_and_its_reader_reads_on(
    driver: Driver,
    start_consumer: StartConsumer,
    spark_server: SharedSpark,
    session: SparkSession,
    lake_root: Path,
    data_topic: str,
    create_topic: Callable[..., str],
) -> None:
    """Some of a batch is in the table, some in the dead letters, and the rest in neither."""
    other = create_topic(f"{data_topic}.other", partitions=1)
    refusing, taking = TopicPartition(data_topic, 0), TopicPartition(other, 0)
    table = location(str(lake_root), data_topic)
    constrain(session, table, "offset < 50", "some")
    driver.produce(refusing, 0, 100)
    start_consumer(1, most_dead_letters=2)
    reader = driver.wait_for(lambda report: report.state is ConsumerState.READY)
    driver.start([refusing, taking], reader)
    driver.wait_for(lambda report: [each.topic for each in report.refusing] == [data_topic])
    driver.stop([refusing], reader)
    assert (driver.committed([refusing]), driver.note(refusing)) == ({refusing: 52}, RELEASED)
    session.sql(f"ALTER TABLE delta.`{table}` DROP CONSTRAINT some")
    start_consumer(2)
    driver.start([refusing], driver.wait_for(lambda report: report.consumer == 2 and report.state.value == "ready"))
    driver.produce(taking, 0, 10)
    driver.wait_until_read(48 + 10)
    assert verify(spark_server.remote, str(lake_root), [data_topic, other]) == {
        refusing: PartitionAccount(100, 100, first_offset=0, last_offset=99, dead_letters=2),
        taking: PartitionAccount(10, 10, first_offset=0, last_offset=9),
    }
    last = driver.wait_for(lambda report: report.consumer == 1 and report.cycle is not None, seen=True)
    assert last.state is ConsumerState.READY
