"""The lake on S3 and on Google Cloud Storage, by what kcga gives Spark for them: real Spark, servers of both APIs."""

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
from consumer.lake import Lake
from consumer.session import LakeError
from consumer.table import rows
from consumer.verify import PartitionAccount, verify
from domain.partitions import TopicPartition
from sandbox.spark import SparkConnectServer
from tests.conftest import of_go
from tests.object_store import BUCKET, gcs
from tests.object_store.gcs import GCS
from tests.object_store.s3 import S3

TODAY = date(2026, 11, 24)
APPENDS = 8
"""Of each writer."""
TRIES = 10
RECORDS = 100
"""Of an append."""

pytestmark = pytest.mark.integration


@pytest.fixture(params=["S3", "GCS"])
def store(request: pytest.FixtureRequest, java: Java, tmp_path: Path) -> Iterator[S3 | GCS]:
    folder = tmp_path / "store"
    if request.param == "S3":
        made: S3 | GCS = S3(folder)
    else:
        made = GCS(folder, of_go(gcs.MODULE), java)
    with made as store:
        yield store


@pytest.fixture
def sparks(
    store: S3 | GCS, java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[SparkConnectServer]]:
    """Two servers, with what kcga gives each."""
    for name, value in store.java_environment.items():
        monkeypatch.setenv(name, value)
    needed = needs([store.scheme])
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                SparkConnectServer(
                    tmp_path / f"spark-{number}",
                    jars=needed.delta,
                    of_stores=needed.of_stores,
                    java=java,
                    heap_mb=1024,
                    conf={**needed.conf, **store.conf},
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
def test_two_servers_that_write_to_one_table_lose_and_double_nothing(
    sparks: list[SparkConnectServer], store: S3 | GCS
) -> None:
    """Each commit is put only where there is none, which the stores see to: on S3 with Delta Lake's own log store rows
    are lost."""
    root = f"{store.scheme}://{BUCKET}/lake"
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
