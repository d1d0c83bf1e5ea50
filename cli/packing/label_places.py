"""Where the names of points stand in a plot: near their points, and hiding neither a point nor each other."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import cos, inf, pi, sin

_RADII = (8, 12, 18, 26, 36, 48, 62, 80)
_ANGLES = tuple(pi * step / 8 for step in (2, 1, 0, 15, 14, 6, 7, 8, 9, 10, 4, 12, 3, 5, 13, 11))
"""Upwards to the right first."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; all coordinates are in the unit of a plot's text, the point."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def around(cls, x: float, y: float, width: float, height: float) -> "Box":
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.top - self.bottom)

    def overlap(self, other: "Box") -> float:
        """The area that both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, width) * max(0.0, height)


@dataclass(frozen=True, slots=True)
class Label:
    """A name that has to stand somewhere near its point."""

    x: float
    y: float
    width: float
    height: float

    def centres(self) -> Iterator[tuple[float, float, float]]:
        """Where its centre may be, the best places first, and how far its nearest edge is then from the point."""
        for radius in _RADII:
            for angle in _ANGLES:
                right, up = cos(angle), sin(angle)
                beside = 0.0 if abs(right) < 0.1 else self.width / 2 if right > 0 else -self.width / 2
                yield self.x + radius * right + beside, self.y + radius * up + self.height / 2 * up, radius


def place(labels: Sequence[Label], obstacles: Iterable[Box], inside: Box) -> list[tuple[float, float, float]]:
    """The centre of each label, and its distance from its point; those that come first choose first.

    A label that finds no free place within `inside` goes where it hides least.
    """
    taken = list(obstacles)
    places = []
    for label in labels:
        best, least = (label.x, label.y, 0.0), inf
        for x, y, distance in label.centres():
            box = Box.around(x, y, label.width, label.height)
            hidden = sum(box.overlap(other) for other in taken) + box.area - box.overlap(inside)
            if hidden < least - 1e-9:
                best, least = (x, y, distance), hidden
            if least <= 1e-9:
                break
        taken.append(Box.around(best[0], best[1], label.width, label.height))
        places.append(best)
    return places
