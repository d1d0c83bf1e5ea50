"""The consumer's machine and its take-overs for an exploration: states that can be told apart and gone back to.

The machine is the real one, and so is `take_over`. Between two things that others can see a consumer goes on by itself
for as long as it can: it fetches what there is, opens a session, and commits its place among the commands. What it asks
of others is left to whoever explores, who answers it or not, in any order.

There is no time: all happens in one moment, and what failed did so long enough ago to be tried again. So no lease runs
out, and nothing rests on one.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Set
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple, cast

from consumer.decide import actions, events
from consumer.decide.backoff import LONGEST_S
from consumer.decide.batch import Batch, Record
from consumer.decide.claims import RELEASED, Committed, claim
from consumer.decide.commands import Holding
from consumer.decide.machine import ConsumerError, ConsumerMachine
from consumer.decide.parts import Part
from consumer.decide.reached import Reached
from consumer.decide.spans import Span
from consumer.decide.takeover import ClaimsError, take_over
from consumer.lake import Lake
from consumer.offsets import GroupOffsets
from consumer.settings import ConsumerSettings
from domain.messages import Action, ConsumerCommand, ConsumerState, PartitionRef, writer
from domain.partitions import OffsetRange, TopicPartition
from tests.checked_machines import checked_consumer
from tests.frozen import Freezer

TOPIC, GROUP, INCARNATION = "orders", "group", "a"
METADATA = "consumer.metadata"
SETTINGS = ConsumerSettings(spark_remote="sc://nowhere", lake_root="/lake", batch_bytes=1_000)
VALUE = b"." * SETTINGS.batch_bytes
"""Of each record: one of each partition is more than enough for a batch."""
NOW = 0.0
EPOCH = 0
"""Of the one leader that there ever is."""
FREEZER = Freezer(SETTINGS)

Rows = tuple[tuple[int, int], ...]
"""Partitions and offsets."""


def named(process: int) -> str:
    """The process as a writer."""
    return writer(process + 1, INCARNATION)


def number(name: str) -> int:
    """The process of that name, or of that name in the lake."""
    return int(name.removeprefix(f"{GROUP}/").partition("/")[0]) - 1


def partition_of(index: int) -> TopicPartition:
    return TopicPartition(TOPIC, index)


class Commit(NamedTuple):
    """What is committed of a partition."""

    offset: int
    claimant: int | None


@cache
def as_read(commit: Commit | None) -> Committed | None:
    if commit is None:
        return None
    return Committed(commit.offset, RELEASED if commit.claimant is None else claim(named(commit.claimant)))


# What can happen to a consumer


class Told(NamedTuple):
    """A command has come."""

    action: Action
    partitions: tuple[int, ...]
    seal: tuple[int, ...] = ()


class Succeeded(NamedTuple):
    """What it has asked for, by its place among all that it waits for."""

    place: int
    positions: Rows = ()
    """Where partitions go on: of a take-over, and of what is written."""


class Failed(NamedTuple):
    failed: int
    """By its place among all that it waits for."""
    of_lake: bool = True
    of_record: bool = False
    of_table: bool = False


class Leave(NamedTuple):
    """It was told to end."""


Happened = Told | Succeeded | Failed | Leave


# What a consumer asks of others


class Write(NamedTuple):
    version: int
    rows: Rows


class SetAside(NamedTuple):
    """To the dead letters."""

    aside: tuple[int, int]
    """Its partition and its offset."""


class Commits(NamedTuple):
    commits: tuple[tuple[int, Commit], ...]
    """By partition."""


class TakeOver(NamedTuple):
    partitions: tuple[int, ...]
    told: tuple[int, ...]


Ask = Write | SetAside | Commits | TakeOver


class Step(NamedTuple):
    """What has become of a consumer."""

    state: int
    given_up: tuple[int, ...] = ()
    """What it waits for no more, by the places that they had after what was answered had gone."""
    asked: tuple[Ask, ...] = ()


@dataclass(slots=True)
class _Running:
    """A machine, and what else there is of its process."""

    process: int
    records: int
    """Of each partition."""
    at_once: int
    machine: ConsumerMachine
    fenced: bool = False
    stop: bool = False
    waits_for: list[int] = field(default_factory=list)
    """The numbers of what it has asked of others, in ascending order."""
    reading: dict[TopicPartition, int] = field(default_factory=dict)
    held_back: set[str] = field(default_factory=set)
    sent: int = 0
    """Commands, to it."""
    obeyed: int = 0
    """The newest of them that it has acknowledged."""
    left: bool = False

    def happened(self, what: Happened) -> events.Event:
        match what:
            case Told(action, partitions, seal):
                self.sent += 1
                command = ConsumerCommand(
                    consumer=self.process + 1,
                    incarnation=INCARNATION,
                    epoch=1,
                    plan=1,
                    sequence=self.sent,
                    action=action,
                    partitions=tuple(PartitionRef.of(partition_of(each)) for each in partitions),
                    seal=tuple(map(named, seal)),
                )
                return events.Looked(NOW, commands=(command,))
            case Succeeded(place, positions):
                found = {partition_of(each): Reached(offset) for each, offset in positions}
                return events.Done(NOW, self.waits_for.pop(place), found)
            case Failed():
                place, *kinds = what
                return events.Failed(NOW - LONGEST_S, self.waits_for.pop(place), "refused", *kinds)
            case Leave():
                self.stop = True
                return events.Looked(NOW, stop=True)

    def go_on(self, *happened: events.Event) -> Iterator[tuple[int, Ask]]:
        """Until nothing more comes of itself: what it asks of others."""
        noticed: list[events.Event] = [*happened]
        goes_on = True
        while goes_on and not self.machine.ended:
            found = tuple(sorted(self.machine.to_place)) if self.machine.ready else ()
            *wanted, last = checked_consumer(self.machine, *noticed, events.Looked(NOW, stop=self.stop, found=found))
            noticed = []
            for action in (*wanted, last):
                asked = self._perform(action, noticed)
                if asked is not None:
                    yield asked
            goes_on = bool(wanted or noticed)

    def _perform(self, action: actions.Action, noticed: list[events.Event]) -> tuple[int, Ask] | None:
        match action:
            case actions.TakePlace(ask) | actions.OpenSession(ask):
                noticed.append(events.Done(NOW, ask))
            case actions.TakeOver(ask, partitions, seal):
                told = tuple(sorted(map(number, seal)))
                return ask, TakeOver(tuple(each.partition for each in partitions), told)
            case actions.Write(ask, _, version, batch, part):
                return ask, Write(version, _rows_of(batch, part))
            case actions.SetAside(ask, _, batch, part, _):
                (record,) = _rows_of(batch, part)
                return ask, SetAside(record)
            case actions.Commit(ask, positions):
                commits = {
                    each.partition: Commit(position.offset, None if position.claimant is None else self.process)
                    for each, position in positions.items()
                    if each.topic == TOPIC
                }
                if commits:
                    return ask, Commits(tuple(sorted(commits.items())))
                if self.fenced:
                    raise ConsumerError("another consumer has taken over from this one")
                noticed.append(events.Done(NOW, ask))
            case actions.StopReading(partitions):
                for partition in partitions:
                    self.reading.pop(partition, None)
            case actions.ReadFrom(placed):
                self.reading.update((each, reached.offset) for each, reached in placed.items())
            case actions.HoldBack(topic, began):
                self.held_back.add(topic)
                self.reading.update((each, reached.offset) for each, reached in began.items())
            case actions.Resume(topic):
                self.held_back.discard(topic)
            case actions.Send(report):
                self.obeyed, self.left = report.applied.sequence, report.state is ConsumerState.LEAVING
            case actions.Fetch():
                if records := self._fetched():
                    noticed.insert(0, events.Fetched(NOW, records, NOW, NOW))
            case actions.Note() | actions.Wait():
                pass
        return None

    def _fetched(self) -> tuple[Record, ...]:
        """The next records of each partition that it reads."""
        there = [
            (partition, offset)
            for partition, first in sorted(self.reading.items())
            for offset in range(first, min(first + self.at_once, self.records))
            if partition.topic not in self.held_back
        ]
        self.reading.update({partition: offset + 1 for partition, offset in there})
        return tuple(Record(partition, offset, None, None, VALUE, ()) for partition, offset in there)

    def picture(self) -> Hashable:
        """All by which what it does next can differ."""
        return (
            self.process,
            self.stop,
            tuple(sorted(self.reading.items())),
            frozenset(self.held_back),
            (self.sent, self.obeyed, self.left),
            _picture(self.machine, self.waits_for),
        )


def _rows_of(batch: Batch, part: Part) -> Rows:
    return tuple((each.partition.partition, each.offset) for each in batch.by_topic[TOPIC][part.first : part.end])


_TELLS_NOTHING = {"_settings", "_actions", "_asked", "_look", "_reports", "_rate", "_told", "_dead_letters"}
"""What only counts, is the same for all, is said in another place too, or is reported and nothing else."""


def _picture(value: Any, waits_for: list[int]) -> Hashable:
    match value:
        case Mapping():
            return tuple(sorted((key, _picture(each, waits_for)) for key, each in value.items()))
        case Set():
            return frozenset(value)
        case list() | tuple():
            return tuple([_picture(each, waits_for) for each in value])
        case _ if is_dataclass(value):
            names = [each.name for each in fields(value)]
        case ConsumerMachine() | Batch():
            names = list(vars(value))
        case _:
            known: Hashable = value
            return known
    return tuple([_part(name, getattr(value, name), waits_for) for name in names if name not in _TELLS_NOTHING])


def _part(name: str, value: Any, waits_for: list[int]) -> Hashable:
    if name == "ask":
        return waits_for.index(value) if value in waits_for else None
    return min(value, 2) if name == "failures" else _picture(value, waits_for)


class Consumers:
    """All states that consumers have come to, by numbers; and what has become of each by what.

    Args:
        records: of each partition.
        at_once: the most of those that are fetched at once.
        machine: what to make a machine of.
    """

    def __init__(self, records: int, at_once: int, machine: Callable[..., ConsumerMachine]) -> None:
        self._records = records
        self._at_once = at_once
        self._machine = machine
        self._frozen: list[bytes] = []
        self._numbers: dict[Hashable, int] = {}
        self._facts: list[tuple[int, bool]] = []
        self._after = cache(self._goes_on)
        self.begun = cache(self._begins)

    def after(self, state: int, happened: Happened, *, fenced: bool) -> Step | None:
        """What comes of what has happened; none if the process ends by that."""
        return self._after(state, happened, fenced)

    def obeyed(self, state: int) -> int:
        """How many commands it has acknowledged."""
        return self._facts[state][0]

    def has_left(self, state: int) -> bool:
        return self._facts[state][1]

    def _begins(self, process: int) -> int:
        """A process that is ready and was told nothing."""
        commands = TopicPartition(METADATA, process + 1)
        machine = self._machine(Holding(process + 1, INCARNATION), GROUP, commands, SETTINGS, NOW)
        running = _Running(process, self._records, self._at_once, machine)
        assert not list(running.go_on())
        return self._number(running)

    def _goes_on(self, state: int, happened: Happened, fenced: bool) -> Step | None:
        running: _Running = FREEZER.thawed(self._frozen[state])
        running.fenced = fenced
        event = running.happened(happened)
        waited_for = list(running.waits_for)
        try:
            asked = dict(running.go_on(event))
        except ConsumerError:
            return None
        given_up = tuple(place for place, ask in enumerate(waited_for) if not running.machine.is_asked(ask, NOW))
        asked = {ask: what for ask, what in asked.items() if running.machine.is_asked(ask, NOW)}
        running.waits_for = [ask for ask in waited_for if running.machine.is_asked(ask, NOW)] + sorted(asked)
        return Step(self._number(running), given_up, tuple(asked[ask] for ask in sorted(asked)))

    def _number(self, running: _Running) -> int:
        running.fenced = False
        found = self._numbers.setdefault(running.picture(), len(self._frozen))
        if found == len(self._frozen):
            self._frozen.append(FREEZER.frozen(running))
            self._facts.append((running.obeyed, running.left))
        return found


# A take-over, call by call


class Fence(NamedTuple):
    fenced: int


class Seal(NamedTuple):
    sealed: int


class LookAtCommits(NamedTuple):
    """Those of these partitions."""

    committed: tuple[int, ...]


class AskTheLog(NamedTuple):
    """The last offset of the newest append, of each of these partitions."""

    appended: tuple[int, ...]


class AskTheDeadLetters(NamedTuple):
    """The record that was set aside last, of each of these partitions."""

    set_aside: tuple[int, ...]


class AskTheRows(NamedTuple):
    """The last row among these offsets, of each partition."""

    spans: tuple[tuple[int, Span], ...]


Call = Fence | Seal | LookAtCommits | AskTheLog | AskTheDeadLetters | AskTheRows
Answer = tuple[Commit | None, ...] | Rows | None
"""To a look, those of the partitions in this order; to the others, what was found."""


class _NotAnsweredError(Exception):
    def __init__(self, call: Call) -> None:
        self.call = call


@dataclass(slots=True)
class _Answers:
    """Brokers and a lake that answer what was answered before, and then nothing."""

    records: int
    left: list[Answer]
    has_right: bool
    refuses: bool

    def require_right(self) -> None:
        if not self.left and not self.has_right:
            raise ClaimsError("it is not wanted any more")

    def fence(self, writer: str) -> None:
        self._answer(Fence(number(writer)))

    def seal(self, topic: str, writer: str) -> None:
        assert topic == TOPIC
        self._answer(Seal(number(writer)))

    def committed(self, partitions: list[TopicPartition]) -> dict[TopicPartition, Committed | None]:
        answer = self._answer(LookAtCommits(tuple(each.partition for each in partitions)))
        commits = cast(tuple[Commit | None, ...], answer)
        return {partition: as_read(commit) for partition, commit in zip(partitions, commits, strict=True)}

    def ranges(self, partitions: list[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        """They are always the same."""
        return dict.fromkeys(partitions, OffsetRange(0, self.records))

    def last_appended(self, topic: str, partitions: Set[int]) -> dict[int, Reached]:
        assert topic == TOPIC
        rows = cast(Rows, self._answer(AskTheLog(tuple(sorted(partitions)))))
        return {number: Reached(offset, EPOCH) for number, offset in rows}

    def last_set_aside(self, topic: str, partitions: Set[int]) -> dict[int, Reached]:
        assert topic == TOPIC
        if not self.refuses:
            return {}
        rows = cast(Rows, self._answer(AskTheDeadLetters(tuple(sorted(partitions)))))
        return {number: Reached(offset, EPOCH) for number, offset in rows}

    def last_offsets(self, topic: str, spans: Mapping[int, Span]) -> dict[int, int]:
        assert topic == TOPIC
        return dict(cast(Rows, self._answer(AskTheRows(tuple(sorted(spans.items()))))))

    def _answer(self, call: Call) -> Answer:
        if not self.left:
            raise _NotAnsweredError(call)
        return self.left.pop(0)


@cache
def next_call(
    process: int, ask: TakeOver, answers: tuple[Answer, ...], records: int, *, has_right: bool, refuses: bool
) -> Call | Rows | None:
    """What a take-over asks next, after these answers; or the positions that it finds; none if it goes no further.

    Args:
        process: whose it is.
        ask: what is taken over.
        answers: to all that it has asked.
        records: of each partition.
        has_right: whether its process still wants it.
        refuses: whether the table refuses any record.
    """
    services = _Answers(records, list(answers), has_right, refuses)
    try:
        found = take_over(
            map(partition_of, ask.partitions),
            map(named, ask.told),
            named(process),
            cast(GroupOffsets, services),
            cast(Lake, services),
            GROUP,
            services.require_right,
        )
    except _NotAnsweredError as pending:
        return pending.call
    except ClaimsError:
        return None
    return tuple((partition.partition, reached.offset) for partition, reached in found.items())
