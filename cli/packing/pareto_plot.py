"""The Pareto plot: how many more consumers than the fewest an engine needs, against what it moves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cos, hypot, pi, sin
from pathlib import Path
from typing import TYPE_CHECKING

from cli.packing import plotting
from cli.packing.simulation import pareto_front

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox


@dataclass(frozen=True, slots=True)
class Engine:
    """A point of the plot."""

    name: str
    cbs: float
    mean_rscore: float
    is_exact: bool


def plot_pareto(engines: Sequence[Engine], title: str, file: Path) -> None:
    """Draws the plot into a file of its own.

    Raises:
        UsageError: the file cannot be written.
    """
    figure = plotting.new_figure(9, 6)
    draw_pareto(figure.subplots(), engines, title)
    plotting.save(figure, file)


def draw_pareto(axes: "Axes", engines: Sequence[Engine], title: str) -> None:
    """Draws the engines, their names, and the front of those that no other is better than in both.

    The figure of `axes` must be complete apart from what these axes hold: names are placed for its present layout.
    """
    points = [(100 * engine.cbs, engine.mean_rscore) for engine in engines]
    front = pareto_front(points)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=plotting.INK)
    axes.set_xlabel("consumers above the fewest (CBS, %)", color=plotting.FAINT_INK)
    axes.set_ylabel("mean Rscore (consumers)", color=plotting.FAINT_INK)
    axes.grid(color=plotting.GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=plotting.FAINT_INK, length=0)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(plotting.GRID)

    highest_cbs, highest_rscore = (max((point[axis] for point in points), default=0.0) or 1.0 for axis in (0, 1))
    axes.set_xlim(-0.06 * highest_cbs, 1.12 * highest_cbs)
    axes.set_ylim(-0.06 * highest_rscore, 1.14 * highest_rscore)
    if front:
        stairs = list(_staircase([points[index] for index in front], axes.get_xlim()[1], axes.get_ylim()[1]))
        xs, ys = zip(*stairs, strict=True)
        axes.fill_between(xs, ys, axes.get_ylim()[1], color=plotting.EXACT_COLOUR, alpha=0.05, linewidth=0)
        axes.plot(xs, ys, color=plotting.EXACT_COLOUR, alpha=0.45, linewidth=1.4, label="Pareto front", zorder=2)
    for is_exact, colour, marker, label in (
        (False, plotting.HEURISTIC_COLOUR, "o", "heuristic"),
        (True, plotting.EXACT_COLOUR, "D", "exact"),
    ):
        chosen = [point for point, engine in zip(points, engines, strict=True) if engine.is_exact is is_exact]
        if chosen:
            xs, ys = zip(*chosen, strict=True)
            axes.scatter(xs, ys, s=42, c=colour, marker=marker, label=label, zorder=3, edgecolors="white", linewidths=1)
    axes.legend(loc="upper right", frameon=False, fontsize=9, labelcolor=plotting.INK)
    _name_points(axes, engines, points, frozenset(front))


def _staircase(
    front: Sequence[tuple[float, float]], right: float, top: float
) -> Iterator[tuple[float, float]]:
    """The border between what is on offer and what nobody reaches, from the top to the right edge."""
    yield front[0][0], top
    yield front[0]
    for (_, above), (x, y) in pairwise(front):
        yield x, above
        yield x, y
    yield right, front[-1][1]


_RADII = (9, 14, 20, 28, 38, 50, 64)
_ANGLES = tuple(pi * step / 8 for step in (1, 0, 15, 3, 13, 5, 11, 7, 9, 8, 4, 12, 2, 14, 6, 10))
"""To the right first."""
_LEADER_FROM = 16
"""A name further away than this, in points, is tied to its point by a line."""


def _name_points(
    axes: "Axes", engines: Sequence[Engine], points: Sequence[tuple[float, float]], front: frozenset[int]
) -> None:
    """Writes each name where it hides neither a point nor another name: the front first, then from left to right."""
    figure = axes.get_figure(root=True)
    if figure is None:
        return
    figure.draw_without_rendering()
    to_points = 72 / figure.dpi
    places = [tuple(place) for place in axes.transData.transform(points)] if points else []
    taken: list[Bbox] = [_box(x, y, 6 / to_points, 6 / to_points) for x, y in places]
    if legend := axes.get_legend():
        taken.append(legend.get_window_extent())
    inside = axes.get_window_extent()
    for index in sorted(range(len(engines)), key=lambda index: (index not in front, points[index], index)):
        on_front = index in front
        text = axes.annotate(
            engines[index].name,
            points[index],
            textcoords="offset points",
            fontsize=9,
            fontweight="bold" if on_front else "normal",
            color=plotting.EXACT_COLOUR if engines[index].is_exact else plotting.INK,
            ha="center",
            va="center",
            zorder=4,
            arrowprops={"arrowstyle": "-", "color": plotting.FAINT_INK, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 4},
        )
        x, y = places[index]
        size = text.get_window_extent()
        width, height = size.width * to_points, size.height * to_points
        best, least = (0.0, 0.0), float("inf")
        for radius in _RADII:
            for angle in _ANGLES:
                # The nearest edge of the name, not its centre, is `radius` away.
                dx = (radius + width / 2) * cos(angle) if abs(cos(angle)) > 0.2 else 0.0
                dy = (radius + height / 2) * sin(angle)
                box = _box(x + dx / to_points, y + dy / to_points, size.width / 2, size.height / 2)
                hidden = sum(_overlap(box, other) for other in taken) + (box.width * box.height - _overlap(box, inside))
                if hidden < least:
                    best, least = (dx, dy), hidden
            if least == 0:
                break
        text.set_position(best)
        if hypot(max(0.0, abs(best[0]) - width / 2), best[1]) < _LEADER_FROM and text.arrow_patch is not None:
            text.arrow_patch.set_visible(False)
        taken.append(_box(x + best[0] / to_points, y + best[1] / to_points, size.width / 2 + 2, size.height / 2 + 1))


def _box(x: float, y: float, half_width: float, half_height: float) -> "Bbox":
    from matplotlib.transforms import Bbox

    return Bbox.from_extents(x - half_width, y - half_height, x + half_width, y + half_height)


def _overlap(one: "Bbox", other: "Bbox") -> float:
    """The area that both cover."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return max(0.0, width) * max(0.0, height)
