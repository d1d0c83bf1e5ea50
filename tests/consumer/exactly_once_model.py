"""The protocol of exactly once, explored to its end: consumers as they are, among whatever can befall them.

A small world: a table and its dead letters, one partition or two, and processes that begin one after another. The
processes are the real `ConsumerMachine` and the real `take_over` (`explored_consumer`). Every step of theirs that
others can see is one step here. At any moment a partition may be stopped and given to the next process; and the process
that reads it may be given up: either it is dead (it takes no further step, but what it has asked of the lake may still
be carried out), or it is a zombie (it is frozen, and goes on as it was whenever it likes). All orders of all these
steps are looked at.

The rules of the lake and of Kafka here are those that were seen in the real ones: an append whose name is not newer
than the newest of its writer is passed over with a success, one that a newer name of its writer overtook under way is
refused, and a fenced producer's commit is refused. An append that has a record which the table refuses is told so, and
its name is taken by then, where it was asked for before; a dead letter is there once, by the name of its record. Where
the table takes nothing at all, an append is told that nothing came of it, whatever comes of those before it.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import NamedTuple

from consumer.decide import jobs
from consumer.decide.machine import ConsumerMachine
from domain.messages import Action
from domain.partitions import TopicPartition
from tests.consumer.explored_consumer import (
    Answer,
    Ask,
    AskTheDeadLetters,
    AskTheLog,
    AskTheRows,
    Call,
    Commit,
    Commits,
    Consumers,
    Failed,
    Fence,
    Happened,
    Leave,
    LookAtCommits,
    Rows,
    Seal,
    SetAside,
    Succeeded,
    TakeOver,
    Told,
    Write,
    next_call,
)

LAST_VERSION = 99


class Given(Enum):
    """What the controller knows of the processes that read a partition before."""

    UP = auto()
    """Who is not known to have released it, and so the next is told to seal that."""
    FORGOTTEN = auto()
    """Nothing: the controller is another one, which learned only that no process is there any more."""


class Append(NamedTuple):
    """An append that was asked for and is not settled."""

    writer: int
    version: int
    rows: Rows
    begun: bool = False
    """The lake works on it: it has looked at the table, and will write."""
    overtaken: bool = False
    """A newer name of its writer was taken in the meantime: it will be refused."""


class TakingOver(NamedTuple):
    """A take-over under way."""

    ask: TakeOver
    answers: tuple[Answer, ...]
    call: Call
    """What it does next."""


Waiting = Write | SetAside | Commits | TakingOver


class Process(NamedTuple):
    state: int
    """Of the machine."""
    waits_for: tuple[Waiting, ...] = ()
    late: tuple[TakingOver, ...] = ()
    """Take-overs that it has given up, whose threads have not ended."""
    commands: int = 0
    stopped: tuple[tuple[int, int], ...] = ()
    """Partitions, and the numbers of the commands that stopped them."""
    alive: bool = True
    let_go: tuple[int, ...] = ()
    """Partitions that one which is dead had told that it does not read."""


class World(NamedTuple):
    processes: tuple[Process, ...]
    """That have begun."""
    readers: tuple[int, ...]
    """By partition: the process that was told last to read it."""
    versions: tuple[int, ...]
    """The newest name that the lake has seen of each writer."""
    log: tuple[tuple[int, Rows], ...] = ()
    """Of the table: its appends, by whom, and of what."""
    under_way: tuple[Append, ...] = ()
    dead_letters: tuple[tuple[int, tuple[int, int]], ...] = ()
    """By whom, and which record."""
    on_their_way: tuple[tuple[int, tuple[int, int]], ...] = ()
    """Dead letters that were asked for and are not settled."""
    mended: bool = False
    """Whether the table takes every record by now."""
    committed: tuple[Commit | None, ...] = ()
    fenced: frozenset[int] = frozenset()
    forgotten: frozenset[int] = frozenset()
    """The processes whose transactional ids the brokers know no more."""
    former: frozenset[tuple[Commit | None, ...]] = frozenset()
    """What was committed before, where the brokers may lose what is newer."""

    def having(self, number: int, process: Process) -> "World":
        return self._replace(processes=(*self.processes[:number], process, *self.processes[number + 1 :]))


_consumers = cache(Consumers)


class Releasing(ConsumerMachine):
    """Releases what the lake has not settled, as if it had been committed."""

    def _leave_unsettled(self, stopped: "set[TopicPartition]") -> None:  # type: ignore[override]
        claimed = dict(self._claimed)
        super()._leave_unsettled(stopped)
        self._claimed = claimed


class Hasty(ConsumerMachine):
    """Takes a refusal for the end of all that was asked before."""

    def _has_failed(self, job: jobs.Job, fault: str, of_lake: bool, of_table: bool = False) -> None:
        super()._has_failed(job, fault, of_lake, of_table)
        if isinstance(job, jobs.Write):
            job.uncertain = False


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Which of its guards are in force, and what can befall it."""

    fences: bool = True
    seals: bool = True
    claims: bool = True
    looks_into_lake: bool = True
    claims_what_is_unsettled: bool = True
    """Who lets go of a partition whose rows the lake refuses does not release it."""
    looks_at_all_appends: bool = True
    """Not only at those of the claimant."""
    ends_when_forgotten: bool = True
    """Whose transactional id is forgotten does not initialise it anew."""
    gives_up_what_is_stopped: bool = True
    """A take-over whose start holds no more fences and seals nobody."""

    loses_commits: bool = False
    """The brokers may go back to earlier claims, or to nothing, once, while all who claim anything are dead."""
    loses_claims_of_the_living: bool = False
    loses_what_followed_a_release: bool = False
    """Not only what followed a claim."""
    expires: bool = False
    """The brokers forget what is committed of a partition after a week."""
    renews: bool = True
    """Processes commit their claims again before that."""
    forgets: bool = False
    """The brokers may forget a transactional id."""
    refuses: bool = False
    """The lake may refuse what a take-over asks of it, or carry it out and not say so."""
    refused: tuple[int, int] | None = None
    """The partition and the offset of a record that the table refuses."""
    takes_nothing: bool = False
    """The table refuses whatever it is given."""
    mends: bool = False
    """The table may take all from some moment on."""
    gives_up_what_is_certain: bool = True
    """Who lets go of a partition whose table takes nothing releases it only where nothing more can come."""
    takes_refused_names: bool = True
    """A refusal is told once nothing under its name can come any more."""
    names_dead_letters_by_record: bool = True
    """Not by their writers."""

    leaves: bool = False
    """A process may be told to end."""
    zombies: bool = True
    """Who is given up may live on."""
    given: Given = Given.UP

    processes: int = 3
    partitions: int = 1
    records: int = 2
    """In each partition."""
    at_once: int = 1
    """Of those the ones that a batch has, as far as there are any left."""

    @property
    def consumers(self) -> Consumers:
        machine = ConsumerMachine if self.claims_what_is_unsettled else Releasing
        machine = machine if self.gives_up_what_is_certain else Hasty
        return _consumers(self.records, self.at_once, machine)

    def wrong(self, world: World) -> str | None:
        """What is, if anything."""
        for rows, commit in zip(_settled(world, self.partitions), world.committed, strict=True):
            if len(set(rows)) < len(rows):
                return "doubled"
            if rows != tuple(range(len(rows))):
                return "lost"
            if commit is not None and commit.offset > len(rows):
                return "committed what is not in the lake"
        if not self.zombies and self.partitions == 1 and world.fenced & set(world.readers):
            return "the rightful reader is out of action"
        return None

    def beginning(self) -> World:
        """One process is told to read everything."""
        nobody = World((), (0,) * self.partitions, versions=(0,) * self.processes, committed=(None,) * self.partitions)
        return self._started(nobody, 0, tuple(range(self.partitions)), ())

    def successors(self, world: World) -> Iterator[World]:
        """The worlds one step on."""
        for number, process in enumerate(world.processes):
            if process.alive:
                yield from self._goes_on(world, number, process)
        for place in range(len(world.under_way)):
            yield self._worked_on(world, place)
        for place in range(len(world.on_their_way)):
            yield self._set_aside(world, place)
        if self.mends and not world.mended:
            yield world._replace(mended=True)
        for number in sorted(set(world.readers)):
            yield from self._controlled(world, number)
        yield from self._forgotten(world)

    def told_apart(self, world: World) -> World:
        """The world without what can change nothing any more for others: appends that the lake will refuse or pass
        over, and zombies that are fenced and sealed and take nothing over."""
        under_way = tuple(
            append
            for append in world.under_way
            if not append.overtaken and (append.begun or append.version > world.versions[append.writer])
        )
        on_their_way = tuple(letter for letter in world.on_their_way if not self._is_set_aside(world, *letter))
        if under_way != world.under_way or on_their_way != world.on_their_way:
            world = world._replace(under_way=under_way, on_their_way=on_their_way)
        for number in world.fenced if self.ends_when_forgotten else ():
            if world.processes[number].alive and self._is_out_of_action(world, number):
                world = self._ended(world, number)
        return world

    @staticmethod
    def _is_out_of_action(world: World, number: int) -> bool:
        """Whether one that is fenced is."""
        process, is_sealed = world.processes[number], world.versions[number] == LAST_VERSION
        takes_over = process.late or any(isinstance(each, TakingOver) for each in process.waits_for)
        return is_sealed and number not in world.readers and not takes_over

    # What the controller does

    def _controlled(self, world: World, number: int) -> Iterator[World]:
        """What a process reads is stopped, or given to the next: because it was released, or it is taken for dead."""
        process, following = world.processes[number], number + 1
        if process.alive and self.leaves and not self.consumers.has_left(process.state):
            yield self._has_happened(world, number, Leave())
        if following == self.processes:
            return
        held = tuple(partition for partition, reader in enumerate(world.readers) if reader == number)
        let_go = tuple(partition for partition in held if self._has_let_go(process, partition))
        if let_go:
            yield self._given(world, following, let_go)
        held = tuple(partition for partition in held if partition not in let_go)
        if not held:
            return
        if process.alive:
            stopped = dict(process.stopped)
            for partition in held:
                if partition not in stopped:
                    told = process._replace(stopped=(*process.stopped, (partition, process.commands + 1)))
                    yield self._told(world.having(number, told), number, Told(Action.STOP, (partition,)))
            if self.zombies:
                yield self._given(world, following, held)
        yield self._given(self._ended(world, number), following, held)

    def _has_let_go(self, process: Process, partition: int) -> bool:
        """Whether it has told that it reads the partition no more."""
        if not process.alive:
            return partition in process.let_go
        stop = dict(process.stopped).get(partition)
        has_obeyed = stop is not None and self.consumers.obeyed(process.state) >= stop
        return has_obeyed or self.consumers.has_left(process.state)

    def _given(self, world: World, number: int, partitions: tuple[int, ...]) -> World:
        """A process is told to read what others read before."""
        unreleased = tuple(
            former
            for former, process in enumerate(world.processes[:number])
            if not all(self._has_let_go(process, partition) for partition in partitions)
        )
        return self._started(world, number, partitions, unreleased if self.given is Given.UP else ())

    def _started(self, world: World, number: int, partitions: tuple[int, ...], seal: tuple[int, ...]) -> World:
        readers = tuple(number if each in partitions else reader for each, reader in enumerate(world.readers))
        world = world._replace(readers=readers)
        if number == len(world.processes):
            world = world._replace(processes=(*world.processes, Process(self.consumers.begun(number))))
        return self._told(world, number, Told(Action.START, partitions, seal))

    def _told(self, world: World, number: int, command: Told) -> World:
        process = world.processes[number]
        if not process.alive:
            return world
        return self._has_happened(
            world.having(number, process._replace(commands=process.commands + 1)), number, command
        )

    # What a process does

    def _goes_on(self, world: World, number: int, process: Process) -> Iterator[World]:
        for place, waiting in enumerate(process.waits_for):
            match waiting:
                case Write(version):
                    if sum(append.writer == number for append in world.under_way) < 2:
                        yield self._has_happened(world, number, Failed(place))  # no answer, or a refusal
                        if world.versions[number] >= version:  # by this request, or by the one before
                            yield self._has_happened(world, number, Succeeded(place, _ends(waiting.rows)))
                    yield from self._refused(world, number, place, waiting)
                case SetAside(record):
                    if world.on_their_way.count((number, record)) < 2:
                        yield self._has_happened(world, number, Failed(place))
                    if self._is_set_aside(world, number, record):
                        yield self._has_happened(world, number, Succeeded(place, _ends((record,))))
                case Commits(commits):
                    yield self._committed(world, number, place, commits)
                case TakingOver():
                    yield from self._takes_over(world, number, place, waiting)
        for place, late in enumerate(process.late):
            others = (*process.late[:place], *process.late[place + 1 :])
            for performed, answer in self._performed(world, late.call):
                progress = self._progress(number, late.ask, (*late.answers, answer), has_right=False)
                left = (*others, progress) if isinstance(progress, TakingOver) else others
                yield performed.having(number, process._replace(late=left))

    def _refused(self, world: World, number: int, place: int, write: Write) -> Iterator[World]:
        """An append of these rows is told that the table refuses one, or all."""
        appends = [each for each in world.under_way if (each.writer, each.version) == (number, write.version)]
        if not self._refuses(world, write.rows) or (number, write.rows) in world.log:
            return
        for refused in {append for append in appends if append.begun}:
            left = list(world.under_way)
            left.remove(refused)
            told = world._replace(under_way=tuple(left))
            if len(appends) > 1 and self.takes_refused_names and not self.takes_nothing:
                told = _named(told, number, write.version)
            kind = Failed(place, of_record=not self.takes_nothing, of_table=self.takes_nothing)
            yield self._has_happened(told, number, kind)

    def _refuses(self, world: World, rows: Rows) -> bool:
        return (self.takes_nothing or self.refused in rows) and not world.mended

    def _worked_on(self, world: World, place: int) -> World:
        """The lake begins with an append, or passes over it; writes what it has begun, or refuses it."""
        append = world.under_way[place]
        others = (*world.under_way[:place], *world.under_way[place + 1 :])
        if not append.begun:
            if append.version <= world.versions[append.writer]:
                return world._replace(under_way=others)
            return world._replace(under_way=tuple(sorted((*others, append._replace(begun=True)))))
        if append.overtaken or self._refuses(world, append.rows):
            return world._replace(under_way=others)
        written = world._replace(under_way=others, log=(*world.log, (append.writer, append.rows)))
        return _named(written, append.writer, append.version)

    def _set_aside(self, world: World, place: int) -> World:
        """The dead letters take a record, unless they have had one under its name."""
        letter = world.on_their_way[place]
        world = world._replace(on_their_way=(*world.on_their_way[:place], *world.on_their_way[place + 1 :]))
        if self._is_set_aside(world, *letter):
            return world
        return world._replace(dead_letters=(*world.dead_letters, letter))

    def _is_set_aside(self, world: World, number: int, record: tuple[int, int]) -> bool:
        if self.names_dead_letters_by_record:
            return any(record == each for _, each in world.dead_letters)
        return (number, record) in world.dead_letters

    def _committed(self, world: World, number: int, place: int, commits: tuple[tuple[int, Commit], ...]) -> World:
        if self._is_refused(world, number):
            return self._ended(world, number)
        if number in world.forgotten:
            world = world._replace(forgotten=world.forgotten - {number}, fenced=world.fenced - {number})
        committed = list(world.committed)
        for partition, commit in commits:
            committed[partition] = commit if self.claims else Commit(commit.offset, None)
        former = world.former
        claims = all(commit is None or commit.claimant is not None for commit in committed)
        if self.loses_commits and (claims or self.loses_what_followed_a_release):
            former |= {tuple(committed)}
        return self._has_happened(world._replace(committed=tuple(committed), former=former), number, Succeeded(place))

    def _is_refused(self, world: World, number: int) -> bool:
        """Whether a commit of this process is; an id that is initialised anew is fenced no more."""
        return self.ends_when_forgotten if number in world.forgotten else number in world.fenced

    def _takes_over(self, world: World, number: int, place: int, under_way: TakingOver) -> Iterator[World]:
        process = world.processes[number]
        if self.refuses and not isinstance(under_way.call, LookAtCommits):
            yield self._has_happened(world, number, Failed(place))
        for performed, answer in self._performed(world, under_way.call):
            progress = self._progress(number, under_way.ask, (*under_way.answers, answer), has_right=True)
            if isinstance(progress, TakingOver):
                waits_for = (*process.waits_for[:place], progress, *process.waits_for[place + 1 :])
                yield performed.having(number, process._replace(waits_for=waits_for))
            else:
                result = Failed(place, of_lake=False) if progress is None else Succeeded(place, progress)
                yield self._has_happened(performed, number, result)
            if self.refuses and performed != world:
                yield self._has_happened(performed, number, Failed(place))

    def _progress(
        self, number: int, ask: TakeOver, answers: tuple[Answer, ...], *, has_right: bool
    ) -> TakingOver | Rows | None:
        has_right = has_right or not self.gives_up_what_is_stopped
        refuses = self.refused is not None
        then = next_call(number, ask, answers, self.records, has_right=has_right, refuses=refuses)
        if isinstance(then, Call):
            return TakingOver(ask, answers, then)
        return then

    def _performed(self, world: World, call: Call) -> Iterator[tuple[World, Answer]]:
        """What becomes of the world by a call of a take-over, and what it is answered."""
        match call:
            case Fence(number):
                yield world._replace(fenced=world.fenced | {number}) if self.fences else world, None
            case Seal(number):
                yield _named(world, number, LAST_VERSION) if self.seals else world, None
            case LookAtCommits(partitions):
                yield world, tuple(world.committed[partition] for partition in partitions)
            case AskTheLog(partitions):
                yield world, ()  # its newest entries do not tell
                if self.looks_into_lake and (told := tuple(self._appended(world, partitions))):
                    yield world, told
            case AskTheDeadLetters(partitions):
                yield world, tuple(record for _, record in world.dead_letters if record[0] in partitions)
            case AskTheRows(spans):
                rows = [row for _, append in world.log for row in append] if self.looks_into_lake else []
                found = {
                    partition: max(
                        (row for of, row in rows if of == partition and span.low <= row <= span.high), default=None
                    )
                    for partition, span in spans
                }
                yield world, tuple((partition, row) for partition, row in found.items() if row is not None)

    def _appended(self, world: World, partitions: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        for partition in partitions:
            commit = world.committed[partition]
            appends = (
                max(row for of, row in rows if of == partition)
                for writer, rows in reversed(world.log)
                if any(of == partition for of, _ in rows)
                and (self.looks_at_all_appends or (commit is not None and writer == commit.claimant))
            )
            for row in appends:
                yield partition, row
                break

    def _has_happened(self, world: World, number: int, what: Happened) -> World:
        """The machine of a process takes it in, and what it asks for then is asked."""
        process = world.processes[number]
        step = self.consumers.after(process.state, what, fenced=self._is_refused(world, number))
        if step is None:
            return self._ended(world, number)
        waits_for = list(process.waits_for)
        match what:
            case Succeeded(place) | Failed(place):
                del waits_for[place]
            case _:
                pass
        given_up = [waits_for[place] for place in step.given_up]
        waits_for = [each for place, each in enumerate(waits_for) if place not in step.given_up]
        waits_for += [self._asked(number, ask) for ask in step.asked]
        late = (*process.late, *(each for each in given_up if isinstance(each, TakingOver)))
        world = world.having(number, process._replace(state=step.state, waits_for=tuple(waits_for), late=late))
        if appends := [Append(number, ask.version, ask.rows) for ask in step.asked if isinstance(ask, Write)]:
            world = world._replace(under_way=tuple(sorted([*world.under_way, *appends])))
        if letters := [(number, ask.aside) for ask in step.asked if isinstance(ask, SetAside)]:
            world = world._replace(on_their_way=tuple(sorted([*world.on_their_way, *letters])))
        return world

    def _asked(self, number: int, ask: Ask) -> Waiting:
        if not isinstance(ask, TakeOver):
            return ask
        under_way = self._progress(number, ask, (), has_right=True)
        assert isinstance(under_way, TakingOver)
        return under_way

    def _lives_a_claimant(self, world: World) -> bool:
        """Whether a living process claims anything, or may let it go without a commit."""
        claimants = {commit.claimant for commit in world.committed if commit is not None}
        return any(
            process.alive
            and (number in claimants or any(isinstance(each, Write | SetAside) for each in process.waits_for))
            for number, process in enumerate(world.processes)
        )

    def _is_renewed(self, world: World, claimant: int | None) -> bool:
        """Whether a claim is no week old: its process lives and renews it, or its appends are under way."""
        if claimant is None:
            return False
        is_under_way = any(append.writer == claimant for append in world.under_way)
        return self.renews and (world.processes[claimant].alive or is_under_way)

    def _ended(self, world: World, number: int) -> World:
        """The process takes no further step."""
        process = world.processes[number]
        let_go = tuple(each for each in range(self.partitions) if self._has_let_go(process, each))
        return world.having(number, Process(-1, alive=False, let_go=let_go))

    # What Kafka loses

    def _forgotten(self, world: World) -> Iterator[World]:
        if world.former and (self.loses_claims_of_the_living or not self._lives_a_claimant(world)):
            for lost in {*world.former, (None,) * self.partitions} - {world.committed}:
                yield world._replace(committed=lost, former=frozenset())
        if self.expires:
            for partition, commit in enumerate(world.committed):
                if commit is not None and not self._is_renewed(world, commit.claimant):
                    before, behind = world.committed[:partition], world.committed[partition + 1 :]
                    yield world._replace(committed=(*before, None, *behind))
        if self.forgets:
            for number, process in enumerate(world.processes):
                if process.alive and number not in world.forgotten:
                    yield world._replace(forgotten=world.forgotten | {number})


def _named(world: World, number: int, version: int) -> World:
    """The lake has taken a name of the writer's, unless it had a newer one."""
    newest = max(world.versions[number], version)
    return world._replace(
        versions=(*world.versions[:number], newest, *world.versions[number + 1 :]),
        under_way=tuple(
            sorted(
                append._replace(overtaken=True) if append.begun and append.writer == number else append
                for append in world.under_way
            )
        ),
    )


def _ends(rows: Rows) -> Rows:
    """Where the partitions of these rows go on."""
    return tuple(sorted({partition: offset + 1 for partition, offset in sorted(rows)}.items()))


def _settled(world: World, partitions: int) -> tuple[tuple[int, ...], ...]:
    return _rows(world.log, world.dead_letters, partitions)


@cache
def _rows(
    log: tuple[tuple[int, Rows], ...], dead_letters: tuple[tuple[int, tuple[int, int]], ...], partitions: int
) -> tuple[tuple[int, ...], ...]:
    """The offsets in the table and in the dead letters, by partition, in ascending order."""
    rows = [row for _, append in log for row in append] + [record for _, record in dead_letters]
    return tuple(tuple(sorted(row for of, row in rows if of == partition)) for partition in range(partitions))


def violation(protocol: Protocol) -> tuple[str, World] | None:
    """What the protocol does wrong in the first of all reachable worlds in which it does; none if it never does."""
    seen = {protocol.beginning()}
    queue = deque(seen)
    while queue:
        world = queue.popleft()
        if (wrong := protocol.wrong(world)) is not None:
            return wrong, world
        following = set(map(protocol.told_apart, protocol.successors(world)))
        if not following - {world} and not _finished(protocol, world):
            return "stuck", world
        queue.extend(following - seen)
        seen |= following
    return None


def _finished(protocol: Protocol, world: World) -> bool:
    """Whether the last reader of each partition has committed all of it, has left, or has ended."""
    return all(
        not world.processes[reader].alive
        or protocol.consumers.has_left(world.processes[reader].state)
        or (len(rows) == protocol.records and commit is not None and commit.offset == len(rows))
        or ((protocol.expires or protocol.loses_commits) and len(rows) == protocol.records and commit is None)
        for rows, commit, reader in zip(
            _settled(world, protocol.partitions), world.committed, world.readers, strict=True
        )
    )
