"""How a batch is gathered: what to ask for next, and when it is complete.

A batch is complete with BATCH_BYTES, or after WAIT_TIME_SECS. Since it is gathered while the one before is written,
time alone does not complete it as long as that goes on: it could not be written yet, and may as well grow. Commands
interrupt the gathering, but do not complete the batch: it is gathered on when they have been obeyed.

That every partition gets its turn is not decided here: the client asks the brokers for all partitions in turn, and
the queue it keeps is small (`consumer.kafka`), so no partition waits behind another's backlog for longer than that
queue takes to be written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from consumer.decide.actions import Fetch
from consumer.decide.batch import Batch, Record
from domain.partitions import TopicPartition

MOST_RECORDS = 500
"""Of one request: enough for the client's full speed, and small beside a batch."""
LONGEST_WAIT_S = 0.1
"""Of one request: so long at most a command waits for a fetch to notice it."""
UNKNOWN_RECORD_BYTES = 16_384
"""What a record is taken for before any was seen."""


@dataclass(frozen=True, slots=True)
class FetchPhase:
    """The limits of a batch: BATCH_BYTES and WAIT_TIME_SECS."""

    batch_bytes: int
    wait_time_secs: float

    def next_ask(self, gathered_bytes: int, elapsed_s: float, largest_bytes: int, writing: bool) -> Fetch | None:
        """What to ask for next, or none: the batch is complete.

        Args:
            gathered_bytes: what the batch holds.
            elapsed_s: since the batch was begun.
            largest_bytes: the largest record seen lately, 0 if none was. Asking for no more records of this size than
                there is room for keeps the batch from growing beyond its limit by more than one record.
            writing: the batch before is still being written.
        """
        room = self.batch_bytes - gathered_bytes
        left_s = LONGEST_WAIT_S if writing else self.wait_time_secs - elapsed_s
        if room <= 0 or left_s <= 0:
            return None
        records = room // (largest_bytes or UNKNOWN_RECORD_BYTES)
        return Fetch(records=min(max(records, 1), MOST_RECORDS), wait_s=min(left_s, LONGEST_WAIT_S))


@dataclass(slots=True)
class Gathering:
    """A batch that grows."""

    limits: FetchPhase
    began: float
    batch: Batch = field(default_factory=Batch)
    largest_bytes: int = 0
    """The largest record, of those of the batch before, too."""
    starved: bool = False
    """Whether a request for its records came back empty."""
    closed: bool = False
    """Whether nothing more may be added: a log was cut, and what is read next has offsets that the batch has."""

    @property
    def is_full(self) -> bool:
        return self.batch.bytes >= self.limits.batch_bytes

    def add(self, records: Sequence[Record], first_at: float, last_at: float) -> None:
        """Takes in the answer to a request, which came between two moments (seconds since the epoch)."""
        self.batch.add(records, first_at, last_at)
        self.starved = self.starved or not records
        self.largest_bytes = max(self.largest_bytes, *(record.bytes for record in records), 0)

    def cut(self, partition: TopicPartition) -> None:
        """The log of the partition was cut off within what was read of it."""
        self.closed = self.closed or partition in self.batch

    def next_ask(self, now: float, *, writing: bool) -> Fetch | None:
        """What to ask for next, or none: the batch is complete. `writing`: the one before is still being written."""
        if self.closed:
            return None
        return self.limits.next_ask(self.batch.bytes, now - self.began, self.largest_bytes, writing)

    def next(self, now: float) -> "Gathering":
        """The next batch, to be gathered from now on."""
        return Gathering(self.limits, now, largest_bytes=self.batch.largest_bytes or self.largest_bytes)
