"""The simulation beside a real run of the same load: `python -m bench.latency.check FOLDER SUMMARY`.

FOLDER and SUMMARY are of `kcga up --for SECONDS --keep FOLDER --output json > SUMMARY`. What is drawn at random in the
simulation is drawn anew for each of several seeds. Prints a page.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.figures import markdown_table, run_facts
from bench.latency.kcga_group import UNCOMMITTED_S, KcgaGroup
from bench.latency.queues import NOBODY, Queues
from bench.latency.times import Times, load, unread_s
from cli.embedded.load_profile import demo_profile
from cli.settings import Settings
from cli.settings import load as load_settings
from cli.watch.summary import ConsumersFrom, Summary

TICK_S = 0.25
DRAIN_S = 20.0
"""After the load, in which a real run reads the rest."""
SEEDS = range(1, 11)


@dataclass(frozen=True, slots=True)
class Figures:
    mean_consumers: float
    most_consumers: int
    migrations: int
    unread_s: float
    """Partition-seconds between the end of reading here and its beginning there."""
    highest_lag: float
    """Records."""


def measured(folder: Path, summary: Summary, seconds: float) -> Figures:
    return Figures(
        mean_consumers=_mean(summary.consumers_over_time, seconds),
        most_consumers=summary.most_consumers,
        migrations=summary.migrations,
        unread_s=unread_s(folder),
        highest_lag=float(summary.highest_lag or 0),
    )


def simulated(settings: Settings, times: Times, seconds: float, record_bytes: float, seed: int) -> Figures:
    """The demonstration's load for so many seconds, and a while in which the rest is read."""
    capacity = settings.controller.consumer_capacity
    profile = demo_profile(capacity)
    partitions = profile.partitions
    ticks = round((seconds + DRAIN_S) / TICK_S)
    queues = Queues(len(partitions), ticks, TICK_S, capacity)
    group = KcgaGroup(partitions, settings.controller, times, seed, settings.monitor.window_s)
    consumers = []
    unread_ticks, highest_lag = 0, 0.0
    begun = np.zeros(len(partitions), dtype=bool)
    for tick in range(ticks):
        at = tick * TICK_S
        group.advance(at, queues)
        begun |= group.readers != NOBODY
        unread_ticks += int((begun & (group.readers == NOBODY)).sum())
        if at < seconds:
            consumers.append(group.consumers)
        highest_lag = max(highest_lag, float(queues.uncommitted(UNCOMMITTED_S).sum()))
        speeds = [profile.courses[p].speed(at) if at < seconds else 0.0 for p in partitions]
        queues.advance(np.array(speeds), group.readers)
    return Figures(
        mean_consumers=math.fsum(consumers) / len(consumers),
        most_consumers=max(consumers),
        migrations=group.migrations,
        unread_s=unread_ticks * TICK_S,
        highest_lag=highest_lag / record_bytes,
    )


def _mean(samples: Sequence[ConsumersFrom], seconds: float) -> float:
    """Over time, from the first consumer on."""
    begins = [sample for sample in samples if sample.seconds < seconds]
    ends = [*(sample.seconds for sample in begins[1:]), seconds]
    return math.fsum(b.consumers * (end - b.seconds) for b, end in zip(begins, ends, strict=True)) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.latency.check", description="Simulation and real run.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("summary", type=Path)
    parser.add_argument("--for", dest="seconds", type=float, default=120.0, help="as the run (%(default)g)")
    options = parser.parse_args()
    summary = Summary.model_validate_json(options.summary.read_text(encoding="utf-8"))
    settings = load_settings(options.folder / "settings.toml")
    record_bytes = summary.bytes_written / summary.produced
    runs = [simulated(settings, load(), options.seconds, record_bytes, seed) for seed in SEEDS]
    real = measured(options.folder, summary, options.seconds)
    rows = [
        ("mean consumers", f"{real.mean_consumers:.2f}", *_range([run.mean_consumers for run in runs], 2)),
        ("most consumers", real.most_consumers, *_range([run.most_consumers for run in runs], 0)),
        ("migrations", real.migrations, *_range([run.migrations for run in runs], 0)),
        ("partition-seconds unread", f"{real.unread_s:.0f}", *_range([run.unread_s for run in runs], 0)),
        ("highest lag [records]", f"{real.highest_lag:,.0f}", *_range([run.highest_lag for run in runs], 0)),
    ]
    sections = (
        "# The simulation beside a real run",
        "The load of `kcga up`, on a real broker and a real lake, and in the simulation of "
        "[latency.md](latency.md) with the same settings.",
        run_facts("bench.latency.check", [("Seeds", f"{SEEDS[0]} to {SEEDS[-1]}")]),
        markdown_table(("", "real", "simulated, least", "median", "most"), rows),
    )
    print("\n\n".join(sections))


def _range(values: Sequence[float], digits: int) -> tuple[str, str, str]:
    ordered = sorted(values)
    return (
        f"{ordered[0]:,.{digits}f}",
        f"{ordered[len(ordered) // 2]:,.{digits}f}",
        f"{ordered[-1]:,.{digits}f}",
    )


if __name__ == "__main__":
    main()
