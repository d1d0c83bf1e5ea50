"""A course of a figure over time in one line of text."""

import math
from collections.abc import Sequence

from domain.group_view.view import Sample


def resample(samples: Sequence[Sample], begin: float, end: float, width: int) -> list[float | None]:
    """The highest value in each of `width` equal parts of the time from `begin` to `end`, both in seconds.

    A sample holds until the next one; `samples` are in ascending order of time. None for parts before the first sample.
    """
    step = (end - begin) / width
    parts: list[float | None] = []
    following = 0
    holds: float | None = None
    for part in range(width):
        start = begin + part * step
        until = math.nextafter(end, math.inf) if part == width - 1 else begin + (part + 1) * step
        highest = holds
        while following < len(samples) and samples[following].at < until:
            holds = samples[following].value
            highest = holds if highest is None or samples[following].at <= start else max(highest, holds)
            following += 1
        parts.append(highest)
    return parts


def sparkline(values: Sequence[float | None], levels: str) -> str:
    """One character of `levels` (lowest first) for each value, on a scale from 0 to the highest; a space for None.

    Only a value of 0 has the lowest level.
    """
    top = max((value for value in values if value is not None), default=0.0)
    return "".join(" " if value is None else levels[_level(value, top, len(levels))] for value in values)


def _level(value: float, top: float, levels: int) -> int:
    if value <= 0 or top <= 0:
        return 0
    return min(levels - 1, 1 + int(value / top * (levels - 1)))
