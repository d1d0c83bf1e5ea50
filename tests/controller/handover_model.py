"""The handover, explored to its end: a controller, its consumers, two partitions, and everything that can befall them.

Controller and consumers are the real machines (`explored_machines`). What is modelled is the world between them:

- A message that was sent may arrive at any later moment, again and again, after later ones, or never.
- A process may be given up while it lives, and goes on as it was; it may die, and is found dead at any later moment; it
  may hang, and then nobody can end it; it may obey nothing from then on, and reports; another one may come under its
  number, and nobody says so. The fleet may say that it is gone though it lives.
- A controller may be replaced at any moment. What it sent may still arrive. The next one knows what the newest claim
  says, and who has reported since.
- A take-over has two steps that others can see: it seals whom it has to and looks up its position; later it claims.
  From the first one on what the process reads takes effect, until it is sealed itself.
- The monitor is dead but for the moment at which an operator asks for a plan: the controller goes by speeds of long
  ago. The solver answers later, or never, and with any plan; the controller judges it.

There is no time: whatever waits for a time-out may happen at once. So no lease runs out, and nothing rests on one. Each
kind of fault happens as often as `Faults` says, so the worlds are finitely many.
"""

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

from consumer.decide.claims import Committed
from controller.decide.commands import Claim, Command, CreateConsumer, DeleteConsumer, Send
from controller.decide.events import (
    ConsumerGone,
    ConsumerReported,
    CreationFailed,
    Event,
    OperatorAsked,
    Solved,
    SpeedsMeasured,
    Started,
    Ticked,
)
from controller.decide.former_writers import Reach
from controller.decide.history import Beginning, beginning, claiming
from controller.decide.machine import State
from controller.settings import ControllerSettings
from domain.assignment import Assignment, ConsumerId
from domain.messages import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    Order,
    PartitionRef,
    writer,
)
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from solver.solution import Solution, Status
from tests.controller.explored_machines import (
    A_MOMENT,
    A_WHILE,
    ENDED,
    LIMITS,
    LONG,
    Commits,
    Consumers,
    Controllers,
    Done,
    Said,
    Step,
    TakesOver,
    taken_over,
)

SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=80.0,
    recovery_time_s=0.0,
    max_consumers=2,
    spare_consumers=1,
    **LIMITS,
)
LOW, HIGH = 30.0, 70.0
"""Speeds at which one consumer can read both partitions, and at which it cannot."""
UNBORN = -2
"""The state of a process that was to begin and never does."""
REPEATS = 1_000
"""A report may be said again so often."""


class Faults(NamedTuple):
    """How often what may still happen."""

    plans: int = 0
    """An operator asks for one."""
    suspicions: int = 0
    """Consumers that are given up though they live."""
    deaths: int = 0
    escapes: int = 0
    """Consumers that are said to be gone, and live."""
    restarts: int = 0
    """Processes that die and another comes under their number, and nobody says so."""
    defiances: int = 0
    """Consumers that obey nothing from then on, and report."""
    hangs: int = 0
    """Consumers that do nothing any more and that nobody can end."""
    replacements: int = 0
    """Of the controller."""
    claims: int = 0
    """Of the controller, that go with no start."""
    resends: int = 0
    losses: int = 0
    """Of all that is on its way to consumers."""
    births: int = 1
    """Of consumers that are asked for; those after them never begin."""
    refusals: int = 0
    """Consumers that are asked for and cannot be created."""

    def __str__(self) -> str:
        most = Faults()._asdict()
        return ", ".join(f"{name}={count}" for name, count in self._asdict().items() if count != most[name])


class Guards(NamedTuple):
    """What of the protocol is in force."""

    seals: bool = True
    has_barriers: bool = True
    tells_what_it_takes_over: bool = True
    """A successor shows whether it reads, or only holds, a partition."""
    claims_name_members: bool = True
    claims_say_what_each_may_read: bool = True
    """Otherwise whoever was heard of may have read anything, as after a claim of version 0.1."""
    claims_with_starts: bool = True
    """A claim is sent with every start."""


NO_FAULTS, ALL_GUARDS = Faults(), Guards()


