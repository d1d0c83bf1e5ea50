"""The machines of controller and consumers for an exploration of both: states that can be told apart and gone back to.

The machines are the real ones, and so are a take-over's `steps`. A state is told apart from another by all that a
machine can go by, but for absolute numbers and moments: of orders and of reports' sequences the rank among all that
there are counts, and of a moment whether it is long ago. So each picture of a state names the numbers that are in it,
and whoever explores ranks them.

Between two things that others can see a consumer goes on by itself for as long as it can; what it asks of others is
left to whoever explores. There are no records: that each of them is read once is explored in
`tests.consumer.exactly_once_model`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from consumer.decide import actions, events
from consumer.decide.claims import Committed
from consumer.decide.commands import NO_COMMAND, Holding
from consumer.decide.machine import ConsumerError, ConsumerMachine
from consumer.decide.reached import Reached
from consumer.decide.takeover import steps
from consumer.settings import ConsumerSettings
from controller.decide.commands import Claim, Command, Solve
from controller.decide.events import ClaimHeard, Event, OperatorAsked, Started
from controller.decide.group import Group
from controller.decide.machine import Controller, State
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.messages import ConsumerCommand, ConsumerState, ControlAction, Order
from domain.partitions import TopicPartition
from tests.checked_machines import checked, checked_consumer
from tests.controller.simulated_lake import GROUP, Lake
from tests.frozen import Freezer

METADATA = "consumer.metadata"
CONSUMER_SETTINGS = ConsumerSettings(spark_remote="sc://nowhere", lake_root="/lake")
BEGINNING = 1_000_000.0
"""On the controller's clock, whose moments are never below; no speed or count reaches it."""
A_MOMENT, A_WHILE, LONG = 0.01, 5.0, 2_000.0
"""In a moment a consumer can be silent for too long, or not obey in time; in a while it can fail to begin in time;
after a long time every other limit is over. Claims that are a while apart are no gap in what the controller hears."""
LIMITS: Mapping[str, float] = {
    "heartbeat_timeout_s": A_MOMENT / 2,
    "synchronize_timeout_s": A_MOMENT / 2,
    "obey_timeout_s": A_MOMENT / 2,
    "ready_timeout_s": A_WHILE / 2,
    "acknowledge_timeout_s": LONG / 2,
    "least_interval_s": LONG / 2,
    "creation_retry_s": LONG / 2,
    "interval_s": 86_400.0,
}
"""Settings of the controller by which that is so."""


class Picture(NamedTuple):
    """All by which what a machine does next can differ."""

    form: int
    """The number of all but the next two."""
    orders: tuple[Order, ...]
    sequences: tuple[tuple[tuple[ConsumerId, str], int], ...] = ()
    """Of the newest report that was taken in of each process."""


_TELLS_NOTHING = {
    *("_settings", "settings", "_restraints", "restraints", "consumers", "by_consumer"),
    *("_plan", "_carried", "_asked", "_made", "_sequence", "_claims", "_on_their_way", "_measured_at", "measured_at"),
    *("_actions", "_look", "_reports", "_rate", "_pace", "_reported_at"),
    *("since", "heard_at", "began_at", "_growing_since", "horizon"),
}
"""What is the same for all, only counts, is said in another place too, or is reported and nothing else; moments that
are set before they are looked at (`Controllers.given_up`); and how far ahead is looked by who does not look ahead."""
_FAILURES = {"_failures", "failures", "_refused", "refused"}
MOST_FAILURES = 3
"""More of them in a row change nothing."""
_TOLD_OTHERWISE = {"ask", "asked", "report_sequence", "_placed", *_FAILURES}
"""Attributes of which not the whole value matters."""
_AS_THEY_ARE = frozenset({type(None), str, int, bool, TopicPartition})
"""Types of which most values are: looked at first."""


@cache
def _fields_of(kind: type[Any]) -> tuple[str, ...] | None:
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else None


