"""Health and metrics of a consumer: all from the reports that it sends."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from prometheus_client import Counter, Enum, Gauge, Summary

from app.settings import Settings
from app.status.health import Health
from app.telemetry.exporter import Probes, served
from app.telemetry.process import process_registry
from domain.assignment import ConsumerId
from domain.messages import ConsumerReport, ConsumerState

Observe = Callable[[ConsumerReport], None]
Figure = TypeVar("Figure", Counter, Gauge, Summary)

HUNG_S = 60.0
"""A consumer reports about every second, whatever it waits for."""


@contextmanager
def observed(settings: Settings, consumer: ConsumerId) -> Iterator[Observe]:
    """What is to be told of each report; serves what comes of it, where a port is set.

    Raises:
        KcgaError: the port cannot be had.
    """
    figures = ConsumerFigures(consumer)
    probes = Probes(figures.alive, figures.ready, figures.registry)
    with served(settings.http, settings.http.consumer_port, probes):
        yield figures.tell


class ConsumerFigures:
    """What the reports amount to.

    Args:
        consumer: its number, the value of the label `consumer`.
        clock: monotonic, in seconds.
    """

    def __init__(self, consumer: ConsumerId, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reported_at = clock()
        self._state = ConsumerState.STARTING
        self._reason: str | None = None
        self.registry = registry = process_registry()
        labels, mine = ["consumer"], {"consumer": str(consumer)}

        def figure(kind: type[Figure], name: str, text: str) -> Figure:
            return kind(name, text, labels, registry=registry).labels(**mine)

        states = [state.value for state in ConsumerState]
        text = "What the consumer reports of itself."
        self._state_figure = Enum("kcga_consumer_state", text, labels, states=states, registry=registry).labels(**mine)
        self._held = figure(Gauge, "kcga_consumer_held_partitions", "Partitions that it reads.")
        self._bytes = figure(
            Counter, "kcga_consumer_written_bytes", "Keys and values written to the lake, uncompressed."
        )
        self._records = figure(Counter, "kcga_consumer_written_records", "Records written to the lake.")
        self._lost = figure(
            Counter, "kcga_consumer_lost_offsets", "Offsets that were deleted from the log before they were read."
        )
        self._lost_so_far = 0
        text = "Records that it wrote to the dead letters, because their topics' tables refuse them."
        self._dead_letters = figure(Counter, "kcga_consumer_dead_letters", text)
        self._dead_letters_so_far = 0
        self._fetch = figure(Summary, "kcga_consumer_fetch_seconds", "Time that the fetch of a batch took.")
        self._write = figure(Summary, "kcga_consumer_write_seconds", "Time that the write of a batch took.")

    def tell(self, report: ConsumerReport) -> None:
        """A report was sent."""
        self._reported_at = self._clock()
        self._state, self._reason = report.state, report.reason
        self._state_figure.state(report.state.value)
        self._held.set(len(report.partitions))
        self._lost.inc(report.lost - self._lost_so_far)
        self._lost_so_far = report.lost
        self._dead_letters.inc(report.dead_letters - self._dead_letters_so_far)
        self._dead_letters_so_far = report.dead_letters
        if (cycle := report.cycle) is not None:
            self._bytes.inc(cycle.bytes)
            self._records.inc(cycle.records)
            self._fetch.observe(cycle.fetch_s)
            self._write.observe(cycle.write_s)

    def alive(self) -> Health:
        silent_s = self._clock() - self._reported_at
        return Health(silent_s <= HUNG_S, f"the last report is {silent_s:.0f} s ago")

    def ready(self) -> Health:
        """Whether its Kafka clients and its Spark session are ready, and nothing keeps it from its work."""
        return Health(self._state is ConsumerState.READY, self._reason or self._state.value)
