"""What a controller sends to consumers whose part the test plays: over brokers in memory, and over a real one."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition as Position

from app.topics import Cluster
from consumer.threads import in_thread
from controller import kafka
from controller.decide import machine
from controller.fleet import Revisions
from controller.kafka import KafkaLink
from controller.runner import run
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY
from domain.messages import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    Order,
    PartitionRef,
    Refusing,
    WriteSpeedReport,
    decode_to_controller,
)
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from domain.topics import CONTROLLER_PARTITION, TopicNames
from sandbox.broker import Broker
from solver import solve
from tests.patience import PATIENCE_S, wait_until
from tests.transactional_brokers import Brokers

FIRST, SECOND = BOTH = (TopicPartition("orders", 0), TopicPartition("orders", 1))
SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=80.0,
    least_interval_s=0.1,
    engine="mbfp",
    # A test that stands still for a while is no consumer that does.
    acknowledge_timeout_s=PATIENCE_S,
    synchronize_timeout_s=PATIENCE_S,
    park_after_s=300.0,
)
LOW, HIGH = 30.0, 70.0
"""Speeds at which one consumer reads both partitions, and at which it takes two."""
HIGHEST_CONSUMER = 8
SAID_EVERY_S = 0.2


class Stage:
    """Monitor, fleet and consumers in one. A consumer says again and again what it said last."""

    def __init__(self, producer: Any, consumer: Any, names: TopicNames, calm_s: float) -> None:
        self.alive: set[ConsumerId] = set()
        self.speed = LOW
        self.commands: list[ConsumerCommand] = []
        self.claims: list[ControllerClaim] = []
        self._producer = producer
        self._consumer = consumer
        self._names = names
        self._calm_s = calm_s
        self._said: dict[ConsumerId, ConsumerReport] = {}
        self._sequences: Counter[str] = Counter()
        self._said_at = 0.0
        self._offsets: dict[tuple[str, int], int] = {}
        """Of the reports, by writer and sequence."""
        consumer.assign([Position(names.metadata, number, 0) for number in range(HIGHEST_CONSUMER + 1)])

    # As a fleet

    def consumers(self) -> frozenset[ConsumerId]:
        return frozenset(self.alive)

    def revisions(self) -> Revisions:
        return Revisions(None, frozenset())

    def create(self, consumer: ConsumerId, class_name: str = ORDINARY) -> None:  # noqa: ARG002
        self.alive.add(consumer)

    def delete(self, consumer: ConsumerId) -> None:
        self.alive.discard(consumer)

    # What a test does

    def report(
        self,
        consumer: ConsumerId,
        *held: TopicPartition,
        incarnation: str = "a",
        applied: Order | None = None,
        taking_over: tuple[TopicPartition, ...] = (),
        refusing: tuple[Refusing, ...] = (),
    ) -> None:
        epoch, sequence = applied or Order(0, 0)
        self._said[consumer] = ConsumerReport(
            consumer=consumer,
            incarnation=incarnation,
            sequence=0,
            sent_at=time.time(),
            state=ConsumerState.READY,
            applied_epoch=epoch,
            applied_sequence=sequence,
            partitions=tuple(map(PartitionRef.of, held)),
            taking_over=tuple(map(PartitionRef.of, taking_over)),
            refusing=refusing,
        )
        self._said_at = 0.0

    def ask(self, action: ControlAction, topic: str) -> None:
        request = ControlRequest(action=action, topic=topic, sent_at=time.time())
        self._send(self._names.metadata, request.encode())

    def claim_as_a_controller_before(self, epoch: int) -> None:
        claim = ControllerClaim(epoch=epoch, incarnation="before", sent_at=time.time())
        self._send(self._names.metadata, claim.encode())

    def end(self, consumer: ConsumerId) -> None:
        """Its process is gone, once what it has said is heard."""
        writer = self._said[consumer].writer
        before = self._sequences[writer]
        self._said_at = 0.0

        def is_heard() -> bool:
            newest = self._offsets.get((writer, before + 1))
            return newest is not None and any((claim.heard_to or 0) > newest for claim in self.claims)

        self.wait_until(is_heard)
        self.alive.discard(consumer)
        del self._said[consumer]

    def next_process(self, incarnation: str) -> ConsumerId:
        """The consumer that comes in place of one that is gone, when it is ready."""
        self.wait_until(lambda: bool(self.alive - self._said.keys()))
        (consumer,) = self.alive - self._said.keys()
        self.report(consumer, incarnation=incarnation)
        return consumer

    def told(self, action: Action, incarnation: str = "a", consumer: ConsumerId | None = None) -> list[ConsumerCommand]:
        return [
            command
            for command in self.commands
            if command.action is action and command.incarnation == incarnation and consumer in (None, command.consumer)
        ]

    def wait_for(self, action: Action, incarnation: str = "a", consumer: ConsumerId | None = None) -> ConsumerCommand:
        self.wait_until(lambda: bool(self.told(action, incarnation, consumer)))
        return self.told(action, incarnation, consumer)[0]

    def wait_until(self, condition: Callable[[], bool]) -> None:
        def has_come() -> bool:
            self._go_on()
            return condition()

        wait_until(has_come, lambda: f"it did not come about; lately: {self.commands[-3:]}")

    def listen(self) -> None:
        """For as long as it takes whoever has a reason to send something."""
        until = time.monotonic() + self._calm_s
        while time.monotonic() < until:
            self._go_on()

    def _go_on(self) -> None:
        if time.monotonic() - self._said_at > SAID_EVERY_S:
            self._said_at = time.monotonic()
            speeds = WriteSpeeds(time.time(), dict.fromkeys(BOTH, self.speed))
            self._send(self._names.write_speed, WriteSpeedReport.of(speeds).encode())
            for consumer in self.alive & self._said.keys():
                said = self._said[consumer]
                self._sequences[said.writer] += 1
                again = said.model_copy(update={"sequence": self._sequences[said.writer], "sent_at": time.time()})
                self._send(self._names.metadata, again.encode())
        for record in self._consumer.consume(100, 0.02):
            assert record.error() is None, record.error()
            if record.partition() != CONTROLLER_PARTITION:
                self.commands.append(ConsumerCommand.decode(record.value()))
                continue
            message = decode_to_controller(record.value())
            if isinstance(message, ControllerClaim):
                self.claims.append(message)
            elif isinstance(message, ConsumerReport):
                self._offsets[message.writer, message.sequence] = record.offset()

    def _send(self, topic: str, value: bytes) -> None:
        self._producer.produce(topic, value, partition=CONTROLLER_PARTITION)
        assert self._producer.flush() == 0


@pytest.fixture(params=["in memory", pytest.param("on a broker", marks=pytest.mark.integration)])
def kafka_of_the_test(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, unique_name: str
) -> tuple[str, TopicNames]:
    """Where brokers are, and the topics."""
    names = TopicNames(f"{unique_name}.speed", f"{unique_name}.metadata", f"{unique_name}.decisions")
    if request.param == "on a broker":
        broker: Broker = request.getfixturevalue("broker")
        monkeypatch.setattr(kafka, "SEND_TIMEOUT_S", PATIENCE_S)
        Cluster(broker.bootstrap_servers).ensure_internal_topics(names, HIGHEST_CONSUMER)
        return broker.bootstrap_servers, names
    monkeypatch.setattr(machine, "CLAIM_EVERY_S", 0.4)
    brokers = Brokers()
    for module in (kafka, confluent_kafka):
        monkeypatch.setattr(module, "Producer", brokers.producer)
        monkeypatch.setattr(module, "Consumer", brokers.consumer)
    return "", names


@pytest.fixture
def stage(kafka_of_the_test: tuple[str, TopicNames]) -> Iterator[Stage]:
    servers, names = kafka_of_the_test
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": uuid.uuid4().hex, "enable.auto.commit": False}
    )
    yield Stage(producer, consumer, names, calm_s=2.0 if servers else 0.5)
    consumer.close()


@pytest.fixture
def controls(stage: Stage, kafka_of_the_test: tuple[str, TopicNames]) -> Iterator[None]:
    """A controller is at work."""
    with controlled(stage, *kafka_of_the_test):
        yield


@contextmanager
def controlled(stage: Stage, servers: str, names: TopicNames) -> Iterator[None]:
    stop = threading.Event()
    link = KafkaLink(servers, names.metadata, {}, names)
    ended = in_thread(lambda: run(SETTINGS, link, stage, solve, stop))
    try:
        yield
    finally:
        stop.set()
        ended.result(PATIENCE_S)
        link.close()


def keys(command: ConsumerCommand) -> list[TopicPartition]:
    return [partition.key for partition in command.partitions]


@pytest.mark.usefixtures("controls")
def test_a_partition_is_started_elsewhere_only_when_its_reader_has_said_that_it_stopped(stage: Stage) -> None:
    first = stage.next_process("a")
    start = stage.wait_for(Action.START)
    stage.report(first, *BOTH, applied=start.order)
    stage.speed = HIGH
    second = stage.next_process("a")
    stop = stage.wait_for(Action.STOP, consumer=first)
    stage.listen()
    assert stage.told(Action.START, consumer=second) == []
    assert stage.told(Action.STOP, consumer=first) == [stop], "what was said before it acknowledges nothing"
    (moves,) = keys(stop)
    (stays,) = set(BOTH) - {moves}
    stage.report(first, stays, applied=stop.order)
    assert keys(stage.wait_for(Action.START, consumer=second)) == [moves]


@pytest.mark.usefixtures("controls")
def test_a_topic_whose_table_takes_nothing_is_read_by_nobody_until_it_is_asked_for(stage: Stage) -> None:
    first = stage.next_process("a")
    start = stage.wait_for(Action.START)
    at_fault = Refusing(topic="orders", for_s=SETTINGS.park_after_s, reason="another type")
    stage.report(first, *BOTH, applied=start.order, refusing=(at_fault,))
    stop = stage.wait_for(Action.STOP)
    assert keys(stop) == list(BOTH)
    stage.report(first, applied=stop.order)
    stage.wait_until(lambda: not stage.alive)
    stage.listen()
    assert (stage.told(Action.START), stage.alive) == ([start], set()), "it is no load"
    assert [(each.topic, each.reason) for each in stage.claims[-1].parked] == [("orders", "another type")]
    stage.ask(ControlAction.UNPARK, "orders")
    stage.wait_until(lambda: bool(stage.alive))


@pytest.mark.usefixtures("controls")
@pytest.mark.parametrize("says_so", [True, False], ids=["reads and says so", "may read, as it was told to"])
def test_a_start_names_who_read_and_is_gone(says_so: bool, stage: Stage) -> None:
    first = stage.next_process("a")
    start = stage.wait_for(Action.START)
    if says_so:
        stage.report(first, *BOTH, applied=start.order)
    stage.end(first)
    stage.next_process("b")
    assert stage.wait_for(Action.START, "b").seal == (f"{first}/a",)


@pytest.mark.usefixtures("controls")
def test_who_only_holds_what_it_takes_over_has_sealed_nobody(stage: Stage) -> None:
    first = stage.next_process("a")
    stage.report(first, *BOTH, applied=stage.wait_for(Action.START).order)
    stage.end(first)
    second = stage.next_process("b")
    stage.report(second, *BOTH, incarnation="b", applied=stage.wait_for(Action.START, "b").order, taking_over=BOTH)
    stage.end(second)
    third = stage.next_process("c")
    start = stage.wait_for(Action.START, "c")
    assert set(start.seal) == {f"{first}/a", f"{second}/b"}
    stage.report(third, *BOTH, incarnation="c", applied=start.order)
    stage.end(third)
    stage.next_process("d")
    assert stage.wait_for(Action.START, "d").seal == (f"{third}/c",)


def test_a_controller_that_begins_starts_nothing_before_all_that_there_are_obey_it(
    stage: Stage, kafka_of_the_test: tuple[str, TopicNames]
) -> None:
    """A start of the one before may still be on its way to one of them."""
    stage.alive = {1, 2}
    stage.claim_as_a_controller_before(epoch=4)
    stage.report(1, incarnation="a", applied=Order(4, 1))
    stage.report(2, incarnation="b", applied=Order(4, 2))
    with controlled(stage, *kafka_of_the_test):
        first = stage.wait_for(Action.STOP, "a")
        second = stage.wait_for(Action.STOP, "b")
        assert (first.epoch, keys(first)) == (second.epoch, keys(second)) == (5, [])
        stage.report(2, incarnation="b", applied=second.order)
        stage.listen()
        assert stage.told(Action.START, "a") == stage.told(Action.START, "b") == []
        stage.report(1, incarnation="a", applied=first.order)
        stage.wait_until(lambda: bool(stage.told(Action.START, "a") + stage.told(Action.START, "b")))


@pytest.mark.usefixtures("controls")
def test_a_controller_says_for_the_next_one_who_may_still_write(stage: Stage) -> None:
    first = stage.next_process("a")
    stage.report(first, *BOTH, applied=stage.wait_for(Action.START).order)
    stage.end(first)
    stage.wait_until(lambda: any(claim.unsealed == (f"{first}/a",) for claim in stage.claims))
    second = stage.next_process("b")
    stage.report(second, *BOTH, incarnation="b", applied=stage.wait_for(Action.START, "b").order)
    stage.wait_until(lambda: stage.claims[-1].settled == (f"{first}/a",))
    assert stage.claims[-1].unsealed == ()


@pytest.mark.usefixtures("controls")
def test_a_claim_that_says_so_goes_with_every_start(stage: Stage) -> None:
    """Claims come now and then as well; but not with each of several starts."""

    def claims_of(writer: str) -> list[ControllerClaim]:
        return [claim for claim in stage.claims if (claim.may_read or {}).get(writer) == {"orders": (0, 1)}]

    reader = stage.next_process("a")
    for incarnation, following in pairwise("abcd"):
        start = stage.wait_for(Action.START, incarnation)
        started_by = time.time()
        stage.wait_until(lambda writer=f"{reader}/{incarnation}": bool(claims_of(writer)))  # type: ignore[misc]
        assert claims_of(f"{reader}/{incarnation}")[0].sent_at <= started_by
        stage.report(reader, *BOTH, incarnation=incarnation, applied=start.order)
        stage.end(reader)
        reader = stage.next_process(following)
