"""Dead letters that are brought to their topics' tables, on a real Spark."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from consumer import replay as replaying
from consumer.decide.batch import Record
from consumer.decide.columns import Column
from consumer.decide.location import dead_letters, location
from consumer.decide.reached import Reached
from consumer.lake import Lake
from consumer.replay import replay
from consumer.session import LakeError, open_session, release
from consumer.sink import RefusedError
from consumer.table import rows
from consumer.verify import PartitionAccount, verify
from domain.partitions import TopicPartition
from tests.consumer.test_dead_letters import TODAY
from tests.services import SharedSpark

COLUMNS = {"data": (Column("amount", "bigint", ("amount",)),)}
ORDERS, OTHERS = TopicPartition("data", 0), TopicPartition("data", 1)


class StoppedError(Exception):
    pass


@pytest.fixture
def session(spark_server: SharedSpark) -> Iterator[SparkSession]:
    session = open_session(spark_server.remote)
    yield session
    release(session)


@pytest.fixture
def lake(spark_server: SharedSpark, lake_root: Path) -> Iterator[Lake]:
    """With six records in the table, and six dead letters of the two partitions."""
    lake = Lake([spark_server.remote], str(lake_root), "group/1/a", columns=COLUMNS)
    lake.connect()
    whole = [a_record(partition, offset) for partition in (ORDERS, OTHERS) for offset in range(6)]
    lake.append("data", 1, rows([each for each in whole if each.offset % 2], TODAY, COLUMNS["data"]), {0: 3, 1: 3})
    for record in whole:
        if record.offset % 2 == 0:
            lake.set_aside("data", rows([record], TODAY), "because", {record.partition.partition: 3})
    yield lake
    lake.close()


def a_record(partition: TopicPartition, offset: int) -> Record:
    value = f'{{"amount": {offset}}}'.encode()
    return Record(partition, offset, 1_700_000_000_123, b"\xff", value, (("h", b"\x00"), ("h", None)), epoch=3)


def refuses_four(session: SparkSession, lake_root: Path) -> str:
    table = location(str(lake_root), "data")
    session.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT four CHECK (amount <> 4)")
    return table


def everything(spark: SharedSpark, lake_root: Path) -> set[PartitionAccount]:
    accounts = verify(spark.remote, str(lake_root), ["data"])
    assert set(accounts) == {ORDERS, OTHERS}
    return set(accounts.values())


ALL_ONCE = PartitionAccount(6, 6, first_offset=0, last_offset=5, dead_letters=0)


def test_dead_letters_come_to_the_table_as_they_are_and_are_none_any_more(
    lake: Lake, session: SparkSession, spark_server: SharedSpark, lake_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "AT_ONCE", 2)
    assert replay(spark_server.remote, str(lake_root), "other") == 0
    assert replay(spark_server.remote, str(lake_root), "data", columns=COLUMNS) == 6
    assert everything(spark_server, lake_root) == {ALL_ONCE}
    held = session.read.format("delta").load(location(str(lake_root), "data")).where("offset = 4 AND partition = 1")
    expected = rows([a_record(OTHERS, 4)], TODAY, COLUMNS["data"]).drop_columns(["ingest_date"])
    assert held.drop("ingest_date").toArrow().to_pylist() == expected.to_pylist()
    assert replay(spark_server.remote, str(lake_root), "data", columns=COLUMNS) == 0
    assert lake.last_appended("data", {0, 1}) == {0: Reached(5, 3), 1: Reached(5, 3)}, "consumers go on where they were"
    lake.set_aside("data", rows([a_record(ORDERS, 4)], TODAY), "late, of the one that set it aside", {0: 3})
    lake.set_aside("data", rows([a_record(ORDERS, 6)], TODAY), "another", {0: 3})
    assert session.read.format("delta").load(dead_letters(str(lake_root))).count() == 1


@pytest.mark.parametrize("step", ["append", "delete"])
def test_what_is_interrupted_is_gone_on_with(step: str, lake: Lake, spark_server: SharedSpark, lake_root: Path) -> None:
    assert lake

    def stop(now: str) -> None:
        if now == step:
            raise StoppedError

    with pytest.raises(LakeError, match="StoppedError"):
        replay(spark_server.remote, str(lake_root), "data", columns=COLUMNS, step=stop)
    lake.set_aside("data", rows([a_record(ORDERS, 6)], TODAY), "meanwhile", {0: 3})
    replay(spark_server.remote, str(lake_root), "data", columns=COLUMNS)
    assert everything(spark_server, lake_root) == {ALL_ONCE, PartitionAccount(7, 7, first_offset=0, last_offset=6)}


def test_what_the_table_still_refuses_stays_where_it_is(
    lake: Lake, session: SparkSession, spark_server: SharedSpark, lake_root: Path
) -> None:
    assert lake
    table = refuses_four(session, lake_root)
    with pytest.raises(RefusedError, match="four"):
        replay(spark_server.remote, str(lake_root), "data", columns=COLUMNS)
    left = PartitionAccount(6, 6, first_offset=0, last_offset=5, dead_letters=3)
    assert everything(spark_server, lake_root) == {left}
    session.sql(f"ALTER TABLE delta.`{table}` DROP CONSTRAINT four")
    assert replay(spark_server.remote, str(lake_root), "data", columns=COLUMNS) == 6
    assert everything(spark_server, lake_root) == {ALL_ONCE}
