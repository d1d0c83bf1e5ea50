"""Consumers that die while the solver is at work: how long are their partitions without a reader?"""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from bench.figures import markdown_table
from bench.scale.crowd import Crowd
from bench.scale.gaps import Gap
from bench.scale.process import Watch

EVERY_S = 6.0
FOR_S = 120.0
LONGEST_S = 5.0
"""Without a reader, after the controller's fleet knows that the consumer is dead."""
PATIENCE_S = 60.0
"""After the last death, for every partition to have a reader."""
BY_RULE = "best-fit"
"""The engine of what the controller places itself, without the solver."""


@dataclass(frozen=True, slots=True)
class Deaths:
    """What came of them."""

    deaths: int
    partitions: int
    """That lost their reader by them; one that lost two counts twice."""
    gaps: Sequence[Gap]
    never_s: float
    """How long it was waited for those that had no reader in the end."""
    unread: int
    """Partitions without a reader in the end."""
    decisions: Counter[str]
    """By engine."""
    cores: float
    """That the controller's process took, its solver included."""

    @property
    def longest_s(self) -> float:
        return max((gap.seconds for gap in self.gaps), default=0.0)

    def misses(self) -> Iterator[str]:
        """The bars that were not kept."""
        late = sum(gap.seconds > LONGEST_S for gap in self.gaps)
        if late:
            longest = f"{self.longest_s:.1f} s at most"
            yield f"{late} times a partition had no reader for longer than {LONGEST_S:g} s, {longest}"
        if self.unread:
            yield f"{self.unread} partitions had no reader {self.never_s:g} s after the last death"
        if self.partitions != sum(gap.died for gap in self.gaps) + self.unread:
            yield "not every partition of a dead consumer was watched"


def deaths(crowd: Crowd, watch: Watch, for_s: float, seed: int) -> Deaths:
    """Every `EVERY_S`, for `for_s` seconds, one of the consumers that have partitions dies."""
    chance = Random(seed)
    over, decided = len(crowd.gaps.over), len(crowd.decisions)
    began, cpu_s, dead, partitions = time.monotonic(), watch.cpu_s, 0, 0
    while (next_at := began + dead * EVERY_S) < began + for_s:
        time.sleep(max(0.0, next_at - time.monotonic()))
        partitions += crowd.kill(chance.choice(crowd.readers()))
        dead += 1
        _ = watch.cpu_s  # and its memory
    last = time.monotonic()
    time.sleep(EVERY_S)
    cores = (watch.cpu_s - cpu_s) / (time.monotonic() - began)
    while crowd.gaps.open and time.monotonic() - last < PATIENCE_S:
        time.sleep(0.1)
    came = Deaths(
        deaths=dead,
        partitions=partitions,
        gaps=crowd.gaps.over[over:],
        never_s=time.monotonic() - last,
        unread=crowd.gaps.open,
        decisions=Counter(each.engine for _, each in crowd.decisions[decided:]),
        cores=cores,
    )
    print(f"{dead} deaths: {came.longest_s:.1f} s without a reader at most", file=sys.stderr)
    return came


def section(came: Deaths) -> str:
    """Of the page."""
    rows = [
        _row("its consumer is known to be dead", [gap.seconds for gap in came.gaps if gap.died]),
        _row("its consumer has stopped it, to hand it over", [gap.seconds for gap in came.gaps if not gap.died]),
    ]
    headings = ("without a reader since", "times", "median [s]", "99 % within [s]", "longest [s]")
    by_rule = came.decisions[BY_RULE]
    return (
        f"## A consumer dies every {EVERY_S:g} s\n\n"
        f"{came.deaths} consumers die, one every {EVERY_S:g} s, while the solver is asked again and again. A gap "
        "begins when the fleet tells the controller that the consumer is gone, and ends when another one has its "
        "command to read the partition. New consumers are ready once they are created, so every partition could have a "
        f"reader at every moment; no gap is to be longer than {LONGEST_S:g} s.\n\n"
        f"{markdown_table(headings, rows)}\n\n"
        f"- {came.partitions:,} partitions lost their reader by a death; {came.unread:,} had none in the end.\n"
        f"- Decisions meanwhile: {by_rule} by rule, {came.decisions.total() - by_rule} by the solver.\n"
        f"- The controller took {came.cores:.2f} cores, its solver included."
    )


def _row(what: str, seconds: Sequence[float]) -> tuple[str, ...]:
    if not seconds:
        return (what, "0", "", "", "")
    ranked = sorted(seconds)
    at = (len(ranked) // 2, int(0.99 * (len(ranked) - 1)), -1)
    return (what, f"{len(ranked):,}", *(f"{ranked[place]:.2f}" for place in at))
