"""In what order a consumer does what the protocol rests on, between services in memory; the real ones are in
test_consumer_runner and test_exactly_once."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from consumer import runner
from consumer.decide.claims import RELEASED, Committed, claim, writer
from consumer.decide.out_of_range import PassedOver
from consumer.runner import ConsumerError, LeaseError, run
from consumer.settings import ConsumerSettings
from consumer.threads import in_thread
from domain import topics
from domain.messages import Action, ConsumerReport, ConsumerState, Order, PartitionRef
from domain.partitions import TopicPartition
from tests.consumer.simulated_services import GROUP, Commit, Services
from tests.patience import PATIENCE_S

ORDERS = TopicPartition("orders", 0)
OTHERS = TopicPartition("orders", 1)
CLICKS = TopicPartition("clicks", 0)
COMMANDS = TopicPartition(topics.METADATA, 1)
BATCH = 10
"""Records of a batch."""
LEASE_S = 600.0

Ended = Future[None]
Begin = Callable[..., Ended]


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    services = Services()
    services.serve(monkeypatch)
    return services


@pytest.fixture
def begin(services: Services) -> Iterator[Begin]:
    stop, begun = threading.Event(), list[Ended]()

    def begin(
        number: int,
        lease_s: float = LEASE_S,
        write_limit_s: float = 600.0,
        give_up_after_s: float = 600.0,
        renew_claims_s: float = 86_400.0,
        most_dead_letters: int = 20,
    ) -> Ended:
        settings = ConsumerSettings(
            spark_remote="sc://nowhere",
            lake_root="/lake",
            batch_bytes=BATCH * 100,
            wait_time_secs=0.01,
            heartbeat_s=0.02,
            lease_s=lease_s,
            write_limit_s=write_limit_s,
            give_up_after_s=give_up_after_s,
            renew_claims_s=renew_claims_s,
            most_dead_letters=most_dead_letters,
        )
        begun.append(
            in_thread(
                lambda: run(
                    consumer=number,
                    group=GROUP,
                    bootstrap_servers="nowhere:1",
                    client_config={},
                    settings=settings,
                    stop=stop,
                )
            )
        )
        return begun[-1]

    yield begin
    services.let_go_of_all()
    stop.set()
    for ended in begun:
        ended.exception(PATIENCE_S)


def ready(services: Services, number: int) -> ConsumerReport:
    return services.wait_for(lambda report: report.consumer == number and report.state is ConsumerState.READY)


def name(report: ConsumerReport) -> str:
    return writer(report.consumer, report.incarnation)


def acknowledged(services: Services, order: Order) -> ConsumerReport:
    return services.wait_for(lambda report: report.applied == order)


def each_once(services: Services, partition: TopicPartition = ORDERS) -> bool:
    return services.rows[partition] == list(range(services.ends[partition]))


def told(services: Services) -> int:
    """The records of all cycles."""
    return sum(report.cycle.records for report in services.reports if report.cycle)


def is_committed(services: Services, partition: TopicPartition) -> bool:
    """Whether all of the partition is."""
    return partition in services.committed and services.committed[partition].offset == services.ends[partition]


def test_a_partition_is_claimed_before_it_is_read_and_with_every_commit_until_it_is_released(
    services: Services, begin: Begin
) -> None:
    begin(1)
    reader = ready(services, 1)
    services.ends[ORDERS] = 2 * BATCH
    services.command(Action.START, ORDERS, reader)
    services.wait_until(lambda: services.rows[ORDERS] != [] and services.committed[ORDERS].offset == 2 * BATCH)
    assert services.commits[0] == Commit(name(reader), ORDERS, Committed(0, claim(name(reader))))
    assert {commit.position.note for commit in services.commits} == {claim(name(reader))}
    stopped = acknowledged(services, services.command(Action.STOP, ORDERS, reader))
    before = services.happened[: services.happened.index(stopped)]
    assert Commit(name(reader), ORDERS, Committed(2 * BATCH, RELEASED)) in before


def test_what_is_committed_is_in_the_lake(services: Services, begin: Begin) -> None:
    begin(1)
    services.ends[ORDERS] = 5 * BATCH
    services.hold_up("write", 1)
    services.command(Action.START, ORDERS, ready(services, 1))
    services.wait_until_held_up("write", 1)
    assert services.committed[ORDERS].offset == 0
    services.let_go("write", 1)
    services.wait_until(lambda: services.committed[ORDERS].offset == 5 * BATCH)
    assert each_once(services)
    assert services.ahead == []


def test_a_stop_is_acknowledged_once_what_was_being_written_is_committed(services: Services, begin: Begin) -> None:
    begin(1)
    reader = ready(services, 1)
    services.ends[ORDERS] = 5 * BATCH
    services.hold_up("write", 1)
    services.command(Action.START, ORDERS, reader)
    services.wait_until_held_up("write", 1)
    stop = services.command(Action.STOP, ORDERS, reader)
    time.sleep(0.3)
    assert all(report.applied < stop for report in services.reports)
    services.let_go("write", 1)
    stopped = acknowledged(services, stop)
    assert stopped.partitions == ()
    services.wait_for(lambda report: report.sequence > stopped.sequence + 3)
    after = services.happened[services.happened.index(stopped) :]
    assert [each for each in after if isinstance(each, Commit)] == []
    assert services.committed[ORDERS] == Committed(len(services.rows[ORDERS]), RELEASED)
    assert services.rows[ORDERS], "what was being written is in the lake"


def test_a_report_names_its_group(services: Services, begin: Begin) -> None:
    """Hole 19."""
    begin(1)
    assert ready(services, 1).group == GROUP


def test_a_report_tells_what_is_held_and_not_read_yet(services: Services, begin: Begin) -> None:
    begin(1)
    reader = ready(services, 1)
    services.hold_up("look", 1)
    started = acknowledged(services, services.command(Action.START, ORDERS, reader))
    assert started.partitions == started.taking_over == (PartitionRef.of(ORDERS),)
    services.let_go("look", 1)
    reads = services.wait_for(lambda report: bool(report.partitions) and not report.taking_over)
    before = services.happened[: services.happened.index(reads)]
    assert Commit(name(reader), ORDERS, Committed(0, claim(name(reader)))) in before


@pytest.mark.parametrize("is_named", [True, False], ids=["named by the start", "found by its claim"])
@pytest.mark.parametrize("frozen_before", ["write", "answer", "commit"])
def test_one_that_was_given_up_and_wakes_up_ends_and_has_written_nothing_more(
    frozen_before: str, is_named: bool, services: Services, begin: Begin
) -> None:
    zombie = begin(1)
    former = ready(services, 1)
    services.command(Action.START, ORDERS, former)
    services.wait_until(lambda: ORDERS in services.committed)
    services.hold_up(frozen_before, 1)
    services.ends[ORDERS] = 3 * BATCH
    services.wait_until_held_up(frozen_before, 1)
    begin(2)
    seal = [name(former)] if is_named else []
    services.command(Action.START, ORDERS, ready(services, 2), seal=seal)
    services.wait_until(lambda: services.committed[ORDERS].offset == 3 * BATCH)
    services.let_go(frozen_before, 1)
    error = zombie.exception(PATIENCE_S)
    assert isinstance(error, ConsumerError)
    assert "taken over" in str(error)
    assert each_once(services)
    assert services.ahead == []


def test_one_that_was_given_up_before_it_claimed_never_reads_where_the_start_of_another_named_it(
    services: Services, begin: Begin
) -> None:
    services.ends[ORDERS] = 3 * BATCH
    zombie = begin(1)
    former = ready(services, 1)
    services.hold_up("commit", 1)
    services.command(Action.START, ORDERS, former)
    services.wait_until_held_up("commit", 1)
    begin(2)
    services.command(Action.START, ORDERS, ready(services, 2), seal=[name(former)])
    services.wait_until(lambda: services.committed.get(ORDERS, Committed(0)).offset == 3 * BATCH)
    services.let_go("commit", 1)
    assert isinstance(zombie.exception(PATIENCE_S), ConsumerError)
    assert each_once(services)


def test_what_was_looked_up_for_an_earlier_start_is_not_used_for_a_later_one(services: Services, begin: Begin) -> None:
    """In between somebody else has read the partition."""
    services.ends[ORDERS] = 3 * BATCH
    begin(1)
    begin(2)
    first, second = ready(services, 1), ready(services, 2)
    services.hold_up("after the look", 1)
    services.command(Action.START, ORDERS, first)
    services.wait_until_held_up("after the look", 1)
    acknowledged(services, services.command(Action.STOP, ORDERS, first))
    services.command(Action.START, ORDERS, second)
    services.wait_until(lambda: services.committed.get(ORDERS, Committed(0)).offset == 3 * BATCH)
    acknowledged(services, services.command(Action.STOP, ORDERS, second))
    acknowledged(services, services.command(Action.START, ORDERS, first))
    services.let_go("after the look", 1)
    services.ends[ORDERS] = 4 * BATCH
    services.wait_until(lambda: services.committed[ORDERS] == Committed(4 * BATCH, claim(name(first))))
    assert each_once(services)


def test_a_take_over_that_was_given_up_puts_the_rightful_reader_out_of_action_no_more(
    services: Services, begin: Begin
) -> None:
    """Hole 25: its look at the claims is answered when the partition was stopped and is another's."""
    begin(1)
    first = ready(services, 1)
    services.hold_up("look", 1)
    services.command(Action.START, ORDERS, first)
    services.wait_until_held_up("look", 1)
    acknowledged(services, services.command(Action.STOP, ORDERS, first))
    begin(2)
    second = ready(services, 2)
    services.command(Action.START, ORDERS, second)
    services.wait_until(lambda: services.committed.get(ORDERS) == Committed(0, claim(name(second))))
    services.let_go("look", 1)
    time.sleep(0.3)
    services.ends[ORDERS] = 3 * BATCH
    services.wait_until(lambda: services.committed[ORDERS] == Committed(3 * BATCH, claim(name(second))))
    assert name(second) not in services.fenced
    assert each_once(services)


