"""The comparison: every contender under every load, a page, its table as CSV and a plot."""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from dataclasses import fields as fields_of
from pathlib import Path

from app.errors import KcgaError
from bench.latency import page
from bench.latency.contenders import CAPACITY, Contender, Job, Outcome, perform
from bench.latency.kcga_group import RECORD_BYTES
from bench.latency.options import loads_options
from bench.latency.plot import draw
from bench.latency.shapes import PARTITIONS, STEP_S
from bench.latency.times import load
from bench.performed import performed
from bench.quiet import await_quiet
from cli.plots.plotting import require_plotting
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
    options = loads_options("bench.latency", __doc__)
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
    outcomes = performed(perform, first, options.processes, _words)
    second = [job for shape in options.shapes for job in jobs(_fixed(outcomes, shape), shape)]
    outcomes += performed(perform, second, options.processes, _words)
    write_csv(outcomes, options.folder / "latency.csv")
    draw(page.shown(outcomes, options.seed), plot)
    file = options.folder / "latency.md"
    file.write_text(page.page_of(outcomes, seeds, options.minutes, times, before, plot.name), encoding="utf-8")
    print(f"{file}, latency.csv and {plot.name} are written")


def _words(outcome: Outcome) -> str:
    return f"{outcome.shape}, {outcome.contender}"


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


if __name__ == "__main__":
    main()