class Process(NamedTuple):
    consumer: ConsumerId
    incarnation: str
    state: int
    """Of its machine."""
    newest: Said | None = None
    """What it says of itself now, as often as it likes."""
    before: Said | None = None
    """What it said before, where that may still arrive."""
    said: int = 0
    """How often it has said something else."""
    known: bool = True
    """To the fleet."""
    doomed: bool = False
    """The fleet was told to end it."""
    defies: bool = False
    hangs: bool = False

    @property
    def writer(self) -> str:
        return writer(self.consumer, self.incarnation)

    @property
    def alive(self) -> bool:
        return self.state not in (ENDED, UNBORN)

    @property
    def goes_on(self) -> bool:
        return self.alive and not self.hangs

    def sequence_of(self, said: int) -> int:
        return said * REPEATS


class Claimed(NamedTuple):
    """The newest claim."""

    epoch: int
    unsealed: tuple[tuple[str, Reach], ...] = ()
    settled: tuple[str, ...] = ()
    members: tuple[tuple[str, Reach], ...] = ()


class World(NamedTuple):
    controller: int
    """Its state."""
    processes: tuple[Process, ...]
    claim: Claimed
    heard: frozenset[tuple[str, bool]] = frozenset()
    """The writers of which partition 0 has a report since the newest claim, and whether that says that they leave."""
    commands: frozenset[ConsumerCommand] = frozenset()
    """All that were sent and may still count."""
    committed: tuple[tuple[TopicPartition, Committed], ...] = ()
    sealed: frozenset[tuple[str, str]] = frozenset()
    fenced: frozenset[str] = frozenset()
    left: Faults = NO_FAULTS

    def having(self, place: int, *processes: Process) -> "World":
        """The world with these in place of one."""
        return self._replace(processes=(*self.processes[:place], *processes, *self.processes[place + 1 :]))

    def one_less(self, fault: str) -> "World":
        return self._replace(left=self.left._replace(**{fault: getattr(self.left, fault) - 1}))