def test_a_take_over_that_takes_too_long_is_begun_again_and_the_late_one_does_nothing(
    services: Services, begin: Begin
) -> None:
    """Both are asked for by the same start."""
    begin(1, write_limit_s=0.5)
    services.ends[ORDERS] = 3 * BATCH
    services.committed[ORDERS] = Committed(0, claim("9/dead"))
    services.hold_up("look", 1)
    services.command(Action.START, ORDERS, ready(services, 1))
    services.wait_until_held_up("look", 1)
    services.wait_for(lambda report: "no answer within 0.5 s" in (report.reason or ""))
    assert services.fenced == set()
    services.let_go("look", 1)
    services.wait_until(lambda: services.committed[ORDERS].offset == 3 * BATCH)
    assert services.fenced == {"9/dead"}
    assert each_once(services)


def test_a_partition_without_a_leader_keeps_no_other_from_being_read(services: Services, begin: Begin) -> None:
    """Hole 10: all that were started with it waited for it."""
    services.ends.update({ORDERS: 2 * BATCH, OTHERS: 2 * BATCH, CLICKS: BATCH})
    services.leaderless = {OTHERS}
    begin(1)
    reader = ready(services, 1)
    for partition in (ORDERS, OTHERS, CLICKS):
        services.command(Action.START, partition, reader)
    services.wait_until(lambda: is_committed(services, ORDERS) and is_committed(services, CLICKS))
    services.wait_for(lambda report: str(OTHERS) in (report.reason or ""))
    assert OTHERS not in services.committed
    services.leaderless = set()
    services.wait_until(lambda: is_committed(services, OTHERS))
    assert all(each_once(services, partition) for partition in (ORDERS, OTHERS, CLICKS))


