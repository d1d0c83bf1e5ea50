"""A whole consumer on a real broker and a real lake; the test plays the controller's part."""

import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from consumer import runner
from consumer.channel import Reporter
from consumer.decide.batch import Record
from consumer.decide.claims import RELEASED, Committed, claim
from consumer.decide.events import Fetched
from consumer.decide.location import location
from consumer.decide.reached import Reached
from consumer.decide.takeover import ClaimsError, take_over
from consumer.fetcher import Fetcher
from consumer.lake import Lake
from consumer.maintenance import Upkeep
from consumer.offsets import GroupOffsets
from consumer.runner import ConsumerError
from consumer.session import LakeError
from consumer.sink import TableError
from consumer.verify import PartitionAccount, verify
from domain.messages import Action, ConsumerReport, ConsumerState, Order, Throughput
from domain.partitions import TopicPartition
from tests.conftest import CreateTopic
from tests.consumer.clock import Clock
from tests.consumer.consumer_driver import Driver, StartConsumer, StartProcess
from tests.patience import PATIENCE_S
from tests.services import SharedSpark

Accounts = Callable[[str], dict[TopicPartition, PartitionAccount]]


@pytest.fixture
def accounts(spark_server: SharedSpark, lake_root: Path) -> Accounts:
    return lambda topic: verify(spark_server.remote, str(lake_root), [topic])


@pytest.fixture
def partitions(data_topic: str) -> list[TopicPartition]:
    return [TopicPartition(data_topic, number) for number in range(4)]


class HeldUp:
    """Where a process waits until the test lets it go on."""

    def __init__(self) -> None:
        self._came, self._goes_on = threading.Event(), threading.Event()

    @property
    def came(self) -> bool:
        return self._came.is_set()

    def hold(self) -> None:
        self._came.set()
        self._goes_on.wait(PATIENCE_S)

    def wait(self) -> None:
        """Until it has come."""
        assert self._came.wait(PATIENCE_S)

    def let_go(self) -> None:
        self._goes_on.set()


def whole(count: int) -> PartitionAccount:
    """All of the first so many records, each once."""
    return PartitionAccount(rows=count, distinct_offsets=count, first_offset=0, last_offset=count - 1)


def ready(report: ConsumerReport, number: int = 1) -> bool:
    return report.consumer == number and report.state is ConsumerState.READY


def told_to_read(driver: Driver, start_consumer: StartConsumer, read: list[TopicPartition]) -> ConsumerReport:
    """A consumer that is told to read a partition of 100 records."""
    driver.produce(read[0], 0, 100)
    start_consumer(1)
    reader = driver.wait_for(ready)
    driver.start(read, reader)
    return reader


def cannot_write(report: ConsumerReport, topic: str) -> bool:
    """Whether it has claimed what it holds, and says that something of the topic is amiss."""
    claims = bool(report.partitions) and not report.taking_over
    return claims and report.state is ConsumerState.DEGRADED and topic in (report.reason or "")


def two(
    driver: Driver, start_consumer: StartConsumer, **settings_of_first: Any
) -> tuple[ConsumerReport, ConsumerReport]:
    """Two consumers that read nothing yet."""
    start_consumer(1, **settings_of_first)
    start_consumer(2)
    return driver.wait_for(ready), driver.wait_for(lambda report: ready(report, 2))


def appends_are_held_up(monkeypatch: pytest.MonkeyPatch, *refusals: TableError) -> HeldUp:
    """Those that come after the refusals."""
    held_up, append, refused = HeldUp(), Lake.append, iter(refusals)

    def append_late(*arguments: Any) -> None:
        if (refusal := next(refused, None)) is not None:
            raise refusal
        held_up.hold()
        append(*arguments)

    monkeypatch.setattr(Lake, "append", append_late)
    return held_up