class Model:
    """The worlds that can follow on one another.

    Args:
        partitions: two.
        guards: what of the protocol is in force.
        settings: of the controller.
    """

    def __init__(
        self,
        partitions: tuple[TopicPartition, ...],
        guards: Guards = ALL_GUARDS,
        settings: ControllerSettings = SETTINGS,
    ) -> None:
        self.partitions = partitions
        self.guards = guards
        holds = guards._replace(claims_say_what_each_may_read=True) == ALL_GUARDS
        self.controllers = Controllers(settings, has_barriers=guards.has_barriers, holds=holds)
        self.consumers = Consumers()
        self._form = cache(self._form_of)

    def beginning(self, faults: Faults) -> World:
        """Two consumers have begun, one of which is to read both partitions, and nothing was said yet."""
        begun = Beginning(1, of_strangers=frozenset(), speeds=self._speeds(LOW))
        done = self.controllers.begun(1, Started(0.0, frozenset(), begun))
        return self._having_done(World(-1, (), Claimed(1), left=NO_FAULTS._replace(births=2)), done)._replace(
            left=faults
        )

    def quiet(self, faults: Faults) -> World:
        """A consumer reads both partitions, another one is spare, and nothing is left to do."""
        worlds = [self.beginning(NO_FAULTS)]
        keys = set(map(self.key, worlds))
        for world in worlds:
            following = {self.key(each): each for each in self.by_itself(world)}
            following.pop(self.key(world), None)
            if not following and self.converged(world):
                return world._replace(left=faults)
            if not following:
                later = self.long_after(world)
                following[self.key(later)] = later
            worlds += [each for key, each in following.items() if key not in keys]
            keys.update(following)
        raise AssertionError("it is never quiet")

    def _speeds(self, speed: float) -> WriteSpeeds:
        return WriteSpeeds(0.0, dict.fromkeys(self.partitions, speed))

    # What is to be seen of a world

    def violation(self, world: World) -> bool:
        """Whether of two processes what they read of one partition takes effect."""
        return any(len(self._readers(world, partition)) > 1 for partition in self.partitions)

    def converged(self, world: World) -> bool:
        """Whether the controller is content, and each partition has one reader, that it counts on and that goes on."""
        facts = self.controllers.facts[world.controller]
        if facts.phase is not State.SENTINEL:
            return False
        for partition in self.partitions:
            readers = self._readers(world, partition)
            if len(readers) != 1:
                return False
            (reader,) = readers
            goes_on = reader.goes_on and reader.writer not in world.fenced
            if not goes_on or facts.counted_on.get(reader.consumer) != reader.incarnation:
                return False
            if partition not in self.consumers.seen[reader.state].reading:
                return False
        return True

    def nobody_is_left(self, world: World) -> bool:
        """Whether no consumer can be counted on any more, and none will be."""
        able = [p for p in world.processes if p.goes_on and p.known and not (p.defies or p.doomed)]
        return not able and not world.left.births

    def _readers(self, world: World, partition: TopicPartition) -> list[Process]:
        return [
            process
            for process in world.processes
            if process.alive
            and partition in self.consumers.seen[process.state].placed
            and (process.writer, partition.topic) not in world.sealed
        ]

    # What goes on by itself

    def by_itself(self, world: World) -> Iterator[World]:
        """All that may come next without a fault, but for what only a long time brings."""
        for place, process in enumerate(world.processes):
            if process.goes_on:
                if not process.defies:
                    yield from self._obeys(world, place, process)
                yield from self._goes_on(world, place, process)
                if process.doomed:
                    yield self._with(world, place, process, Step(ENDED))
            elif process.known and not process.hangs and (process.doomed or process.state == ENDED):
                gone = () if process.state == UNBORN else (process._replace(known=False),)
                yield self._is_gone(world.having(place, *gone), process)
            if process.newest is not None:
                yield from self._hears(world, process, process.newest)
        yield from self._gives_up(world)
        yield from self._answers(world)

    def _obeys(self, world: World, place: int, process: Process) -> Iterator[World]:
        """Any command that counts arrives, or that it is to end."""
        fenced, seen = process.writer in world.fenced, self.consumers.seen[process.state]
        if process.doomed:
            yield self._with(world, place, process, self.consumers.leaves(process.state, fenced=fenced))
        if any(isinstance(asked, Commits) for _, asked in seen.asked):
            return  # it commits first
        for command in self._counting(world):
            if (command.consumer, command.incarnation) == process[:2]:
                yield self._with(world, place, process, self.consumers.told(process.state, command, fenced=fenced))

    def _goes_on(self, world: World, place: int, process: Process) -> Iterator[World]:
        """What it has asked for is done, or its next commit is refused."""
        fenced, seen = process.writer in world.fenced, self.consumers.seen[process.state]
        if fenced and (seen.reading or any(isinstance(asked, Commits) for _, asked in seen.asked)):
            yield self._with(world, place, process, Step(ENDED))
        for ask, asked in seen.asked:
            if isinstance(asked, TakesOver):
                has_fenced, has_sealed = taken_over(process.writer, asked, dict(world.committed))
                after = world._replace(fenced=world.fenced | has_fenced, sealed=world.sealed | has_sealed)
            elif not fenced:
                committed = dict(world.committed) | dict(asked.positions)
                after = world._replace(committed=tuple(sorted(committed.items(), key=lambda item: item[0])))
            else:
                continue
            yield self._with(after, place, process, self.consumers.answered(process.state, ask, fenced=fenced))

    def _hears(self, world: World, process: Process, newest: Said) -> Iterator[World]:
        """A report arrives."""
        heard, last = self._newest_heard(world, process), process.sequence_of(process.said)
        if heard < last:
            yield self._has_heard(world, process, last, newest)
        elif process.alive:
            yield self._has_heard(world, process, heard + 1, newest)  # it says the same once more
        before = process.sequence_of(process.said - 1)
        if heard < before and process.before is not None:
            yield self._has_heard(world, process, before, process.before)

    def _newest_heard(self, world: World, process: Process) -> int:
        return self.controllers.facts[world.controller].heard.get(process[:2], -1)

    def _has_heard(self, world: World, process: Process, sequence: int, said: Said) -> World:
        if not self.guards.tells_what_it_takes_over:
            said = said._replace(taking_over=())
        what = (process.consumer, process.incarnation, sequence, said)
        leaves = said.state is ConsumerState.LEAVING
        world = world._replace(heard=world.heard | {(process.writer, leaves)})
        return self._after(world, what, ConsumerReported(0.0, _report(*what)))

    def _is_gone(self, world: World, process: Process) -> World:
        """The fleet says that the process has ended."""
        return self._after(world, ("gone", process.consumer), ConsumerGone(0.0, process.consumer))

    def _gives_up(self, world: World) -> Iterator[World]:
        """The controller gives up who is silent for too long, or does not obey or begin in time."""
        facts = self.controllers.facts[world.controller]
        taken_for = {consumer: self._taken_for(world, consumer) for consumer in sorted(facts.counted_on)}
        for consumer, process in taken_for.items():
            if process is None or not process.goes_on or self._is_ignored(world, process):
                begins = facts.counted_on[consumer] is None and consumer not in facts.unsynchronized
                yield self._has_given_up(world, consumer, A_WHILE if begins else A_MOMENT)
            elif process.defies and consumer not in facts.unsynchronized:
                yield self._has_given_up(world, consumer, A_MOMENT, silent=False)
            elif process.defies and all(each and each.defies for each in map(taken_for.get, facts.unsynchronized)):
                yield self._has_given_up(world, consumer, A_WHILE, silent=False)

    def _taken_for(self, world: World, consumer: ConsumerId) -> Process | None:
        """The process that the controller takes for the consumer; where none has reported, the one that there is."""
        incarnation = self.controllers.facts[world.controller].counted_on[consumer]
        for process in world.processes:
            if process.consumer == consumer and (process.known if incarnation is None else incarnation == process[1]):
                return process
        return None

    def _is_ignored(self, world: World, process: Process) -> bool:
        facts = self.controllers.facts[world.controller]
        return facts.counted_on[process.consumer] is None and process.writer in facts.settled

    def _has_given_up(self, world: World, consumer: ConsumerId, after_s: float, *, silent: bool = True) -> World:
        done = self.controllers.given_up(world.controller, consumer, after_s, silent=silent)
        return self._having_done(world, done)

    def _answers(self, world: World) -> Iterator[World]:
        """The solver answers."""
        facts = self.controllers.facts[world.controller]
        if facts.phase is not State.REASSIGN or facts.asked is None:
            return
        there = sorted({1, 2, *(process.consumer for process in world.processes if process.known)})
        for consumers in product(there, repeat=len(self.partitions)):
            plan = Assignment(dict(zip(self.partitions, consumers, strict=True)))
            solution = Solution(plan, "any", Status.FEASIBLE, len(plan.consumers), 0.0, 0.0, 0.0, 0.0)
            yield self._after(world, ("plan", consumers), Solved(0.0, facts.asked, solution))

    def long_after(self, world: World) -> World:
        return self._after(world, "long after", Ticked(0.0), later=LONG)

    # What befalls it

    def with_a_fault(self, world: World) -> Iterator[World]:
        left, facts = world.left, self.controllers.facts[world.controller]
        if left.plans and facts.phase in (State.SENTINEL, State.MANAGE):
            for speed in (LOW, HIGH):
                speeds = SpeedsMeasured(0.0, self._speeds(speed))
                asked = OperatorAsked(0.0, ControlAction.REPLAN)
                yield self._after(world.one_less("plans"), ("asked", speed), speeds, asked)
        for place, process in enumerate(world.processes):
            unheard = (
                facts.counted_on.get(process.consumer, "") is None and process.consumer not in facts.unsynchronized
            )
            if left.refusals and process.known and unheard:
                refused = CreationFailed(0.0, process.consumer, "exceeded quota")
                yield self._after(world.one_less("refusals").having(place), ("refused", process.consumer), refused)
            if process.goes_on:
                yield from self._with_a_fault_of(world, place, process)
        if left.replacements:
            yield self._replaced(world.one_less("replacements"))
        if left.claims:
            yield self._after(world.one_less("claims"), "claim", OperatorAsked(0.0, ControlAction.RESUME))
        if left.resends:
            yield self.long_after(world.one_less("resends"))
        if left.losses and world.commands:
            yield world.one_less("losses")._replace(commands=frozenset())

    def _with_a_fault_of(self, world: World, place: int, process: Process) -> Iterator[World]:
        left = world.left
        if left.suspicions and self.controllers.facts[world.controller].counted_on.get(process.consumer) == process[1]:
            yield self._has_given_up(world.one_less("suspicions"), process.consumer, A_MOMENT)
        if left.deaths:
            yield self._with(world.one_less("deaths"), place, process, Step(ENDED))
        if left.escapes and process.known:
            escaped = world.one_less("escapes").having(place, process._replace(known=False))
            yield self._is_gone(escaped, process)
        if left.restarts and process.known:
            ended = self._with(world.one_less("restarts"), place, process._replace(known=False), Step(ENDED))
            yield self._with_another(ended, process.consumer)
        if left.defiances and not process.defies:
            yield world.one_less("defiances").having(place, process._replace(defies=True))
        if left.hangs:
            yield world.one_less("hangs").having(place, process._replace(hangs=True))

    def _replaced(self, world: World) -> World:
        """Another controller begins."""
        claim = world.claim
        said = Claim(0, False, dict(claim.unsealed), claim.settled, dict(claim.members))
        message = claiming(said, claim.epoch, "before", 0.0, 0)
        if not self.guards.claims_say_what_each_may_read:
            message = message.model_copy(update={"may_read": None})
        reports = []
        for name, leaves in sorted(world.heard):
            consumer, _, incarnation = name.partition("/")
            state = ConsumerState.LEAVING if leaves else ConsumerState.READY
            reports.append(_report(int(consumer), incarnation, 0, Said(state=state)))
        begun = beginning(reports, message)
        fleet = frozenset(process.consumer for process in world.processes if process.known)
        told = Beginning(begun.epoch, False, begun.unsealed, begun.settled, begun.of_strangers, self._speeds(LOW))
        first = Claimed(begun.epoch, tuple(begun.unsealed.items()), begun.settled)
        done = self.controllers.begun(begun.epoch, Started(0.0, fleet, told))
        return self._having_done(world._replace(claim=first, heard=frozenset()), done)

    # What follows at once

    def _after(self, world: World, what: Hashable, *happened: Event, later: float = 0.0) -> World:
        return self._having_done(world, self.controllers.after(world.controller, what, *happened, later=later))

    def _having_done(self, world: World, done: Done) -> World:
        world = world._replace(controller=done.state)
        started = False
        for command in done.commands:
            started = started or (isinstance(command, Send) and command.command.action is Action.START)
            world = self._performed(world, command, started=started)
        return world

    def _performed(self, world: World, command: Command, *, started: bool) -> World:
        guards = self.guards
        match command:
            case CreateConsumer(consumer=consumer):
                return self._with_another(world, consumer)
            case DeleteConsumer(consumer=consumer):
                for place, process in enumerate(world.processes):
                    if process.consumer == consumer and process.known:
                        return world.having(place, process._replace(doomed=True))
                return world
            case Send(command=sent):
                seal = sent.seal if guards.seals else ()
                return world._replace(commands=world.commands | {sent.model_copy(update={"plan": 0, "seal": seal})})
            case Claim() if not started or (guards.claims_with_starts and guards.claims_say_what_each_may_read):
                members = command.members if guards.claims_name_members else {}
                epoch, unsealed = self.controllers.facts[world.controller].epoch, command.unsealed
                claim = Claimed(epoch, tuple(unsealed.items()), command.settled, tuple(members.items()))
                return world._replace(claim=claim, heard=frozenset())
            case _:
                return world

    def _with_another(self, world: World, consumer: ConsumerId) -> World:
        """A process is to begin; no two have one name."""
        before = sum(process.consumer == consumer for process in world.processes)
        process = Process(consumer, f"{consumer}{chr(ord('a') + before)}", UNBORN)
        assert not any(each.consumer == consumer and each.known for each in world.processes), "two of one number"
        place = len(world.processes)
        world = world._replace(processes=(*world.processes, process))
        if not world.left.births:
            return world
        step = self.consumers.begun(consumer, process.incarnation)
        return self._with(world.one_less("births"), place, process, step)

    @staticmethod
    def _with(world: World, place: int, process: Process, step: Step) -> World:
        for said in step.said:
            if said != process.newest:
                process = process._replace(newest=said, before=process.newest, said=process.said + 1)
        return world.having(place, process._replace(state=step.state))

    # Worlds that are the same

    def canonical(self, world: World) -> World:
        """The same world without what cannot matter any more."""
        return world._replace(commands=frozenset(self._counting(world)))

    def key(self, world: World) -> Hashable:
        """What tells a world from others that go on otherwise: all of it, with ranks in place of numbers."""
        controller = self.controllers.pictures[world.controller]
        orders, processes = [*controller.orders], []
        for process in world.processes:
            form, of_process = self._form(process, self._newest_heard(world, process))
            orders += of_process
            processes.append(form)
        commands = sorted(self._counting(world), key=lambda each: (each.consumer, each.incarnation, each.order))
        orders += [command.order for command in commands]
        ranks = {order: place for place, order in enumerate(sorted(set(orders)))}
        return (
            controller.form,
            tuple(processes),
            tuple([(each.consumer, each.incarnation, each.action, each.partitions, each.seal) for each in commands]),
            tuple([ranks[order] for order in orders]),
            self.controllers.facts[world.controller].epoch,
            (world.claim, world.heard) if world.left.replacements else None,
            world[5:],
        )

    def _form_of(self, process: Process, heard: int) -> tuple[Hashable, list[Order]]:
        """What tells a process of which so much was heard from others, and the orders in it."""
        late = sum(heard < process.sequence_of(said) for said in (process.said, process.said - 1))
        before = process.before if late > 1 else None
        form: Hashable = process.state
        orders: list[Order] = []
        if process.alive:
            form = self.consumers.pictures[process.state].form
            orders += self.consumers.pictures[process.state].orders
        orders += [said.applied for said in (process.newest, before) if said is not None]
        says = tuple(said and said[1:] for said in (process.newest, before))
        return (process[:2], form, says, late, process[6:]), orders

    def _counting(self, world: World) -> list[ConsumerCommand]:
        """The commands that can still count."""
        applied: dict[tuple[ConsumerId, str], Order] = {
            (process.consumer, process.incarnation): self.consumers.seen[process.state].applied
            for process in world.processes
            if process.goes_on and not process.defies
        }
        return [
            command
            for command in world.commands
            if (name := (command.consumer, command.incarnation)) in applied and command.order > applied[name]
        ]


