"""How soon each engine proves its answer, and how far it is from a proof: `python -m bench.engines`.

Streams of the paper's kind. The group follows the plan of `auto`, so that every engine is given the same problems, in
the state that a controller would have brought about. Prints a Markdown table. CBC solves the paper's model as PuLP
writes it (`bench.oracle`): it says nothing of how far it is where it does not finish.
"""

import argparse
import resource
from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import fmean, median
from time import perf_counter, process_time

from bench.figures import markdown_table, run_facts
from bench.oracle import optimum
from domain.assignment import Assignment
from domain.streams import paper_stream
from solver import Problem, Solution, Status, solve

CAPACITY = 100.0
_HEADINGS = (
    "partitions, delta, lambda",
    "engine",
    "limit [s]",
    "proven",
    "mean gap [%]",
    "largest gap [%]",
    "median [s]",
    "longest [s]",
    "CPU [s]",
    "consumers",
    "Rscore",
)
_LARGEST = {"cbc": 32, "cp-sat": 200}
"""The most partitions that an engine is tried on."""


@dataclass(frozen=True)
class Run:
    proven: bool
    gap: float
    seconds: float
    cpu_s: float
    consumers: float
    rscore: float


def run(problem: Problem, engine: str) -> tuple[Run, Solution | None]:
    """One call, with its wall and CPU time."""
    wall, cpu = perf_counter(), process_time()
    if engine == "cbc":
        found = optimum(problem)
        wall, cpu = perf_counter() - wall, process_time() - cpu
        return Run(found is not None, float("nan"), wall, cpu, float("nan"), float("nan")), None
    solution = solve(problem, engine)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    proven = solution.status is Status.OPTIMAL
    return Run(proven, solution.gap, wall, cpu, solution.consumers, solution.rscore), solution


def measure(
    partitions: int, delta: float, weight: float, engines: list[str], limit_s: float, iterations: int, seed: int
) -> list[tuple[str, list[Run]]]:
    """The runs of each engine, the first iteration (nothing has a consumer yet) left out."""
    current = own = Assignment()
    runs: dict[str, list[Run]] = defaultdict(list)
    for number, speeds in enumerate(paper_stream(partitions, iterations, delta, clamp=CAPACITY, seed=seed)):
        problem = Problem(speeds, CAPACITY, current, weight, time_limit_s=limit_s, seed=seed)
        followed, solution = run(problem, "auto")
        # The heuristic that the paper recommends evolves its own assignment: that is what it is compared by.
        compared, by_mbfp = run(replace(problem, current=own), "mbfp")
        if number:
            runs["auto"].append(followed)
            runs["mbfp"].append(compared)
            for engine in engines:
                if engine not in ("auto", "mbfp") and partitions <= _LARGEST.get(engine, partitions):
                    runs[engine].append(run(problem, engine)[0])
        if solution is not None and by_mbfp is not None:
            current, own = solution.assignment, by_mbfp.assignment
    return list(runs.items())


def _row(case: str, engine: str, limit_s: float, runs: list[Run]) -> tuple[object, ...]:
    seconds = [each.seconds for each in runs]
    return (
        case,
        engine,
        f"{limit_s:g}",
        f"{sum(each.proven for each in runs)}/{len(runs)}",
        f"{100 * fmean(each.gap for each in runs):.4f}",
        f"{100 * max(each.gap for each in runs):.4f}",
        f"{median(seconds):.3f}",
        f"{max(seconds):.3f}",
        f"{fmean(each.cpu_s for each in runs):.3f}",
        f"{fmean(each.consumers for each in runs):.2f}",
        f"{fmean(each.rscore for each in runs):.2f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to proof and gap of each engine on streams of the paper's kind.")
    parser.add_argument("--partitions", type=int, nargs="+", default=[32, 200, 1000, 10000])
    parser.add_argument("--deltas", type=float, nargs="+", default=[5.0, 25.0])
    parser.add_argument("--weights", type=float, nargs="+", default=[0.5], help="lambda")
    parser.add_argument("--engines", nargs="+", default=["auto", "arc-flow", "cp-sat", "cbc"])
    parser.add_argument("--limits", type=float, nargs="+", help="seconds a call, one per size (1, or 5 or 20 if large)")
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    limits = given.limits or [1.0 if size < 1000 else 5.0 if size < 5000 else 20.0 for size in given.partitions]
    rows = []
    for size, limit_s in zip(given.partitions, limits, strict=True):
        for delta in given.deltas:
            for weight in given.weights:
                case = f"{size}, {delta:g}, {weight:g}"
                measured = measure(size, delta, weight, given.engines, limit_s, given.iterations, given.seed)
                rows += [_row(case, engine, limit_s, runs) for engine, runs in measured]
    facts = [("Seed", str(given.seed)), ("Iterations", f"{given.iterations}, the first left out")]
    print(run_facts("bench.engines", facts))
    print(f"- Peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB\n")
    print(markdown_table(_HEADINGS, rows, words=2))


if __name__ == "__main__":
    main()