def test_a_consumer_begins_reads_what_it_is_told_to_and_leaves(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition], accounts: Accounts
) -> None:
    for partition in partitions:
        driver.produce(partition, 0, 3000)
    consumer = start_consumer(1)
    begun = driver.wait_for(ready)
    assert driver.reports[0].state is ConsumerState.STARTING
    assert begun.partitions == ()

    acknowledged = driver.start(partitions, begun)
    assert [ref.key for ref in acknowledged.partitions] == partitions
    assert acknowledged.taking_over == acknowledged.partitions, "it only holds them yet"
    assert acknowledged.state is ConsumerState.READY
    driver.wait_for(lambda report: report.partitions == acknowledged.partitions and report.taking_over == ())
    assert driver.place(1) == f"{begun.incarnation} 1.1"
    driver.wait_until_read(12_000)

    consumer.leave()
    left = driver.wait_for(lambda report: report.state is ConsumerState.LEAVING)
    assert left.partitions == ()
    assert accounts(partitions[0].topic) == {partition: whole(3000) for partition in partitions}
    assert driver.committed(partitions) == dict.fromkeys(partitions, 3000)


def test_who_reads_partition_0_alone_takes_care_of_the_table_while_others_write(
    monkeypatch: pytest.MonkeyPatch,
    driver: Driver,
    start_consumer: StartConsumer,
    partitions: list[TopicPartition],
    accounts: Accounts,
    lake_root: Path,
) -> None:
    cares: list[tuple[float, tuple[str, ...]]] = []
    take_care = Upkeep._take_care

    def told(upkeep: Upkeep, topics: tuple[str, ...]) -> None:
        cares.append((time.time() // 60, topics))
        take_care(upkeep, topics)

    monkeypatch.setattr(Upkeep, "_take_care", told)
    every_minute = {"maintenance": {"cron": "* * * * *"}}
    for number, partition in enumerate(partitions[:2], start=1):
        driver.produce(partition, 0, 500)
        start_consumer(number, **every_minute)
        driver.start([partition], driver.wait_for(partial(ready, number=number)))
    log, count = Path(location(str(lake_root), partitions[0].topic)) / "_delta_log", 500
    deadline = time.monotonic() + PATIENCE_S
    while not any("OPTIMIZE" in commit.read_text() for commit in log.glob("*.json")):
        assert time.monotonic() < deadline
        for partition in partitions[:2]:
            driver.produce(partition, count, 10)
        count += 10
        driver.wait_until_read(2 * count)
    assert cares[0][1] == (partitions[0].topic,)
    assert len(set(cares)) == len(cares), "one of both, each minute"
    assert accounts(partitions[0].topic) == {partition: whole(count) for partition in partitions[:2]}


def test_reports_are_in_order_and_account_for_every_record(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition]
) -> None:
    driver.produce(partitions[0], 0, 4000)
    start_consumer(1)
    driver.start(partitions[:1], driver.wait_for(ready))
    driver.wait_until_read(4000)
    sequences = [report.sequence for report in driver.reports]
    assert sequences == sorted(set(sequences))
    reads = [read for report in driver.reports if report.cycle for read in report.cycle.reads]
    assert len(reads) > 1
    assert {read.stint.sequence for read in reads} == {1}
    next_offset, read_until = 0, 0.0
    for read in reads:
        assert read.first_offset == next_offset
        assert read.records == read.last_offset - read.first_offset + 1
        assert read_until <= read.first_read_at <= read.last_read_at
        next_offset, read_until = read.last_offset + 1, read.last_read_at


def told_throughput(driver: Driver, partition: TopicPartition, produced: int) -> Throughput:
    """The first that is told; as long as none is, the brokers kept it waiting, and it gets more to read."""
    deadline = time.monotonic() + PATIENCE_S
    while not (told := [report.throughput for report in driver.reports if report.throughput is not None]):
        assert time.monotonic() < deadline
        driver.produce(partition, produced, 20_000)
        produced += 20_000
        driver.wait_until_read(produced)
    return told[0]


def test_a_consumer_that_has_enough_to_do_says_how_fast_it_is(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition]
) -> None:
    driver.produce(partitions[0], 0, 40_000)
    start_consumer(1, batch_bytes=1_000_000)
    begun = driver.wait_for(ready)
    assert begun.throughput is None
    driver.start(partitions[:1], begun)
    driver.wait_until_read(40_000)
    told = told_throughput(driver, partitions[0], 40_000)
    assert told.cycles == 3
    assert told.record_bytes == 200


