"""Decides how far the group is behind on one partition: from what its log holds and what the group has committed.

Invariant: what cannot be read, any more or yet, is not counted, and no lag is larger than the log.
"""

import math

from domain.partitions import OffsetRange
from domain.speeds import Lag


def lag(
    held: OffsetRange,
    stored_bytes: int | None,
    committed: int | None,
    *,
    bytes_per_record: float | None,
    bytes_per_s: float | None,
) -> Lag | None:
    """What is written and not committed yet; None where that is not known.

    Args:
        held: what the log holds.
        stored_bytes: what that takes on the broker's disk; None where it does not tell.
        committed: the offset that the group goes on at; None where the brokers have none. It may have expired, and says
            nothing of what was read: a consumer commits as soon as it has the partition.
        bytes_per_record: of recent records; None where it is not known, and the average of the whole log stands in, as
            far as that is told.
        bytes_per_s: the partition's write speed; None where it is not known.
    """
    if committed is None and not held.empty:
        return None
    # What follows the beginning of a transaction that is open nobody can read: no consumer more would help.
    end = held.end if held.open_from is None else held.open_from
    # The commit may be newer than the log's end, which was asked for at about the same time.
    records = max(0, end - max(held.start, committed or 0))
    if records == 0:
        return Lag(0, 0.0, 0.0)
    if bytes_per_record is None:
        if stored_bytes is None:
            return None
        bytes_per_record = stored_bytes / (held.end - held.start)
    # Records that compaction removed are counted, and take no place: the log's size, if it is known, is the limit.
    in_bytes = min(records * bytes_per_record, math.inf if stored_bytes is None else float(stored_bytes))
    return Lag(records, in_bytes, in_bytes / bytes_per_s if bytes_per_s else None)
