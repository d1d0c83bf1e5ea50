"""What each of the solver's parameters is worth, halved and doubled: `python -m bench.parameters`.

Time is that of the processor, and so is the limit; GLOP and SCIP, each time that they are called, keep to what is left
of it on the wall. So figures from a busy machine are none. The engines begin from the heuristics' plans, as in a call
of `solve`. Writes a page into a folder.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from time import process_time

from bench.figures import markdown_table, run_facts, write_page
from bench.quiet import add_busy, await_quiet
from bench.scaling import CAPACITY, stream
from cli.terminal.progress import progress
from solver import Problem, solve
from solver.deadline import Deadline
from solver.incumbent import Incumbent
from solver.parameters import TUNED, Parameters
from solver.search.construct import prepare
from solver.search.portfolio import Portfolio
from solver.search.starts import offer_heuristics

PROBLEMS = (
    ("uniform", 200, 1.0),
    ("uniform", 600, 2.0),
    ("uniform", 1200, 1.5),
    ("lognormal-10", 300, 1.0),
)
"""Shape, partitions and limit in seconds of the processor: two are proven whole, one is divided, and one has too many
partitions a consumer to list what it could keep."""
NOT_HERE = ("winding_up",)
"""Parameters of `solve` itself: they are seen in how late its answers are."""
SAME = "(none)"
"""The row of a second run without a change: what differs there is chance."""


@dataclass(frozen=True)
class Run:
    """One problem with one set of parameters."""

    seconds: float
    objective: float
    bound: float
    proven: bool


def run(problem: Problem, tuned: Parameters) -> Run:
    """What comes of a problem within its limit."""
    began = process_time()
    incumbent, deadline = Incumbent(problem), Deadline.after(problem.time_limit_s, process_time)
    offer_heuristics(problem, incumbent, deadline)
    Portfolio(tuned).run(prepare(problem, incumbent, deadline), incumbent, deadline)
    return Run(process_time() - began, incumbent.objective, incumbent.bound, incumbent.is_proven)


def problems(iterations: int, seed: int) -> list[Problem]:
    """The second and later measurements of each stream, in the state in which MBFP left the group for the first."""
    found = []
    for shape, partitions, limit_s in PROBLEMS:
        first, *others = stream(shape, partitions, iterations + 1, seed)
        begun = Problem(first, CAPACITY, time_limit_s=limit_s, seed=seed)
        current = solve(begun, "mbfp").assignment
        found += [replace(begun, speeds=speeds, current=current) for speeds in others]
    return found


def variants() -> dict[tuple[str, str], Parameters]:
    """The parameters with one of them halved or doubled, by its name and its value."""
    found = {(SAME, ""): TUNED}
    for field in fields(Parameters):
        value = getattr(TUNED, field.name)
        for changed in (value / 2, value * 2):
            whole = isinstance(value, int)
            other = max(1, round(changed)) if whole else min(changed, 1.0) if 0.5 < value < 1 else changed
            if field.name not in NOT_HERE:
                found[field.name, f"{other:,}" if whole else f"{other:g}"] = replace(TUNED, **{field.name: other})
    return found


def row(name: str, value: str, base: Sequence[Run], runs: Sequence[Run]) -> tuple[object, ...]:
    """What is other than without the change: time where both prove their plan, and how good what is left is."""
    both = [(before, after) for before, after in zip(base, runs, strict=True) if before.proven and after.proven]
    time = sum(after.seconds for _, after in both) / max(1e-9, sum(before.seconds for before, _ in both))
    left = [pair for pair in zip(base, runs, strict=True) if not (pair[0].proven and pair[1].proven)]
    plans = [100 * (after.objective / before.objective - 1) for before, after in left]
    bounds = [100 * (after.bound / before.bound - 1) for before, after in left]
    others = (fmean(plans), max(plans), fmean(bounds)) if left else ()
    now: object = f"{getattr(TUNED, name):,}" if name in TUNED.__slots__ else ""
    return (
        *(name, now, value, f"{sum(each.proven for each in runs)}/{len(runs)}", f"{time:.2f}"),
        *([f"{each:+.3f}" for each in others] or [""] * 3),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.parameters", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of the parameters")
    parser.add_argument("--iterations", type=int, default=1, help="problems of each stream (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the streams and the engines (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the page (%(default)s)")
    add_busy(parser)
    options = parser.parse_args()
    before = await_quiet(options.busy)
    given = problems(options.iterations, options.seed)
    wanted = {key: tuned for key, tuned in variants().items() if not options.only or key[0] in (SAME, *options.only)}
    run(given[0], TUNED)  # what the first call loads is no parameter's
    rows = []
    with progress("", len(wanted)) as advance:
        for (name, value), tuned in wanted.items():
            # One right after the other: for minutes a machine may be slower than before.
            base, runs = zip(*[(run(problem, TUNED), run(problem, tuned)) for problem in given], strict=True)
            rows.append(row(name, value, base, runs))
            advance(f"{name} {value}")
    headings = ("parameter", "is", "tried", "proven", "time", "plan [%]", "worst plan [%]", "bound [%]")
    sections = [
        "# The solver's parameters",
        "Each is halved and doubled on the same problems, all else as it is, and compared with a run without the "
        "change right before. *Time* is a share of that run's, over the problems that are proven both ways; *plan* and "
        "*bound* are by how much the objective and its bound are higher than without it, over the others. A plan is "
        f"better the lower, a bound the higher. By how much the line {SAME} differs is chance.",
        run_facts("bench.parameters", before, [("Problems", _problems(options.iterations))]),
        markdown_table(headings, rows, words=3),
    ]
    write_page(options.folder / "parameters.md", "\n\n".join(sections) + "\n")


def _problems(iterations: int) -> str:
    named = (f"{partitions:,} {shape} within {limit_s:g} s" for shape, partitions, limit_s in PROBLEMS)
    return f"{iterations} each of {', '.join(named)}, of the processor"


if __name__ == "__main__":
    main()
