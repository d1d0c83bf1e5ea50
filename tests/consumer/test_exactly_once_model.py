"""The protocol of exactly once, explored to its end.

A small world: one partition, one table, processes that begin one after another. Every step of a process that others can
see is one step here. At any moment the process that is thought to be reading may be given up and the next one begins:
either it is dead (it takes no further step, but what it has asked of the lake may still be carried out), or it is a
zombie (it is frozen, and goes on as it was whenever it likes). All orders of all these steps are looked at.

The rules of the lake and of Kafka here are those that were seen in the real ones: an append whose name is not newer
than the newest of its writer is passed over with a success, one that a newer name of its writer overtook under way is
refused, and a fenced producer's commit is refused.
"""

from collections import deque
from collections.abc import Iterator
from enum import Enum, IntEnum, auto
from typing import NamedTuple

import pytest

from consumer.claims import RELEASED, Committed, claim, next_offset, to_seal, where_to_look, writer

RECORDS = 2
"""In the partition. A batch is one record."""
LAST_VERSION = 99


class At(IntEnum):
    """The step that a process takes next."""

    NOT_BEGUN = auto()
    LOOK = auto()
    FENCE = auto()
    SEAL = auto()
    PLACE = auto()
    CLAIM = auto()
    ASK_LAKE = auto()
    LAKE_ANSWERS = auto()
    COMMIT = auto()
    RELEASE = auto()
    LEFT = auto()
    """It has let the partition go though the lake has not settled its append, for which it goes on asking."""
    ENDED = auto()
    """It has released the partition."""
    DEAD = auto()


LET_GO = (At.ENDED, At.LEFT)
"""To the controller it is all the same."""


class Given(Enum):
    """What the controller knows of the process that the next one follows on."""

    UP = auto()
    """It is not known to have released the partition, and so the next is told to seal it."""
    FORGOTTEN = auto()
    """Nothing: the controller is another one, which learned only that no process is there any more."""


class Append(NamedTuple):
    """An append that was asked for and is not settled."""

    writer: int
    version: int
    offset: int
    begun: bool = False
    """The lake works on it: it has looked at the table, and will write."""
    overtaken: bool = False
    """A newer name of its writer was taken in the meantime: it will be refused."""


class Process(NamedTuple):
    at: At = At.NOT_BEGUN
    told: tuple[int, ...] = ()
    former: tuple[int, ...] = ()
    """The writers to fence and to seal, still to be done in this step."""
    all_former: tuple[int, ...] = ()
    sealed: tuple[int, ...] = ()
    """Whom it has fenced and sealed."""
    position: int = 0
    version: int = 0


class World(NamedTuple):
    processes: tuple[Process, ...]
    versions: tuple[int, ...]
    """The newest name that the lake has seen of each writer."""
    appended: tuple[int | None, ...]
    """The row of each writer's newest append."""
    newest: int | None = None
    """The row of the newest append."""
    former: frozenset[Committed] = frozenset()
    """Claims that were committed before, where the brokers may lose the newer ones."""
    rows: tuple[int, ...] = ()
    under_way: tuple[Append, ...] = ()
    committed: Committed | None = None
    fenced: frozenset[int] = frozenset()

    def with_process(self, number: int, process: Process) -> "World":
        return self._replace(processes=(*self.processes[:number], process, *self.processes[number + 1 :]))

    def having(self, number: int, **changes: object) -> "World":
        return self.with_process(number, self.processes[number]._replace(**changes))  # type: ignore[arg-type]