@pytest.mark.parametrize("is_taken_though", [False, True], ids=["refused", "not answered"])
def test_a_table_that_takes_nothing_keeps_no_other_topic_from_being_written(
    is_taken_though: bool, services: Services, begin: Begin
) -> None:
    """Hole 10: it stopped every topic of the consumer."""
    failing = services.answers_nothing if is_taken_though else services.refusing
    begin(1)
    reader = ready(services, 1)
    for partition in (ORDERS, CLICKS):
        acknowledged(services, services.command(Action.START, partition, reader))
    services.wait_until(lambda: {ORDERS, CLICKS} <= services.committed.keys())
    failing.add("orders")
    for batches in range(1, 6):
        services.ends.update({ORDERS: BATCH, CLICKS: batches * BATCH})
        services.wait_until(lambda: is_committed(services, CLICKS))
    assert services.committed[ORDERS].offset == 0
    services.wait_for(lambda report: "orders: " in (report.reason or ""))
    failing.clear()
    services.wait_until(lambda: is_committed(services, ORDERS))
    assert all(each_once(services, partition) for partition in (ORDERS, CLICKS))
    assert services.ahead == []
    services.wait_until(lambda: told(services) >= services.ends[ORDERS] + services.ends[CLICKS])
    assert told(services) == services.ends[ORDERS] + services.ends[CLICKS], "each cycle is told of once"