@cache
def _report(consumer: ConsumerId, incarnation: str, sequence: int, said: Said) -> ConsumerReport:
    return ConsumerReport(
        consumer=consumer,
        incarnation=incarnation,
        sequence=sequence,
        sent_at=0.0,
        state=said.state,
        applied_epoch=said.applied.epoch,
        applied_sequence=said.applied.sequence,
        partitions=tuple(map(PartitionRef.of, said.held)),
        taking_over=tuple(map(PartitionRef.of, said.taking_over)),
    )


@dataclass(frozen=True)
class Explored:
    worlds: Sequence[World]
    """All that were looked at."""
    following: Sequence[Sequence[int]]
    """What follows on each if nothing more befalls the group, by place."""
    wrong: World | None = None
    """The first in which two processes' reads take effect."""


def explore(model: Model, first: World) -> Explored:
    """Looks at all worlds that can be reached, or at those until one is wrong."""
    worlds = [first]
    places = {model.key(first): 0}
    following: list[list[int]] = []

    def place_of(world: World) -> int:
        place = places.setdefault(model.key(world), len(worlds))
        if place == len(worlds):
            worlds.append(model.canonical(world))
        return place

    for own, world in enumerate(worlds):
        if model.violation(world):
            return Explored(worlds, following, world)
        following.append([])
        if model.nobody_is_left(world):
            continue
        following[own] += [place for place in map(place_of, model.by_itself(world)) if place != own]
        if not following[own]:
            following[own].append(place_of(model.long_after(world)))
        for each in model.with_a_fault(world):
            place_of(each)
    return Explored(worlds, following)


def stuck(model: Model, explored: Explored) -> World | None:
    """A world from which the group cannot converge even if nothing more befalls it; none if there is none."""
    before: list[list[int]] = [[] for _ in explored.worlds]
    for place, following in enumerate(explored.following):
        for each in following:
            before[each].append(place)
    queue = deque(
        place for place, world in enumerate(explored.worlds) if model.converged(world) or model.nobody_is_left(world)
    )
    converge = set(queue)
    while queue:
        for earlier in before[queue.popleft()]:
            if earlier not in converge:
                converge.add(earlier)
                queue.append(earlier)
    return next((world for place, world in enumerate(explored.worlds) if place not in converge), None)
