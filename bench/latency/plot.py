"""Consumer-hours against the 99th percentile of the delay, a panel for each load."""

from collections.abc import Sequence
from pathlib import Path

from bench.latency.contenders import Outcome
from cli.plots.plotting import EXACT_COLOUR, FAINT_INK, GRID, HEURISTIC_COLOUR, INK, TOPIC_COLOURS, new_figure, save

_COLOURS = {"kcga": EXACT_COLOUR, "fixed": HEURISTIC_COLOUR, "lag": TOPIC_COLOURS[0], "flink": TOPIC_COLOURS[1]}
_MARKERS = "DosPXv^<>"
_AT_ONCE_S = 1.0
"""Below it the axis is linear: a delay of nothing has a place on it."""


def draw(outcomes: Sequence[Outcome], file: Path) -> None:
    """Draws all panels; the last place takes the legend.

    Raises:
        UsageError: the file cannot be written.
    """
    shapes = list(dict.fromkeys(outcome.shape for outcome in outcomes))
    names = list(dict.fromkeys(outcome.contender for outcome in outcomes))
    kinds = {outcome.contender: outcome.kind for outcome in outcomes}
    marker = {}
    for kind in _COLOURS:
        for index, name in enumerate(name for name in names if kinds[name] == kind):
            marker[name] = _MARKERS[index % len(_MARKERS)]
    across = min(3, len(shapes) + 1)
    down = -(-(len(shapes) + 1) // across)
    figure = new_figure(5.2 * across, 4.2 * down)
    panels = figure.subplots(down, across, squeeze=False).flatten().tolist()
    for panel, shape in zip(panels, shapes, strict=False):
        panel.set_title(shape, loc="left", fontsize=11, fontweight="bold", color=INK)
        panel.set_xlabel("consumer-hours", color=FAINT_INK)
        panel.set_ylabel("p99 from produce to read (s)", color=FAINT_INK)
        panel.set_yscale("symlog", linthresh=_AT_ONCE_S)
        panel.grid(color=GRID, linewidth=0.8)
        panel.set_axisbelow(True)
        panel.tick_params(colors=FAINT_INK, length=0)
        for side, spine in panel.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(GRID)
        for outcome in outcomes:
            if outcome.shape == shape:
                panel.scatter(
                    [outcome.consumer_hours],
                    [outcome.p99_s],
                    s=46,
                    c=_COLOURS[outcome.kind],
                    marker=marker[outcome.contender],
                    label=outcome.contender,
                    edgecolors="white",
                    linewidths=0.8,
                    zorder=4 if outcome.kind == "kcga" else 3,
                )
        panel.set_xlim(left=0)
        panel.set_ylim(bottom=-0.1)
    handles, labels = panels[0].get_legend_handles_labels()
    for empty in panels[len(shapes) :]:
        empty.set_axis_off()
    panels[len(shapes)].legend(handles, labels, loc="center left", frameon=False, fontsize=9, labelcolor=INK)
    save(figure, file)