@pytest.mark.parametrize("is_taken_though", [False, True], ids=["refused", "not answered"])
def test_a_stop_is_obeyed_while_a_write_fails_and_who_reads_next_finds_out_what_is_there(
    is_taken_though: bool, services: Services, begin: Begin
) -> None:
    """Hole 10: nobody could tell it to let go of anything."""
    failing = services.answers_nothing if is_taken_though else services.refusing
    former = begin(1)
    first = ready(services, 1)
    for partition in (ORDERS, OTHERS, CLICKS):
        acknowledged(services, services.command(Action.START, partition, first))
    services.wait_until(lambda: {ORDERS, OTHERS, CLICKS} <= services.committed.keys())
    failing.add("orders")
    services.ends.update({ORDERS: BATCH, OTHERS: BATCH})
    services.wait_for(lambda report: "orders: " in (report.reason or ""))
    stopped = acknowledged(services, services.command(Action.STOP, ORDERS, first))
    assert PartitionRef.of(ORDERS) not in stopped.partitions
    assert services.committed[ORDERS] == Committed(0, claim(name(first))), "still claimed: it is not settled"
    released = acknowledged(services, services.command(Action.STOP, CLICKS, first))
    assert released.partitions == (PartitionRef.of(OTHERS),)
    assert services.committed[CLICKS] == Committed(0, RELEASED)
    services.hold_up("write", 1)
    services.wait_until_held_up("write", 1)
    failing.clear()
    begin(2)
    second = ready(services, 2)
    services.command(Action.START, ORDERS, second)
    services.wait_until(lambda: services.committed[ORDERS] == Committed(BATCH, claim(name(second))))
    services.let_go("write", 1)
    error = former.exception(PATIENCE_S)
    assert "taken over" in str(error)
    services.command(Action.START, OTHERS, second)
    services.wait_until(lambda: services.committed[OTHERS] == Committed(BATCH, claim(name(second))))
    assert all(each_once(services, partition) for partition in (ORDERS, OTHERS))
    assert services.ahead == []


def stopped_while_its_table_is_at_fault(services: Services, reader: ConsumerReport) -> None:
    services.at_fault.add("orders")
    services.ends.update({ORDERS: 2 * BATCH, CLICKS: 2 * BATCH})
    services.wait_for(lambda report: [each.topic for each in report.refusing] == ["orders"])
    acknowledged(services, services.command(Action.STOP, ORDERS, reader))


def test_what_a_table_does_not_take_is_released_and_its_reader_reads_on(services: Services, begin: Begin) -> None:
    former = begin(1)
    first = ready(services, 1)
    for partition in (ORDERS, CLICKS):
        acknowledged(services, services.command(Action.START, partition, first))
    services.wait_until(lambda: {ORDERS, CLICKS} <= services.committed.keys())
    stopped_while_its_table_is_at_fault(services, first)
    assert services.committed[ORDERS] == Committed(0, RELEASED)
    told = services.wait_for(lambda report: bool(report.refusing)).refusing[0]
    assert (told.reason, told.for_s < PATIENCE_S) == ("orders: another type", True)
    sequence = services.reports[-1].sequence
    services.wait_for(
        lambda report: report.sequence > sequence and not report.refusing and report.state is ConsumerState.READY
    )
    services.at_fault.clear()
    begin(2)
    second = ready(services, 2)
    services.command(Action.START, ORDERS, second)
    services.wait_until(lambda: is_committed(services, ORDERS) and is_committed(services, CLICKS))
    acknowledged(services, services.command(Action.STOP, ORDERS, second))
    services.command(Action.START, ORDERS, first)
    services.ends[ORDERS] = 3 * BATCH
    services.wait_until(lambda: is_committed(services, ORDERS))
    assert not former.done()
    assert services.fenced == set()
    assert each_once(services, ORDERS)
    assert each_once(services, CLICKS)
    assert services.ahead == []


