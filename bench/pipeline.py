"""kcga and an ordinary consumer group under the same real load, on one broker and lake: `python -m bench.pipeline`.

The load is that of `kcga up`. It goes through kcga, then through an ordinary group (`bench.ordinary`: confluent-kafka,
cooperative-sticky, kcga's own writer) with as many consumers as kcga had in the mean, and with 60 % more; through each
several times, since chance decides what a consumer of an ordinary group reads beside the partition that turns hot.
Every consumer reads at most its capacity: the broker sees to that by a quota, so that one machine can stand for
several. Writes a page and its plot into a folder.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as parquet
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position
from rich.console import Console

from app import logs
from app.child import Child
from app.interrupts import Interrupts
from app.jars import KAFKA, obtain
from app.java import find_java
from app.settings import Settings, load
from app.topics import Cluster
from bench.figures import markdown_table, plot_in, run_facts
from bench.quiet import LoadBefore, add_busy, await_quiet
from cli.plots.plotting import EXACT_COLOUR, FAINT_INK, GRID, TOPIC_COLOURS, new_figure, save
from cli.terminal.live_view import LiveView
from sandbox.demonstration import Demonstration, Story
from sandbox.load_profile import DEMO_HOT, LoadProfile, demo_profile
from sandbox.server import READY_WITHIN_S
from sandbox.services import Services, start_services
from sandbox.settings_file import CONSUMER_CAPACITY, settings_text
from sandbox.summary import Summary

MORE = 1.6
JOINED_WITHIN_S = 600.0
DRAIN_WITHIN_S = 300.0
_QUANTILES = (0.5, 0.99, 0.999)
_HEADINGS = (
    "",
    "consumers",
    "consumer-seconds",
    "p50 [s]",
    "p99 [s]",
    "p99.9 [s]",
    "records",
    "records/s",
    "partitions stopped",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one contender."""

    name: str
    consumers: float
    """In the mean."""
    consumer_s: float
    """Consumer-seconds until everything was read."""
    seconds: float
    """From the first record until everything was read."""
    waits_s: npt.NDArray[np.float64]
    """Of each record, from its timestamp to the commit in the lake that made it visible."""
    stopped: int
    """Partitions that were taken from a consumer while the load lasted."""
    beside_hot: tuple[str, ...] | None = None
    """What the consumer of the hot partition read besides; none where that changes."""

    @property
    def p99_s(self) -> float:
        return float(np.quantile(self.waits_s, 0.99))


