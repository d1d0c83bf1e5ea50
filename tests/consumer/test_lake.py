"""Appends to real tables."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from consumer.dead_letters import dead_letters
from consumer.decide.batch import Record
from consumer.decide.columns import Column
from consumer.decide.layout import Layout, Layouts
from consumer.decide.location import in_sql, location
from consumer.decide.reached import Reached
from consumer.decide.spans import Span
from consumer.lake import Lake, other_layout
from consumer.maintenance import optimize, vacuum
from consumer.replay import replay
from consumer.session import LakeError, LakeTableError, open_session, release
from consumer.sink import RefusedError
from consumer.table import rows
from consumer.verify import PartitionAccount, verify
from domain.partitions import TopicPartition
from tests.patience import PATIENCE_S
from tests.services import SharedSpark

TODAY = date(2026, 1, 31)
ANYWHERE = Span(0, 2**62)
OpenLake = Callable[[str], Lake]


@pytest.fixture
def open_lake(spark_server: SharedSpark, lake_root: Path) -> OpenLake:
    def open_lake(writer: str) -> Lake:
        lake = Lake([spark_server.remote], str(lake_root), writer)
        lake.connect()
        return lake

    return open_lake


def record(offset: int, partition: int = 0, topic: str = "data") -> Record:
    return Record(TopicPartition(topic, partition), offset, 1_700_000_000_000, b"key", b"value", ())


def test_what_is_written_is_what_is_read_back(spark_server: SharedSpark, lake_root: Path, open_lake: OpenLake) -> None:
    topic = TopicPartition("data.with-Every_letter", 3)
    written = [
        Record(topic, 7, 1_700_000_000_123, b"k", b"\xff\x00", (("h", b"1"), ("h", None))),
        Record(topic, 9, None, None, None, ()),
    ]
    lake = open_lake("group/1/a")
    lake.append(topic.topic, 1, rows(written, TODAY))
    lake.close()
    session = open_session(spark_server.remote)
    try:
        table = session.read.format("delta").load(location(str(lake_root), topic.topic)).orderBy("offset")
        assert table.columns == [
            "topic", "partition", "offset", "timestamp", "key", "value", "headers", "ingest_date", "error",
        ]  # fmt: skip
        first, second = table.toArrow().to_pylist()
    finally:
        release(session)
    assert first == {
        "topic": topic.topic,
        "partition": 3,
        "offset": 7,
        "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
        "key": b"k",
        "value": b"\xff\x00",
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
        "ingest_date": TODAY,
        "error": None,
    }
    assert (second["timestamp"], second["key"], second["value"], second["headers"]) == (None, None, None, None)


def test_a_batch_that_is_written_again_is_there_once(
    spark_server: SharedSpark, lake_root: Path, open_lake: OpenLake
) -> None:
    lake = open_lake("group/1/a")
    batch = rows([record(0), record(1)], TODAY)
    lake.append("data", 1, batch)
    lake.append("data", 1, batch)
    lake.connect()
    lake.append("data", 1, batch)
    lake.append("data", 2, rows([record(2)], TODAY))
    lake.append("other", 2, rows([record(0, topic="other")], TODAY))
    lake.close()
    other = open_lake("group/2/b")
    other.append("data", 1, rows([record(3)], TODAY))
    other.close()
    assert verify(spark_server.remote, str(lake_root), ["data", "other"]) == {
        TopicPartition("data", 0): PartitionAccount(rows=4, distinct_offsets=4, first_offset=0, last_offset=3),
        TopicPartition("other", 0): PartitionAccount(rows=1, distinct_offsets=1, first_offset=0, last_offset=0),
    }


def test_consumers_that_create_a_table_at_the_same_time_all_write_to_it(
    spark_server: SharedSpark, lake_root: Path, open_lake: OpenLake
) -> None:
    writers = range(4)
    lakes = [open_lake(f"group/{writer}/a") for writer in writers]
    with ThreadPoolExecutor(len(lakes)) as threads:
        writes = [
            threads.submit(lakes[writer].append, "data", 1, rows([record(7, partition=writer)], TODAY))
            for writer in writers
        ]
        for write in writes:
            write.result()
    for lake in lakes:
        lake.close()
    assert verify(spark_server.remote, str(lake_root), ["data"]) == {
        TopicPartition("data", writer): PartitionAccount(1, 1, 7, 7) for writer in writers
    }


def test_consumers_that_give_a_table_more_columns_at_the_same_time_all_write_to_it(
    spark_server: SharedSpark, lake_root: Path, open_lake: OpenLake
) -> None:
    first = open_lake("group/0/a")
    first.append("data", 1, rows([record(0)], TODAY))
    first.close()
    lakes = []
    for writer in range(1, 5):
        columns = (Column(f"of_{writer}", "double", (f"of_{writer}",)),)
        lake = Lake([spark_server.remote], str(lake_root), f"group/{writer}/a", columns={"data": columns})
        lake.connect()
        lakes.append((lake, rows([record(7, partition=writer)], TODAY, columns)))
    with ThreadPoolExecutor(len(lakes)) as threads:
        for write in [threads.submit(lake.append, "data", 1, batch) for lake, batch in lakes]:
            write.result()
    assert {"of_1", "of_2", "of_3", "of_4"} <= {field.name for field in lakes[0][0].columns("data")}
    for lake, _ in lakes:
        lake.close()
    accounts = verify(spark_server.remote, str(lake_root), ["data"])
    assert {partition.partition: account.rows for partition, account in accounts.items()} == dict.fromkeys(range(5), 1)


def test_a_table_that_another_consumer_is_creating_is_waited_for(
    spark_server: SharedSpark, lake_root: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a catalog it is some time after its folder: whoever created it at the same time was refused."""
    half_made, pauses = lake_root / location(schema, "data").rpartition(".")[2] / "half-made", list[float]()
    half_made.parent.mkdir(parents=True)
    half_made.touch()

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            half_made.unlink()

    monkeypatch.setattr("consumer.lake.time", SimpleNamespace(sleep=sleep))
    lake = Lake([spark_server.remote], schema, "group/1/a")
    lake.connect()
    lake.append("data", 1, rows([record(7)], TODAY))
    assert lake.last_appended("data", [0]) == {0: Reached(7)}
    lake.close()
    assert sum(pauses) > 1


