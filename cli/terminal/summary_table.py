"""The closing summary in the terminal: each check with a tick or a cross, and the figures of the run."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.rule import Rule
from rich.style import Style
from rich.table import Table
from rich.text import Text

from app import figures
from cli.terminal.glyphs import ASCII, BAD, CONSUMER_COURSE, FAINT, GOOD, STRONG, UNICODE, Glyphs
from cli.terminal.sparkline import resample, sparkline
from domain.group_view.view import Sample
from sandbox.summary import Summary


@dataclass(frozen=True, slots=True)
class SummaryTable:
    """Renders itself in whatever width it gets."""

    summary: Summary

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        glyphs = ASCII if options.ascii_only else UNICODE
        summary = self.summary
        failed = sum(not check.passed for check in summary.checks)
        verdict = (
            Text("every check passed", GOOD) if summary.ok else Text(f"{figures.plural(failed, 'check')} failed", BAD)
        )
        yield Text.assemble(("summary", STRONG), f"  {figures.clock(summary.seconds)}  {glyphs.dot}  ", verdict)
        yield Rule(characters=glyphs.rule, style=FAINT)
        yield self._checks(glyphs)
        for check in summary.checks:
            if check.detail is not None:
                yield Text(f"{check.name}: {check.detail}", BAD)
        yield Text()
        yield self._figures(glyphs, options.max_width)

    def _checks(self, glyphs: Glyphs) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        for _ in range(4):
            table.add_column(overflow="fold")
        for check in self.summary.checks:
            mark = Text(glyphs.tick, GOOD) if check.passed else Text(glyphs.cross, BAD)
            actual = Text(check.actual, Style.null() if check.passed else BAD)
            table.add_row(mark, Text(check.name), actual, Text(f"expected {check.expected}", FAINT))
        return table

    def _figures(self, glyphs: Glyphs, width: int) -> Table:
        summary = self.summary
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(style=FAINT, no_wrap=True)
        table.add_column(overflow="fold")
        samples = [Sample(change.seconds, change.consumers) for change in summary.consumers_over_time]
        values = resample(samples, 0.0, summary.seconds, max(1, min(60, width - 32)))
        course = Text.assemble(
            (sparkline(values, glyphs.levels), CONSUMER_COURSE), f" at most {summary.most_consumers:,}"
        )
        scaled = f"{summary.scale_ups:,} up, {summary.scale_downs:,} down"
        table.add_row("consumers", course)
        for name, count in summary.classes.items():
            table.add_row(f"{name} ones", f"{count.came:,} came, {count.went:,} went")
        table.add_row("scaled", f"{scaled}, by {figures.plural(summary.decisions, 'decision')}")
        table.add_row("migrations", f"{summary.migrations:,}, Rscore {summary.rscore:.2f}")
        table.add_row("highest lag", _records(summary.highest_lag))
        if summary.faults:
            table.add_row("chaos", figures.plural(summary.faults, "fault"))
        if summary.restarts:
            times = (f"{name} {count:,}" for name, count in summary.restarts.items())
            table.add_row("restarts", ", ".join(times))
        table.add_row("written", f"{figures.plural(summary.distinct, 'record')}, {figures.data(summary.bytes_written)}")
        return table


def _records(number: int | None) -> str:
    return "not known" if number is None else figures.plural(number, "record")