def test_a_consumer_reads_no_faster_than_its_limit_and_says_so(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition]
) -> None:
    """The limit counts from when a batch begins to be written to when the next does: the last one costs no time."""
    batch_bytes, records, limit = 1_000_000, 20_000, 400_000
    driver.produce(partitions[0], 0, records)
    start_consumer(1, batch_bytes=batch_bytes, rate_limit=limit)
    begun = driver.wait_for(ready)
    started_at = time.monotonic()
    driver.start(partitions[:1], begun)
    driver.wait_until_read(records)
    assert time.monotonic() - started_at >= (records * 200 - (batch_bytes + 200)) / limit
    assert told_throughput(driver, partitions[0], records).bytes_per_s > 0


def test_a_record_larger_than_a_batch_and_one_with_no_time_are_read_like_any_other(
    driver: Driver,
    start_consumer: StartConsumer,
    create_topic: Callable[..., str],
    unique_name: str,
    accounts: Accounts,
) -> None:
    settings = {"max_message_bytes": "8000000", "message_timestamp_after_max_ms": str(2**63 - 1)}
    partition = TopicPartition(create_topic(f"{unique_name}.large", **settings), 0)
    driver.produce(partition, 0, 10)
    driver.produce(partition, 10, 2, size=3_000_000)
    driver.produce(partition, 12, 1, timestamp=2**62)
    driver.produce(partition, 13, 10)
    start_consumer(1, batch_bytes=100_000)
    driver.start([partition], driver.wait_for(ready))
    driver.wait_until_read(23)
    assert accounts(partition.topic) == {partition: whole(23)}


def test_a_partition_that_moves_is_read_on_without_a_gap_or_a_doubling(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition], accounts: Accounts
) -> None:
    moves = partitions[0]
    driver.produce(moves, 0, 20_000)
    driver.produce(partitions[1], 0, 2_000)
    first, second = two(driver, start_consumer, batch_bytes=100_000, rate_limit=100_000)
    driver.start(partitions[:2], first)
    driver.wait_for(lambda report: report.cycle is not None and any(read.key == moves for read in report.cycle.reads))

    acknowledged = driver.stop([moves], first)
    assert [ref.key for ref in acknowledged.partitions] == [partitions[1]]
    stopped_at = driver.committed([moves])[moves]
    assert 0 < stopped_at < 20_000, "the test is to stop it under way"
    assert accounts(moves.topic)[moves] == whole(stopped_at)

    driver.start([moves], second)
    driver.produce(moves, 20_000, 500)
    driver.wait_until_read(22_500)
    assert accounts(moves.topic) == {moves: whole(20_500), partitions[1]: whole(2_000)}
    reads = [
        (read.first_read_at, read.last_read_at, report.consumer, read.stint.sequence)
        for report in driver.reports
        for read in (report.cycle.reads if report.cycle else ())
        if read.key == moves
    ]
    assert {(consumer, stint) for *_, consumer, stint in reads} == {(1, 1), (2, 3)}
    assert max(last for _, last, consumer, _ in reads if consumer == 1) <= min(
        first for first, _, consumer, _ in reads if consumer == 2
    )


def test_a_partition_that_comes_back_is_read_on_from_where_the_other_left_it(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition], accounts: Accounts
) -> None:
    moves = partitions[0]
    first, second = two(driver, start_consumer)
    for number, reader in enumerate((first, second, first)):
        driver.start([moves], reader)
        driver.produce(moves, number * 100, 100)
        driver.wait_until_read(number * 100 + 100)
        driver.stop([moves], reader)
    assert accounts(moves.topic) == {moves: whole(300)}