def test_so_it_is_behind_what_is_settled_of_a_batch(services: Services, begin: Begin) -> None:
    """The table takes some, then refuses record after record: more than are set aside."""
    begin(1, most_dead_letters=2)
    first = ready(services, 1)
    acknowledged(services, services.command(Action.START, ORDERS, first))
    services.refused = {(ORDERS, offset) for offset in range(4, BATCH)}
    services.ends[ORDERS] = BATCH
    services.wait_for(lambda report: bool(report.refusing))
    acknowledged(services, services.command(Action.STOP, ORDERS, first))
    assert services.committed[ORDERS] == Committed(6, RELEASED)
    assert (services.rows[ORDERS], services.dead_letters[ORDERS]) == ([0, 1, 2, 3], [4, 5])
    services.refused = set()
    begin(2)
    services.command(Action.START, ORDERS, ready(services, 2))
    services.wait_until(lambda: is_committed(services, ORDERS))
    assert services.rows[ORDERS] == [0, 1, 2, 3, 6, 7, 8, 9]
    assert services.ahead == []


def test_a_stop_waits_for_the_answer_of_a_table_that_was_at_fault(services: Services, begin: Begin) -> None:
    """It may take what is under way, and who is next must not begin before it."""
    begin(1)
    first = ready(services, 1)
    acknowledged(services, services.command(Action.START, ORDERS, first))
    services.wait_until(lambda: ORDERS in services.committed)
    services.at_fault.add("orders")
    services.ends[ORDERS] = BATCH
    services.wait_for(lambda report: bool(report.refusing))
    services.hold_up("write", 1)
    services.wait_until_held_up("write", 1)
    services.at_fault.clear()
    stop = services.command(Action.STOP, ORDERS, first)
    sequence = services.reports[-1].sequence
    services.wait_for(lambda report: report.sequence > sequence + 5)
    assert all(report.applied < stop for report in services.reports)
    services.let_go("write", 1)
    acknowledged(services, stop)
    assert services.committed[ORDERS] == Committed(BATCH, RELEASED)
    assert each_once(services)


def test_what_may_have_come_though_its_table_is_at_fault_now_stays_claimed(services: Services, begin: Begin) -> None:
    begin(1)
    first = ready(services, 1)
    acknowledged(services, services.command(Action.START, ORDERS, first))
    services.wait_until(lambda: ORDERS in services.committed)
    services.answers_nothing.add("orders")
    services.ends[ORDERS] = BATCH
    services.wait_for(lambda report: "no answer" in (report.reason or ""))
    services.at_fault.add("orders")
    services.wait_for(lambda report: bool(report.refusing))
    acknowledged(services, services.command(Action.STOP, ORDERS, first))
    assert services.committed[ORDERS] == Committed(0, claim(name(first)))
    services.at_fault.clear()
    services.answers_nothing.clear()
    begin(2)
    services.command(Action.START, ORDERS, ready(services, 2))
    services.wait_until(lambda: is_committed(services, ORDERS))
    assert each_once(services)


def test_what_was_deleted_before_it_was_read_is_told_and_counted(services: Services, begin: Begin) -> None:
    """Hole 9: retention that overtook reading was silent."""
    begin(1)
    ready(services, 1)
    services.passed_over.append(PassedOver(ORDERS, 5, 9, were_read=False))
    told = services.wait_for(lambda report: report.lost == 4)
    assert told.state is ConsumerState.READY
    assert "orders-0: offsets 5 to 8 were deleted before they were read" in (told.reason or "")