@pytest.mark.parametrize("table", ["data", "other"])
def test_consumers_that_make_a_tables_columns_wider_at_the_same_time_all_write_to_it(
    table: str, spark_server: SharedSpark, lake_root: Path, open_lake: OpenLake
) -> None:
    def batch(writer: int, kind: pa.DataType) -> pa.Table:
        one = rows([record(7, writer, table)], TODAY)
        return one.append_column("number", pa.array([writer], kind))

    writers = range(5)
    lakes = [open_lake(f"group/{writer}/a") for writer in writers]
    lakes[0].append(table, 1, batch(0, pa.int32()))
    with ThreadPoolExecutor(len(lakes)) as threads:
        for write in [
            threads.submit(lakes[writer].append, table, 2, batch(writer, pa.int64())) for writer in writers[1:]
        ]:
            write.result()
    assert lakes[0].columns(table).field("number").type == pa.int64()
    for lake in lakes:
        lake.close()
    accounts = verify(spark_server.remote, str(lake_root), [table])
    assert {partition.partition: account.rows for partition, account in accounts.items()} == dict.fromkeys(writers, 1)


def test_an_account_shows_what_is_doubled_and_what_is_missing(
    spark_server: SharedSpark, lake_root: Path, open_lake: OpenLake
) -> None:
    lake = open_lake("group/1/a")
    lake.append("data", 1, rows([record(0), record(1), record(1), record(5)], TODAY))
    lake.close()
    (account,) = verify(spark_server.remote, str(lake_root), ["data", "no-such-table"]).values()
    assert (account.doubled, account.missing) == (1, 3)