def test_what_was_looked_up_for_an_earlier_start_is_not_used_for_a_later_one(
    driver: Driver,
    start_consumer: StartConsumer,
    partitions: list[TopicPartition],
    accounts: Accounts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In between somebody else has read the partition."""
    held_up = HeldUp()

    def take_long_at_first(*arguments: Any) -> dict[TopicPartition, Reached]:
        positions = take_over(*arguments)
        if not held_up.came:
            held_up.hold()
        return positions

    monkeypatch.setattr(runner, "take_over", take_long_at_first)
    moves = partitions[:1]
    first, second = started_late_and_read_by_another(driver, start_consumer, moves, held_up)
    driver.stop(moves, second)
    driver.start(moves, first)
    held_up.let_go()
    driver.produce(moves[0], 1_000, 100)
    driver.wait_until_read(1_100)
    driver.listen(1.0)
    assert accounts(moves[0].topic) == {moves[0]: whole(1_100)}


def test_a_take_over_that_is_not_wanted_any_more_puts_the_rightful_reader_out_of_action_no_more(
    driver: Driver,
    start_consumer: StartConsumer,
    partitions: list[TopicPartition],
    accounts: Accounts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would find who reads the partition now by the claim, and fence it."""
    held_up, late = HeldUp(), Future[dict[TopicPartition, Reached]]()

    def late_at_first(*arguments: Any) -> dict[TopicPartition, Reached]:
        if held_up.came:
            return take_over(*arguments)
        held_up.hold()
        try:
            late.set_result(take_over(*arguments))
        except ClaimsError as error:
            late.set_exception(error)
        return late.result()

    monkeypatch.setattr(runner, "take_over", late_at_first)
    moves = partitions[:1]
    started_late_and_read_by_another(driver, start_consumer, moves, held_up)
    held_up.let_go()
    assert isinstance(late.exception(PATIENCE_S), ClaimsError)
    driver.produce(moves[0], 1_000, 100)
    driver.wait_until_read(1_100)
    assert accounts(moves[0].topic) == {moves[0]: whole(1_100)}


def started_late_and_read_by_another(
    driver: Driver, start_consumer: StartConsumer, moves: list[TopicPartition], held_up: HeldUp
) -> tuple[ConsumerReport, ConsumerReport]:
    """The first consumer is stopped while its take-over is held up, and the second one reads 1,000 records."""
    driver.produce(moves[0], 0, 1_000)
    first, second = two(driver, start_consumer)
    driver.start(moves, first)
    held_up.wait()
    driver.stop(moves, first)
    driver.start(moves, second)
    driver.wait_until_read(1_000)
    return first, second


def test_a_stop_is_acknowledged_once_what_was_being_written_is_committed(
    driver: Driver,
    start_consumer: StartConsumer,
    partitions: list[TopicPartition],
    accounts: Accounts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held_up, read = appends_are_held_up(monkeypatch), partitions[:1]
    require_stopped_late(driver, told_to_read(driver, start_consumer, read), read, held_up)
    assert accounts(read[0].topic) == {read[0]: whole(100)}


def test_a_stop_is_acknowledged_once_what_it_releases_is_committed(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition], monkeypatch: pytest.MonkeyPatch
) -> None:
    held_up, commit = HeldUp(), GroupOffsets.commit

    def commit_late(offsets: GroupOffsets, positions: Mapping[TopicPartition, Committed]) -> None:
        if any(partition in partitions and position.claimant is None for partition, position in positions.items()):
            held_up.hold()
        commit(offsets, positions)

    monkeypatch.setattr(GroupOffsets, "commit", commit_late)
    read = partitions[:1]
    reader = told_to_read(driver, start_consumer, read)
    driver.wait_until_read(100)
    stop = driver.command(Action.STOP, read, reader)
    held_up.wait()
    require_acknowledged_late(driver, stop, reader, held_up)


def require_stopped_late(driver: Driver, reader: ConsumerReport, read: list[TopicPartition], held_up: HeldUp) -> None:
    """What it is held up with comes before the stop that it is told meanwhile, and is committed."""
    held_up.wait()
    require_acknowledged_late(driver, driver.command(Action.STOP, read, reader), reader, held_up)
    assert (driver.committed(read), driver.note(read[0])) == ({read[0]: 100}, RELEASED)


def require_acknowledged_late(driver: Driver, order: Order, reader: ConsumerReport, held_up: HeldUp) -> None:
    """The order is acknowledged, and not before it is let go."""
    driver.listen(2.0)
    told_meanwhile = list(driver.reports)
    held_up.let_go()
    assert all(report.applied < order for report in told_meanwhile)
    driver.acknowledgement(reader, order)


@pytest.mark.slow
def test_a_batch_has_no_records_from_before_and_after_a_log_was_made_anew(
    driver: Driver,
    start_consumer: StartConsumer,
    partitions: list[TopicPartition],
    admin: AdminClient,
    create_topic: CreateTopic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their offsets are no order: what was read last could not be told by them."""
    fetched, fetch, read = list[Record](), Fetcher.fetch, partitions[0]

    def noted(*arguments: Any) -> Fetched:
        found = fetch(*arguments)
        fetched.extend(found.records)
        return found

    monkeypatch.setattr(Fetcher, "fetch", noted)
    driver.produce(read, 0, 100)
    start_consumer(1, wait_time_secs=60.0, batch_bytes=30_000)
    driver.start([read], driver.wait_for(ready))
    driver.wait_for(lambda _: len(fetched) == 100, seen=False)
    admin.delete_topics([read.topic])[read.topic].result(PATIENCE_S)
    driver.wait_for(lambda report: report.state is ConsumerState.DEGRADED, seen=False)
    create_topic(read.topic, partitions=4)
    driver.wait_for(lambda report: "no more in the log" in (report.reason or ""), seen=False)
    driver.produce(read, 0, 150)
    driver.wait_until_read(250)
    cycles = [report.cycle.reads for report in driver.reports if report.cycle and report.cycle.records]
    assert [[(each.first_offset, each.last_offset) for each in cycle] for cycle in cycles] == [[(0, 99)], [(0, 149)]]


def test_a_report_that_arrives_once_the_lease_has_run_out_does_not_renew_it(
    driver: Driver,
    start_consumer: StartConsumer,
    partitions: list[TopicPartition],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process may sleep between the last look at its lease and its next report."""
    lease_s, send, has_slept = 600.0, Reporter.send, threading.Event()

    def sleep_once(reporter: Reporter, report: ConsumerReport) -> None:
        sleeps = report.partitions != () and not has_slept.is_set()
        if sleeps:
            clock.set_ahead(lease_s + 0.5)
        send(reporter, report)
        if sleeps:
            reporter._producer.flush(PATIENCE_S)
            has_slept.set()

    monkeypatch.setattr(Reporter, "send", sleep_once)
    consumer = start_consumer(1, lease_s=lease_s)
    driver.command(Action.START, partitions[:1], driver.wait_for(ready))
    assert has_slept.wait(PATIENCE_S)
    assert "its lease has run out" in str(consumer.end())


def test_stale_doubled_and_foreign_commands_change_nothing(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition], accounts: Accounts
) -> None:
    begun = told_to_read(driver, start_consumer, partitions[:1])
    driver.command(Action.START, partitions[:1], begun, sequence=1)
    driver.command(Action.STOP, partitions[:1], begun, sequence=1)
    driver.command(Action.STOP, partitions[:1], begun, sequence=0)
    driver.command(Action.STOP, partitions[:1], begun.model_copy(update={"incarnation": "before"}), sequence=50)
    driver.send(1, b"no command")
    driver.send(1, b"")
    acknowledged = driver.start(partitions[1:2], begun)
    assert [ref.key for ref in acknowledged.partitions] == partitions[:2]
    assert acknowledged.applied.sequence == 2
    driver.produce(partitions[0], 100, 100)
    driver.wait_until_read(200)
    assert accounts(partitions[0].topic) == {partitions[0]: whole(200)}


def test_commands_that_were_sent_before_a_process_began_are_not_its_own(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition]
) -> None:
    first = start_consumer(1)
    begun = driver.wait_for(ready)
    driver.start(partitions, begun)
    first.leave()
    start_consumer(1)
    successor = driver.wait_for(lambda report: ready(report) and report.incarnation != begun.incarnation)
    driver.listen(1.0)
    assert {report.partitions for report in driver.reports if report.incarnation == successor.incarnation} == {()}


