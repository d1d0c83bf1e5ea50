"""How the fetch phase of a cycle goes on: what to ask for next, and when the batch is complete.

The four phases of a cycle follow one another without a choice: fetch, batch by topic, write and commit, obey and
acknowledge. The one decision is when the first ends: with BATCH_BYTES, after WAIT_TIME_SECS, or at once when a
command, or the end, waits for the others to be done.

That every partition gets its turn is not decided here: the client asks the brokers for all partitions in turn, and
the queue it keeps is small (`consumer.kafka`), so no partition waits behind another's backlog for longer than that
queue takes to be written.
"""

from dataclasses import dataclass

MOST_RECORDS = 500
"""Of one request: enough for the client's full speed, and small beside a batch."""
LONGEST_WAIT_S = 0.1
"""Of one request: so long at most a command waits for a fetch to notice it."""
UNKNOWN_RECORD_BYTES = 16_384
"""What a record is taken for before any was seen."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of the fetch phase: so many records at most, within so many seconds."""

    records: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class FetchPhase:
    """The limits of a fetch phase: BATCH_BYTES and WAIT_TIME_SECS."""

    batch_bytes: int
    wait_time_secs: float

    def next_ask(self, gathered_bytes: int, elapsed_s: float, largest_bytes: int, interrupted: bool) -> Ask | None:
        """What to ask for next, or none: the batch is complete.

        Args:
            gathered_bytes: what the batch holds.
            elapsed_s: since the phase began.
            largest_bytes: the largest record seen lately, 0 if none was. Asking for no more records of this size than
                there is room for keeps the batch from growing beyond its limit by more than one record.
            interrupted: something waits for the phase to end.
        """
        room = self.batch_bytes - gathered_bytes
        left_s = self.wait_time_secs - elapsed_s
        if interrupted or room <= 0 or left_s <= 0:
            return None
        records = room // (largest_bytes or UNKNOWN_RECORD_BYTES)
        return Ask(records=min(max(records, 1), MOST_RECORDS), wait_s=min(left_s, LONGEST_WAIT_S))
