"""A consumer's process, step by step: its machine (`consumer.decide.machine`) is the real one, and what that wants is
performed against a simulated lake, a little at each step. It can be frozen between any two of them.

Its lease never runs out: whenever it looks around, its newest report counts as arrived, and its clock stands still
while it is frozen. None of its limits is ever reached. So one that is frozen goes on as it was when it wakes up, one
that is cut off goes on for ever, and what holds here does not rest on any clock.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from consumer.decide import actions, events
from consumer.decide.batch import Record
from consumer.decide.commands import Holding
from consumer.decide.machine import ConsumerError, ConsumerMachine
from consumer.decide.takeover import ClaimsError, Steps, steps
from consumer.settings import ConsumerSettings
from domain.assignment import ConsumerId
from domain.messages import ConsumerCommand, ConsumerReport, Throughput, writer
from domain.partitions import TopicPartition
from tests.checked_machines import checked_consumer
from tests.controller.simulated_lake import GROUP, Append, FencedError, Lake

AT_ONCE = 5
"""Records of a partition that come with one fetch."""
DAY_S = 86_400.0
SETTINGS = ConsumerSettings(
    spark_remote="sc://simulated",
    lake_root="/simulated",
    wait_time_secs=1.0,
    lease_s=3600.0,
    write_limit_s=DAY_S,
    give_up_after_s=DAY_S,
    renew_claims_s=60.0,
)


@dataclass(eq=False)
class FakeConsumer:
    consumer: ConsumerId
    incarnation: str
    now: float = 0.0
    """On its own clock."""
    pace: float = 1.0
    """Seconds of its clock for each of the world's."""
    silent: bool = False
    """It is cut off: it goes on reading what it holds, and neither hears nor says anything."""
    frozen: bool = False
    """It does nothing at all, and later goes on as it was."""
    busy: bool = False
    """Neither lake nor brokers answer what it asks of them: it reports, and obeys nothing."""
    has_spark: bool = True
    """Without it there is no session, and it does not become ready."""
    answers_lost: int = 0
    """So many writes and commits will be carried out, and it is not told so."""
    ended: bool = False
    killed_at: float = math.inf
    """It was told to end, and is killed then if it has not; on the world's clock."""
    inbox: list[ConsumerCommand] = field(default_factory=list)
    outbox: list[ConsumerReport] = field(default_factory=list)
    throughput: Throughput | None = None
    """It is said in its reports."""
    reading: dict[TopicPartition, int] = field(default_factory=dict)
    """What it reads, and where it goes on."""
    begun: int = 0
    """How often it has begun to read something."""

    def __post_init__(self) -> None:
        commands = TopicPartition("consumer.metadata", self.consumer)
        holding = Holding(self.consumer, self.incarnation)
        self.writer = writer(self.consumer, self.incarnation)
        self._machine = ConsumerMachine(holding, GROUP, commands, SETTINGS, self.now)
        self._said: ConsumerReport | None = None
        self._fetches = False
        self._held_back: set[str] = set()
        self._asked: dict[int, actions.Ask] = {}
        self._taking_over: dict[int, Steps] = {}
        self._appends: dict[int, Append] = {}

    @property
    def held(self) -> set[TopicPartition]:
        """By its newest report, whether or not that has arrived."""
        return set() if self._said is None else {partition.key for partition in self._said.partitions}

    @property
    def speaks(self) -> bool:
        return not (self.silent or self.frozen or self.ended)

    @property
    def doomed(self) -> bool:
        """Whether it was told to end; it may hang."""
        return self.killed_at < math.inf

    def reads(self, partition: TopicPartition, lake: Lake) -> bool:
        """Whether what it reads of the partition takes effect."""
        return partition in self.reading and lake.takes_effect(self.writer, partition.topic)

    def step(self, lake: Lake, seconds: float) -> None:
        """Time passes: it takes one step of each thing that it has asked for, looks around, and is told what to do."""
        if self.frozen or self.ended:
            return
        self.now += seconds * self.pace
        try:
            happened = [*self._fetched(lake), *self._answers(lake), self._looked()]
            for action in checked_consumer(self._machine, *happened):
                self._perform(action)
        except (FencedError, ConsumerError):
            self.ended = True
        self.ended = self.ended or self._machine.ended

    def take_reports(self) -> list[ConsumerReport]:
        """What it has said since this was asked last."""
        said, self.outbox = self.outbox, []
        return said

    def _looked(self) -> events.Looked:
        machine, commands = self._machine, tuple[ConsumerCommand, ...]()
        if machine.ready and not self.silent:
            commands, self.inbox = tuple(self.inbox), []
        found = tuple(sorted(machine.to_place)) if machine.ready else ()
        return events.Looked(self.now, self.doomed, arrived=self.now, commands=commands, found=found)

    def _fetched(self, lake: Lake) -> Iterator[events.Fetched]:
        if self._fetches:
            self._fetches = False
            records: list[Record] = []
            for partition, position in self.reading.items():
                end = min(lake.produced[partition], position + AT_ONCE)
                if end > position and partition.topic not in self._held_back:
                    records += [Record(partition, offset, None, None, b".", ()) for offset in range(position, end)]
                    self.reading[partition] = end
            yield events.Fetched(self.now, tuple(records), self.now, self.now)

    def _answers(self, lake: Lake) -> Iterator[events.Done | events.Failed]:
        if self.busy:
            return
        for ask, action in list(self._asked.items()):
            answer = self._go_on(action, lake)
            if answer is not None:
                del self._asked[ask]
                if self.answers_lost and isinstance(action, actions.Write | actions.Commit):
                    self.answers_lost -= 1
                    of_lake = isinstance(action, actions.Write)
                    yield events.Failed(self.now, ask, "no answer", of_lake)
                else:
                    yield answer

    def _go_on(self, action: actions.Ask, lake: Lake) -> events.Done | events.Failed | None:
        """One step of what was asked for; and what is answered, if that was the last one."""
        done = events.Done(self.now, action.ask)
        match action:
            case actions.TakePlace():
                self.inbox.clear()
                return done
            case actions.OpenSession():
                return done if self.has_spark else None
            case actions.TakeOver():
                return self._take_over(action, lake)
            case actions.Write(ask=ask, topic=topic):
                if topic in lake.at_fault and ask not in self._appends:
                    return events.Failed(self.now, ask, f"{topic}: another type", of_lake=True, of_table=True)
                if ask not in self._appends:
                    self._appends[ask] = _append(self.writer, action, lake)
                return done if self._appends[ask].settled else None
            case actions.SetAside():
                raise AssertionError("its tables refuse no record")
            case actions.Commit(positions=positions):
                if lake.is_slow(lake.commits_at_once):
                    return None
                lake.commit(self.writer, positions)
                return done

    def _take_over(self, action: actions.TakeOver, lake: Lake) -> events.Done | events.Failed | None:
        ask, partitions, seal = action
        if not self._machine.is_asked(ask, self.now):
            return events.Failed(self.now, ask, "it is not wanted any more")
        if ask not in self._taking_over:
            self._taking_over[ask] = steps(partitions, seal, self.writer, lake, lake, GROUP)
        if lake.is_slow(lake.tells_at_once):
            return None
        try:
            next(self._taking_over[ask])
        except StopIteration as last:
            return events.Done(self.now, ask, last.value)
        except ClaimsError as error:
            return events.Failed(self.now, ask, str(error))
        return None

    def _perform(self, action: actions.Action) -> None:
        match action:
            case actions.StopReading(partitions=partitions):
                for partition in partitions:
                    self.reading.pop(partition, None)
            case actions.ReadFrom(positions=positions):
                self.reading.update((each, reached.offset) for each, reached in positions.items())
                self.begun += 1
            case actions.HoldBack(topic=topic, positions=positions):
                self._held_back.add(topic)
                self.reading.update((each, reached.offset) for each, reached in positions.items())
            case actions.Resume(topic=topic):
                self._held_back.discard(topic)
            case actions.Send(report=report):
                told = {"sent_at": self.now, "throughput": self.throughput or report.throughput}
                self._said = report.model_copy(update=told)
                if not self.silent:
                    self.outbox.append(self._said)
            case actions.Fetch():
                self._fetches = True
            case actions.Note() | actions.Wait():
                pass
            case _:
                self._asked[action.ask] = action


def _append(own: str, action: actions.Write, lake: Lake) -> Append:
    offsets: dict[TopicPartition, list[int]] = {}
    for record in action.batch.by_topic[action.topic]:
        offsets.setdefault(record.partition, []).append(record.offset)
    return lake.ask(own, action.topic, action.version, offsets)