@pytest.mark.slow(4)
def test_what_is_claimed_is_committed_again_from_time_to_time_also_where_nothing_is_read(
    services: Services, begin: Begin
) -> None:
    """Hole 4: the commits of idle partitions expired. Hole 3: so did the name of who had nothing to commit."""
    begin(1, renew_claims_s=1.0)
    reader = ready(services, 1)
    services.wait_until(lambda: services.commits != [])
    assert {commit.partition for commit in services.commits} == {COMMANDS}
    services.command(Action.START, ORDERS, reader)
    claimed = Commit(name(reader), ORDERS, Committed(0, claim(name(reader))))
    services.wait_until(lambda: services.commits.count(claimed) >= 3)
    acknowledged(services, services.command(Action.STOP, ORDERS, reader))
    assert services.committed[ORDERS] == Committed(0, RELEASED)
    services.wait_until(lambda: services.commits[-1].partition == COMMANDS)
    assert services.committed[ORDERS] == Committed(0, RELEASED), "it is claimed no more"


def test_commits_that_the_brokers_have_lost_double_nothing(services: Services, begin: Begin) -> None:
    """Hole 13: an old claim is left, and what its claimant appended last is older than what another appended since."""
    begin(1)
    first = ready(services, 1)
    services.ends[ORDERS] = BATCH
    services.command(Action.START, ORDERS, first)
    services.wait_until(lambda: is_committed(services, ORDERS))
    old = services.committed[ORDERS]
    acknowledged(services, services.command(Action.STOP, ORDERS, first))
    begin(2)
    second = ready(services, 2)
    services.ends[ORDERS] = 3 * BATCH
    services.command(Action.START, ORDERS, second)
    services.wait_until(lambda: is_committed(services, ORDERS))
    acknowledged(services, services.command(Action.STOP, ORDERS, second))
    services.committed[ORDERS] = old
    services.ends[ORDERS] = 4 * BATCH
    begin(3)
    services.command(Action.START, ORDERS, ready(services, 3))
    services.wait_until(lambda: is_committed(services, ORDERS))
    assert each_once(services)


def test_one_whose_commits_are_refused_for_long_ends(services: Services, begin: Begin) -> None:
    """Hole 10: it tried for ever, and obeyed nobody."""
    ended = begin(1, lease_s=3_600.0, give_up_after_s=600.0)
    services.refuses_commits = True
    services.command(Action.START, ORDERS, ready(services, 1))
    services.wait_for(lambda report: "commit: " in (report.reason or ""))
    services.clock.set_ahead(601.0)
    assert "leaves without a commit" in str(ended.exception(PATIENCE_S))


def some_time_passes(services: Services) -> None:
    """Less than half of a lease; what is reported then has been sent."""
    services.clock.set_ahead(0.4 * LEASE_S)
    sequence = services.reports[-1].sequence
    services.wait_for(lambda report: report.sequence == sequence + 2)


def test_one_of_which_no_report_arrives_any_more_ends(services: Services, begin: Begin) -> None:
    ended = begin(1)
    services.command(Action.START, ORDERS, ready(services, 1))
    services.wait_until(lambda: ORDERS in services.committed)
    for _ in range(3):
        some_time_passes(services)
    assert not ended.done(), "reports arrive"
    services.reports_arrive = False
    for _ in range(2):
        some_time_passes(services)
    services.clock.set_ahead(0.4 * LEASE_S)
    assert isinstance(ended.exception(PATIENCE_S), LeaseError)


def test_one_that_sleeps_for_longer_than_its_lease_writes_and_commits_nothing_more(
    services: Services, begin: Begin
) -> None:
    ended = begin(1)
    services.command(Action.START, ORDERS, ready(services, 1))
    services.wait_until(lambda: ORDERS in services.committed)
    services.hold_up("fetch", 1)
    services.wait_until_held_up("fetch", 1)
    services.ends[ORDERS] = 3 * BATCH
    services.clock.set_ahead(1.1 * LEASE_S)
    services.let_go("fetch", 1)
    assert isinstance(ended.exception(PATIENCE_S), LeaseError)
    assert services.rows[ORDERS] == []
    assert services.committed[ORDERS].offset == 0