def test_an_idle_consumer_keeps_reporting_and_answers_at_once(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition]
) -> None:
    """WAIT_TIME_SECS of a minute: whoever waits for the end of a fetch would fail by the time limit."""
    start_consumer(1, wait_time_secs=60.0)
    begun = driver.wait_for(ready)
    heard = len(driver.reports)
    driver.wait_for(lambda report: report.sequence >= heard + 3)
    driver.start(partitions, begun)
    assert driver.stop(partitions, begun).partitions == ()


def test_a_partition_that_does_not_exist_is_reported_and_read_once_it_does(
    driver: Driver,
    start_consumer: StartConsumer,
    partitions: list[TopicPartition],
    admin: AdminClient,
    accounts: Accounts,
) -> None:
    topic = partitions[0].topic
    to_be = TopicPartition(topic, 4)
    driver.produce(partitions[0], 0, 100)
    start_consumer(1)
    begun = driver.wait_for(ready)
    nowhere = TopicPartition(f"{topic}.nowhere", 0)
    driver.start([partitions[0], to_be, nowhere], begun)
    degraded = driver.wait_for(
        lambda report: report.state is ConsumerState.DEGRADED and "does not exist" in (report.reason or "")
    )
    assert str(to_be) in str(degraded.reason)
    driver.wait_until_read(100)

    admin.create_partitions([NewPartitions(topic, 5)])[topic].result()
    driver.stop([nowhere], begun)
    driver.wait_for(ready, seen=False)
    driver.produce(to_be, 0, 50)
    driver.wait_until_read(150)
    assert accounts(topic) == {partitions[0]: whole(100), to_be: whole(50)}


