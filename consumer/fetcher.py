"""Reads the records of the partitions that are held.

A partition has first to be placed: where its reading begins is looked up by others (`consumer.decide.takeover`),
because whoever read it before may have gone on since. From then on until it is stopped it is either read, or it cannot
be for the moment (it does not exist, a broker is away, access is refused): then it has a fault, is looked at again from
time to time, and is read on behind the last record that was handed out.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import groupby
from operator import methodcaller
from typing import Any

import structlog
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from brokers import log_offsets
from brokers.clients import REQUEST_LIMIT_S
from brokers.errors import FatalKafkaError, in_one_line, log_error
from consumer.decide.backoff import pause_s
from consumer.decide.batch import Record
from consumer.decide.events import Fetched
from consumer.decide.out_of_range import BeyondEnd, PassedOver, cut_at, go_on
from consumer.decide.reached import Reached
from consumer.kafka import client_position
from domain.partitions import TopicPartition

LINGER_S = 0.02
"""How long a request waits for more records once it has the first: keeps a slow partition from one request a record."""

TELLING_BYTES = 1_000_000
"""Of records: with fewer, what else the brokers send hides how well records are compressed."""

ENDING_S, LOOK_EVERY_S = 1.0, 0.005
"""So long the client may take to end the reading of a partition that it is given again."""

LONGEST_KEY = 100
"""So many bytes of a header's key are shown where it cannot be read."""

_HEADERS_OF = methodcaller("headers")
"""The client gives an answer and an error at once. Python's own call notices that at first, and no longer once it has
been made often: the error then shows up somewhere else. A call by way of this always notices."""

Headers = tuple[tuple[str, bytes | None], ...]

log = structlog.get_logger(__name__)


