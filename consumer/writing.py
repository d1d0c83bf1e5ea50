"""The write of one batch: all its topics at the same time, each until it has succeeded.

A batch has one version, under which it is written again as often as need be: the lake takes it once.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from datetime import date

import pyarrow as pa

from consumer.batch import Batch
from consumer.columns import NO_SCHEMAS, Column
from consumer.lake import Lake
from consumer.session import LakeError, SparkGoneError
from consumer.table import rows
from consumer.threads import in_thread


class BatchWrite:
    """A batch on its way into the lake.

    Args:
        lake: with a session.
        version: higher than those of all batches that this writer wrote before.
        batch: with records; what it holds of them is let go.
        ingest_date: of all its rows.
        columns: of the topics that have a schema.
        limit_s: what takes longer has failed.
    """

    def __init__(
        self,
        lake: Lake,
        version: int,
        batch: Batch,
        ingest_date: date,
        limit_s: float,
        columns: Mapping[str, Sequence[Column]] = NO_SCHEMAS,
    ) -> None:
        self._lake = lake
        self._version = version
        self._limit_s = limit_s
        self._left = {
            topic: rows(records, ingest_date, columns.get(topic, ())) for topic, records in batch.take().items()
        }
        self._writes: dict[str, Future[None]] = {}
        self._give_up_at = 0.0

    def begin(self) -> None:
        """Asks the lake to write what is not written yet."""
        self._give_up_at = time.monotonic() + self._limit_s
        self._writes = {topic: in_thread(self._append(topic, table)) for topic, table in self._left.items()}

    @property
    def under_way(self) -> Collection[Future[None]]:
        """The writes that are waited for; none once all have ended, or have taken too long."""
        if time.monotonic() >= self._give_up_at:
            return ()
        return [write for write in self._writes.values() if not write.done()]

    def settle(self) -> str | None:
        """To be called when nothing is under way: why something is not written, or none, and all is.

        Raises:
            Exception: any but a LakeError that a write has raised.
        """
        faults = {topic: fault_of(write, self._limit_s) for topic, write in self._writes.items()}
        self._left = {topic: table for topic, table in self._left.items() if faults[topic] is not None}
        self._writes = {}
        return next((fault for fault in faults.values() if fault is not None), None)

    def _append(self, topic: str, table: pa.Table) -> Callable[[], None]:
        return lambda: self._lake.append(topic, self._version, table)


def fault_of(asked: Future[None], limit_s: float) -> str | None:
    """Why the lake did not do what was asked; none if it did.

    Raises:
        SparkGoneError: it never will.
        Exception: whatever else the call has raised.
    """
    if not asked.done():
        return f"no answer within {limit_s:g} s"
    error = asked.exception()
    if error is None or (isinstance(error, LakeError) and not isinstance(error, SparkGoneError)):
        return None if error is None else str(error)
    raise error
