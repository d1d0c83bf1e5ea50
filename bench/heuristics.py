"""How long each heuristic takes, against its plain rules, in one run: `python -m bench.heuristics`.

A stream of the paper's kind, two measurements long: the group has the assignment that MBFP gives it for the first, and
what is timed is the whole call on the second. Prints a Markdown table; every time is the best of several calls.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from bench import naive
from bench.figures import markdown_table, run_facts
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
    options = parser.parse_args()

    print("# The heuristics\n")
    print("How long each takes, beside a plain program that does what its definition says. Both make the same plan.\n")
    print(run_facts("bench.heuristics", [("Stream", f"delta {options.delta:g}, seed {options.seed}")]), end="\n\n")
    print(
        markdown_table(("partitions", "heuristic", "consumers", "ms", "plain rules, ms", "times faster"), [], words=2)
    )
    for partitions in options.partitions:
        before, speeds = paper_stream(partitions, 2, options.delta, clamp=CAPACITY, seed=options.seed)
        instance = Instance(speeds, pack("mbfp", before, CAPACITY), options.seed)
        for name in HEURISTICS:
            fast_ms, plan = instance.best_of(9, pack, name)
            plain_ms, plain_plan = instance.best_of(1 if partitions > 2_000 else 5, naive.pack, name)
            assert plan == plain_plan, f"{name} differs from its plain rules at {partitions} partitions"
            print(
                f"| {partitions:,} | {name} | {len(plan.consumers):,} | {fast_ms:.2f} | {plain_ms:.1f} |"
                f" {plain_ms / fast_ms:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
