"""The handover, explored to its end: two consumers, two partitions, and everything that can befall them.

The controller's part is the real one: `Group`, `next_steps`, `FormerWriters`. So are the consumers' `Holding` and what
they look up in the group's commits. What is modelled is the world between them:

- A message that was sent may arrive at any later moment, again and again, after later ones, or never.
- A process may be given up while it lives, and goes on as it was; it may die, and is found dead at any later moment.
- A controller may be replaced at any moment. What it sent may still arrive. The next one knows what the newest claim
  says, and who has reported since.
- A take-over has two steps that others can see: it seals whom it has to and looks up its position; later it claims.
  From the first one on what the process reads takes effect, until it is sealed itself.

There is no time: whatever waits for a time-out may happen at once. Each kind of fault happens as often as `Faults`
says, so the worlds are finitely many.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from consumer.decide.claims import RELEASED, Committed, claim, to_seal
from consumer.decide.commands import Holding
from controller.decide.former_writers import FormerWriters, Reach
from controller.decide.group import Group, Member, Pending
from controller.decide.handover import next_steps
from domain.assignment import Assignment, ConsumerId
from domain.messages import Action, ConsumerCommand, ConsumerReport, ConsumerState, Order, PartitionRef, writer
from domain.partitions import TopicPartition

LAST = "b"
"""Processes under a number are called a and b: where b has ended too the world is not looked at any further."""
NEVER, ALWAYS = float("-inf"), float("inf")


class Faults(NamedTuple):
    """How often what may still happen."""

    plans: int = 1
    """Changes of the assignment without need."""
    suspicions: int = 0
    """Consumers that are given up though they may live."""
    deaths: int = 0
    replacements: int = 0
    """Of the controller."""
    resends: int = 0
    losses: int = 0
    """Of all that is on its way to consumers."""
    claims: int = 0
    """Of the controller; one that is replaced may have made one at the last moment besides."""


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


NO_FAULTS, ALL_GUARDS = Faults(plans=0), Guards()


class Reading(NamedTuple):
    partition: TopicPartition
    told: tuple[str, ...]
    placed: bool = False
    claimed: bool = False


class Report(NamedTuple):
    """What a report says that matters."""

    applied: Order
    held: tuple[TopicPartition, ...] = ()
    taking_over: tuple[TopicPartition, ...] = ()


class Sent(NamedTuple):
    """A command, in ascending order of who gets it."""

    consumer: ConsumerId
    incarnation: str
    order: Order
    action: Action
    partitions: tuple[TopicPartition, ...]
    seal: tuple[str, ...]


class Process(NamedTuple):
    consumer: ConsumerId
    incarnation: str
    newest: Report
    """What it says of itself now, as often as it likes."""
    before: Report | None = None
    """What it said before, where that may still arrive."""
    applied: Order = Order(0, 0)
    readings: tuple[Reading, ...] = ()
    alive: bool = True

    @property
    def writer(self) -> str:
        return writer(self.consumer, self.incarnation)


NEWEST, BEFORE, OLDER = 2, 1, 0
"""The sequences of reports, as far as they matter."""


class FrozenMember(NamedTuple):
    consumer: ConsumerId
    incarnation: str | None
    report_sequence: int
    state: ConsumerState
    held: frozenset[TopicPartition]
    pending: tuple[tuple[TopicPartition, Action, Order], ...]
    named: tuple[tuple[TopicPartition, frozenset[str]], ...]
    barrier: Order | None
    unbound: bool
    condemned: bool


class FrozenController(NamedTuple):
    """A controller that cannot change, so that worlds can be told apart."""

    epoch: int
    sequence: int
    desired: Assignment
    members: tuple[FrozenMember, ...]
    ended: frozenset[str]
    unsealed: tuple[tuple[str, Reach, frozenset[str]], ...]
    settled: tuple[str, ...]
    of_strangers: Reach
    synchronized: bool


@dataclass
class Acting:
    """A controller at work."""

    epoch: int
    sequence: int
    desired: Assignment
    group: Group
    synchronized: bool

    def next_order(self) -> Order:
        self.sequence += 1
        return Order(self.epoch, self.sequence)

    def send(self, consumer: ConsumerId, action: Action, partitions: tuple[TopicPartition, ...]) -> ConsumerCommand:
        command = self.group.command(consumer, action, partitions, self.next_order(), 0)
        self.group.sent(command, 0.0)
        return command

    def freeze(self) -> FrozenController:
        former = self.group.former
        return FrozenController(
            self.epoch,
            self.sequence,
            self.desired,
            tuple(map(_frozen, self.group.values())),
            frozenset(self.group._ended),
            tuple((name, each.partitions, frozenset(each.sealed)) for name, each in sorted(former._unsealed.items())),
            tuple(sorted(former.settled)),
            former.of_strangers,
            self.synchronized,
        )


def _frozen(member: Member) -> FrozenMember:
    return FrozenMember(
        member.consumer,
        member.incarnation,
        member.report_sequence,
        member.state,
        member.held,
        tuple((partition, each.action, each.order) for partition, each in sorted(member.pending.items())),
        tuple(sorted(member.named.items(), key=lambda item: item[0])),
        member.barrier,
        member.unbound,
        member.condemned,
    )


def thaw(frozen: FrozenController) -> Acting:
    group = Group()
    group._ended = set(frozen.ended)
    group.former = FormerWriters()
    unsealed = {name: partitions for name, partitions, _ in frozen.unsealed}
    group.former.inherit(unsealed, frozen.settled, frozen.of_strangers)
    for name, _, sealed in frozen.unsealed:
        group.former._unsealed[name].sealed = set(sealed)
    for each in frozen.members:
        group._members[each.consumer] = Member(
            each.consumer,
            since=0.0,
            heard_at=0.0,
            incarnation=each.incarnation,
            report_sequence=each.report_sequence,
            state=each.state,
            held=each.held,
            pending={partition: Pending(action, order, 0.0, 0.0) for partition, action, order in each.pending},
            named=dict(each.named),
            barrier=each.barrier,
            unbound=each.unbound,
            condemned=each.condemned,
        )
    return Acting(frozen.epoch, frozen.sequence, frozen.desired, group, frozen.synchronized)


class World(NamedTuple):
    controller: FrozenController
    processes: tuple[Process, ...]
    commands: frozenset[Sent] = frozenset()
    """All that were sent and may still count."""
    heard: frozenset[str] = frozenset()
    """The writers of which partition 0 has a report since the newest claim."""
    claimed: tuple[tuple[str, Reach], ...] = ()
    """Members and others."""
    claimed_settled: tuple[str, ...] = ()
    sealed: frozenset[tuple[str, str]] = frozenset()
    fenced: frozenset[str] = frozenset()
    notes: tuple[tuple[TopicPartition, str], ...] = ()
    """Of each partition's commit."""
    left: Faults = NO_FAULTS


