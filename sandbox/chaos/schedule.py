"""What breaks when, drawn from a seed: the same seed, the same faults at the same moments."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

FIRST_AFTER_S = 12.0
"""The group has begun to read by then."""
SHORTEST_S = 1.0
"""So long at least a fault holds that is not over at once."""

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Fault(Generic[Kind]):
    at_s: float
    """Since the load began."""
    kind: Kind
    lasts_s: float
    choice: float
    """From 0 to 1: which of those that it can befall."""

    def __str__(self) -> str:
        lasting = f", for {self.lasts_s:.1f} s" if self.lasts_s else ""
        return f"{self.at_s:6.1f} s  {self.kind}{lasting}"


def faults(
    seed: int, kinds: Iterable[Kind], longest_s: Mapping[Kind, float], gaps_s: tuple[float, float]
) -> Iterator[Fault[Kind]]:
    """Faults without end, in the order of time; every kind comes before any comes again.

    Args:
        seed: of what is drawn.
        kinds: of faults, one at least, in an order that is always the same.
        longest_s: how long a fault holds at most; those that are not named are over at once.
        gaps_s: the least and the most from one fault to the next.
    """
    chance = Random(seed)
    all_kinds = list(kinds)
    at = FIRST_AFTER_S
    left: list[Kind] = []
    while True:
        if not left:
            left = chance.sample(all_kinds, len(all_kinds))
        kind = left.pop()
        lasts = chance.uniform(SHORTEST_S, longest_s[kind]) if kind in longest_s else 0.0
        yield Fault(at, kind, lasts, chance.random())
        at += chance.uniform(*gaps_s)