LEAVES_OPEN = """\
import sys
from consumer.lake import Lake

lake = Lake([sys.argv[1]], sys.argv[2], "group/1/a")
lake.connect()
lake.seal("data", "group/2/b")
"""


@pytest.mark.slow
def test_a_process_that_leaves_a_lake_open_ends(spark_server: SharedSpark, lake_root: Path) -> None:
    program = [sys.executable, "-c", LEAVES_OPEN, spark_server.remote, str(lake_root)]
    assert subprocess.run(program, timeout=PATIENCE_S, check=False).returncode == 0


def test_a_server_that_is_not_there_is_named(lake_root: Path) -> None:
    with pytest.raises(LakeError, match=r"sc://127\.0\.0\.1:1: .*[Cc]onnection refused"):
        Lake(["sc://127.0.0.1:1"], str(lake_root), "group/1/a").connect()


def test_several_servers_that_write_to_s3_need_a_log_store(spark_server: SharedSpark) -> None:
    """Delta Lake's own there takes one JVM that writes: of two commits at once the second would replace the first."""
    with pytest.raises(LakeError, match=r"on s3a:// Delta Lake would lose .*: set spark\.delta\.logStore\.s3a\.impl"):
        Lake([spark_server.remote, "sc://other:1"], "s3a://bucket/lake", "group/1/a").connect()
    alone = Lake([spark_server.remote], "s3a://bucket/lake", "group/1/a")
    alone.connect()
    alone.close()


def test_a_table_that_cannot_be_written_is_named(lake_root: Path, open_lake: OpenLake) -> None:
    (lake_root / "data").write_text("no table")
    lake = open_lake("group/1/a")
    with pytest.raises(LakeError, match="data"):
        lake.append("data", 1, rows([record(0)], TODAY))
    lake.close()


def test_a_writer_that_is_sealed_writes_no_more_and_others_do(
    spark_server: SharedSpark, lake_root: Path, open_lake: OpenLake
) -> None:
    former, successor = open_lake("group/1/a"), open_lake("group/1/b")
    former.append("data", 1, rows([record(0)], TODAY))
    successor.seal("data", "group/1/a")
    former.append("data", 2, rows([record(1)], TODAY))
    successor.append("data", 1, rows([record(1)], TODAY))
    successor.seal("data", "group/1/a")
    for lake in (former, successor):
        lake.close()
    assert verify(spark_server.remote, str(lake_root), ["data"]) == {
        TopicPartition("data", 0): PartitionAccount(rows=2, distinct_offsets=2, first_offset=0, last_offset=1)
    }


def test_a_writer_can_be_sealed_before_the_table_is_there(
    spark_server: SharedSpark, lake_root: Path, open_lake: OpenLake
) -> None:
    former, successor = open_lake("group/1/a"), open_lake("group/1/b")
    successor.seal("data", "group/1/a")
    former.append("data", 1, rows([record(0)], TODAY))
    for lake in (former, successor):
        lake.close()
    assert verify(spark_server.remote, str(lake_root), ["data"]) == {}


def test_successors_may_seal_the_same_writers_at_one_time(open_lake: OpenLake) -> None:
    successors = [open_lake(f"group/{number}/b") for number in range(3)]
    former = [f"group/{number}/a" for number in range(4)]

    def seal_all(lake: Lake) -> None:
        for writer in former:
            lake.seal("data", writer)

    with ThreadPoolExecutor(len(successors)) as threads:
        for done in [threads.submit(seal_all, lake) for lake in successors]:
            done.result()
    for lake in successors:
        lake.close()


def test_what_is_found_after_a_seal_is_what_stays_whatever_was_under_way(open_lake: OpenLake) -> None:
    """A batch large enough to be under way when the seal comes: it is in before it, or never."""
    former, successor = open_lake("group/1/a"), open_lake("group/1/b")
    former.append("data", 1, rows([record(0)], TODAY))
    batch = rows([record(offset) for offset in range(1, 200_001)], TODAY)
    for version in range(2, 5):
        with ThreadPoolExecutor(1) as thread:
            write = thread.submit(former.append, "data", version, batch)
            time.sleep(0.1 * version)
            successor.seal("data", "group/1/a")
            found = successor.last_offsets("data", {0: ANYWHERE})
            write.exception()
        assert successor.last_offsets("data", {0: ANYWHERE}) == found
    for lake in (former, successor):
        lake.close()