class Protocol(NamedTuple):
    """Which of its guards are in force, and what can befall it."""

    fences: bool = True
    seals: bool = True
    claims: bool = True
    looks_into_lake: bool = True
    claims_what_is_unsettled: bool = True
    """Who lets go of a partition whose rows the lake refuses does not release it."""
    looks_at_all_appends: bool = True
    """Not only at those of the claimant."""
    loses_commits: bool = False
    """The brokers may go back to an earlier claim, while all who wrote are dead."""
    zombies: bool = True
    """Who is given up may live on."""
    given: Given = Given.UP

    def successors(self, world: World) -> Iterator[World]:
        """The worlds one step on."""
        for number, process in enumerate(world.processes):
            yield from self._step(world, number, process)
        for place in range(len(world.under_way)):
            yield _worked_on(world, place)
        yield from self._given_up(world)
        begun = [process.at for process in world.processes if process.at is not At.NOT_BEGUN]
        if all(at in (At.ENDED, At.DEAD) for at in begun[:-1]) and begun[-1] is At.LOOK:
            for lost in world.former - {world.committed}:
                yield world._replace(committed=lost, former=frozenset())

    def _given_up(self, world: World) -> Iterator[World]:
        """The newest process is replaced: because it released the partition, or because it is taken for dead."""
        begun = [number for number, process in enumerate(world.processes) if process.at is not At.NOT_BEGUN]
        newest = begun[-1]
        if newest + 1 == len(world.processes):
            return
        unreleased = tuple(number for number in begun if world.processes[number].at not in LET_GO)
        told = unreleased if self.given is Given.UP else ()
        following = world.having(newest + 1, at=At.LOOK, told=told)
        if world.processes[newest].at in LET_GO:
            yield following
            return
        yield following.with_process(newest, Process(At.DEAD))
        if self.zombies:
            yield following

    def _step(self, world: World, number: int, process: Process) -> Iterator[World]:
        own = writer(1, str(number))
        match process.at:
            case At.LOOK:
                told, process = process.told, process._replace(told=())
                committed = None if told else world.committed
                named = to_seal(own, [writer(1, str(each)) for each in told], [committed])
                former = tuple(sorted({int(name.partition("/")[2]) for name in named} - set(process.sealed)))
                yield world.with_process(
                    number, process._replace(at=At.FENCE if former else At.PLACE, former=former, all_former=former)
                )
            case At.FENCE:
                fenced = world.fenced.union(process.former[:1] if self.fences else ())
                left = process.former[1:]
                following = world._replace(fenced=fenced)
                if left:
                    yield following.having(number, former=left)
                else:
                    yield following.having(number, at=At.SEAL, former=process.all_former)
            case At.SEAL:
                following = _sealed(world, process.former[0]) if self.seals else world
                done = tuple(sorted({*process.sealed, process.former[0]}))
                left = process.former[1:]
                yield following.having(number, at=At.SEAL if left else At.LOOK, former=left, sealed=done)
            case At.PLACE:
                for last in _found(world, own, self.looks_at_all_appends) if self.looks_into_lake else [None]:
                    yield world.having(number, at=At.CLAIM, position=next_offset(last, world.committed) or 0)
            case At.CLAIM:
                yield self._committed(world, number, claim(own) if self.claims else RELEASED, At.ASK_LAKE)
            case At.ASK_LAKE:
                yield world.having(number, at=At.RELEASE)
                if process.position < RECORDS:
                    yield _asked(world.having(number, at=At.LAKE_ANSWERS, version=process.version + 1), number)
            case At.LAKE_ANSWERS:
                mine = [append for append in world.under_way if append.writer == number]
                if len(mine) < 2:  # no answer within the limit, or a refusal: the same again
                    yield _asked(world, number)
                if len(mine) < 2 and world.versions[number] >= process.version:  # by the one, or by the other
                    yield world.having(number, at=At.COMMIT, position=process.position + 1)
                if self.claims_what_is_unsettled:
                    yield world.having(number, at=At.LEFT)
                else:
                    yield self._committed(world, number, RELEASED, At.LEFT)
            case At.LEFT:
                if sum(append.writer == number for append in world.under_way) < 2:
                    yield _asked(world, number)
            case At.COMMIT:
                yield self._committed(world, number, claim(own) if self.claims else RELEASED, At.ASK_LAKE)
            case At.RELEASE:
                yield self._committed(world, number, RELEASED, At.ENDED)
            case At.NOT_BEGUN | At.ENDED | At.DEAD:
                return

    def _committed(self, world: World, number: int, note: str, following: At) -> World:
        if number in world.fenced:
            return world.with_process(number, Process(At.DEAD))
        position = world.processes[number].position
        committed = Committed(position, note)
        former = world.former | {committed} if self.loses_commits and committed.claimant else world.former
        return world._replace(committed=committed, former=former).having(number, at=following)


