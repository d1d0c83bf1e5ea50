"""Takes partitions over from whoever read them before: seals those writers, and finds where reading goes on.

The order is what keeps every record once:

1. who claims the partitions is looked up in the group's commits, and joined to whom the controller named;
2. these writers are fenced in Kafka: from here on a commit tells of rows that are in the lake;
3. they are sealed on the table of every topic concerned: from here on only the caller adds rows of these partitions;
4. now the positions are read, from the commits and the lake (`consumer.claims`).

Whatever is interrupted is done again from the first step, by this process or by the next. Who is fenced and sealed
stays so: a process does it to each writer once.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from consumer.claims import next_offset, to_seal, where_to_look
from consumer.lake import Lake
from consumer.offsets import GroupOffsets
from consumer.spans import Span
from domain.partitions import TopicPartition


def take_over(
    partitions: Iterable[TopicPartition],
    told: Iterable[str],
    own: str,
    offsets: GroupOffsets,
    lake: Lake,
    group: str,
    require_lease: Callable[[], None],
) -> dict[TopicPartition, int]:
    """Where reading of each of the partitions goes on; none of their former readers adds anything after that.

    Args:
        partitions: which exist, and which the caller may read.
        told: the writers that the controller names.
        own: the caller's name as a writer.
        offsets: of the group.
        lake: with a session.
        group: whose writers' names in the lake begin with it.
        require_lease: raises where the caller's lease has run out: by now the claims may be those of its successor,
            which it must not put out of action.

    Raises:
        LakeError: the lake does not do it, or does not tell.
        KafkaException: the brokers do not.
    """
    wanted = sorted(partitions)
    topics = sorted({partition.topic for partition in wanted})
    committed = offsets.committed(wanted)
    writers = to_seal(own, told, committed.values())
    with ThreadPoolExecutor(max(len(topics), 1)) as threads:
        if writers:
            for writer in writers:
                require_lease()
                offsets.fence(writer)
            require_lease()
            for sealed in [threads.submit(_seal, lake, topic, writers, own, group) for topic in topics]:
                sealed.result()
            committed = offsets.committed(wanted)
        ranges = offsets.ranges(wanted)
        places = {
            partition: where_to_look(committed[partition], ranges[partition].end)
            for partition in wanted
            if not ranges[partition].empty
        }
        claimed = {
            partition: f"{group}/{position.claimant}"
            for partition, position in committed.items()
            if position is not None and position.claimant not in (None, own)
        }
        looked_up = [threads.submit(_last_offsets, lake, topic, places, claimed) for topic in topics]
        last = {partition: offset for found in looked_up for partition, offset in found.result().items()}
    positions = {}
    for partition in wanted:
        position = next_offset(last.get(partition), committed[partition])
        positions[partition] = ranges[partition].beginning if position is None else position
    return positions


def _seal(lake: Lake, topic: str, writers: Iterable[str], own: str, group: str) -> None:
    """Those after the own name first: of several successors of the same writers each begins elsewhere, and finds sealed
    what the others have done."""
    for writer in sorted(writers, key=lambda each: (each < own, each)):
        lake.seal(topic, f"{group}/{writer}")


def _last_offsets(
    lake: Lake, topic: str, places: Mapping[TopicPartition, tuple[Span, ...]], claimed: Mapping[TopicPartition, str]
) -> dict[TopicPartition, int]:
    """The last row of each partition of the topic that has one above its commit.

    A writer commits each append before it makes the next: of those that are sealed it is in the newest. Where the log
    does not tell that one, the rows do: looks further where the look before found nothing.
    """
    left = {
        partition.partition: iter(spans) for partition, spans in places.items() if partition.topic == topic and spans
    }
    writers = {number: claimed[key] for number in left if (key := TopicPartition(topic, number)) in claimed}
    found: dict[int, int] = {}
    appended = lake.last_appended(topic, set(writers.values())) if writers else None
    if appended is not None:
        found = {number: appended[number] for number in writers.keys() & appended.keys()}
        left = {number: spans for number, spans in left.items() if number not in writers}
    while left:
        looks = {number: next(spans, None) for number, spans in left.items()}
        found |= lake.last_offsets(topic, {number: span for number, span in looks.items() if span is not None})
        left = {number: left[number] for number, span in looks.items() if span is not None and number not in found}
    return {TopicPartition(topic, number): offset for number, offset in found.items()}