def test_a_table_takes_the_columns_of_a_schema_also_where_it_was_there_before(
    spark_server: SharedSpark, lake_root: Path, open_lake: OpenLake
) -> None:
    columns = (Column("amount", "double", ("amount",)), Column("paid_at", "timestamp", ("paid_at",)))
    order = Record(TopicPartition("data", 0), 1, None, None, b'{"amount": 2, "paid_at": "2026-01-31T00:00:00"}', ())
    former = open_lake("group/1/a")
    former.append("data", 1, rows([record(0)], TODAY))
    former.close()
    lake = Lake([spark_server.remote], str(lake_root), "group/1/b", columns={"data": columns})
    lake.connect()
    lake.append("data", 1, rows([order], TODAY, columns))
    lake.seal("data", "group/1/a")
    lake.close()
    session = open_session(spark_server.remote)
    try:
        table = session.read.format("delta").load(location(str(lake_root), "data")).orderBy("offset")
        assert table.select("offset", "amount", "paid_at").toArrow().to_pylist() == [
            {"offset": 0, "amount": None, "paid_at": None},
            {"offset": 1, "amount": 2.0, "paid_at": datetime(2026, 1, 31, tzinfo=UTC)},
        ]
    finally:
        release(session)


def test_a_table_is_created_with_the_layout_that_is_set_and_one_that_is_there_keeps_its_own(
    spark_server: SharedSpark, lake_root: Path
) -> None:
    clustered, by_topic = Layout(cluster_by=("amount", "partition")), Layout(partition_by=("topic",))
    columns = (Column("amount", "double", ("amount",)),)
    tables = {topic: location(str(lake_root), topic) for topic in ("data", "other", "plain")}
    layouts = Layouts(clustered, {tables["other"]: by_topic, tables["plain"]: Layout()})
    lake = Lake([spark_server.remote], str(lake_root), "a", columns=dict.fromkeys(tables, columns), layouts=layouts)
    otherwise = Lake([spark_server.remote], str(lake_root), "b", layouts=Layouts(Layout(cluster_by=("offset",))))
    for each in (lake, otherwise):
        each.connect()
    for topic in tables:
        lake.append(topic, 1, rows([record(0, topic=topic)], TODAY, columns))
    with capture_logs() as logs:
        for version, topic in ((1, "data"), (2, "data"), (1, "other")):
            otherwise.append(topic, version, rows([record(version, topic=topic)], TODAY))
    told = [f"{each['reason']}; {each['remedy']}" for each in logs if each["log_level"] == "error"]
    session = open_session(spark_server.remote)
    try:
        for topic, layout in (("data", clustered), ("other", by_topic), ("plain", Layout())):
            assert other_layout(session, tables[topic], layout) is None
        session.sql(f"OPTIMIZE delta.`{tables['data']}`")
    finally:
        release(session)
        for each in (lake, otherwise):
            each.close()
    assert len(told) == 2, "once a table"
    assert "is clustered by amount, partition, and was to be clustered by offset: it stays as it is" in told[0]
    assert f"or say ALTER TABLE delta.`{tables['data']}` CLUSTER BY (`offset`)" in told[0]
    assert 'partition_by = ["topic"] and cluster_by = [], as it has it, or create it anew' in told[1]
    held = verify(spark_server.remote, str(lake_root), tables)
    assert {partition.topic: account.rows for partition, account in held.items()} == {"data": 3, "other": 2, "plain": 1}