def test_a_topic_that_is_deleted_under_way_does_not_hold_the_others_up(
    driver: Driver,
    start_consumer: StartConsumer,
    partitions: list[TopicPartition],
    admin: AdminClient,
    create_topic: Callable[..., str],
    unique_name: str,
) -> None:
    doomed = TopicPartition(create_topic(f"{unique_name}.doomed"), 0)
    driver.produce(doomed, 0, 100)
    start_consumer(1)
    begun = driver.wait_for(ready)
    driver.start([partitions[0], doomed], begun)
    driver.wait_until_read(100)
    admin.delete_topics([doomed.topic])[doomed.topic].result()
    driver.wait_for(lambda report: report.state is ConsumerState.DEGRADED and doomed.topic in (report.reason or ""))
    driver.produce(partitions[0], 0, 100)
    driver.wait_until_read(200)
    driver.stop([doomed], begun)
    driver.wait_for(ready, seen=False)


def test_while_the_lake_cannot_be_written_nothing_is_lost(
    driver: Driver,
    start_consumer: StartConsumer,
    partitions: list[TopicPartition],
    lake_root: Path,
    accounts: Accounts,
) -> None:
    topic = partitions[0].topic
    in_the_way = lake_root / topic
    in_the_way.write_text("no table")
    driver.produce(partitions[0], 0, 5_000)
    start_consumer(1)
    begun = driver.wait_for(ready)
    driver.start(partitions, begun)
    driver.wait_for(lambda report: cannot_write(report, topic))
    driver.listen(1.0)
    assert driver.read_by() == 0
    assert driver.committed(partitions[:1])[partitions[0]] == 0

    in_the_way.unlink()
    driver.wait_until_read(5_000)
    driver.wait_for(ready, seen=False)
    assert accounts(topic) == {partitions[0]: whole(5_000)}


def test_what_the_lake_has_not_taken_stays_claimed_when_it_is_let_go(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition], lake_root: Path
) -> None:
    """It may be there: who reads next has to look."""
    (lake_root / partitions[0].topic).write_text("no table")
    begun = told_to_read(driver, start_consumer, partitions[:1])
    driver.wait_for(lambda report: cannot_write(report, partitions[0].topic))
    assert driver.stop(partitions[:1], begun).partitions == ()
    assert driver.note(partitions[0]) == claim(begun.writer)


