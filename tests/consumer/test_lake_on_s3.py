"""The lake on S3, by the connector and the log store that kcga brings: real Spark, and a server of S3's API."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from app.java import Java
from app.spark_needs import needs
from consumer.decide.batch import Record
from consumer.decide.location import S3A
from consumer.lake import Lake
from consumer.session import LakeError
from consumer.table import rows
from consumer.verify import PartitionAccount, verify
from domain.partitions import TopicPartition
from sandbox.spark import SparkConnectServer
from tests.object_store.s3 import BUCKET, S3

TODAY = date(2026, 11, 24)
APPENDS = 8
"""Of each writer."""
TRIES = 10
RECORDS = 100
"""Of an append."""

pytestmark = pytest.mark.integration


@pytest.fixture
def sparks(java: Java, tmp_path: Path) -> Iterator[list[SparkConnectServer]]:
    """Two servers, with what kcga gives each."""
    needed = needs([S3A])
    with ExitStack() as stack:
        s3 = stack.enter_context(S3(tmp_path / "s3"))
        yield [
            stack.enter_context(
                SparkConnectServer(
                    tmp_path / f"spark-{number}",
                    jars=needed.jars,
                    java=java,
                    heap_mb=1024,
                    conf={**needed.conf, **s3.conf},
                )
            )
            for number in (1, 2)
        ]


def settle(lake: Lake, version: int, batch: pa.Table) -> None:
    """Appends it as a consumer does: again where it is not told that it was, as when both begin the table at once."""
    for tries_left in reversed(range(TRIES)):
        try:
            lake.append("data", version, batch)
        except LakeError:
            if not tries_left:
                raise
        else:
            return


@pytest.mark.slow(60)
def test_two_servers_that_write_to_one_table_lose_and_double_nothing(sparks: list[SparkConnectServer]) -> None:
    """Each commit is put only where there is none, which S3 sees to: with Delta Lake's own log store rows are lost."""
    root = f"s3a://{BUCKET}/lake"
    remotes = [spark.remote for spark in sparks]

    def write(writer: int) -> None:
        lake = Lake([*remotes[writer:], *remotes[:writer]], root, f"group/{writer}/a")
        lake.connect()
        partition = TopicPartition("data", writer)
        for append in range(APPENDS):
            offsets = range(append * RECORDS, (append + 1) * RECORDS)
            batch = rows([Record(partition, offset, None, b"key", b"value", ()) for offset in offsets], TODAY)
            settle(lake, append, batch)
            settle(lake, append, batch)  # as when its answer was lost
        lake.close()

    with ThreadPoolExecutor(len(remotes)) as writers:
        list(writers.map(write, range(len(remotes))))
    whole = PartitionAccount(APPENDS * RECORDS, APPENDS * RECORDS, 0, APPENDS * RECORDS - 1)
    found = verify(remotes[0], root, ["data"])
    assert found == {TopicPartition("data", writer): whole for writer in range(len(remotes))}