def test_neither_an_append_nor_the_care_of_a_table_is_in_the_others_way(
    spark_server: SharedSpark, lake_root: Path, open_lake: OpenLake
) -> None:
    """An append that Delta Lake refused because of it would raise."""
    lakes = [open_lake(f"group/{number}/a") for number in (1, 2)]
    table = location(str(lake_root), "data")
    lakes[0].append("data", 1, rows([record(0, partition=1)], TODAY))

    def append(lake: Lake, partition: int) -> None:
        for version in range(2, 12):
            lake.append("data", version, rows([record(version, partition=partition)], TODAY))

    with ThreadPoolExecutor(len(lakes)) as threads:
        appending = [threads.submit(append, lake, number) for number, lake in enumerate(lakes, start=1)]
        compactions = [optimize(spark_server.remote, table)]
        while not all(done.done() for done in appending):
            compactions.append(optimize(spark_server.remote, table))
        for done in appending:
            done.result()
        compactions.append(optimize(spark_server.remote, table))
    lakes[1].seal("data", "group/1/a")
    assert lakes[1].last_appended("data", {1, 2}) == {1: Reached(11), 2: Reached(11)}
    for lake in lakes:
        lake.close()
    assert any(done is not None and done.files_after < done.files_before for done in compactions)
    accounts = verify(spark_server.remote, str(lake_root), ["data"])
    assert {partition.partition: account.rows for partition, account in accounts.items()} == {1: 11, 2: 10}


@pytest.mark.parametrize(("own", "kept_h"), [("1 hours", 168), ("30 days", 720)])
def test_files_are_kept_as_long_as_is_said_and_at_least_as_the_table_has_it(
    own: str, kept_h: int, spark_server: SharedSpark, lake_root: Path, open_lake: OpenLake
) -> None:
    lake, table = open_lake("group/1/a"), location(str(lake_root), "data")
    lake.append("data", 1, rows([record(0)], TODAY))
    lake.close()
    session = open_session(spark_server.remote)
    session.sql(
        f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.deletedFileRetentionDuration'='interval {own}')"
    )
    release(session)
    ages_h = (2, 160, 200, 800)
    needed_no_more = {age_h: Path(table) / f"ingest_date={TODAY}" / f"part-{age_h}.parquet" for age_h in ages_h}
    for age_h, file in needed_no_more.items():
        file.write_bytes(b"")
        os.utime(file, (time.time() - 3600 * age_h,) * 2)
    assert vacuum(spark_server.remote, table)
    assert {age_h for age_h, file in needed_no_more.items() if file.exists()} == {h for h in ages_h if h < kept_h}
    assert set(verify(spark_server.remote, str(lake_root), ["data"])) == {TopicPartition("data", 0)}


def test_the_log_tells_what_writers_appended_last(open_lake: OpenLake) -> None:
    one, other, successor = open_lake("group/1/a"), open_lake("group/2/b"), open_lake("group/1/c")
    assert successor.last_appended("data", {0}) == {}, "no table"
    one.append("data", 1, rows([record(0), record(1), record(70, partition=1)], TODAY))
    one.append("data", 2, rows([record(3), record(2)], TODAY))
    other.append("data", 1, rows([record(9, partition=2)], TODAY))
    for writer in ("group/1/a", "group/2/b", "group/3/d"):
        successor.seal("data", writer)
    one.append("data", 3, rows([record(4)], TODAY))  # passed over: it is sealed
    assert successor.last_appended("data", {0}) == {0: Reached(3)}
    assert successor.last_appended("data", {0, 1, 2, 3}) == {0: Reached(3), 1: Reached(70), 2: Reached(9)}
    for lake in (one, other, successor):
        lake.close()


def test_last_offsets_are_found_within_spans(open_lake: OpenLake) -> None:
    lake = open_lake("group/1/a")
    assert lake.last_offsets("data", {0: ANYWHERE, 1: Span(0, 9)}) == {}, "no table"
    lake.append("data", 1, rows([record(0), record(1), record(5, partition=1)], TODAY))
    lake.append("data", 2, rows([record(2), record(9, partition=2)], TODAY))
    assert lake.last_offsets("data", {0: ANYWHERE, 1: ANYWHERE, 3: ANYWHERE}) == {0: 2, 1: 5}
    assert lake.last_offsets("data", {0: Span(1, 5), 1: Span(5, 5), 2: Span(8, 20)}) == {0: 2, 1: 5, 2: 9}
    assert lake.last_offsets("data", {0: Span(3, 9)}) == {}
    assert lake.last_offsets("data", {}) == {}
    lake.close()