def test_a_stop_waits_for_the_answer_of_a_table_that_was_at_fault(
    driver: Driver,
    start_consumer: StartConsumer,
    partitions: list[TopicPartition],
    accounts: Accounts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may take what is under way: who reads next must not begin before it."""
    held_up, read = appends_are_held_up(monkeypatch, TableError("another type")), partitions[:1]
    require_stopped_late(driver, told_to_read(driver, start_consumer, read), read, held_up)
    assert accounts(read[0].topic) == {read[0]: whole(100)}


def test_what_may_have_come_though_its_table_is_at_fault_now_stays_claimed(
    driver: Driver,
    start_consumer: StartConsumer,
    partitions: list[TopicPartition],
    accounts: Accounts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    append, answers = Lake.append, iter([LakeError("no answer")])

    def append_unanswered(*arguments: Any) -> None:
        if (answer := next(answers, None)) is None:
            raise TableError("another type")
        append(*arguments)
        raise answer

    monkeypatch.setattr(Lake, "append", append_unanswered)
    read = partitions[:1]
    reader = told_to_read(driver, start_consumer, read)
    driver.wait_for(lambda report: bool(report.refusing))
    driver.stop(read, reader)
    assert (driver.committed(read), driver.note(read[0])) == ({read[0]: 0}, claim(reader.writer))
    monkeypatch.setattr(Lake, "append", append)
    start_consumer(2)
    second = driver.wait_for(lambda report: ready(report, 2))
    driver.start(read, second)
    driver.produce(read[0], 100, 10)
    driver.wait_for(lambda _: driver.read_by(second.incarnation) == 10)
    assert accounts(read[0].topic) == {read[0]: whole(110)}


def test_a_consumer_that_has_to_leave_with_an_unwritten_batch_does_not_say_that_it_let_go(
    driver: Driver, start_consumer: StartConsumer, partitions: list[TopicPartition], lake_root: Path
) -> None:
    (lake_root / partitions[0].topic).write_text("no table")
    driver.produce(partitions[0], 0, 100)
    consumer = start_consumer(1)
    driver.start(partitions, driver.wait_for(ready))
    driver.wait_for(lambda report: cannot_write(report, partitions[0].topic))
    with pytest.raises(ConsumerError, match="unwritten"):
        consumer.leave()
    driver.listen(1.0)
    assert driver.reports[-1].partitions != ()
    assert driver.committed(partitions[:1])[partitions[0]] == 0


def test_without_a_spark_server_a_consumer_says_why_and_gives_up(
    driver: Driver, start_consumer: StartConsumer, clock: Clock
) -> None:
    consumer = start_consumer(1, spark_remote="sc://127.0.0.1:1", lease_s=3_600.0, write_limit_s=3_600.0)
    driver.wait_for(lambda report: "sc://127.0.0.1:1" in (report.reason or ""))
    clock.set_ahead(601.0)
    error = consumer.end()
    assert isinstance(error, ConsumerError)
    assert "sc://127.0.0.1:1" in str(error)
    assert driver.wait_for(lambda _: True).state is ConsumerState.STARTING


def test_without_its_partition_of_the_metadata_topic_a_consumer_gives_up(start_consumer: StartConsumer) -> None:
    error = start_consumer(99, give_up_after_s=0.1).end()
    assert isinstance(error, ConsumerError)
    assert "partition 99 of" in str(error)


def test_sigterm_ends_a_consumer_with_its_batch_written(
    driver: Driver, start_process: StartProcess, partitions: list[TopicPartition], accounts: Accounts
) -> None:
    driver.produce(partitions[0], 0, 10_000)
    process = start_process(1)
    driver.start(partitions, driver.wait_for(ready))
    driver.wait_for(lambda report: report.cycle is not None)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0
    driver.wait_for(lambda report: report.state is ConsumerState.LEAVING)
    written = driver.committed(partitions[:1])[partitions[0]]
    assert accounts(partitions[0].topic) == {partitions[0]: whole(written)}