def _found(world: World, own: str, looks_at_all_appends: bool) -> Iterator[int | None]:
    """The last row: of all rows, or of the newest append."""
    looks = where_to_look(world.committed, RECORDS)
    seen = (max((row for row in world.rows if low <= row <= high), default=None) for low, high in looks)
    yield next((row for row in seen if row is not None), None)
    claimant = None if world.committed is None else world.committed.claimant
    if claimant not in (None, own):
        yield world.newest if looks_at_all_appends else world.appended[int(str(claimant).partition("/")[2])]


def _asked(world: World, number: int) -> World:
    process = world.processes[number]
    asked = Append(number, process.version, process.position)
    return world._replace(under_way=tuple(sorted((*world.under_way, asked))))


def _worked_on(world: World, place: int) -> World:
    """The lake begins with an append, or passes over it; writes what it has begun, or refuses it."""
    append = world.under_way[place]
    others = (*world.under_way[:place], *world.under_way[place + 1 :])
    if not append.begun:
        if append.version <= world.versions[append.writer]:
            return world._replace(under_way=others)
        return world._replace(under_way=tuple(sorted((*others, append._replace(begun=True)))))
    if append.overtaken:
        return world._replace(under_way=others)
    written = world._replace(
        under_way=others,
        rows=tuple(sorted((*world.rows, append.offset))),
        newest=append.offset,
        appended=(*world.appended[: append.writer], append.offset, *world.appended[append.writer + 1 :]),
    )
    return _named(written, append.writer, append.version)


def _sealed(world: World, number: int) -> World:
    return _named(world, number, LAST_VERSION)


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


def violation(protocol: Protocol, processes: int = 3) -> tuple[str, World] | None:
    """What the protocol does wrong in the first of all reachable worlds in which it does; none if it never does."""
    first = (Process(At.LOOK), *(Process() for _ in range(processes - 1)))
    seen = {World(first, versions=(0,) * processes, appended=(None,) * processes)}
    queue = deque(seen)
    while queue:
        world = queue.popleft()
        if len(set(world.rows)) < len(world.rows):
            return "doubled", world
        if world.rows != tuple(range(len(world.rows))):
            return "lost", world
        if world.committed is not None and world.committed.offset > len(world.rows):
            return "committed what is not in the lake", world
        following = set(protocol.successors(world))
        if not following and world.processes[-1].at not in (*LET_GO, At.DEAD):
            return "stuck", world
        queue.extend(following - seen)
        seen |= following
    return None


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.slow(50))])
def test_nothing_is_lost_or_doubled_whatever_dies_or_wakes_up_when(processes: int) -> None:
    assert violation(Protocol(), processes) is None


def test_where_processes_are_dead_the_claims_alone_are_enough() -> None:
    """A controller that has forgotten who read the partition names nobody."""
    assert violation(Protocol(zombies=False, given=Given.FORGOTTEN)) is None


@pytest.mark.slow
def test_claims_that_the_brokers_lose_cost_nothing() -> None:
    """Hole 13."""
    assert violation(Protocol(loses_commits=True, zombies=False)) is None


@pytest.mark.parametrize(
    ("protocol", "fault"),
    [
        (Protocol(seals=False), "doubled"),
        (Protocol(fences=False), "committed what is not in the lake"),
        (Protocol(looks_into_lake=False), "doubled"),
        (Protocol(claims=False, zombies=False, given=Given.FORGOTTEN), "doubled"),
        (Protocol(given=Given.FORGOTTEN), "doubled"),
        (Protocol(loses_commits=True, looks_at_all_appends=False, zombies=False), "doubled"),
        (Protocol(claims_what_is_unsettled=False, zombies=False), "doubled"),
    ],
    ids=[
        "no seal",
        "no fence",
        "positions from the commits",
        "no claims",
        "zombies that nobody names",
        "claimants' appends alone",
        "unsettled and released",
    ],
)
def test_without_one_of_its_guards_it_fails(protocol: Protocol, fault: str) -> None:
    """Each guard is needed; and the model sees what it has to see."""
    found = violation(protocol)
    assert found is not None
    assert found[0] == fault
