"""What a simulation came to, engine by engine: in the terminal, and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.table import Table
from rich.text import Text

from app import figures
from cli.packing.simulation import Summary, pareto_front
from cli.terminal.glyphs import ASCII, FAINT, GOOD, STRONG, UNICODE


@dataclass(frozen=True, slots=True)
class SimulationTable:
    """Renders itself in whatever width it gets."""

    summaries: Sequence[Summary]
    stream: str
    """Its name."""
    priced: bool = False
    """Whether consumers are of several classes."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        glyphs = ASCII if options.ascii_only else UNICODE
        on_front = set(pareto_front([(summary.cbs, summary.mean_rscore) for summary in self.summaries]))
        iterations = figures.plural(self.summaries[0].iterations, "iteration")
        yield Text.assemble((self.stream, STRONG), f"  {glyphs.dot}  {iterations}")
        table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style=FAINT)
        table.add_column("")
        table.add_column("engine")
        for heading in ("consumers", *(["price"] if self.priced else []), "CBS", "Rscore", "proven", "gap", "s/call"):
            table.add_column(heading, justify="right", no_wrap=True)
        for place, summary in enumerate(self.summaries):
            front = place in on_front
            table.add_row(
                Text(glyphs.tick if front else "", GOOD),
                Text(summary.algorithm, STRONG if front else Style.null()),
                f"{summary.mean_consumers:.2f}",
                *([f"{summary.mean_price:.2f}"] if self.priced else []),
                f"{summary.cbs:.2%}",
                f"{summary.mean_rscore:.3f}",
                _share(summary.proven, 0),
                _share(summary.mean_gap, 3),
                f"{summary.mean_seconds:.4f}",
            )
        yield table
        yield Text(
            f"Means over the iterations. {glyphs.tick} no other engine is better in both CBS and Rscore.", style=FAINT
        )


def _share(share: float | None, digits: int) -> str:
    return "-" if share is None else f"{share:.{digits}%}"


def simulation_json(summaries: Sequence[Summary], capacity: float, seed: int) -> str:
    """The fields of the summaries, and what the figures depend on."""
    on_front = set(pareto_front([(summary.cbs, summary.mean_rscore) for summary in summaries]))
    record = {
        "capacity": capacity,
        "seed": seed,
        "engines": [{**asdict(summary), "pareto_front": place in on_front} for place, summary in enumerate(summaries)],
    }
    return json.dumps(record, indent=2, allow_nan=False) + "\n"
