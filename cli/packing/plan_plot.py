"""A plan as a picture: each consumer is a bar of its partitions; those that migrate are hatched."""

from pathlib import Path

from cli.packing import plotting
from domain.assignment import Migration
from solver import Problem, Solution


def plot_plan(problem: Problem, solution: Solution, migrations: tuple[Migration, ...], title: str, file: Path) -> None:
    """Draws the consumers side by side on the scale of the capacity.

    Raises:
        UsageError: the file cannot be written.
    """
    from matplotlib.patches import Patch
    from matplotlib.ticker import FuncFormatter

    from cli.watch import figures

    held = solution.assignment.by_consumer
    migrating = {migration.partition for migration in migrations}
    topics = sorted({partition.topic for partition in problem.speeds})
    colour_of = {topic: plotting.TOPIC_COLOURS[place % len(plotting.TOPIC_COLOURS)] for place, topic in enumerate(topics)}
    width = min(40.0, max(7.0, 2 + 0.28 * len(held)))
    edge = 0.8 if len(held) <= 150 else 0.3

    figure = plotting.new_figure(width, 5.2)
    axes = figure.subplots()
    for place, partitions in enumerate(held.values()):
        below = 0.0
        # The fastest at the bottom: equal ones in partition order.
        for partition in sorted(partitions, key=lambda partition: (-problem.speeds[partition], partition)):
            speed = problem.speeds[partition]
            axes.bar(
                place,
                speed,
                width=0.86,
                bottom=below,
                color=colour_of[partition.topic],
                alpha=0.95 if partition in migrating else 0.55,
                edgecolor=plotting.INK if partition in migrating else plotting.GROUND,
                linewidth=edge,
                hatch="////" if partition in migrating else None,
            )
            below += speed
    axes.axhline(problem.capacity, color=plotting.OVERLOAD_COLOUR, linewidth=1.2)
    axes.annotate(
        f"capacity {figures.speed(problem.capacity)}",
        (1, problem.capacity),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        xytext=(0, 4),
        ha="right",
        color=plotting.OVERLOAD_COLOUR,
        fontsize=9,
    )
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=plotting.INK, pad=14)
    axes.set_xlabel("consumer", color=plotting.FAINT_INK)
    axes.set_ylabel("write speed", color=plotting.FAINT_INK)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: figures.speed(value)))
    every = max(1, len(held) // 60 + (len(held) % 60 > 0))
    axes.set_xticks(range(0, len(held), every), [str(consumer) for consumer in list(held)[::every]])
    axes.set_xlim(-0.8, max(len(held), 1) - 0.2)
    axes.set_ylim(0, 1.12 * max([problem.capacity, *solution.assignment.loads(problem.speeds).values()]))
    axes.tick_params(colors=plotting.FAINT_INK, length=0)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(plotting.GRID)
    legend = [Patch(color=colour_of[topic], alpha=0.75, label=topic) for topic in topics[:8]]
    if len(topics) > 8:
        legend.append(Patch(color=plotting.GROUND, label=f"and {len(topics) - 8} more topics"))
    if migrating:
        legend.append(Patch(facecolor=plotting.GROUND, edgecolor=plotting.INK, hatch="////", label="migrates"))
    figure.legend(
        handles=legend, loc="outside lower center", ncols=5, frameon=False, fontsize=9, labelcolor=plotting.INK
    )
    plotting.save(figure, file)
