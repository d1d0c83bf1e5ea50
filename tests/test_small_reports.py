"""Reports stay small, and the largest are sent."""

import json

import pytest

from consumer import channel
from consumer.channel import Reporter
from domain.messages import ConsumerReport, ConsumerState, Cycle, MessageError, Order, PartitionRef, Read

PARTITIONS = tuple(PartitionRef(topic=f"orders-{n // 1000}", partition=n % 1000) for n in range(9_000))


def a_report(*partitions: PartitionRef, cycle: Cycle | None = None) -> ConsumerReport:
    return ConsumerReport(
        consumer=1,
        incarnation="a" * 32,
        sequence=1,
        sent_at=1.0,
        state=ConsumerState.READY,
        partitions=partitions,
        taking_over=partitions,
        cycle=cycle,
    )


def test_a_report_takes_a_few_bytes_for_each_partition() -> None:
    """Hole 1 and 16: the name of the topic was told again for each partition."""
    written = a_report(*PARTITIONS).encode()
    assert len(written) < 100_000
    assert json.loads(a_report(*PARTITIONS[998:1002]).encode())["partitions"] == {
        "orders-0": [998, 999],
        "orders-1": [0, 1],
    }
    assert ConsumerReport.decode(written) == a_report(*PARTITIONS)


def test_partitions_that_are_told_one_by_one_are_understood() -> None:
    """Hole 16: as a consumer of the version before tells them."""
    said = json.loads(a_report(*PARTITIONS[:3]).encode())
    said["partitions"] = [{"topic": "orders-0", "partition": 0}, {"topic": "clicks", "partition": 1}]
    told = ConsumerReport.decode(json.dumps(said).encode()).partitions
    assert told == (PartitionRef(topic="orders-0", partition=0), PartitionRef(topic="clicks", partition=1))


@pytest.mark.parametrize("wrong", [{"orders": [-1]}, {"orders": ["0"]}, {"": [0]}, {"a\x1b[2J": [0]}, {"orders": 0}, 3])
def test_partitions_by_topic_are_checked_as_those_one_by_one(wrong: object) -> None:
    said = json.loads(a_report().encode())
    said["partitions"] = wrong
    with pytest.raises(MessageError, match="partitions"):
        ConsumerReport.decode(json.dumps(said).encode())


def test_a_report_of_a_cycle_over_thousands_of_partitions_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hole 16: it passed the client's 1 MB, was not sent, and the lease ran out."""
    faults: list[str] = []
    monkeypatch.setattr(channel.log, "warning", lambda event, **fields: faults.append(f"{event} {fields}"))
    reads = tuple(
        Read(
            topic=partition.topic,
            partition=partition.partition,
            stint=Order(1, 2),
            first_offset=10**9,
            last_offset=10**9,
            records=1,
            first_read_at=1.7e9,
            last_read_at=1.7e9,
        )
        for partition in PARTITIONS
    )
    report = a_report(*PARTITIONS, cycle=Cycle(bytes=1, records=1, fetch_s=1.0, write_s=1.0, reads=reads))
    assert len(report.encode()) > 1_000_000
    reporter = Reporter({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, "consumer.metadata")
    reporter.send(report)
    reporter.close(0.0)
    assert not [fault for fault in faults if fault.startswith("a report was not sent")]
