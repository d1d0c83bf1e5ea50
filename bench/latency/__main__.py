"""The comparison: every contender under every load, a page, its table as CSV and a plot."""

import argparse
import csv
import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from dataclasses import fields as fields_of
from multiprocessing import get_context
from pathlib import Path

from app.errors import KcgaError
from bench.figures import MOST_VALUES
from bench.latency import page
from bench.latency.contenders import CAPACITY, WARM_UP_S, Contender, Job, Outcome, perform
from bench.latency.kcga_group import RECORD_BYTES
from bench.latency.plot import draw
from bench.latency.shapes import PARTITIONS, SHAPES, STEP_S
from bench.latency.times import load
from bench.quiet import add_busy, await_quiet
from cli.plots.plotting import require_plotting
from cli.terminal.progress import progress
from heuristics.kafka import KAFKA_ASSIGNORS

SETTINGS = (
    Contender(page.REFERENCE, "kcga", 0.5, "auto"),
    Contender(page.WINDOW, "kcga", 0.5, "auto", follow_changes=False),
    Contender(page.AHEAD, "kcga", 0.5, "auto", forecast=True),
)
"""What is compared with several seeds."""
FLOOR = Contender(page.EACH, "fixed", PARTITIONS, "kafka-sticky")
"""Beside them."""
KCGA = (
    *SETTINGS,
    Contender("kcga mbfp", "kcga", option="mbfp"),
    Contender("kcga mwf", "kcga", option="mwf"),
)
LAG_THRESHOLDS_S = (5, 10, 20, 40)
"""Of a consumer's reading: so many seconds' worth of records."""
RECORDS_PER_S = CAPACITY / RECORD_BYTES
AUTOSCALED = (
    Contender("lag 10 records", "lag", 10, "kafka-sticky"),
    *(Contender(f"lag {seconds} s", "lag", seconds * RECORDS_PER_S, "kafka-sticky") for seconds in LAG_THRESHOLDS_S),
    Contender("flink", "flink", option="default"),
    Contender("flink tuned", "flink", option="tuned"),
)
MORE = 1.6


def main() -> None:
    options = parse_options()
    options.folder.mkdir(parents=True, exist_ok=True)
    plot = options.folder / "latency.svg"
    try:
        require_plotting(plot)
    except KcgaError as error:
        raise SystemExit(str(error)) from error
    before = await_quiet(options.busy)
    steps = round(options.minutes * 60 / STEP_S)
    times = load()

    seeds = range(options.seed, options.seed + options.seeds)

    def jobs(contenders: Iterable[Contender], shape: str, seed: int = options.seed) -> list[Job]:
        return [Job(contender, shape, steps, seed, times) for contender in contenders]

    first = [job for shape in options.shapes for job in jobs((*KCGA, *AUTOSCALED, FLOOR), shape)]
    first += [job for shape in options.shapes for seed in seeds[1:] for job in jobs((*SETTINGS, FLOOR), shape, seed)]
    with (
        # Not forked: the solver's threads would be copied in any state.
        ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool,
        progress("", len(first) + 4 * len(options.shapes)) as advance,
    ):
        outcomes = []
        for outcome in pool.map(perform, first):
            outcomes.append(outcome)
            advance(f"{outcome.shape}, {outcome.contender}")
        second = [job for shape in options.shapes for job in jobs(_fixed(outcomes, shape), shape)]
        for outcome in pool.map(perform, second):
            outcomes.append(outcome)
            advance(f"{outcome.shape}, {outcome.contender}")

    write_csv(outcomes, options.folder / "latency.csv")
    draw(page.shown(outcomes, options.seed), plot)
    file = options.folder / "latency.md"
    file.write_text(page.page_of(outcomes, seeds, options.minutes, times, before, plot.name), encoding="utf-8")
    print(f"{file}, latency.csv and {plot.name} are written")


def _fixed(outcomes: Sequence[Outcome], shape: str) -> list[Contender]:
    """Kafka's own group, with as many consumers as kcga had in the mean, rounded up, and with 60 % more."""
    mean = page.reference(outcomes, shape).mean_consumers
    return [
        Contender(f"{assignor}{words}", "fixed", math.ceil(mean * factor), assignor)
        for factor, words in ((1.0, ""), (MORE, " +60 %"))
        for assignor in KAFKA_ASSIGNORS
    ]


def write_csv(outcomes: Sequence[Outcome], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow(field.name for field in fields_of(Outcome))
        table.writerows(astuple(outcome) for outcome in outcomes)


def parse_options() -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--shapes", nargs="+", choices=tuple(SHAPES), default=tuple(SHAPES), help="(all)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=90.0,
        help=f"of each load, {WARM_UP_S / 60:g} of them not counted (%(default)g)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the loads and of what handovers take (%(default)s)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="of what settings gain (%(default)s)")
    parser.add_argument("--processes", type=int, default=cores, help="at one time (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the results (%(default)s)")
    add_busy(parser)
    options = parser.parse_args()
    if options.minutes * 60 <= WARM_UP_S:
        parser.error(f"--minutes {options.minutes:g}: it must be more than the {WARM_UP_S / 60:g} that are not counted")
    if not 2 <= options.seeds <= MOST_VALUES:
        parser.error(f"--seeds {options.seeds}: it must be a number from 2 to {MOST_VALUES}")
    return options


if __name__ == "__main__":
    main()