@cache
def _report(consumer: ConsumerId, incarnation: str, sequence: int, said: Report) -> ConsumerReport:
    return ConsumerReport(
        consumer=consumer,
        incarnation=incarnation,
        sequence=sequence,
        sent_at=0.0,
        state=ConsumerState.READY,
        applied_epoch=said.applied.epoch,
        applied_sequence=said.applied.sequence,
        partitions=tuple(map(PartitionRef.of, said.held)),
        taking_over=tuple(map(PartitionRef.of, said.taking_over)),
    )


@cache
def _command(sent: Sent) -> ConsumerCommand:
    return ConsumerCommand(
        consumer=sent.consumer,
        incarnation=sent.incarnation,
        epoch=sent.order.epoch,
        plan=0,
        sequence=sent.order.sequence,
        action=sent.action,
        partitions=tuple(map(PartitionRef.of, sent.partitions)),
        seal=sent.seal,
    )


Done = tuple[FrozenController, frozenset[Sent]]
"""What a controller has become, and what it has sent."""


class Mirror:
    """The same worlds with two partitions of one topic in each other's place: what holds in one holds in the other."""

    def __init__(self, first: TopicPartition, second: TopicPartition) -> None:
        self._other = {first: second, second: first}
        self._of_controller = cache(self._controller)
        self._of_process = cache(self._process)
        self._of_command = cache(self._command)

    def image(self, world: World) -> World:
        return world._replace(
            controller=self._of_controller(world.controller),
            processes=tuple(map(self._of_process, world.processes)),
            commands=frozenset(map(self._of_command, world.commands)),
            claimed=tuple((name, self._reach(reach)) for name, reach in world.claimed),
            notes=tuple(sorted((self._other[partition], note) for partition, note in world.notes)),
        )

    def plan(self, plan: Assignment) -> Assignment:
        return Assignment({self._other[partition]: consumer for partition, consumer in plan.items()})

    def _controller(self, controller: FrozenController) -> FrozenController:
        return controller._replace(
            desired=self.plan(controller.desired),
            members=tuple(map(self._member, controller.members)),
            unsealed=tuple((name, self._reach(reach), sealed) for name, reach, sealed in controller.unsealed),
            of_strangers=self._reach(controller.of_strangers),
        )

    def _member(self, member: FrozenMember) -> FrozenMember:
        return member._replace(
            held=frozenset(map(self._other.__getitem__, member.held)),
            pending=tuple(
                sorted((self._other[partition], action, order) for partition, action, order in member.pending)
            ),
            named=tuple(sorted((self._other[partition], names) for partition, names in member.named)),
        )

    def _process(self, process: Process) -> Process:
        readings = (reading._replace(partition=self._other[reading.partition]) for reading in process.readings)
        return process._replace(
            newest=self._report(process.newest),
            before=process.before and self._report(process.before),
            readings=tuple(sorted(readings)),
        )

    def _report(self, said: Report) -> Report:
        return said._replace(held=self._partitions(said.held), taking_over=self._partitions(said.taking_over))

    def _command(self, sent: Sent) -> Sent:
        return sent._replace(partitions=self._partitions(sent.partitions))

    def _partitions(self, partitions: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
        return tuple(sorted(map(self._other.__getitem__, partitions)))

    def _reach(self, reach: Reach) -> Reach:
        return None if reach is None else frozenset(map(self._other.__getitem__, reach))


class Model:
    """The worlds that can follow on one another.

    Args:
        partitions: two.
        guards: what of the protocol is in force.
    """

    def __init__(self, partitions: tuple[TopicPartition, ...], guards: Guards = ALL_GUARDS) -> None:
        self.partitions = partitions
        self.guards = guards
        self._heard = cache(self._hears)  # the same controller hears the same report in many worlds
        first, second = partitions
        together, apart, elsewhere = (Assignment({first: a, second: b}) for a, b in ((1, 1), (1, 2), (2, 2)))
        self.mirror = Mirror(first, second) if first.topic == second.topic else None
        self.plans: tuple[Assignment, ...] = (together, apart, elsewhere)
        if self.mirror is not None:
            self.plans = (together, apart, self.mirror.plan(apart), elsewhere)

    def beginning(self, faults: Faults) -> World:
        """Two consumers are ready, and the first reads both partitions; where no claim goes with starts, it is about
        to, and the newest claim was made before it was told to."""
        told = self.guards.claims_with_starts
        acting = Acting(1, 1, self.plans[0], Group(), synchronized=True)
        readings = tuple(Reading(partition, (), placed=True, claimed=told) for partition in self.partitions)
        said = Report(Order(1, 1), self.partitions, () if told else self.partitions)
        first = Process(1, "a", said, applied=Order(1, 1), readings=readings)
        second = Process(2, "a", Report(Order(0, 0)))
        for process in (first, second):
            acting.group.add(process.consumer, 0.0)
            acting.group.receive(_report(process.consumer, "a", NEWEST, process.newest), 0.0)
        acting.group.former.of_strangers = frozenset()
        notes = tuple((partition, claim(first.writer)) for partition in self.partitions if told)
        world = World(acting.freeze(), (first, second), notes=notes, left=faults)
        nothing = tuple((process.writer, frozenset[TopicPartition]()) for process in world.processes)
        return self._claimed(world) if told else world._replace(claimed=nothing)

    @staticmethod
    def out_of_names(world: World) -> bool:
        return any(process.incarnation == LAST and not process.alive for process in world.processes)

    def violation(self, world: World) -> bool:
        """Whether of two processes what they read of one partition takes effect."""
        return any(len(self._readers(world, partition)) > 1 for partition in self.partitions)

    def converged(self, world: World) -> bool:
        """Whether each partition has one reader, which goes on and is the one that it is to have."""
        desired = world.controller.desired
        return (
            world.controller.synchronized
            and len(desired) == len(self.partitions)
            and all(
                [process.consumer for process in self._readers(world, partition)] == [desired[partition]]
                and all(
                    process.alive and process.writer not in world.fenced for process in self._readers(world, partition)
                )
                for partition in self.partitions
            )
        )

    def _readers(self, world: World, partition: TopicPartition) -> list[Process]:
        return [
            process
            for process in world.processes
            if process.alive and (process.writer, partition.topic) not in world.sealed
            for reading in process.readings
            if reading.partition == partition and reading.placed
        ]

    # What can happen

    def without_faults(self, world: World) -> Iterator[World]:
        """What goes on by itself; where nothing does, what was sent is sent again."""
        if self.out_of_names(world):
            return
        goes_on = False
        for following in self._by_itself(world):
            goes_on = True
            yield following
        if not goes_on:
            yield self._after(world, thaw(world.controller), resend=True)

    def _by_itself(self, world: World) -> Iterator[World]:
        for place, process in enumerate(world.processes):
            if process.alive:
                yield from self._deliver(world, place, process)
                yield from self._go_on(world, place, process)
            yield from self._hear(world, process)
        yield from self._give_up_the_silent(world)
        yield from self._find_the_dead(world)
        yield from self._give_unread_partitions_a_reader(world)

    def _deliver(self, world: World, place: int, process: Process) -> Iterator[World]:
        """Any command that counts arrives."""
        held = {reading.partition: reading for reading in process.readings}
        holding = Holding(process.consumer, process.incarnation, process.applied, dict.fromkeys(held, Order(0, 0)))
        for sent in sorted(world.commands):
            following, change = holding.apply([_command(sent)])
            if following.applied == process.applied:
                continue
            readings, notes = dict(held), dict(world.notes)
            for partition in change.stop:
                if readings.pop(partition).claimed:
                    notes[partition] = RELEASED
            if notes != dict(world.notes) and process.writer in world.fenced:
                yield self._with(world, place, _ended(process))
                continue
            readings.update({partition: Reading(partition, change.seal) for partition in change.start})
            obeyed = process._replace(
                applied=following.applied, readings=tuple(readings[partition] for partition in sorted(readings))
            )
            yield self._with(world._replace(notes=tuple(sorted(notes.items()))), place, self._reporting(obeyed))

    def _go_on(self, world: World, place: int, process: Process) -> Iterator[World]:
        """A take-over makes a step, or the next commit is refused."""
        notes = dict(world.notes)
        for number, reading in enumerate(process.readings):
            topic, note = reading.partition.topic, notes.get(reading.partition)
            if not reading.placed:
                former = to_seal(process.writer, reading.told, [Committed(0, note)] if note else [])
                sealed = world.sealed | {(each, topic) for each in former}
                fenced = world.fenced.union(former)
                placed = self._with_reading(process, number, reading._replace(placed=True))
                yield self._with(world._replace(sealed=sealed, fenced=fenced), place, placed)
            elif process.writer in world.fenced:
                yield self._with(world, place, _ended(process))
            elif not reading.claimed:
                claimed = {**notes, reading.partition: claim(process.writer)}
                reads = self._with_reading(process, number, reading._replace(claimed=True))
                yield self._with(world._replace(notes=tuple(sorted(claimed.items()))), place, self._reporting(reads))

    def _hear(self, world: World, process: Process) -> Iterator[World]:
        """A report arrives."""
        members = {(member.consumer, member.incarnation or ""): member for member in world.controller.members}
        heard = members[process[:2]].report_sequence if process[:2] in members else -1
        for sequence, said in ((NEWEST, process.newest), (BEFORE, process.before)):
            if said is None or heard > sequence or sequence == heard < NEWEST:
                continue
            again = heard == NEWEST  # it says the same once more
            done = self._heard(world.controller, process.consumer, process.incarnation, sequence, said, again)
            following = self._having_done(world._replace(heard=world.heard | {process.writer}), done)
            if following != world:
                yield following

    def _give_up_the_silent(self, world: World) -> Iterator[World]:
        """A process that has ended says nothing, and one that is settled is not listened to; who is given up is killed,
        whatever process is there by now."""
        dead = {process[:2] for process in world.processes if not process.alive}
        settled = {process.consumer for process in world.processes if process.writer in world.controller.settled}
        for member in world.controller.members:
            unheard = member.incarnation is None and member.consumer in settled
            if not member.condemned and (unheard or (member.consumer, member.incarnation) in dead):
                acting = thaw(world.controller)
                acting.group.condemn(member.consumer)
                yield self._after(world, acting)
        for place, process in enumerate(world.processes):
            given_up = any(each.condemned and each.consumer == process.consumer for each in world.controller.members)
            if process.alive and given_up:
                yield self._with(world, place, _ended(process))

    def _find_the_dead(self, world: World) -> Iterator[World]:
        """A process that has ended is found to have; another one may come under its number, unless it is one itself."""
        members = {member.consumer for member in world.controller.members}
        newest = {process.consumer: process for process in world.processes}
        for process in newest.values():
            if process.alive or process.consumer not in members:
                continue
            acting = thaw(world.controller)
            acting.group.remove(process.consumer)
            acting.group.add(process.consumer, 0.0)
            successor = Process(process.consumer, chr(ord(process.incarnation) + 1), Report(Order(0, 0)))
            yield self._after(world._replace(processes=(*world.processes, successor)), acting)

    def _give_unread_partitions_a_reader(self, world: World) -> Iterator[World]:
        acting = thaw(world.controller)
        able = [consumer for consumer in acting.group if acting.group[consumer].accepts_partitions]
        desired = {p: c for p, c in acting.desired.items() if c in able}
        if acting.synchronized and able and len(desired) < len(self.partitions):
            acting.desired = Assignment({**dict.fromkeys(self.partitions, able[0]), **desired})
            yield self._after(world, acting)

    def with_a_fault(self, world: World) -> Iterator[World]:
        """What may befall it besides."""
        if self.out_of_names(world):
            return
        left = world.left
        controller = world.controller
        if left.plans and controller.synchronized:
            able = {member.consumer for member in thaw(controller).group.values() if member.accepts_partitions}
            for plan in self.plans:
                if plan != controller.desired and plan.consumers <= able:
                    acting = thaw(controller)
                    acting.desired = plan
                    yield self._after(world._replace(left=left._replace(plans=left.plans - 1)), acting)
        if left.suspicions:
            counted_on = [member.consumer for member in controller.members if not member.condemned]
            for consumer in counted_on if len(counted_on) > 1 else ():
                acting = thaw(controller)
                acting.group.condemn(consumer)
                yield self._after(world._replace(left=left._replace(suspicions=left.suspicions - 1)), acting)
        if left.deaths:
            for place, process in enumerate(world.processes):
                if process.alive:
                    fewer = world._replace(left=left._replace(deaths=left.deaths - 1))
                    yield self._with(fewer, place, _ended(process))
        if left.replacements:
            begun = world._replace(left=left._replace(replacements=left.replacements - 1))
            yield self._replaced(begun)
            yield self._replaced(self._claimed(begun))
        if left.claims:
            claimed = self._claimed(world._replace(left=left._replace(claims=left.claims - 1)))
            if (claimed.heard, claimed.claimed) != (world.heard, world.claimed):
                yield claimed
        if left.resends and controller.synchronized:
            fewer = world._replace(left=left._replace(resends=left.resends - 1))
            yield self._after(fewer, thaw(controller), resend=True)
        if left.losses and world.commands:
            yield world._replace(commands=frozenset(), left=left._replace(losses=left.losses - 1))

    def _replaced(self, world: World) -> World:
        """Another controller begins."""
        acting = Acting(world.controller.epoch + 1, 0, Assignment(), Group(), synchronized=False)
        of_strangers: Reach = frozenset() if self.guards.claims_say_what_each_may_read else None
        unsealed = {**dict.fromkeys(world.heard, of_strangers), **dict(world.claimed)}
        for settled in world.claimed_settled:
            unsealed.pop(settled, None)
        acting.group.former.inherit(unsealed, world.claimed_settled, of_strangers)
        for member in world.controller.members:
            acting.group.add(member.consumer, 0.0, barrier=acting.next_order())
        return self._after(world, acting)

    def _claimed(self, world: World) -> World:
        """The controller has said what it knows."""
        acting = thaw(world.controller)
        group = acting.group
        if acting.synchronized:
            group.former.settle_everywhere_sealed({partition.topic for partition in self.partitions})
        named = {**group.former.unsealed, **(group.counted_on if self.guards.claims_name_members else {})}
        says = self.guards.claims_say_what_each_may_read
        return world._replace(
            controller=acting.freeze(),
            heard=frozenset(),
            claimed=tuple((name, reach if says else None) for name, reach in sorted(named.items())),
            claimed_settled=tuple(sorted(group.former.settled)),
        )

    # What follows at once

    def _after(self, world: World, acting: Acting, *, resend: bool = False) -> World:
        """What the controller does of itself after it has learned something."""
        return self._having_done(world, self._does(acting, resend=resend))

    def _having_done(self, world: World, done: Done) -> World:
        controller, sent = done
        after = world._replace(controller=controller, commands=world.commands | sent)
        guards, starts = self.guards, any(each.action is Action.START for each in sent)
        if starts and guards.claims_with_starts and guards.claims_say_what_each_may_read:
            after = self._claimed(after)
        return _canonical(after)

    def _hears(
        self,
        controller: FrozenController,
        consumer: ConsumerId,
        incarnation: str,
        sequence: int,
        said: Report,
        again: bool,
    ) -> Done:
        """What it does after a report has arrived."""
        acting = thaw(controller)
        if again:
            acting.group[consumer].report_sequence = BEFORE
        acting.group.receive(_report(consumer, incarnation, sequence, said), 0.0)
        return self._does(acting)

    def _does(self, acting: Acting, *, resend: bool = False) -> Done:
        group = acting.group
        sent: set[Sent] = set()
        counted_on = [member for member in group.values() if not member.condemned]
        if not acting.synchronized:
            for member in counted_on:
                if member.barrier is not None and member.incarnation is not None:
                    sent.add(Sent(member.consumer, member.incarnation, member.barrier, Action.STOP, (), ()))
                    if not self.guards.has_barriers:
                        member.barrier, member.unbound, member.pending = None, False, {}
            if all(member.barrier is None for member in counted_on):
                acting.synchronized = True
                acting.desired = group.assignment
        if acting.synchronized:
            steps = next_steps(acting.desired, group, ALWAYS if resend else NEVER)
            for action, consumers in ((Action.STOP, steps.stop), (Action.START, steps.start)):
                for consumer, partitions in consumers.items():
                    command = acting.send(consumer, action, partitions)
                    seal = command.seal if self.guards.seals else ()
                    sent.add(Sent(consumer, command.incarnation, command.order, action, partitions, seal))
        return acting.freeze(), frozenset(sent)

    @staticmethod
    def _with(world: World, place: int, process: Process) -> World:
        controller = world.controller
        if process.newest != world.processes[place].newest:  # what was heard as the newest is so no more
            members = tuple(
                member._replace(report_sequence=max(member.report_sequence - 1, OLDER))
                if (member.consumer, member.incarnation) == process[:2]
                else member
                for member in controller.members
            )
            controller = controller._replace(members=members)
        processes = (*world.processes[:place], process, *world.processes[place + 1 :])
        return _canonical(world._replace(controller=controller, processes=processes))

    @staticmethod
    def _with_reading(process: Process, number: int, reading: Reading) -> Process:
        return process._replace(readings=(*process.readings[:number], reading, *process.readings[number + 1 :]))

    def _reporting(self, process: Process) -> Process:
        """It reports what has changed."""
        held = tuple(reading.partition for reading in process.readings)
        taking_over = tuple(reading.partition for reading in process.readings if not reading.claimed)
        said = Report(process.applied, held, taking_over if self.guards.tells_what_it_takes_over else ())
        return process._replace(newest=said, before=process.newest) if said != process.newest else process


def _ended(process: Process) -> Process:
    return process._replace(alive=False, readings=(), applied=Order(0, 0))


def _canonical(world: World) -> World:
    """The same world with what cannot matter any more left out, and the smallest numbers that keep the orders apart."""
    controller, processes, commands = _renumbered(world.controller, world.processes, world.commands)
    return world._replace(controller=controller, processes=processes, commands=commands)


@cache
def _renumbered(
    controller: FrozenController, processes: tuple[Process, ...], commands: frozenset[Sent]
) -> tuple[FrozenController, tuple[Process, ...], frozenset[Sent]]:
    seen = {(member.consumer, member.incarnation or ""): member.report_sequence for member in controller.members}
    applied = {process[:2]: process.applied for process in processes if process.alive}
    commands = frozenset(sent for sent in commands if sent[:2] in applied and sent.order > applied[sent[:2]])
    processes = tuple(
        process._replace(before=None) if process.before and seen.get(process[:2], OLDER) >= BEFORE else process
        for process in processes
    )
    orders = {
        *(sent.order for sent in commands),
        *(process.applied for process in processes),
        *(process.newest.applied for process in processes),
        *(process.before.applied for process in processes if process.before),
        *(order for member in controller.members for _, _, order in member.pending),
        *(member.barrier for member in controller.members if member.barrier),
    }
    renamed: dict[Order, Order] = {Order(0, 0): Order(0, 0)}
    for epoch in {order.epoch for order in orders}:
        of_epoch = sorted(order for order in orders if order.epoch == epoch)
        renamed |= {order: Order(epoch, rank) for rank, order in enumerate(of_epoch, start=1 if epoch else 0)}
    sequence = max((renamed[order].sequence for order in orders if order.epoch == controller.epoch), default=0)
    controller = controller._replace(sequence=sequence)
    if all(before == after for before, after in renamed.items()):
        return controller, processes, commands
    members = tuple(
        member._replace(
            pending=tuple((partition, action, renamed[order]) for partition, action, order in member.pending),
            barrier=renamed[member.barrier] if member.barrier else None,
        )
        for member in controller.members
    )
    processes = tuple(
        process._replace(
            applied=renamed[process.applied],
            newest=process.newest._replace(applied=renamed[process.newest.applied]),
            before=process.before and process.before._replace(applied=renamed[process.before.applied]),
        )
        for process in processes
    )
    commands = frozenset(sent._replace(order=renamed[sent.order]) for sent in commands)
    return controller._replace(members=members), processes, commands


@dataclass(frozen=True)
class Explored:
    worlds: Mapping[World, Sequence[World]]
    """All that were looked at, each with what follows if nothing more befalls the group; of two that mirror each other
    one."""
    wrong: World | None = None
    """The first in which two processes' reads take effect."""


def explore(model: Model, faults: Faults) -> Explored:
    """Looks at all worlds that can be reached, or at those until one is wrong."""
    known: dict[World, World] = {}
    mirror = model.mirror

    def looked_at(world: World) -> World:
        if world not in known:
            known[world] = known.get(mirror.image(world), world) if mirror else world
        return known[world]

    first = looked_at(model.beginning(faults))
    worlds: dict[World, list[World]] = {first: []}
    queue = deque([first])
    while queue:
        world = queue.popleft()
        if model.violation(world):
            return Explored(worlds, world)
        by_itself = [looked_at(each) for each in model.without_faults(world)]
        befallen = [looked_at(each) for each in model.with_a_fault(world)]
        worlds[world] = by_itself
        for following in (*by_itself, *befallen):
            if following not in worlds:
                worlds[following] = []
                queue.append(following)
    return Explored(worlds)


def stuck(model: Model, explored: Explored) -> World | None:
    """A world from which the group cannot converge even if nothing more befalls it; none if there is none."""
    before: dict[World, list[World]] = {}
    for world, following in explored.worlds.items():
        for each in following:
            before.setdefault(each, []).append(world)
    converge = {world for world in explored.worlds if model.converged(world) or model.out_of_names(world)}
    queue = deque(converge)
    while queue:
        for earlier in before.get(queue.popleft(), ()):
            if earlier not in converge:
                converge.add(earlier)
                queue.append(earlier)
    return next((world for world in explored.worlds if world not in converge), None)