class Fetcher:
    """Reads partitions.

    Args:
        config: of the client, from `consumer.kafka.fetching_config`.
        beyond_end: what to do with a partition whose log was cut off before the position it was read to.
    """

    def __init__(self, config: Mapping[str, object], beyond_end: BeyondEnd = "continue") -> None:
        self._beyond_end = beyond_end
        self._consumer = Consumer({**config, "error_cb": self._take_client_error, "stats_cb": self._take_statistics})
        self._positions: dict[TopicPartition, Reached] = {}
        """What of each is read next."""
        self._read: set[TopicPartition] = set()
        self._out_of_range: dict[TopicPartition, Reached | None] = {}
        """Those of which the log does not hold the position, and where it was cut off, if that is known."""
        self._passed_over: list[PassedOver] = []
        self._held_back: set[str] = set()
        """Topics that are not read until they are resumed."""
        self._looked_at: Set[TopicPartition] = frozenset()
        """What was to be placed when it was looked at last."""
        self._interned: dict[tuple[str, int], TopicPartition] = {}
        self._faults: dict[TopicPartition, str] = {}
        self._doubtful = False
        self._look_again_at = 0.0
        self._failures = 0
        self.compression: float | None = None
        """Bytes of records for each byte that the brokers sent, all in all; none while that is little."""

    @property
    def fault(self) -> str | None:
        """Why a partition cannot be read: the first in ascending order, and how many more; none if all can."""
        if not self._faults:
            return None
        partition = min(self._faults)
        more = f" (and {len(self._faults) - 1} more)" if len(self._faults) > 1 else ""
        return f"{partition}: {self._faults[partition]}{more}"

    def take_passed_over(self) -> tuple[PassedOver, ...]:
        """What was passed over since this was asked last, because the logs do not have it any more."""
        taken, self._passed_over = tuple(self._passed_over), []
        return taken

    def place(self, positions: Mapping[TopicPartition, Reached]) -> None:
        """Reads them from there."""
        self._positions.update(positions)
        self._assign(sorted(partition for partition in positions if partition.topic not in self._held_back))

    def hold_back(self, topic: str, positions: Mapping[TopicPartition, Reached]) -> None:
        """Reads the topic no more until it is resumed, and then on from here, or from where it was."""
        self._held_back.add(topic)
        self._positions.update(positions)
        self._unassign({partition for partition in self._read if partition.topic == topic})

    def resume(self, topic: str) -> None:
        """Reads the topic on."""
        self._held_back.discard(topic)
        self._look_again_at = 0.0

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads them no more. What was fetched of them and not handed out yet is dropped."""
        stopped = set(partitions)
        for partition in stopped:
            self._faults.pop(partition, None)
            self._positions.pop(partition, None)
            self._out_of_range.pop(partition, None)
        self._looked_at = self._looked_at - stopped
        self._unassign(stopped & self._read)

    def settle(self, to_place: Set[TopicPartition] = frozenset()) -> tuple[TopicPartition, ...]:
        """Reads on what can be read again; returns what of `to_place` there is, in ascending order.

        Looks at once at what is new, and at the rest from time to time.
        """
        placed = {each for each in self._positions if each.topic not in self._held_back}
        wanted = to_place | placed
        waits = time.monotonic() < self._look_again_at and to_place <= self._looked_at
        if waits or (wanted == self._read and not self._doubtful):
            return ()
        self._looked_at = to_place
        looked_at = wanted if self._doubtful else wanted - self._read
        found: Set[TopicPartition] = frozenset()
        try:
            absent = self._absent(sorted(looked_at))
            self._doubtful = False
            for partition, reason in absent.items():
                self._set_fault(partition, reason)
            self._unassign(self._read & absent.keys())
            present = looked_at - absent.keys()
            present -= self._not_in_range(self._out_of_range.keys() & present)
            self._assign(sorted((present & placed) - self._read))
            found = present - placed
        except KafkaException as error:
            for partition in wanted - self._read:
                self._set_fault(partition, f"whether it exists is not to be had: {in_one_line(error)}")
        self._failures = 0 if wanted == self._read | found else self._failures + 1
        self._look_again_at = time.monotonic() + pause_s(max(self._failures, 1))
        return tuple(sorted(found))

    def fetch(self, most_records: int, wait_s: float) -> Fetched:
        """The next records, waiting so long for the first of them.

        Raises:
            FatalKafkaError: the client can do nothing more.
        """
        first = self._consumer.poll(wait_s)
        first_at = last_at = time.time()
        if first is None:
            return Fetched(time.monotonic(), (), first_at, last_at)
        messages = [first]
        if most_records > 1:
            messages += self._consumer.consume(most_records - 1, LINGER_S)
            last_at = time.time()
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(self._record(message))
            else:
                self._take_error(message, error)
        last = {record.partition: record for record in records}
        self._positions.update((each, Reached(record.offset + 1, record.epoch)) for each, record in last.items())
        return Fetched(time.monotonic(), tuple(records), first_at, last_at)

    def close(self) -> None:
        self._consumer.close()

    def _record(self, message: Message) -> Record:
        topic, number, offset = message.topic(), message.partition(), message.offset()
        if topic is None or number is None or offset is None:
            raise FatalKafkaError(f"a record without a place: {topic}-{number} at {offset}")
        partition = self._interned.get((topic, number))
        if partition is None:
            partition = self._interned[topic, number] = TopicPartition(topic, number)
        kind, timestamp_ms = message.timestamp()
        headers, amiss = _headers(message)
        return Record(
            partition,
            offset,
            timestamp_ms if kind != TIMESTAMP_NOT_AVAILABLE else None,
            message.key(),
            message.value(),
            headers,
            amiss,
            message.leader_epoch(),
        )

    def _take_error(self, message: Message, error: KafkaError) -> None:
        """An error stops the reading of its partition until that can be read again; one of a topic, of all of its."""
        if error.fatal():
            raise FatalKafkaError(error.str())
        topic, number = message.topic(), message.partition()
        partitions = {read for read in self._read if read.topic == topic and number in (read.partition, -1, None)}
        if not partitions:
            log_error(error)
        for partition in partitions:
            if error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._out_of_range[partition] = cut_at(error.str())
            self._set_fault(partition, error.str())
        self._unassign(partitions)
        self._look_again_at = 0.0 if self._out_of_range.keys() & partitions else time.monotonic() + pause_s(1)

    def _take_client_error(self, error: KafkaError) -> None:
        """What the client tells outside of the records: also that a partition has ceased to exist, but not which."""
        log_error(error)
        if error.code() in (KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART):
            self._doubtful = True

    def _take_statistics(self, statistics: str) -> None:
        """Counts of the client since its beginning, and whom it takes for the leader of each partition: of one that has
        lost its leader it tells nothing else."""
        counted = json.loads(statistics)
        sent, received = counted["rx_bytes"], counted["rxmsg_bytes"]
        if received >= TELLING_BYTES and sent:
            self.compression = received / sent
        topics = counted["topics"]
        self._doubtful = self._doubtful or any(
            topics[read.topic]["partitions"][str(read.partition)]["leader"] < 0
            for read in self._read
            if str(read.partition) in topics.get(read.topic, {}).get("partitions", {})
        )

    def _assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Reads the placed partitions on from where they are.

        Whether its log is still the one that was read, the client asks each new leader by itself; but of the first only
        where it is told to seek.
        """
        if not partitions:
            return
        positions = {partition: client_position(partition, self._positions[partition]) for partition in partitions}
        self._consumer.incremental_assign(list(positions.values()))
        self._read.update(partitions)
        for partition, position in positions.items():
            try:
                if self._positions[partition].epoch is not None:
                    self._seek(position)
            except KafkaException as error:
                self._set_fault(partition, f"whether its log is still the same is not to be had: {in_one_line(error)}")
                self._unassign({partition})
                continue
            self._faults.pop(partition, None)
            log.info("a partition is read", partition=str(partition), offset=position.offset)

    def _seek(self, position: Position) -> None:
        """Tells the client to seek, which it refuses until it has ended an earlier reading of the same partition.

        Raises:
            KafkaException: it does not.
        """
        deadline = time.monotonic() + ENDING_S
        while True:
            try:
                return self._consumer.seek(position)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._STATE or time.monotonic() > deadline:
                    raise
            time.sleep(LOOK_EVERY_S)

    def _unassign(self, partitions: set[TopicPartition]) -> None:
        if partitions:
            self._consumer.incremental_unassign([Position(held.topic, held.partition) for held in sorted(partitions)])
            self._read -= partitions

    def _set_fault(self, partition: TopicPartition, fault: str) -> None:
        if self._faults.get(partition) != fault:
            log.warning("a partition cannot be read", partition=str(partition), reason=fault)
        self._faults[partition] = fault

    def _not_in_range(self, partitions: Set[TopicPartition]) -> set[TopicPartition]:
        """Those of the partitions, which are placed out of their logs' ranges, that cannot be read on.

        Raises:
            KafkaException: no broker answers.
        """
        for partition, held in log_offsets.ranges(self._consumer, partitions, REQUEST_LIMIT_S).items():
            position, cut = self._positions[partition], self._out_of_range[partition]
            goes_on, passed_over = go_on(partition, position, held, cut, self._beyond_end)
            if goes_on is None:
                end = held.end if cut is None else cut.offset
                self._set_fault(partition, f"was read up to {position.offset}, and its log ends at {end}: is not read")
                continue
            if passed_over is not None:
                log.error("offsets were passed over", partition=str(partition), reason=str(passed_over))
                self._passed_over.append(passed_over)
            self._positions[partition] = goes_on
            del self._out_of_range[partition]
        return self._out_of_range.keys() & partitions

    def _absent(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        """Those that the brokers do not have, or that none leads, and why: the client takes them without a word.

        Raises:
            KafkaException: no broker answers.
        """
        absent = {}
        for topic, of_topic in groupby(partitions, key=lambda partition: partition.topic):
            metadata = self._consumer.list_topics(topic, timeout=REQUEST_LIMIT_S).topics[topic]
            for partition in of_topic:
                if metadata.error is not None:
                    absent[partition] = metadata.error.str()
                elif partition.partition not in metadata.partitions:
                    absent[partition] = f"does not exist: the topic has {len(metadata.partitions)} partitions"
                elif metadata.partitions[partition.partition].leader < 0:
                    absent[partition] = "has no leader"
        return absent


def _headers(message: Message) -> tuple[Headers, str | None]:
    """The headers, and what is amiss with them: where a key is no text, the client gives none of them.

    It must not be asked again: it then gives tuples with nothing in a place, and to look there ends the process.
    """
    try:
        headers: Any = _HEADERS_OF(message)
    except SystemError as error:
        if not isinstance(error.__cause__, UnicodeDecodeError):
            raise
        return (), f"its headers are left out: a key is no UTF-8: {error.__cause__.object[:LONGEST_KEY]!r}"
    return tuple(headers or ()), None
