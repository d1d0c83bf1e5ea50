"""How soon the first record of an idle group is in the lake, from nobody reading: `python -m bench.zero`.

A group with the settings of `kcga up` and `min_consumers = 0`; again and again it falls idle and gives its consumers
up, and a record comes. A real broker, a real lake, local processes. Prints a table, and ends with exit code 1 where
the bar is missed.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from app.child import Child
from app.components import command, consumer_command
from app.settings import load
from app.topics import Cluster
from bench.figures import markdown_table, run_facts
from bench.quiet import LoadBefore, add_busy, await_quiet
from bench.transcript import Transcript
from consumer.verify import verify
from controller.decide.decider import ZERO
from controller.local_processes import LocalProcesses, running_consumers
from domain.messages import ConsumerReport, ConsumerState
from sandbox.load_profile import demo_profile
from sandbox.services import Services, start_services
from sandbox.settings_file import CONSUMER_CAPACITY, settings_text

IDLE_S = 5
WITHIN_S = 180.0
BAR_S = 10.0


@dataclass
class Figures:
    """In seconds from when the record was written, one for each time."""

    told: list[float] = field(default_factory=list)
    """The monitor's first speed above 0."""
    decided: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    """A consumer."""
    in_lake: list[float] = field(default_factory=list)


def main() -> None:
    options = parse_options()
    before = await_quiet(options.busy)
    console, figures = Console(stderr=True), Figures()
    with tempfile.TemporaryDirectory(prefix="kcga-zero-") as made, ExitStack() as stack:
        services = start_services(stack, Path(made), console)
        with console.status(f"{options.times} first records ..."), idle_group(services, Path(made)) as group:
            for _ in range(options.times):
                group.measure(figures)
                console.print(f"in the lake after {figures.in_lake[-1]:.1f} s")
            group.require_all_once()
    tell(figures, before)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.zero", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--times", type=int, default=10, help="that a record comes (%(default)s)")
    add_busy(parser)
    return parser.parse_args()


@contextmanager
def idle_group(services: Services, folder: Path) -> Iterator["IdleGroup"]:
    """Runs a monitor and a controller that have nothing to read."""
    profile = demo_profile(CONSUMER_CAPACITY, prefix=services.prefix)
    text = settings_text(services, profile, folder)
    file = folder / "settings.toml"
    file.write_text(text.replace("[controller]\n", f"[controller]\nmin_consumers = 0\nidle_time_s = {IDLE_S}\n"))
    settings = load(file)
    cluster = Cluster(services.bootstrap_servers)
    cluster.ensure_internal_topics(settings.topics.names, settings.controller.highest_consumer)
    cluster.create(profile.topics)
    consumers = settings.local.folder
    try:
        with ExitStack() as stack:
            heard = stack.enter_context(
                Transcript(services.bootstrap_servers, settings.topics.names, settings.controller.highest_consumer)
            )
            for name in ("monitor", "controller"):
                component = command(name, "--settings", str(file))
                stack.enter_context(Child(f"the {name}", component, folder / f"{name}.log"))
            heard.wait_until(lambda: bool(heard.speeds), "the monitor's first report")
            yield IdleGroup(services, heard, str(settings.consumer.lake_root), consumers, sorted(profile.topics))
    finally:
        LocalProcesses(consumers, lambda n, _: consumer_command(n, file)).close()


@dataclass
class IdleGroup:
    services: Services
    heard: Transcript
    lake_root: str
    folder: Path
    """Of the consumers."""
    topics: list[str]
    written: int = 0

    def __post_init__(self) -> None:
        self._producer = Producer({"bootstrap.servers": self.services.bootstrap_servers, "log_level": 0})
        self._chance = random.Random(1)

    def measure(self, figures: Figures) -> None:
        """Waits until nobody is there, writes a record, and waits until it is in the lake."""
        self.heard.wait_until(self._is_at_zero, "nobody reads", WITHIN_S)
        time.sleep(self._chance.uniform(0, 3))
        self._producer.produce(self.topics[0], b"the first one")
        at = time.time()
        if self._producer.flush(WITHIN_S):
            raise TimeoutError("the broker does not take the record")
        self.written += 1
        self.heard.wait_until(lambda: self._read(at) is not None, "the record is in the lake", WITHIN_S)
        growing = (came for came, told in self.heard.speeds if came > at and told.speeds.total > 0)
        deciding = (each.decided_at for each in self.heard.decisions if each.decided_at > at)
        reports = (each for each in self.heard.reports if each.sent_at > at)
        ready = next(each.sent_at for each in reports if each.state is ConsumerState.READY)
        in_lake = self._read(at)
        for series, moment in (
            (figures.told, next(growing)),
            (figures.decided, next(deciding)),
            (figures.ready, ready),
            (figures.in_lake, in_lake or ready),
        ):
            series.append(moment - at)

    def _is_at_zero(self) -> bool:
        measured = self.heard.speeds[-1][1].speeds
        decided = self.heard.decisions[-1].engine if self.heard.decisions else ZERO
        return not measured.unknown and not measured.total and decided == ZERO and not running_consumers(self.folder)

    def _read(self, since: float) -> float | None:
        """When a consumer reported that it had written something, and committed it."""

        def has_written(report: ConsumerReport) -> bool:
            return report.sent_at > since and report.cycle is not None and report.cycle.records > 0

        return next((each.sent_at for each in list(self.heard.reports) if has_written(each)), None)

    def require_all_once(self) -> None:
        """Looks at the lake.

        Raises:
            SystemExit: a record is missing, or is there twice.
        """
        accounts = verify(self.services.spark_remote, self.lake_root, self.topics).values()
        rows, distinct = (sum(getattr(each, of) for each in accounts) for of in ("rows", "distinct_offsets"))
        if not rows == distinct == self.written:
            raise SystemExit(f"of {self.written} records the lake holds {distinct}, in {rows} rows")


def tell(figures: Figures, before: LoadBefore) -> None:
    """Prints the table.

    Raises:
        SystemExit: the bar is missed.
    """
    rows = [
        ("the monitor told that its partition grows", figures.told),
        ("the controller decided", figures.decided),
        ("a consumer was ready", figures.ready),
        ("it was in the lake, and committed", figures.in_lake),
    ]
    table = markdown_table(
        ["in seconds from when the record was written", "median", "shortest", "longest", "times"],
        [(what, *(f"{of(each):.1f}" for of in (statistics.median, min, max)), len(each)) for what, each in rows],
    )
    print(f"{run_facts('bench.zero', before)}\n\n{table}")
    if max(figures.in_lake) > BAR_S:
        raise SystemExit(f"a record was in the lake after {max(figures.in_lake):.1f} s: the bar is {BAR_S:g} s")


if __name__ == "__main__":
    main()