def its_lease_runs_out_during_a_commit(services: Services, begin: Begin) -> Ended:
    ended = begin(1)
    services.command(Action.START, ORDERS, ready(services, 1))
    services.wait_until(lambda: ORDERS in services.committed)
    services.hold_up("commit", 1)
    services.ends[ORDERS] = BATCH
    services.wait_until_held_up("commit", 1)
    services.clock.set_ahead(1.1 * LEASE_S)
    return ended


def test_one_whose_lease_runs_out_during_a_commit_ends_once_that_is_settled(services: Services, begin: Begin) -> None:
    """Cut off in its middle, it had its successor wait for 300 s."""
    ended = its_lease_runs_out_during_a_commit(services, begin)
    time.sleep(0.3)
    assert not ended.done()
    services.let_go("commit", 1)
    assert isinstance(ended.exception(PATIENCE_S), LeaseError)
    assert is_committed(services, ORDERS)


def test_so_it_does_where_that_is_never_settled(
    services: Services, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LAST_COMMIT_LIMIT_S", 0.1)
    assert isinstance(its_lease_runs_out_during_a_commit(services, begin).exception(PATIENCE_S), LeaseError)


def test_no_two_processes_have_one_name(services: Services, begin: Begin) -> None:
    begin(1)
    begin(1)
    services.wait_until(lambda: [report.sequence for report in services.reports].count(1) == 2)
    assert len({report.incarnation for report in services.reports}) == 2


POISON = BATCH + 3
"""The offset of a record that its table refuses."""
WHILE_IT_IS_LOOKED_FOR = ["write", "set aside", "is set aside"]


def settled(services: Services, partition: TopicPartition = ORDERS) -> list[int]:
    return sorted([*services.rows[partition], *services.dead_letters[partition]])


@pytest.mark.parametrize(
    ("frozen_at", "is_mended"),
    [*((step, False) for step in WHILE_IT_IS_LOOKED_FOR), ("write", True), ("is set aside", True)],
)
def test_a_record_that_is_refused_is_set_aside_once_wherever_its_reader_freezes(
    frozen_at: str, is_mended: bool, services: Services, begin: Begin
) -> None:
    services.epoch = 0
    zombie = begin(1)
    former = ready(services, 1)
    services.command(Action.START, ORDERS, former)
    services.wait_until(lambda: ORDERS in services.committed)
    services.refused = {(ORDERS, POISON)}
    services.hold_up(frozen_at, 1)
    services.ends[ORDERS] = 3 * BATCH
    services.wait_until_held_up(frozen_at, 1)
    if is_mended:
        services.refused = set()
    begin(2)
    services.command(Action.START, ORDERS, ready(services, 2), seal=[name(former)])
    services.wait_until(lambda: services.committed[ORDERS].offset == 3 * BATCH)
    services.let_go(frozen_at, 1)
    assert isinstance(zombie.exception(PATIENCE_S), ConsumerError)
    assert settled(services) == list(range(3 * BATCH))
    assert services.dead_letters[ORDERS] == ([] if is_mended and frozen_at == "write" else [POISON])
    assert services.ahead == []


def test_records_that_are_refused_keep_no_other_from_being_written(services: Services, begin: Begin) -> None:
    services.refused = {(ORDERS, offset) for offset in (0, 7, 8, POISON)}
    begin(1)
    reader = ready(services, 1)
    for partition in (ORDERS, CLICKS):
        acknowledged(services, services.command(Action.START, partition, reader))
    services.ends.update({ORDERS: 4 * BATCH, CLICKS: 4 * BATCH})
    services.wait_until(lambda: is_committed(services, ORDERS) and is_committed(services, CLICKS))
    assert services.dead_letters[ORDERS] == [0, 7, 8, POISON]
    assert settled(services) == list(range(4 * BATCH))
    assert each_once(services, CLICKS)
    services.wait_until(lambda: told(services) == 8 * BATCH)
    last = services.wait_for(lambda report: report.dead_letters == 4 and report.state is ConsumerState.READY)
    assert last.reason == "a record of orders is in the dead letters: orders: its constraint"