@cache
def _telling(names: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    """Of these attributes those by which what it does next is told, and whether the whole value matters."""
    return tuple((name, name not in _TOLD_OTHERWISE) for name in names if name not in _TELLS_NOTHING)


class _Walk:
    """A picture in the making."""

    def __init__(self, now: float) -> None:
        self.orders: list[Order] = []
        self.sequences: list[tuple[tuple[ConsumerId, str], int]] = []
        self._now = now
        self._group: Group | None = None
        """It is looked at once."""

    def form(self, value: Any) -> Hashable:
        kind: Any = type(value)
        known: Hashable = value if kind in _AS_THEY_ARE else _way(kind)(self, value)
        return known

    def of_order(self, order: Order) -> Hashable:
        self.orders.append(order)
        return "order"

    def of_number(self, number: float) -> Hashable:
        if number < BEGINNING:
            return number
        age = self._now - number
        return "long ago" if age >= LONG / 2 else "ahead" if age < -A_WHILE else "now"

    def of_committed(self, committed: Committed) -> Hashable:
        return (committed.offset, committed.own and committed.note)

    def of_note(self, _: actions.Note) -> Hashable:
        return "told"

    def of_group(self, group: Group) -> Hashable:
        if self._group is group:
            return "group"
        self._group = group
        return self.of_parts(group)

    def of_enum(self, value: Enum) -> Hashable:
        return value

    def of_mapping(self, mapping: Mapping[Any, Any]) -> Hashable:
        return tuple([(key, self.form(each)) for key, each in sorted(mapping.items())])

    def of_sequence(self, sequence: Iterable[Any]) -> Hashable:
        return tuple([self.form(each) for each in sequence])

    def of_set(self, values: Set[Any]) -> Hashable:
        return frozenset(values)

    def of_parts(self, value: Any) -> Hashable:
        kind: Any = type(value)
        names = _fields_of(kind) or tuple(vars(value))
        return tuple(
            [
                self.form(getattr(value, name)) if is_whole else self._part(value, name)
                for name, is_whole in _telling(names)
            ]
        )

    def _part(self, of: Any, name: str) -> Hashable:
        value = getattr(of, name)
        if name == "ask":
            return value is not None
        if name == "asked":
            return self.form(list(value.values()))
        if name == "report_sequence":
            self.sequences.append(((of.consumer, of.incarnation or ""), value))
            return name
        if name == "_placed":
            return self.form(value[1:])  # by which decision does not matter
        return _at_most(value)


_WAYS: Mapping[type[Any], Callable[[_Walk, Any], Hashable]] = {
    Order: _Walk.of_order,
    Committed: _Walk.of_committed,
    actions.Note: _Walk.of_note,
    Group: _Walk.of_group,
    float: _Walk.of_number,
    Enum: _Walk.of_enum,
    dict: _Walk.of_mapping,
    MappingProxyType: _Walk.of_mapping,
    list: _Walk.of_sequence,
    tuple: _Walk.of_sequence,
    Set: _Walk.of_set,
}
"""How values of each kind are looked at: the first that fits."""


@cache
def _way(kind: type[Any]) -> Callable[[_Walk, Any], Hashable]:
    return next((way for base, way in _WAYS.items() if issubclass(kind, base)), _Walk.of_parts)


def _at_most(failures: Any) -> Hashable:
    if isinstance(failures, Mapping):
        return tuple(sorted((key, _at_most(count)) for key, count in failures.items()))
    return min(int(failures), MOST_FAILURES)


class _Pictures:
    """Of one kind of machine: each form has a number."""

    def __init__(self) -> None:
        self._forms: dict[Hashable, int] = {}

    def of(self, value: object, now: float = 0.0) -> Picture:
        walk = _Walk(now)
        form = self._forms.setdefault(walk.form(value), len(self._forms))
        return Picture(form, tuple(walk.orders), tuple(walk.sequences))


# The controller


class Done(NamedTuple):
    """What a controller has become, and what it wants done."""

    state: int
    commands: tuple[Command, ...]


class Facts(NamedTuple):
    """What can be seen of a controller."""

    epoch: int
    asked: int | None
    """The plan that the solver was asked for last."""
    phase: State
    unsynchronized: frozenset[ConsumerId]
    """Those that have yet to obey it."""
    counted_on: Mapping[ConsumerId, str | None]
    """With the process that it takes for each; none where none has reported."""
    settled: frozenset[str]
    """Processes that it listens to no more."""
    heard: Mapping[tuple[ConsumerId, str], int]
    """The sequence of the newest report that was taken in of each process."""


class Controllers:
    """All states that controllers have come to, by numbers; and what has become of each by what.

    Args:
        settings: with `LIMITS`.
        has_barriers: whether those that begin have consumers obey them first; otherwise a report is enough.
        holds: whether what always holds is asked after every turn: it does where no guard is broken.
    """

    def __init__(self, settings: ControllerSettings, *, has_barriers: bool = True, holds: bool = True) -> None:
        self.pictures: list[Picture] = []
        self.facts: list[Facts] = []
        self._settings = settings
        self._has_barriers = has_barriers
        self._handle = checked if holds else Controller.handle
        self._freezer = Freezer(settings)
        self._kept: list[tuple[Controller | bytes, float]] = []
        """Frozen once it is gone back to; with the moment that it is."""
        self._look = _Pictures()
        self._numbers: dict[tuple[int, Picture], int] = {}
        self._after: dict[tuple[int, Hashable], Done] = {}

    def begun(self, epoch: int, started: Started) -> Done:
        controller = Controller(self._settings, epoch)
        commands = self._handle(controller, replace(started, at=BEGINNING))
        return self._done(controller, BEGINNING, epoch, None, commands)

    def after(self, state: int, what: Hashable, *happened: Event, later: float = 0.0) -> Done:
        """What comes of events, which `what` tells from all others; they are at `later` than what was before them."""
        known = self._after.get((state, what))
        if known is None:
            controller, now = self._thawed(state)
            now += later
            commands = self._handle(controller, *(replace(event, at=now) for event in happened))
            known = self._after[state, what] = self._done(controller, now, *self.facts[state][:2], commands)
        return known

    def given_up(self, state: int, consumer: ConsumerId, after_s: float, *, silent: bool) -> Done:
        """The controller has heard in time of all consumers but one: that was silent, or else did not do in time what
        it was told."""
        what = "given up", consumer, after_s, silent
        known = self._after.get((state, what))
        if known is None:
            controller, now = self._thawed(state)
            commands = self._listen(controller, now, controller.group.keys())
            now += after_s
            if not silent:
                controller.group[consumer].heard_at = now
            commands += self._listen(controller, now, controller.group.keys() - {consumer})
            known = self._after[state, what] = self._done(controller, now, *self.facts[state][:2], commands)
        return known

    def _listen(self, controller: Controller, now: float, in_time: Iterable[ConsumerId]) -> list[Command]:
        """The controller hears its own claim, and of these consumers it was heard in time."""
        for consumer in list(in_time):
            member = controller.group[consumer]
            member.since = member.heard_at = member.began_at = now
            member.pending = {partition: replace(pending, since=now) for partition, pending in member.pending.items()}
        commands = self._handle(controller, OperatorAsked(now, ControlAction.RESUME))
        claim = next(command for command in commands if isinstance(command, Claim))
        return [*commands, *self._handle(controller, ClaimHeard(now, claim.sequence))]

    def _thawed(self, state: int) -> tuple[Controller, float]:
        kept, now = self._kept[state]
        if isinstance(kept, bytes):
            return self._freezer.thawed(kept), now
        self._kept[state] = self._freezer.frozen(kept), now
        return kept, now

    def _done(
        self, controller: Controller, now: float, epoch: int, asked: int | None, commands: Sequence[Command]
    ) -> Done:
        for member in () if self._has_barriers else controller.group.values():
            if member.barrier is not None and member.incarnation is not None:
                member.barrier, member.unbound, member.pending = None, False, {}
        for command in commands:
            asked = command.plan if isinstance(command, Solve) else asked
        picture = self._look.of(controller, now)
        found = self._numbers.setdefault((epoch, picture), len(self._kept))
        if found == len(self._kept):
            self._kept.append((controller, now))
            self.pictures.append(picture)
            counted_on = [member for member in controller.group.values() if not member.condemned]
            facts = Facts(
                epoch,
                asked,
                controller.state,
                frozenset(member.consumer for member in counted_on if member.barrier is not None),
                {member.consumer: member.incarnation for member in counted_on},
                frozenset(controller.group.former.settled),
                dict(picture.sequences),
            )
            self.facts.append(facts)
        return Done(found, tuple(commands))


# The consumers


class Said(NamedTuple):
    """What a report says that matters."""

    applied: Order = NO_COMMAND
    state: ConsumerState = ConsumerState.READY
    held: tuple[TopicPartition, ...] = ()
    taking_over: tuple[TopicPartition, ...] = ()


class Commits(NamedTuple):
    positions: tuple[tuple[TopicPartition, Committed], ...]


class TakesOver(NamedTuple):
    partitions: tuple[TopicPartition, ...]
    told: tuple[str, ...]


Asked = Commits | TakesOver


class Step(NamedTuple):
    """What has become of a consumer."""

    state: int
    said: tuple[Said, ...] = ()
    """In this order."""


class Seen(NamedTuple):
    """What can be seen of a consumer."""

    asked: tuple[tuple[int, Asked], ...]
    """What it waits for, by number."""
    placed: frozenset[TopicPartition]
    """What it reads, or is about to: it has looked up from where on."""
    reading: frozenset[TopicPartition]
    applied: Order
    """The newest command that it has obeyed, whether it has said so or not."""


ENDED = -1
"""The state of a process that takes no further step."""


@dataclass(slots=True)
class _Running:
    """A machine, and what else there is of its process."""

    machine: ConsumerMachine
    fenced: bool = False
    stop: bool = False
    asked: dict[int, Asked] = field(default_factory=dict)
    placed: set[TopicPartition] = field(default_factory=set)
    reading: set[TopicPartition] = field(default_factory=set)
    applied: Order = NO_COMMAND
    said: list[Said] = field(default_factory=list)

    def go_on(self, *happened: events.Event) -> None:
        """Until nothing more comes of itself."""
        noticed: list[events.Event] = [*happened]
        goes_on = True
        while goes_on and not self.machine.ended:
            found = tuple(sorted(self.machine.to_place)) if self.machine.ready else ()
            *wanted, last = checked_consumer(self.machine, *noticed, events.Looked(0.0, stop=self.stop, found=found))
            noticed = []
            for action in (*wanted, last):
                self._perform(action, noticed)
            goes_on = bool(wanted or noticed)
        self.asked = {ask: what for ask, what in self.asked.items() if self.machine.is_asked(ask, 0.0)}

    def _perform(self, action: actions.Action, noticed: list[events.Event]) -> None:
        match action:
            case actions.TakePlace(ask) | actions.OpenSession(ask):
                noticed.append(events.Done(0.0, ask))
            case actions.TakeOver(ask, partitions, seal):
                self.asked[ask] = TakesOver(partitions, tuple(sorted(seal)))
            case actions.Commit(ask, positions):
                of_records = {each: position for each, position in positions.items() if each.topic != METADATA}
                if of_records:
                    self.asked[ask] = Commits(tuple(sorted(of_records.items(), key=lambda item: item[0])))
                elif self.fenced:
                    raise ConsumerError("another consumer has taken over from this one")
                else:
                    noticed.append(events.Done(0.0, ask))
            case actions.StopReading(partitions):
                self.placed.difference_update(partitions)
                self.reading.difference_update(partitions)
            case actions.ReadFrom(positions):
                self.reading.update(positions)
            case actions.Send(report) if report.state is not ConsumerState.STARTING:
                listed = ([each.key for each in refs] for refs in (report.partitions, report.taking_over))
                held, taking_over = (tuple(sorted(each)) for each in listed)
                self.said.append(Said(report.applied, report.state, held, taking_over))
            case actions.Write() | actions.HoldBack() | actions.Resume():
                raise AssertionError(f"there is nothing to write: {action}")
            case _:
                pass


class Consumers:
    """All states that consumers have come to, by numbers; and what has become of each by what."""

    def __init__(self) -> None:
        self.pictures: list[Picture] = []
        self.seen: list[Seen] = []
        self._freezer = Freezer(CONSUMER_SETTINGS)
        self._frozen: list[bytes] = []
        self._look = _Pictures()
        self._numbers: dict[tuple[Picture, Seen], int] = {}
        self._after: dict[tuple[int, Hashable, bool], Step] = {}

    def begun(self, consumer: ConsumerId, incarnation: str) -> Step:
        """A process that is ready and was told nothing."""
        commands = TopicPartition(METADATA, consumer)
        holding = Holding(consumer, incarnation)
        running = _Running(ConsumerMachine(holding, GROUP, commands, CONSUMER_SETTINGS, 0.0))
        running.go_on()
        return self._stepped(running)

    def told(self, state: int, command: ConsumerCommand, *, fenced: bool) -> Step:
        return self._goes_on(state, command, events.Looked(0.0, commands=(command,)), fenced, command.order)

    def leaves(self, state: int, *, fenced: bool) -> Step:
        """It is told to end."""
        return self._goes_on(state, "leaves", events.Looked(0.0, stop=True), fenced)

    def answered(self, state: int, ask: int, *, fenced: bool) -> Step:
        """What it has asked for has succeeded."""
        asked = dict(self.seen[state].asked)[ask]
        found = dict.fromkeys(asked.partitions, Reached(0)) if isinstance(asked, TakesOver) else None
        return self._goes_on(state, ask, events.Done(0.0, ask, found), fenced)

    def _goes_on(
        self, state: int, what: Hashable, happened: events.Event, fenced: bool, obeys: Order = NO_COMMAND
    ) -> Step:
        known = self._after.get((state, what, fenced))
        if known is None:
            running: _Running = self._freezer.thawed(self._frozen[state])
            running.fenced = fenced
            running.applied = max(running.applied, obeys)
            match happened:
                case events.Looked(stop=stop):
                    running.stop = running.stop or stop
                case events.Done(ask=ask, positions=positions):
                    del running.asked[ask]
                    running.placed.update(positions or ())
                case _:
                    raise AssertionError(happened)
            try:
                running.go_on(happened)
                known = self._stepped(running)
            except ConsumerError:
                known = Step(ENDED, tuple(running.said))
            self._after[state, what, fenced] = known
        return known

    def _stepped(self, running: _Running) -> Step:
        said, running.said, running.fenced = tuple(running.said), [], False
        if running.machine.ended:
            return Step(ENDED, said)
        seen = Seen(
            tuple(sorted(running.asked.items())),
            frozenset(running.placed),
            frozenset(running.reading),
            running.applied,
        )
        picture = self._look.of(running)
        found = self._numbers.setdefault((picture, seen), len(self._frozen))
        if found == len(self._frozen):
            self._frozen.append(self._freezer.frozen(running))
            self.pictures.append(picture)
            self.seen.append(seen)
        return Step(found, said)


# A take-over


class _Services(Lake):
    """Brokers, and a lake without a record."""

    def __init__(self, commits: Mapping[TopicPartition, Committed]) -> None:
        super().__init__(Random(0))
        self.commits.update(commits)
        self.has_fenced: set[str] = set()
        self.has_sealed: set[tuple[str, str]] = set()

    def fence(self, writer: str) -> None:
        self.has_fenced.add(writer)

    def seal(self, topic: str, writer: str) -> None:
        self.has_sealed.add((writer.removeprefix(f"{GROUP}/"), topic))


def taken_over(
    own: str, asked: TakesOver, committed: Mapping[TopicPartition, Committed]
) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Whom a take-over fences, and whom it seals on which topic: all its steps at once."""
    services = _Services(committed)
    for _ in steps(asked.partitions, asked.told, own, services, services, GROUP):
        pass
    return frozenset(services.has_fenced), frozenset(services.has_sealed)
