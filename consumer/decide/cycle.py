"""How a batch is gathered: what to ask for next, and when it is complete.

A batch is complete with BATCH_BYTES, or after WAIT_TIME_SECS. Since it is gathered while the one before is written,
time alone does not complete it as long as that goes on: it could not be written yet, and may as well grow. Commands
interrupt the gathering, but do not complete the batch: it is gathered on when they have been obeyed.

That every partition gets its turn is not decided here: the client asks the brokers for all partitions in turn, and
the queue it keeps is small (`consumer.kafka`), so no partition waits behind another's backlog for longer than that
queue takes to be written.
"""

from dataclasses import dataclass

from consumer.decide.actions import Fetch

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
