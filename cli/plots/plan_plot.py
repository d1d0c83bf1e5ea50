"""A plan as a picture: each consumer is a bar of its partitions; those that migrate are hatched."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app import figures
from cli.files.plan_output import Plan
from cli.plots import plotting
from domain.partitions import TopicPartition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

MOST_TOPICS = 8
"""In the legend."""


@dataclass(frozen=True, slots=True)
class _Bar:
    """A partition in the picture."""

    partition: TopicPartition
    place: int
    """Of its consumer, from the left."""
    below: float
    speed: float


def _stacked(
    place: int, partitions: Iterable[TopicPartition], speeds: Mapping[TopicPartition, float]
) -> Iterator[_Bar]:
    """The partitions of a consumer, the fastest at the bottom; equal ones in partition order."""
    below = 0.0
    for partition in sorted(partitions, key=lambda partition: (-speeds[partition], partition)):
        yield _Bar(partition, place, below, speeds[partition])
        below += speeds[partition]


def plot_plan(plan: Plan, title: str, file: Path) -> None:
    """Draws the consumers side by side on the scale of the capacity.

    Raises:
        UsageError: the file cannot be written.
    """
    held = plan.solution.assignment.by_consumer
    topics = sorted({partition.topic for partition in plan.problem.speeds})
    colours = plotting.TOPIC_COLOURS
    colour_of = {topic: colours[place % len(colours)] for place, topic in enumerate(topics)}
    figure = plotting.new_figure(min(40.0, max(7.0, 2 + 0.28 * len(held))), 5.2)
    axes = figure.subplots()
    _draw_bars(axes, plan, colour_of)
    _draw_axes(axes, plan)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=plotting.INK, pad=14)
    legend = _legend(colour_of, migrates=bool(plan.migrations))
    figure.legend(
        handles=legend, loc="outside lower center", ncols=5, frameon=False, fontsize=9, labelcolor=plotting.INK
    )
    plotting.save(figure, file)


def _draw_bars(axes: "Axes", plan: Plan, colour_of: Mapping[str, str]) -> None:
    held = plan.solution.assignment.by_consumer
    migrating = {migration.partition for migration in plan.migrations}
    bars = [
        bar
        for place, partitions in enumerate(held.values())
        for bar in _stacked(place, partitions, plan.problem.speeds)
    ]
    for moves in (False, True):
        chosen = [bar for bar in bars if (bar.partition in migrating) is moves]
        axes.bar(
            [bar.place for bar in chosen],
            [bar.speed for bar in chosen],
            width=0.86,
            bottom=[bar.below for bar in chosen],
            color=[colour_of[bar.partition.topic] for bar in chosen],
            alpha=0.95 if moves else 0.55,
            edgecolor=plotting.INK if moves else plotting.GROUND,
            linewidth=0.8 if len(held) <= 150 else 0.3,
            hatch="////" if moves else None,
        )


def _draw_axes(axes: "Axes", plan: Plan) -> None:
    """With the line of the capacity."""
    from matplotlib.ticker import FuncFormatter

    problem, assignment = plan.problem, plan.solution.assignment
    consumers = list(assignment.by_consumer)
    axes.axhline(problem.capacity, color=plotting.OVERLOAD_COLOUR, linewidth=1.2)
    axes.annotate(
        f"capacity\n{figures.speed(problem.capacity)}",
        (1, problem.capacity),
        xycoords=("axes fraction", "data"),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        color=plotting.OVERLOAD_COLOUR,
        fontsize=9,
    )
    axes.set_xlabel("consumer", color=plotting.FAINT_INK)
    axes.set_ylabel("write speed", color=plotting.FAINT_INK)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: figures.speed(value)))
    every = max(1, math.ceil(len(consumers) / 60))
    axes.set_xticks(range(0, len(consumers), every), [str(consumer) for consumer in consumers[::every]])
    axes.set_xlim(-0.8, max(len(consumers), 1) - 0.2)
    axes.set_ylim(0, 1.12 * max([problem.capacity, *assignment.loads(problem.speeds).values()]))
    axes.tick_params(colors=plotting.FAINT_INK, length=0)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(plotting.GRID)


def _legend(colour_of: Mapping[str, str], *, migrates: bool) -> list["Patch"]:
    from matplotlib.patches import Patch

    legend = [Patch(color=colour, alpha=0.75, label=topic) for topic, colour in list(colour_of.items())[:MOST_TOPICS]]
    if len(colour_of) > MOST_TOPICS:
        legend.append(Patch(color=plotting.GROUND, label=f"and {len(colour_of) - MOST_TOPICS} more topics"))
    if migrates:
        legend.append(Patch(facecolor=plotting.GROUND, edgecolor=plotting.INK, hatch="////", label="migrates"))
    return legend