def median(runs: Sequence[Outcome]) -> Outcome:
    """The one of them by its p99, the higher one where they are two."""
    return sorted(runs, key=lambda run: run.p99_s)[len(runs) // 2]


def limit_consumers(servers: str, folder: Path) -> None:
    """Has the broker give no client more than a consumer's capacity."""
    command = [str(find_java().executable), "-cp", ":".join(map(str, obtain(KAFKA))), "kafka.admin.ConfigCommand"]
    command += ["--bootstrap-server", servers, "--alter", "--entity-type", "clients", "--entity-default"]
    quota = ["--add-config", f"consumer_byte_rate={CONSUMER_CAPACITY}"]
    with (folder / "quota.log").open("w", encoding="utf-8") as log:
        subprocess.run([*command, *quota], check=True, stdout=log, stderr=log)


def run_kcga(services: Services, folder: Path, seconds: float, seed: int) -> Outcome:
    """The demonstration."""
    folder.mkdir()
    interrupts, console = Interrupts(), Console(stderr=True)
    with interrupts.handled():
        view, story = partial(LiveView, console), Story(seconds, seed)
        summary = Demonstration(folder, services, console, interrupts, view, story).run()
    if not summary.ok:
        raise SystemExit(f"kcga failed its own checks: {summary.model_dump_json()}")
    waits_s = _waits(folder / "lake")
    consumer_s, lasted_s = _consumer_seconds(summary)
    return Outcome("kcga", consumer_s / lasted_s, consumer_s, lasted_s, waits_s, summary.migrations)


def _consumer_seconds(summary: Summary) -> tuple[float, float]:
    """From the first consumer to the end of the run, and how long that is."""
    samples = summary.consumers_over_time
    begins = [*(sample.seconds for sample in samples), summary.seconds]
    first = next(sample.seconds for sample in samples if sample.consumers)
    total = math.fsum(
        sample.consumers * (end - sample.seconds) for sample, end in zip(samples, begins[1:], strict=True)
    )
    return total, summary.seconds - first


def run_group(name: str, consumers: int, services: Services, folder: Path, seconds: float, seed: int) -> Outcome:
    """An ordinary group of that many consumers, all there when the load begins."""
    folder.mkdir()
    profile = demo_profile(CONSUMER_CAPACITY, prefix=services.prefix)
    file = folder / "settings.toml"
    file.write_text(settings_text(services, profile, folder))
    settings = load(file)
    Cluster(services.bootstrap_servers).create(profile.topics)
    hot = f"{services.prefix}{DEMO_HOT}"
    with ExitStack() as stack:
        members = _joined(stack, consumers, file, folder, len(profile.partitions))
        with_hot = next(has for has in map(_assignment, members) if hot in has)
        beside_hot = tuple(sorted(partition.removeprefix(services.prefix) for partition in with_hot - {hot}))
        joining = sum(map(_revoked, members))
        has_begun = folder / "load.began"
        generator = stack.enter_context(
            Child(
                "the load generator",
                _program("sandbox.load", "--seed", str(seed), "--prefix", services.prefix, "--began", has_begun, file),
                folder / "load.log",
                output=folder / "load.json",
            )
        )
        generator.wait_ready(has_begun.exists, READY_WITHIN_S)
        began = time.monotonic()
        time.sleep(seconds)
        stopped = sum(map(_revoked, members)) - joining
        generator.terminate()
        generator.wait()
        _drain(settings, profile.topics)
        lasted_s = time.monotonic() - began
        for member in members:
            if not member.running:
                raise member.error(f"{member.name} ended by itself")
    return Outcome(name, consumers, consumers * lasted_s, lasted_s, _waits(folder / "lake"), stopped, beside_hot)


def _program(module: str, *arguments: str | Path) -> list[str]:
    *options, file = arguments
    return [sys.executable, "-m", module, *map(str, options), "--settings", str(file)]


def _joined(stack: ExitStack, consumers: int, file: Path, folder: Path, partitions: int) -> list[Child]:
    """The members of a group, once all partitions are read, and each has as many as the others, or one more.

    Raises:
        SystemExit: it is not so in time.
    """
    members = [
        stack.enter_context(Child(f"consumer {n}", _program("bench.ordinary", str(n), file), folder / f"{n}.log"))
        for n in range(1, consumers + 1)
    ]
    for member in members:
        member.wait_ready(lambda member=member: any('"begins"' in line for line in member.tail(50)), READY_WITHIN_S)  # type: ignore[misc]
    deadline = time.monotonic() + JOINED_WITHIN_S
    while True:
        counts = [len(_assignment(member)) for member in members]
        if sum(counts) == partitions and max(counts) - min(counts) <= 1:
            return members
        if time.monotonic() > deadline:
            raise SystemExit(f"{partitions} partitions are not shared evenly within {JOINED_WITHIN_S:g} s: {counts}")
        time.sleep(0.5)


def _changes(member: Child) -> Iterator[tuple[str, list[str]]]:
    """What it was given and gave up, in order: `assigned` or `revoked`, and the partitions."""
    for line in member.log.read_text(encoding="utf-8").splitlines():
        said = json.loads(line) if line.startswith("{") else {}
        if said.get("event") in ("assigned", "revoked"):
            yield said["event"], said["partitions"]


def _revoked(member: Child) -> int:
    """Partitions that it gave up."""
    return sum(len(partitions) for event, partitions in _changes(member) if event == "revoked")


def _assignment(member: Child) -> set[str]:
    """The partitions that it has."""
    has: set[str] = set()
    for event, partitions in _changes(member):
        has = has.union(partitions) if event == "assigned" else has.difference(partitions)
    return has


def _drain(settings: Settings, topics: Mapping[str, int]) -> None:
    """Waits until the group has committed everything.

    Raises:
        SystemExit: it has not in time.
    """
    reader = Consumer({"bootstrap.servers": settings.kafka.bootstrap_servers, "group.id": settings.kafka.group})
    partitions = [Position(topic, number) for topic, count in topics.items() for number in range(count)]
    try:
        ends = {(p.topic, p.partition): reader.get_watermark_offsets(p, timeout=30)[1] for p in partitions}
        deadline = time.monotonic() + DRAIN_WITHIN_S
        while any(ends[p.topic, p.partition] > p.offset for p in reader.committed(partitions, timeout=30)):
            if time.monotonic() > deadline:
                raise SystemExit(f"{settings.kafka.group} has not read everything within {DRAIN_WITHIN_S:g} s")
            time.sleep(0.5)
    finally:
        reader.close()


def _waits(lake: Path) -> npt.NDArray[np.float64]:
    """Of each row, the seconds from the record's timestamp to the commit that added it, by the tables' own logs."""
    waits = [waits for log in sorted(lake.glob("**/_delta_log")) for _, waits in waits_of(log)]
    return np.concatenate(waits) if waits else np.zeros(0)


def waits_of(log: Path) -> Iterator[tuple[float, npt.NDArray[np.float64]]]:
    """Of each commit in the log of a table when it was made (s since the epoch), and the waits of its rows."""
    for commit in sorted(log.glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        visible_ms = next((action["commitInfo"]["timestamp"] for action in actions if "commitInfo" in action), None)
        for action in actions:
            if "add" in action and visible_ms is not None:
                written = parquet.read_table(log.parent / action["add"]["path"], columns=["timestamp"])
                stamps = written["timestamp"].to_numpy().astype("datetime64[ms]").astype(np.int64)
                yield visible_ms / 1000, (visible_ms - stamps) / 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--for", dest="seconds", type=float, default=120.0, help="of load for each (%(default)g)")
    parser.add_argument("--seed", type=int, default=1, help="of the records (%(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="of each, of which the median is shown (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the results (%(default)s)")
    add_busy(parser)
    options = parser.parse_args()
    plot = plot_in(options.folder, "pipeline.svg")
    before = await_quiet(options.busy)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kcga-pipeline-")))
        logs.configure("pipeline", stack.enter_context((folder / "log").open("w", encoding="utf-8")))
        services = start_services(stack, folder, Console(stderr=True))
        limit_consumers(services.bootstrap_servers, folder)

        def several(name: str, run: Callable[[Services, Path], Outcome]) -> list[Outcome]:
            places = [f"{name}-{n}" for n in range(1, options.runs + 1)]
            return [run(replace(services, prefix=f"{place}."), folder / place) for place in places]

        contenders = [several("kcga", lambda place, at: run_kcga(place, at, options.seconds, options.seed))]
        as_many = math.ceil(median(contenders[0]).consumers)
        for words, consumers in (("as many", as_many), ("+60 %", math.ceil(MORE * as_many))):
            run = partial(run_group, f"ordinary group, {words}", consumers, seconds=options.seconds, seed=options.seed)
            contenders.append(several(f"group-{consumers}", run))
    draw([median(runs) for runs in contenders], plot)
    page = options.folder / "pipeline.md"
    page.write_text(page_of(contenders, options.seconds, options.seed, before, plot.name) + "\n", encoding="utf-8")
    print(f"{page} and {plot.name} are written")


def draw(outcomes: Sequence[Outcome], file: Path) -> None:
    """The share of the records that wait longer than a time, for each contender."""
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    for outcome, colour in zip(outcomes, (EXACT_COLOUR, *TOPIC_COLOURS), strict=False):
        longer = np.geomspace(1.0, 1 / len(outcome.waits_s), 300)
        waits_s = np.quantile(outcome.waits_s, 1 - longer)
        axes.plot(waits_s, longer, color=colour, label=f"{outcome.name} ({outcome.consumers:.1f})")
    axes.set(xscale="log", yscale="log", xlim=(0.1, None))
    axes.set_xlabel("seconds from produce to visible in the lake", color=FAINT_INK)
    axes.set_ylabel("share of the records that wait longer", color=FAINT_INK)
    axes.grid(visible=True, color=GRID)
    axes.legend(frameon=False, title="consumers in the mean")
    save(figure, file)


def _most_of_hot() -> float:
    """What the hot partition takes of a consumer when it is hot."""
    return max(speed for _, speed in demo_profile(CONSUMER_CAPACITY).courses[DEMO_HOT].corners) / CONSUMER_CAPACITY


def most_together(profile: LoadProfile, capacity: float) -> int:
    """So many partitions fit one consumer at every moment, whichever they are at each: no more can stay with it.

    Args:
        capacity: of a consumer, in bytes/s.
    """
    moments = {moment for course in profile.courses.values() for moment, _ in course.corners}
    speeds = (sorted(course.speed(moment) for course in profile.courses.values()) for moment in moments)
    return min(sum(load <= capacity for load in accumulate(smallest_first)) for smallest_first in speeds)


def _fewest_stopped() -> str:
    profile = demo_profile(CONSUMER_CAPACITY)
    partitions = len(profile.courses)
    together = most_together(profile, CONSUMER_CAPACITY)
    leave = partitions - together
    return (
        f"Whoever knows this load, and reads the calm before and after it with one consumer, stops {2 * leave} at "
        f"least: while it is busiest no more than {together} of the {partitions} partitions fit a consumer, "
        f"so {leave} leave the first one, and {leave} come to the last. kcga's plans move the least write speed, not "
        "the fewest partitions: the fastest that fit stay, and where one of them is the one that turns hot, the others "
        "have to leave it later."
    )


def page_of(contenders: Sequence[Sequence[Outcome]], seconds: float, seed: int, before: LoadBefore, plot: str) -> str:
    rows = []
    for runs in contenders:
        shown = median(runs)
        quantiles = [f"{np.quantile(shown.waits_s, share):.1f}" for share in _QUANTILES]
        records = len(shown.waits_s)
        rows.append(
            (
                shown.name,
                f"{shown.consumers:.1f}",
                f"{shown.consumer_s:,.0f}",
                *quantiles,
                f"{records:,}",
                f"{records / shown.seconds:,.0f}",
                shown.stopped,
            )
        )
    each = [
        (
            run.name,
            f"{np.median(run.waits_s):.1f}",
            f"{run.p99_s:.1f}",
            f"{run.consumer_s:,.0f}",
            run.stopped,
            "as planned" if run.beside_hot is None else ", ".join(run.beside_hot) or "nothing",
        )
        for runs in contenders
        for run in runs
    ]
    sections = [
        "# The same load through kcga and through an ordinary consumer group",
        "On a real broker and a real lake. Times are from a record's timestamp to the commit that made it visible in "
        "the lake.",
        run_facts(
            "bench.pipeline",
            before,
            [
                ("Load", f"that of `kcga up`, {seconds:g} s each, seed {seed}"),
                ("Capacity", f"a quota of the broker gives each client {CONSUMER_CAPACITY / 1000:g} kB/s"),
                ("Runs", f"{len(contenders[0])} of each, of which the median by p99 is shown"),
            ],
        ),
        f"![The share of the records that wait longer than a time]({plot})",
        markdown_table(_HEADINGS, rows),
        "kcga begins without a consumer and grows with the load; the groups have all of theirs before it begins. "
        "Partitions stopped: those that were taken from a consumer while the load lasted; a group of a fixed size "
        "never does that. " + _fewest_stopped(),
        f"{DEMO_HOT} takes {_most_of_hot():.0%} of a consumer for a while. An ordinary group does not know of loads: "
        "chance decides what the consumer of that partition reads besides, and with that how long records wait.",
        "Each run:",
        markdown_table(
            ("", "p50 [s]", "p99 [s]", "consumer-seconds", "partitions stopped", f"read beside {DEMO_HOT}"), each
        ),
    ]
    return "\n\n".join(sections)


if __name__ == "__main__":
    main()
