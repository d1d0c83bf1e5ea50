"""The controller's link on a real broker."""

import json
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer

from app.topics import Cluster
from controller.decide.commands import Claim
from controller.decide.former_writers import Reach
from controller.decide.history import Beginning
from controller.kafka import DeposedError, KafkaLink, Received, Sent
from domain.messages import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    Decision,
    PlanFigures,
    PlannedPartition,
    WriteSpeedReport,
)
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from domain.topics import TopicNames
from tests.patience import wait_until
from tests.services import SharedBroker

READS = frozenset({TopicPartition("orders", 0)})


@pytest.fixture
def names(broker: SharedBroker, unique_name: str) -> TopicNames:
    names = TopicNames(f"{unique_name}.speed", f"{unique_name}.metadata", f"{unique_name}.decisions")
    Cluster(broker.bootstrap_servers).ensure_internal_topics(names, highest_consumer=3)
    return names


@pytest.fixture
def link(broker: SharedBroker, names: TopicNames, unique_name: str) -> Iterator[Callable[[], KafkaLink]]:
    made: list[KafkaLink] = []

    def make() -> KafkaLink:
        made.append(KafkaLink(broker.bootstrap_servers, unique_name, {}, names))
        return made[-1]

    yield make
    for each in made:
        each.close()


def send(broker: SharedBroker, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush()


def a_report(sequence: int = 1, **fields: object) -> ConsumerReport:
    values = {"consumer": 1, "incarnation": "a", "sequence": sequence, "sent_at": 1.0, "state": ConsumerState.READY}
    return ConsumerReport.model_validate(values | fields)


def a_decision(number: int) -> Decision:
    return Decision(
        number=number,
        epoch=1,
        decided_at=1.0,
        triggers=(),
        carried_out=True,
        reason="",
        engine="",
        status="",
        solve_s=0.0,
        lower_bound=1.0,
        plan=PlanFigures(consumers=1, rscore=0.5, objective=1.0),
        keeping=None,
        assignment=(),
    )


def a_command(sequence: int, epoch: int = 1) -> ConsumerCommand:
    return ConsumerCommand(
        consumer=2, incarnation="a", epoch=epoch, plan=1, sequence=sequence, action=Action.STOP, partitions=()
    )


def receive(link: KafkaLink, count: int) -> list[Received]:
    """What comes but for claims, until there is so much of it."""
    received: list[Received] = []

    def are_there() -> bool:
        received.extend(message for message in link.receive(0.2) if not isinstance(message, ControllerClaim))
        return len(received) >= count

    wait_until(are_there)
    return received


def test_each_controller_has_a_higher_epoch_than_all_before(link: Callable[[], KafkaLink]) -> None:
    assert [link().begin().epoch for _ in range(3)] == [1, 2, 3]


def test_an_epoch_is_higher_than_any_that_a_consumer_obeyed(
    broker: SharedBroker, names: TopicNames, link: Callable[[], KafkaLink]
) -> None:
    send(broker, names.metadata, a_report(applied_epoch=41, applied_sequence=7).encode(), b"nonsense")
    assert link().begin().epoch == 42


def test_a_pause_outlives_the_controller_and_a_resume_ends_it(
    broker: SharedBroker, names: TopicNames, link: Callable[[], KafkaLink]
) -> None:
    send(broker, names.metadata, ControlRequest(action=ControlAction.PAUSE, sent_at=1.0).encode())
    first = link()
    assert first.begin().paused
    # The request itself may be gone by then: what the controller before said is enough.
    assert link().begin().paused
    send(broker, names.metadata, ControlRequest(action=ControlAction.RESUME, sent_at=2.0).encode())
    assert not link().begin().paused


def test_a_controller_begins_with_what_the_newest_claim_says(
    broker: SharedBroker, names: TopicNames, link: Callable[[], KafkaLink]
) -> None:
    """Hole 1, on a real broker, whose transactions end with markers that take offsets."""
    before = link()
    before.begin()
    send(broker, names.metadata, *[a_report(sequence).encode() for sequence in range(2_000)])
    assert len(receive(before, 2_000)) == 2_000
    before.send([before.claim(Claim(1, paused=True, unsealed={"5/e": None}, settled=(), members={"3/c": READS}), 1.0)])
    before.send([a_command(1)])
    heard_of: dict[str, Reach] = {"3/c": READS, "5/e": None}
    assert link().begin() == Beginning(epoch=2, paused=True, unsealed=heard_of, of_strangers=frozenset())
    send(broker, names.metadata, a_report(1, consumer=4).encode())
    heard_of["4/a"] = frozenset()
    assert link().begin() == Beginning(epoch=3, paused=True, unsealed=heard_of, of_strangers=frozenset())


def test_a_decision_on_many_thousand_partitions_can_be_sent(link: Callable[[], KafkaLink]) -> None:
    controller = link()
    controller.begin()
    entries = (
        PlannedPartition(topic="t" * 200, partition=n, speed=1.0, consumer=1, previous=2, reason="no longer needed")
        for n in range(20_000)
    )
    decision = a_decision(1).model_copy(update={"assignment": tuple(entries)})
    controller.send([decision, a_command(1)])


def test_a_controller_that_begins_learns_what_was_decided_lately_and_misses_nothing(
    broker: SharedBroker, names: TopicNames, link: Callable[[], KafkaLink]
) -> None:
    began = time.time()
    before = link()
    before.begin()
    assert before.decided_since(began - 60) == []
    early = a_decision(1)
    before.send([early])
    time.sleep(0.05)
    late = a_decision(2)
    before.send([late])
    after = link()
    after.begin()
    send(broker, names.metadata, a_report().encode())
    decided = after.decided_since(began - 60)
    assert [decision.number for decision in decided] == [early.number, late.number]
    between = sum(decision.decided_at for decision in decided) / 2
    assert [decision.number for decision in after.decided_since(between)] == [late.number]
    assert receive(after, 1) == [a_report()]


def set_clock(monkeypatch: pytest.MonkeyPatch, ahead_s: Callable[[], float]) -> None:
    """Of the controllers, so far ahead of the brokers'."""
    clock = SimpleNamespace(time=lambda: time.time() + ahead_s(), monotonic=time.monotonic, sleep=time.sleep)
    monkeypatch.setattr("controller.kafka.time", clock)


@pytest.mark.parametrize("behind_s", [7200.0, -7200.0], ids=["behind", "ahead"])
def test_what_was_decided_lately_is_aged_by_when_it_came(
    link: Callable[[], KafkaLink], monkeypatch: pytest.MonkeyPatch, behind_s: float
) -> None:
    """Issue 18: the migration budget counted by the clock of the controller before, and by the brokers'."""
    before = link()
    before.begin()
    for number, ahead_s in ((1, -3600), (2, 3600)):
        before.send([a_decision(number).model_copy(update={"decided_at": time.time() + ahead_s})])
    after = link()
    set_clock(monkeypatch, lambda: -behind_s)
    after.begin()
    now = time.time() - behind_s
    decided = after.decided_since(now - 600)
    assert [decision.number for decision in decided] == [1, 2]
    assert [decision.decided_at for decision in decided] == [pytest.approx(now, abs=600)] * 2
    assert after.decided_since(now + 600) == []


def test_how_long_the_brokers_take_for_a_claim_is_no_difference_of_clocks(
    link: Callable[[], KafkaLink], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = link()
    before.begin()
    before.send([a_decision(1)])
    now, passed_s, produce = time.time(), 0.0, KafkaLink._produce

    def produce_and_stand_still(controller: KafkaLink, message: Sent) -> None:
        nonlocal passed_s
        produce(controller, message)
        passed_s = 3600.0

    after = link()
    set_clock(monkeypatch, lambda: passed_s)
    monkeypatch.setattr(KafkaLink, "_produce", produce_and_stand_still)
    after.begin()
    (decision,) = after.decided_since(now - 600)
    assert decision.decided_at == pytest.approx(now, abs=600)


def test_a_request_of_an_operator_arrives(
    broker: SharedBroker, names: TopicNames, link: Callable[[], KafkaLink]
) -> None:
    controller = link()
    controller.begin()
    request = ControlRequest(action=ControlAction.REPLAN, sent_at=1.0)
    send(broker, names.metadata, request.encode())
    assert receive(controller, 1) == [request]


def test_a_deposed_controller_can_send_nothing(link: Callable[[], KafkaLink]) -> None:
    old, new = link(), link()
    old.begin()
    old.send([a_command(1)])
    new.begin()
    with pytest.raises(DeposedError):
        old.send([a_command(2)])
    new.send([a_command(1, epoch=2)])


def test_reports_and_speeds_arrive_and_what_is_no_message_is_dropped(
    broker: SharedBroker, names: TopicNames, link: Callable[[], KafkaLink]
) -> None:
    controller = link()
    send(broker, names.metadata, a_report(sequence=1).encode())
    speeds = WriteSpeeds(5.0, {TopicPartition("orders", 0): 7.0})
    send(broker, names.write_speed, WriteSpeedReport.of(speeds).encode())
    assert controller.begin().speeds == speeds
    send(broker, names.write_speed, WriteSpeedReport.of(speeds).encode())
    send(broker, names.metadata, b"{", b"", a_report(sequence=2).encode())
    received = receive(controller, 2)
    assert [message.speeds for message in received if isinstance(message, WriteSpeedReport)] == [speeds]
    # The report from before the controller began may be of a process that is long gone.
    assert [message.sequence for message in received if isinstance(message, ConsumerReport)] == [2]


def test_while_nothing_is_said_brokers_are_seldom_asked(
    broker: SharedBroker, names: TopicNames, unique_name: str
) -> None:
    asked: list[int] = []

    def count(statistics: str) -> None:
        asked.append(sum(each["req"]["Fetch"] for each in json.loads(statistics)["brokers"].values()))

    config: dict[str, Any] = {"statistics.interval.ms": 2000, "stats_cb": count}
    link = KafkaLink(broker.bootstrap_servers, unique_name, config, names)

    def were_counted_twice() -> bool:
        link.receive(0.1)
        return len(asked) >= 2

    link.begin()
    link.receive(1.0)
    asked.clear()  # it has read its own claim
    wait_until(were_counted_twice)
    link.close()
    assert asked[1] - asked[0] <= 8  # each is answered after half a second


@pytest.mark.timeout(240)
def test_what_is_said_comes_at_once_also_where_data_may_wait(
    broker: SharedBroker, names: TopicNames, unique_name: str
) -> None:
    """By `kafka.client` brokers wait for a megabyte, or longer than the test may take."""
    of_data = {"fetch.min.bytes": "1000000", "fetch.wait.max.ms": "250000", "socket.timeout.ms": "300000"}
    link = KafkaLink(broker.bootstrap_servers, unique_name, of_data, names)
    link.begin()
    send(broker, names.metadata, a_report().encode())
    assert receive(link, 1) == [a_report()]
    link.close()
