"""The regret of deciding each step alone: what policies pay above what who knows the future pays at least.

Every policy replays the same loads, each with several seeds. The bound beside them is proven
(`bench.regret.foresight`). Writes a page, and its figures as CSV, into a folder.
"""

import argparse
import csv
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path

from bench.figures import MOST_VALUES, processors, write_page
from bench.performed import performed
from bench.quiet import add_busy, await_quiet
from bench.regret.loads import LOADS
from bench.regret.page import page_of
from bench.regret.policies import Job, Outcome, Span, perform
from bench.regret.trajectories import MOST_PARTITIONS

QUICK = {"partitions": 8, "seeds": 2, "windows": 1, "changes": 3, "rounds": 5}


def main() -> None:
    options = parse_options()
    before = await_quiet(options.busy)
    span = Span(options.windows, options.changes)
    seeds = range(1, options.seeds + 1)
    jobs = [
        Job(load, seed, options.partitions, span, options.rounds, not options.no_bound, options.repairs)
        for load, seed in product(options.loads, seeds)
    ]
    began = time.monotonic()
    outcomes = performed(perform, jobs, options.processes, lambda each: f"{each.load}, seed {each.seed}")
    options.folder.mkdir(parents=True, exist_ok=True)
    write_csv(outcomes, options.folder / "regret.csv")
    page = page_of(outcomes, options, time.monotonic() - began, before)
    write_page(options.folder / "regret.md", page)


def write_csv(outcomes: Iterable[Outcome], file: Path) -> None:
    """A line for each policy on each load and seed: sums over the counted steps; and the bounds."""
    with file.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow(["load", "seed", "steps", "policy", "consumers", "rscore", "lambda", "bound", "relaxed"])
        for o in outcomes:
            for name, (consumers, rscore) in o.totals.items():
                table.writerow([o.load, o.seed, o.steps, name, f"{consumers:.0f}", f"{rscore:.4f}", "", "", ""])
            for weight, least in o.least.items():
                bounds = [weight, f"{least.bound:.4f}", f"{least.relaxed:.4f}"]
                table.writerow([o.load, o.seed, o.steps, "bound", "", "", *bounds])
                if least.plan:
                    spent = [f"{least.plan.consumers:.0f}", f"{least.plan.rscore:.4f}"]
                    table.writerow([o.load, o.seed, o.steps, "plan", *spent, weight, "", ""])


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.regret", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--loads", nargs="+", choices=tuple(LOADS), default=tuple(LOADS), help="(all)")
    parser.add_argument("--partitions", type=int, default=40, metavar="P", help="(%(default)s)")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="of each load (%(default)s)")
    parser.add_argument("--windows", type=int, default=1, metavar="N", help="of the bound (%(default)s)")
    parser.add_argument("--changes", type=int, default=10, metavar="N", help="steps of each (%(default)s)")
    parser.add_argument("--rounds", type=int, default=80, metavar="N", help="of columns, at most (%(default)s)")
    parser.add_argument("--no-bound", action="store_true", help="compare policies only: much faster")
    parser.add_argument("--repairs", type=int, metavar="N", help="of a plan for each bound (no plans are made)")
    parser.add_argument("--processes", type=int, default=processors(), metavar="N", help="at one time (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="to see that it works: 8 partitions, 2 seeds, 4 steps")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the results (%(default)s)")
    add_busy(parser)
    options = parser.parse_args()
    options = argparse.Namespace(**{**vars(options), **(QUICK if options.quick else {})})
    for name, most in {"partitions": MOST_PARTITIONS, "seeds": MOST_VALUES, "windows": 100, "changes": 100}.items():
        least = 2 if name == "seeds" else 1
        if not least <= getattr(options, name) <= most:
            parser.error(f"--{name} {getattr(options, name)}: it must be a number from {least} to {most}")
    if options.repairs is not None and (options.repairs < 0 or options.windows > 1 or options.no_bound):
        parser.error(f"--repairs {options.repairs}: it must be 0 or more, with the bound of one window")
    return options


if __name__ == "__main__":
    main()
