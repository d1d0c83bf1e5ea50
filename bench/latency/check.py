"""The simulation beside a real run of the same load: `python -m bench.latency.check FOLDER SUMMARY`.

FOLDER and SUMMARY are of `kcga up --for SECONDS --keep FOLDER --output json > SUMMARY`. What is drawn at random in the
simulation is drawn anew for each seed: when the load begins and is written, and what handovers take. Writes a page and
a plot into a folder.
"""

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from app.errors import KcgaError
from app.settings import Settings
from app.settings import load as load_settings
from bench.figures import markdown_table, processors, run_facts
from bench.latency.kcga_group import UNCOMMITTED_S, KcgaGroup
from bench.latency.queues import NOBODY, Queues
from bench.latency.times import Times, load, unread_s
from bench.performed import performed
from bench.quiet import add_busy, await_quiet
from cli.plots.plotting import EXACT_COLOUR, FAINT_INK, GRID, TOPIC_COLOURS, new_figure, require_plotting, save
from sandbox.load_profile import demo_profile
from sandbox.summary import ConsumersFrom, Summary

TICK_S = 0.05
BEGINS_S = (3.0, 4.0)
"""The load begins within this time after the group: at any moment of a round of the monitor's."""
BURST_S = (0.1, 0.15)
"""From one moment at which producers write to the next. Where a round of the monitor's finds them makes its speeds
uneven, as in a real run."""
DRAIN_S = 20.0
"""After the load, in which a real run reads the rest."""
SEEDS = range(1, 101)
DRAWN = 10
"""So many of the simulated runs are in the plot."""


@dataclass(frozen=True, slots=True)
class Figures:
    consumers: Sequence[ConsumersFrom]
    """Over time, while there was a load."""
    migrations: int
    unread_s: float
    """Partition-seconds between the end of reading here and its beginning there."""
    highest_lag: float
    """Records."""

    def mean_consumers(self, seconds: float) -> float:
        """Of so many seconds."""
        ends = (*(sample.seconds for sample in self.consumers[1:]), seconds)
        spans = zip(self.consumers, ends, strict=True)
        return math.fsum(sample.consumers * (end - sample.seconds) for sample, end in spans) / seconds

    @property
    def most_consumers(self) -> int:
        return max(sample.consumers for sample in self.consumers)


def measured(folder: Path, summary: Summary, seconds: float) -> Figures:
    return Figures(
        consumers=[sample for sample in summary.consumers_over_time if sample.seconds < seconds],
        migrations=summary.migrations,
        unread_s=unread_s(folder),
        highest_lag=float(summary.highest_lag or 0),
    )


@dataclass(frozen=True, slots=True)
class Job:
    """A simulated run."""

    settings: Settings
    times: Times
    seconds: float
    """Of the load."""
    stored: float
    """Bytes on a broker's disk, over those in the records."""
    record_bytes: float
    """On its disk."""
    seed: int


