"""How the last offsets of many partitions are asked for at once.

A table's log keeps the least and greatest offset of each file, and Spark passes over the files that a condition leaves
out. A condition of one term a partition leaves out the most, but each term is weighed against each file: of 144 terms
and 10,000 files that takes seconds. One span for all partitions leaves out far too little where one of them is long
behind the others. So there are a few terms, each for partitions whose offsets are close.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

MOST_TERMS = 32
FIRST_LOOK_BACK = 100_000
"""Offsets: a partition whose last row is no further back is found by the first look."""
FURTHER = 32
"""Times further back than the look before."""


class Span(NamedTuple):
    """Offsets from `low` to `high`, both included."""

    low: int
    high: int


def look_backs(end: int) -> tuple[Span, ...]:
    """Where to look, one after another, for the last row at or below `end` of which nothing is known.

    It is mostly near the end, and few files are there; the last look is at everything.
    """
    spans = []
    width = FIRST_LOOK_BACK
    while width < end:
        spans.append(Span(end - width, end))
        width *= FURTHER
    return (*spans, Span(0, end))


class Term(NamedTuple):
    """Partitions that are asked for within one span, which holds all of theirs; ascending."""

    span: Span
    partitions: tuple[int, ...]


def terms(spans: Mapping[int, Span], most: int = MOST_TERMS) -> tuple[Term, ...]:
    """At most so many terms for these partitions, in ascending order of their spans.

    Divides where neighbouring lows are farthest apart, of equal distances at the lower ones.
    """
    lows = sorted({span.low for span in spans.values()})
    gaps = sorted(pairwise(lows), key=lambda pair: pair[1] - pair[0], reverse=True)
    beginnings = {above for _, above in gaps[: most - 1]}
    groups: list[list[int]] = []
    for number in sorted(spans, key=lambda number: (spans[number].low, number)):
        if not groups or spans[number].low in beginnings:
            beginnings.discard(spans[number].low)
            groups.append([])
        groups[-1].append(number)
    return tuple(
        Term(
            Span(min(spans[number].low for number in group), max(spans[number].high for number in group)),
            tuple(sorted(group)),
        )
        for group in groups
    )
