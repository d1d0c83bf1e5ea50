"""How long each heuristic takes, against its plain rules, in one run: `python -m bench.heuristics`.

A stream of the paper's kind, two measurements long: the group has the assignment that MBFP gives it for the first, and
what is timed is the whole call on the second. Every time is the best of several calls. Writes a page into a folder.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Protocol

from bench import naive
from bench.figures import markdown_table, run_facts, write_page
from bench.quiet import add_busy, await_quiet
from cli.terminal.progress import progress
from domain.assignment import Assignment
from domain.partitions import TopicPartition
from domain.streams import paper_stream
from heuristics import HEURISTICS, pack

CAPACITY = 100.0


class Pack(Protocol):
    """The signature of `heuristics.pack` and `naive.pack`, as far as it is used here."""

    def __call__(
        self,
        name: str,
        speeds: Mapping[TopicPartition, float],
        capacity: float,
        current: Assignment = ...,
        *,
        seed: int = ...,
    ) -> Assignment: ...


@dataclass(frozen=True)
class Instance:
    speeds: Mapping[TopicPartition, float]
    current: Assignment
    seed: int

    def best_of(self, repeats: int, pack: Pack, name: str) -> tuple[float, Assignment]:
        """The shortest time in milliseconds, and the plan."""
        times = []
        for _ in range(repeats):
            start = perf_counter()
            plan = pack(name, self.speeds, CAPACITY, self.current, seed=self.seed)
            times.append(perf_counter() - start)
        return 1000 * min(times), plan


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.heuristics", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=[100, 1_000, 10_000], metavar="N")
    parser.add_argument("--delta", type=float, default=10, help="largest change of a speed, percent (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the page (%(default)s)")
    add_busy(parser)
    options = parser.parse_args()
    before = await_quiet(options.busy)
    rows = list[Sequence[object]]()
    with progress("", len(options.partitions) * len(HEURISTICS)) as advance:
        for partitions in options.partitions:
            measured, speeds = paper_stream(partitions, 2, options.delta, clamp=CAPACITY, seed=options.seed)
            instance = Instance(speeds, pack("mbfp", measured, CAPACITY), options.seed)
            for name in HEURISTICS:
                rows.append(row_of(partitions, name, instance))
                advance(f"{partitions:,} partitions, {name}")
    headings = ("partitions", "heuristic", "consumers", "ms", "plain rules, ms", "times faster")
    sections = [
        "# The heuristics",
        "How long each takes, beside a plain program that does what its definition says. Both make the same plan.",
        run_facts("bench.heuristics", before, [("Stream", f"delta {options.delta:g}, seed {options.seed}")]),
        markdown_table(headings, rows, words=2),
    ]
    write_page(options.folder / "heuristics.md", "\n\n".join(sections) + "\n")


def row_of(partitions: int, name: str, instance: Instance) -> tuple[object, ...]:
    """One heuristic and its plain rules, on the same problem."""
    fast_ms, plan = instance.best_of(9, pack, name)
    plain_ms, plain_plan = instance.best_of(1 if partitions > 2_000 else 5, naive.pack, name)
    assert plan == plain_plan, f"{name} differs from its plain rules at {partitions} partitions"
    figures = (f"{fast_ms:.2f}", f"{plain_ms:.1f}", f"{plain_ms / fast_ms:.0f}")
    return f"{partitions:,}", name, f"{len(plan.consumers):,}", *figures


if __name__ == "__main__":
    main()
