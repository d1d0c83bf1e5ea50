"""The Pareto plot: how many more consumers than the fewest an engine needs, against what it moves."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from math import dist
from pathlib import Path
from typing import TYPE_CHECKING

from cli.packing.simulation import pareto_front
from cli.plots import plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    stairs: list[tuple[float, float]] = []
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
    axes.legend(
        *axes.get_legend_handles_labels(),
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=3,
        frameon=False,
        fontsize=9,
        labelcolor=plotting.FAINT_INK,
        borderaxespad=0.2,
        handletextpad=0.4,
        columnspacing=1.2,
    )
    _name_points(axes, engines, points, frozenset(front), stairs)


def _staircase(front: Sequence[tuple[float, float]], right: float, top: float) -> Iterator[tuple[float, float]]:
    """The border between what is on offer and what nobody reaches, from the top to the right edge."""
    yield front[0][0], top
    yield front[0]
    for (_, above), (x, y) in pairwise(front):
        yield x, above
        yield x, y
    yield right, front[-1][1]


_COVERED = 4
"""Points closer to each other than this, in points, cannot be told apart."""


def _name_points(
    axes: "Axes",
    engines: Sequence[Engine],
    points: Sequence[tuple[float, float]],
    front: frozenset[int],
    stairs: Sequence[tuple[float, float]],
) -> None:
    """Writes each name where there is room: those on the front choose first, then from left to right."""
    import textalloc
    from matplotlib.patheffects import withStroke

    figure = axes.get_figure(root=True)
    if figure is None or not points:
        return
    figure.draw_without_rendering()
    places = [(x, y) for x, y in (axes.transData.transform(points) * (72 / figure.dpi)).tolist()]
    groups = _groups(engines, places, front)
    with redirect_stdout(sys.stderr):  # textalloc prints where it finds no room for any name
        textalloc.allocate(
            axes,
            [points[first][0] for first, *_ in groups],
            [points[first][1] for first, *_ in groups],
            [_joined([engines[index].name for index in group]) for group in groups],
            x_scatter=[x for x, _ in points],
            y_scatter=[y for _, y in points],
            x_lines=[[x for x, _ in stairs]],
            y_lines=[[y for _, y in stairs]],
            textsize=9,
            fontweight=["bold" if first in front else "normal" for first, *_ in groups],
            textcolor=[plotting.EXACT_COLOUR if engines[first].is_exact else plotting.INK for first, *_ in groups],
            linecolor=plotting.FAINT_INK,
            linewidth=0.6,
            zorder=4,
            in_layout=False,
            path_effects=[withStroke(linewidth=2.5, foreground=plotting.GROUND)],
        )


def _groups(engines: Sequence[Engine], places: Sequence[tuple[float, float]], front: frozenset[int]) -> list[list[int]]:
    """The engines that share a name tag: those of one kind whose points cover each other.

    Those on the front come first, then from left to right.
    """
    groups: list[list[int]] = []
    for index in sorted(range(len(engines)), key=lambda index: (index not in front, places[index], index)):
        for group in groups:
            first = group[0]
            near = dist(places[first], places[index]) < _COVERED
            if near and engines[first].is_exact is engines[index].is_exact and (first in front) is (index in front):
                group.append(index)
                break
        else:
            groups.append([index])
    return groups


def _joined(names: Sequence[str]) -> str:
    """The names in one text, three in a line."""
    return ",\n".join(", ".join(names[begin : begin + 3]) for begin in range(0, len(names), 3))
