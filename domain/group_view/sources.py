"""Says in words what tells the write speeds, where that is not what is exact."""

from collections.abc import Iterable

from domain.speeds import MeasuredBy

_NAMED = 3
"""So many topics are named; of the others it is said how many they are."""


def sources_sentence(sources: Iterable[MeasuredBy]) -> str | None:
    """None where there is nothing to say."""
    said = [f"{_named(each.topics)} by {each.source}, since {each.because}" for each in sources if each.because]
    return f"write speeds are measured of {'; of '.join(said)}" if said else None


def _named(topics: tuple[str, ...]) -> str:
    unnamed = len(topics) - _NAMED
    return ", ".join(topics[:_NAMED]) + (f" and {unnamed} more" if unnamed > 0 else "")
