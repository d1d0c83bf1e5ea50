"""Takes partitions over from whoever read them before: seals those writers, and finds where reading goes on.

The order is what keeps every record once:

1. whom the controller named is fenced in Kafka: from here on a commit of theirs tells of rows that are in the lake;
2. they are sealed on the table of the topic: from here on they add no row;
3. who claims the partitions is looked up in the group's commits. If that is anybody else, the same is done to them, and
   the claims are looked up again: in the end only the caller adds rows of these partitions;
4. now the positions are read, from the commits and the lake (`consumer.decide.claims`).

The fence comes before the look because the brokers do not tell of commits while one of them is under way, and one that
a writer died in the middle of is under way for minutes, unless a fence ends it.

Whatever is interrupted is done again from the first step, by this process or by the next. Who is fenced and sealed
stays so: a process does it to each writer once.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Set
from typing import Protocol

from consumer.decide.claims import Committed, next_position, to_seal, where_to_look
from consumer.decide.reached import Reached, later
from consumer.decide.spans import Span
from domain.partitions import OffsetRange, TopicPartition

MOST_LOOKS = 10
"""At the claims, each of which shows writers that the one before did not."""


class ClaimsError(RuntimeError):
    """Others claim the partitions all the while."""


class Offsets(Protocol):
    """What is asked of the brokers: `consumer.offsets`."""

    def fence(self, writer: str) -> None: ...

    def committed(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, Committed | None]: ...

    def ranges(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, OffsetRange]: ...


class Tables(Protocol):
    """What is asked of the sink: `consumer.sink`."""

    def seal(self, topic: str, writer: str) -> None: ...

    def last_appended(self, topic: str, partitions: Collection[int]) -> Mapping[int, Reached]: ...

    def last_set_aside(self, topic: str, partitions: Collection[int]) -> Mapping[int, Reached]: ...

    def last_offsets(self, topic: str, spans: Mapping[int, Span]) -> Mapping[int, int]: ...


Steps = Generator[None, None, dict[TopicPartition, Reached]]


def take_over(
    partitions: Iterable[TopicPartition],
    told: Iterable[str],
    own: str,
    offsets: Offsets,
    lake: Tables,
    group: str,
    require_right: Callable[[], None],
) -> dict[TopicPartition, Reached]:
    """Where reading goes on, once all `steps` are taken: `require_right` is called in each of their pauses, and raises
    where the caller must not go on."""
    left = steps(partitions, told, own, offsets, lake, group)
    while True:
        try:
            next(left)
        except StopIteration as last:
            positions: dict[TopicPartition, Reached] = last.value
            return positions
        require_right()


def steps(
    partitions: Iterable[TopicPartition],
    told: Iterable[str],
    own: str,
    offsets: Offsets,
    lake: Tables,
    group: str,
) -> Steps:
    """Where reading of each of the partitions goes on; none of their former readers adds anything after that.

    Partitions are left out of which no broker tells what their logs hold.

    Pauses after each look at the claims, and before anybody is fenced or sealed. It is to go on only if the caller is
    still the reader of the partitions: where its lease has run out, or they were stopped, the claims may be those of
    its successor, which it must not put out of action.

    Args:
        partitions: of one topic, which exist, and which the caller may read.
        told: the writers that the controller names.
        own: the caller's name as a writer.
        offsets: of the group.
        lake: with a session.
        group: whose writers' names in the lake begin with it.

    Raises:
        ClaimsError: others claim them all the while.
        LakeError: the lake does not do it, or does not tell.
        KafkaException: the brokers do not.
    """
    wanted = sorted(partitions)
    (topic,) = {partition.topic for partition in wanted}
    writers, done = to_seal(own, told, ()), set[str]()
    committed: Mapping[TopicPartition, Committed | None] = {}
    for _ in range(MOST_LOOKS):
        for writer in writers:
            yield
            offsets.fence(writer)
        for writer in _from_own_on(writers, own):
            yield
            lake.seal(topic, f"{group}/{writer}")
        done.update(writers)
        committed = offsets.committed(wanted)
        yield
        writers = tuple(writer for writer in to_seal(own, (), committed.values()) if writer not in done)
        if not writers:
            break
    else:
        raise ClaimsError(f"{', '.join(writers)} claimed them while others were put out of action")
    ranges = offsets.ranges(wanted)
    places = {
        partition.partition: where_to_look(committed[partition], held.end)
        for partition, held in ranges.items()
        if not held.empty
    }
    ends = {partition.partition: held.end for partition, held in ranges.items() if not held.empty}
    claimed = {
        partition.partition
        for partition, position in committed.items()
        if partition.partition in ends and position is not None and position.claimant not in (None, own)
    }
    last = _last_rows(lake, topic, places, claimed, ends)
    positions = {}
    for partition in sorted(ranges):
        position = next_position(last.get(partition.partition), committed[partition])
        positions[partition] = Reached(ranges[partition].start) if position is None else position
    return positions


def _from_own_on(writers: Iterable[str], own: str) -> list[str]:
    """Those after the own name first: of several successors of the same writers each begins elsewhere, and finds sealed
    what the others have done."""
    return sorted(writers, key=lambda each: (each < own, each))


def _last_rows(
    lake: Tables, topic: str, places: Mapping[int, tuple[Span, ...]], claimed: Set[int], ends: Mapping[int, int]
) -> dict[int, Reached]:
    """The last row of each partition of the topic that has one above its commit.

    Where the partition is claimed, it is in the newest append that has any of its rows, whoever made that: the claim
    may be an old one, where the brokers have lost those that followed. That is so where Kafka's log ends at the commit
    too: it may have been cut off, and have grown to there again. Of what is told from beyond its end only the epoch
    helps. Where the table's log does not tell that append, rows do: looks further where the look before found nothing.
    What was set aside behind the last row counts, too: its table may take it by now.
    """
    appended = lake.last_appended(topic, claimed) if claimed else {}
    found = {
        number: last
        for number, last in appended.items()
        if number in claimed and (last.epoch is not None or last.offset < ends[number])
    }
    left = {number: iter(spans) for number, spans in places.items() if spans and number not in found}
    while left:
        looks = {number: next(spans, None) for number, spans in left.items()}
        rows = lake.last_offsets(topic, {number: span for number, span in looks.items() if span is not None})
        found |= {number: Reached(offset) for number, offset in rows.items()}
        left = {number: left[number] for number, span in looks.items() if span is not None and number not in found}
    aside = lake.last_set_aside(topic, claimed) if claimed else {}
    return found | {number: last for number in aside if (last := _later(found.get(number), aside[number])) is not None}


def _later(row: Reached | None, set_aside: Reached) -> Reached | None:
    """The later of a partition's last row and the record of it that was set aside last, which may be of long ago: it
    counts where the epochs tell."""
    if set_aside.epoch is None or (row is not None and row.epoch is None):
        return row
    return set_aside if row is None else later(row, set_aside)