@pytest.mark.parametrize("named", [True, False], ids=["by name", "by path"])
def test_a_column_of_another_type_is_the_tables_fault_and_nothing_is_rounded(
    named: bool, spark_server: SharedSpark, schema: str, lake_root: Path
) -> None:
    root = schema if named else str(lake_root)
    for kind, number in (("int", b"1"), ("double", b"1.5")):
        columns = (Column("amount", kind, ("amount",)),)
        lake = Lake([spark_server.remote], root, f"group/{kind}/a", columns={"data": columns})
        lake.connect()
        value = Record(TopicPartition("data", 0), 0, None, None, b'{"amount": %b}' % number, ())
        with nullcontext() if kind == "int" else pytest.raises(LakeTableError, match="amount"):
            lake.append("data", 1, rows([value], TODAY, columns))
        lake.close()
    assert verify(spark_server.remote, root, ["data"]) == {
        TopicPartition("data", 0): PartitionAccount(1, 1, first_offset=0, last_offset=0)
    }


def test_all_that_is_asked_of_a_table_may_be_asked_by_its_name(spark_server: SharedSpark, schema: str) -> None:
    amount = (Column("amount", "double", ("amount",)),)
    columns, layouts = {"Data-2": amount}, Layouts(Layout(cluster_by=("partition",)))
    one, other = (
        Lake([spark_server.remote], schema, f"group/{number}/a", columns=columns, layouts=layouts) for number in (1, 2)
    )
    table = location(schema, "Data-2")
    for lake in (one, other):
        lake.connect()
    assert other.last_offsets("Data-2", {0: ANYWHERE}) == {}, "no table"
    assert optimize(spark_server.remote, table) is None
    assert dead_letters(spark_server.remote, schema, ["Data-2"], 9) == []
    for _ in range(2):
        one.append("Data-2", 1, rows([record(0, topic="Data-2"), record(1, topic="Data-2")], TODAY, amount))
    session = open_session(spark_server.remote)
    session.sql(f"ALTER TABLE {in_sql(table)} ADD CONSTRAINT odd CHECK (offset <> 2)")
    refused = rows([record(2, topic="Data-2")], TODAY, amount)
    with pytest.raises(RefusedError, match="odd"):
        one.append("Data-2", 2, refused)
    one.set_aside("Data-2", refused, "odd")
    other.seal("Data-2", "group/1/a")
    one.append("Data-2", 3, rows([record(3, topic="Data-2")], TODAY, amount))
    assert other.last_appended("Data-2", {0}) == other.last_set_aside("Data-2", {0}) | {0: Reached(1)}
    assert other.last_set_aside("Data-2", {0}) == {0: Reached(2)}
    assert other.last_offsets("Data-2", {0: ANYWHERE}) == {0: 1}
    assert [letter.offset for letter in dead_letters(spark_server.remote, schema, ["Data-2"], 9)] == [2]
    assert verify(spark_server.remote, schema, ["Data-2"]) == {
        TopicPartition("Data-2", 0): PartitionAccount(3, 3, first_offset=0, last_offset=2, dead_letters=1)
    }
    session.sql(f"ALTER TABLE {in_sql(table)} DROP CONSTRAINT odd")
    assert other_layout(session, table, layouts.by_default) is None
    release(session)
    assert replay(spark_server.remote, schema, "Data-2", columns=columns) == 1
    compaction = optimize(spark_server.remote, table)
    assert compaction is not None
    assert compaction.files_before > compaction.files_after == 1
    assert vacuum(spark_server.remote, table)
    for lake in (one, other):
        lake.close()
    assert verify(spark_server.remote, schema, ["Data-2"]) == {
        TopicPartition("Data-2", 0): PartitionAccount(3, 3, first_offset=0, last_offset=2)
    }