def simulate(job: Job) -> Figures:
    """The demonstration's load, and a while in which the rest is read."""
    capacity = job.settings.controller.consumer_capacity
    profile = demo_profile(capacity)
    partitions = profile.partitions
    courses = [profile.courses[partition] for partition in partitions]
    chance = Random(job.seed)
    begins_s = chance.uniform(*BEGINS_S)
    ticks = round((begins_s + job.seconds + DRAIN_S) / TICK_S)
    queues = Queues(len(partitions), ticks, TICK_S, capacity)
    group = KcgaGroup(partitions, job.settings.controller, job.times, job.seed, job.settings.monitor)
    consumers: list[ConsumersFrom] = []
    unread_ticks, highest_lag = 0, 0.0
    begun = np.zeros(len(partitions), dtype=bool)
    written_s, writes_at_s = 0.0, begins_s
    for tick in range(ticks):
        at_s = tick * TICK_S
        group.advance(at_s, queues)
        begun |= group.readers != NOBODY
        unread_ticks += int((begun & (group.readers == NOBODY)).sum())
        loaded_s = at_s - begins_s
        if 0 <= loaded_s < job.seconds and (not consumers or consumers[-1].consumers != group.consumers):
            consumers.append(ConsumersFrom(seconds=loaded_s, consumers=group.consumers))
        highest_lag = max(highest_lag, float(queues.uncommitted(UNCOMMITTED_S).sum()))
        burst = np.zeros(len(partitions))
        if at_s >= writes_at_s:
            until_s = min(loaded_s, job.seconds)
            burst += [course.bytes_until(until_s) - course.bytes_until(written_s) for course in courses]
            written_s, writes_at_s = until_s, at_s + chance.uniform(*BURST_S)
        queues.advance(burst * job.stored / TICK_S, group.readers)
    return Figures(
        consumers=consumers,
        migrations=group.migrations,
        unread_s=unread_ticks * TICK_S,
        highest_lag=highest_lag / job.record_bytes,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.latency.check", description="Simulation and real run.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("summary", type=Path)
    parser.add_argument("--for", dest="seconds", type=float, default=120.0, help="as the run (%(default)g)")
    parser.add_argument("--to", type=Path, default=Path("docs/benchmarks"), help="folder of the results (%(default)s)")
    add_busy(parser)
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    plot = options.to / "latency-check.svg"
    require_plotting(plot)
    before = await_quiet(options.busy)
    try:
        summary = Summary.model_validate_json(options.summary.read_text(encoding="utf-8"))
        settings = load_settings(options.folder / "settings.toml")
    except (OSError, ValueError, KcgaError) as error:
        parser.error(f"FOLDER and SUMMARY are to be of one run of `kcga up --keep`: {error}")
    if not (summary.produced and options.seconds > 0):
        parser.error(f"{summary.produced} records in {options.seconds:g} s: there has to have been a load")
    record_bytes = summary.bytes_written / summary.produced
    courses = demo_profile(settings.controller.consumer_capacity).courses.values()
    stored = summary.bytes_written / sum(course.bytes_until(options.seconds) for course in courses)
    jobs = [Job(settings, load(), options.seconds, stored, record_bytes, seed) for seed in SEEDS]
    runs = performed(simulate, jobs, processors(), lambda run: f"{run.migrations} migrations")
    real = measured(options.folder, summary, options.seconds)
    means = [run.mean_consumers(options.seconds) for run in runs]
    rows = [
        ("mean consumers", f"{real.mean_consumers(options.seconds):.2f}", *_range(means, 2)),
        ("most consumers", real.most_consumers, *_range([run.most_consumers for run in runs], 0)),
        ("migrations", real.migrations, *_range([run.migrations for run in runs], 0)),
        ("partition-seconds unread", f"{real.unread_s:.0f}", *_range([run.unread_s for run in runs], 0)),
        ("highest lag [records]", f"{real.highest_lag:,.0f}", *_range([run.highest_lag for run in runs], 0)),
    ]
    sections = (
        "# The simulation beside a real run",
        "The load of `kcga up`, on a real broker and a real lake, and in the simulation of "
        "[latency.md](latency.md) with the same settings.",
        run_facts(
            "bench.latency.check",
            before,
            [("Seeds", f"{SEEDS[0]} to {SEEDS[-1]}, of which the plot has {DRAWN}")],
        ),
        f"![Consumers over time, in the real run and in those of the simulation]({plot.name})",
        markdown_table(("", "real", "simulated, least", "median", "most"), rows),
        "Where the simulation has the higher figures, it makes kcga look worse than it is.",
        f"Of the simulated runs {_counted([run.migrations for run in runs])}; how many move at least is told "
        "[elsewhere](pipeline.md). Chance decides at what moment the first plan of the climb is made, and by what "
        "speeds; with that, what the first consumer keeps, and what has to leave when one of its partitions turns hot.",
    )
    draw(real, runs[:DRAWN], options.seconds, plot)
    page = options.to / "latency-check.md"
    page.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    print(f"{page} and {plot.name} are written")


def draw(real: Figures, runs: Sequence[Figures], seconds: float, file: Path) -> None:
    """How many consumers there were when."""
    figure = new_figure(7.0, 3.2)
    axes = figure.subplots()
    for name, runs_of_it, colour, width in (
        ("simulated", runs, TOPIC_COLOURS[0], 0.8),
        ("real", [real], EXACT_COLOUR, 2.0),
    ):
        for number, run in enumerate(runs_of_it):
            counts = [sample.consumers for sample in run.consumers]
            times = [*(sample.seconds for sample in run.consumers), seconds]
            axes.stairs(counts, times, baseline=None, color=colour, linewidth=width, label=None if number else name)
    axes.set_xlabel("seconds", color=FAINT_INK)
    axes.set_ylabel("consumers", color=FAINT_INK)
    axes.grid(visible=True, color=GRID)
    axes.legend(frameon=False)
    save(figure, file)


def _counted(migrations: Sequence[int]) -> str:
    """How many runs moved how many partitions."""
    runs = [f"{times} moved {moved}" for moved, times in sorted(Counter(migrations).items())]
    return ", ".join(runs[:-1]) + (" and " if len(runs) > 1 else "") + f"{runs[-1]} partitions"


def _range(values: Sequence[float], digits: int) -> tuple[str, str, str]:
    ordered = sorted(values)
    return (
        f"{ordered[0]:,.{digits}f}",
        f"{ordered[len(ordered) // 2]:,.{digits}f}",
        f"{ordered[-1]:,.{digits}f}",
    )


if __name__ == "__main__":
    main()
