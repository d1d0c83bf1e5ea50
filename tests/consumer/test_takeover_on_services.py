"""A take-over on a real broker and a real lake, from somebody who goes on all the while."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from brokers.transactions import FencedError
from consumer.decide.batch import Record
from consumer.decide.claims import RELEASED, Committed, claim
from consumer.decide.reached import Reached
from consumer.decide.takeover import take_over
from consumer.kafka import common_config, reading_config
from consumer.lake import Lake
from consumer.offsets import GroupOffsets
from consumer.table import rows
from consumer.verify import PartitionAccount, verify
from domain.partitions import TopicPartition
from sandbox.broker import Broker
from sandbox.spark import SparkConnectServer
from tests.consumer.consumer_driver import Driver

TODAY = date(2026, 1, 31)
FORMER, SUCCESSOR = "1/a", "2/b"

pytestmark = pytest.mark.usefixtures("brokers_take_their_time")


@dataclass(frozen=True)
class Writer:
    """What a process has for writing."""

    partition: TopicPartition
    offsets: GroupOffsets
    lake: Lake

    def append(self, version: int, *offsets: int, epoch: int | None = None) -> None:
        written = [Record(self.partition, offset, None, None, b"", ()) for offset in offsets]
        epochs = {} if epoch is None else {self.partition.partition: epoch}
        self.lake.append(self.partition.topic, version, rows(written, TODAY), epochs)

    def commit(self, offset: int, note: str, epoch: int | None = None) -> None:
        self.offsets.commit({self.partition: Committed(offset, note, epoch)})


OpenWriter = Callable[[str], Writer]


@pytest.fixture
def partition(data_topic: str, driver: Driver) -> TopicPartition:
    """With ten records."""
    partition = TopicPartition(data_topic, 0)
    driver.produce(partition, 0, 10)
    return partition


@pytest.fixture
def open_writer(
    broker: Broker, spark_server: SparkConnectServer, lake_root: Path, partition: TopicPartition, unique_name: str
) -> Iterator[OpenWriter]:
    opened: list[Writer] = []

    def open_writer(name: str) -> Writer:
        common = common_config(broker.bootstrap_servers, 1, {})
        offsets = GroupOffsets(common, reading_config(common, unique_name), unique_name, name)
        offsets.open()
        lake = Lake([spark_server.remote], str(lake_root), f"{unique_name}/{name}")
        lake.connect()
        opened.append(Writer(partition, offsets, lake))
        return opened[-1]

    yield open_writer
    for each in opened:
        each.offsets.close()
        each.lake.close()


@pytest.mark.parametrize("is_named", [True, False], ids=["named by the start", "found by its claim"])
def test_what_the_former_reader_does_counts_until_it_is_sealed_and_nothing_after(
    is_named: bool,
    open_writer: OpenWriter,
    partition: TopicPartition,
    spark_server: SparkConnectServer,
    lake_root: Path,
    unique_name: str,
) -> None:
    former, successor = open_writer(FORMER), open_writer(SUCCESSOR)
    former.append(1, 0, 1, 2)
    former.commit(3, RELEASED if is_named else claim(FORMER))
    looks = 0
    sealed_at = 2 if is_named else 3  # where nobody is named, it is asked after the first look, too

    def go_on_meanwhile() -> None:
        nonlocal looks
        looks += 1
        if looks == sealed_at - 1:  # before the fence
            former.append(2, 3, 4)
            former.commit(5, claim(FORMER))
        elif looks == sealed_at:  # before the seal
            former.append(3, 5)
            with pytest.raises(FencedError):
                former.commit(6, claim(FORMER))

    told = [FORMER] if is_named else []
    found = take_over([partition], told, SUCCESSOR, successor.offsets, successor.lake, unique_name, go_on_meanwhile)
    assert found == {partition: Reached(6)}
    assert looks == sealed_at + 1, "and after the last look"
    former.append(4, 6)
    with pytest.raises(FencedError):
        former.commit(7, claim(FORMER))
    assert verify(spark_server.remote, str(lake_root), [partition.topic]) == {partition: PartitionAccount(6, 6, 0, 5)}


def test_what_was_appended_of_a_later_leader_counts_though_its_offsets_are_lower(
    open_writer: OpenWriter, partition: TopicPartition, unique_name: str
) -> None:
    """The log was cut off at offset 3 after the commit, and then read on."""
    former, successor = open_writer(FORMER), open_writer(SUCCESSOR)
    former.append(1, *range(9), epoch=0)
    former.commit(9, claim(FORMER), epoch=0)
    former.append(2, 3, 4, epoch=1)
    found = take_over([partition], [], SUCCESSOR, successor.offsets, successor.lake, unique_name, lambda: None)
    assert found == {partition: Reached(5, 1)}


def test_a_record_that_was_set_aside_behind_the_last_row_is_not_read_again(
    open_writer: OpenWriter, partition: TopicPartition, unique_name: str
) -> None:
    """Its table may take it by now."""
    former, successor = open_writer(FORMER), open_writer(SUCCESSOR)
    former.append(1, 0, 1, 2, epoch=0)
    former.commit(0, claim(FORMER), epoch=0)
    refused = rows([Record(partition, 3, None, None, b"", ())], TODAY)
    former.lake.set_aside(partition.topic, refused, "because", {partition.partition: 0})
    found = take_over([partition], [], SUCCESSOR, successor.offsets, successor.lake, unique_name, lambda: None)
    assert found == {partition: Reached(4, 0)}
