"""The picture of the group in the terminal: a header, a bar for each consumer, what is not read, decisions, courses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from textwrap import wrap

from rich.console import Console, ConsoleOptions, RenderResult
from rich.rule import Rule
from rich.style import Style
from rich.table import Table
from rich.text import Text

from app import figures
from cli.terminal.consumer_bars import ConsumerBars
from cli.terminal.glyphs import (
    ASCII,
    CONSUMER_COURSE,
    FAINT,
    GOOD,
    LAG_COURSE,
    SPEED_COURSE,
    STRONG,
    UNICODE,
    WAITING,
    WARNING,
    Glyphs,
    TopicPalette,
)
from cli.terminal.sparkline import resample, sparkline
from domain.consumer_class import ConsumerClass
from domain.group_view.decision_log import DecisionRecord
from domain.group_view.view import GroupView, Sample, Transit
from sandbox.incident import Incident

_OTHER_LINES = 7
"""Title, rule, headline, three empty lines, and the one that the cursor is on."""
_LAYOUTS = ((True, 3), (False, 3), (False, 2), (False, 1))
"""From high to low: whether there is air between the consumers, and how many decisions are shown."""

_INCIDENTS, _ROOMY = 3, 30
"""So many incidents are shown where the terminal has so many lines; otherwise one."""


@dataclass(frozen=True, slots=True)
class GroupScreen:
    """Renders itself in whatever width and height it gets.

    Where it is too low, the lines between the consumers are left out, then older decisions, and in the end the last
    consumers are summed up.
    """

    view: GroupView
    capacity: float
    packing: float
    palette: TopicPalette
    phase: str | None = None
    """Of the load that is produced."""
    group: str | None = None
    """Its name, where the view is of one moment: then times are those of the day, and no course is shown."""
    incidents: Sequence[Incident] = ()
    """Of which the newest are shown."""
    classes: Sequence[ConsumerClass] = ()
    """That consumers may be of beside ordinary ones."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        glyphs = ASCII if options.ascii_only else UNICODE
        colours = console.color_system is not None and not console.no_color
        width = options.max_width
        yield self._title(glyphs)
        yield Rule(characters=glyphs.rule, style=FAINT)
        bars = ConsumerBars(
            self.view.consumers, self.capacity, self.packing, self.palette, glyphs, colours, width, self.classes
        )
        fixed = [
            *bars.topics(self.view.speeds),
            *self._transits(glyphs, width),
            *self._incidents(glyphs, width, _INCIDENTS if options.max_height >= _ROOMY else 1),
        ]
        courses = [] if self.group else list(self._courses(glyphs, width))
        room = options.max_height - _OTHER_LINES - len(fixed) - len(courses)
        for airy, shown in _LAYOUTS:
            consumers = list(bars.blocks(airy=airy))
            decisions = list(self._decisions(glyphs, width, shown))
            if sum(map(len, consumers)) + len(decisions) <= room:
                break
        yield self._headline(glyphs)
        yield Text()
        yield from bars.fitted(consumers, room - len(decisions))
        yield from fixed
        yield Text()
        yield from decisions
        if courses:
            yield Text()
            yield from courses

    def _title(self, glyphs: Glyphs) -> Table:
        left = Text.assemble(("kcga", STRONG), "  ", self.group or figures.clock(self.view.elapsed_s))
        if self.phase:
            left.append(f"  {glyphs.dot}  {self.phase}")
        facts = [
            figures.plural(self.view.alive, "consumer"),
            figures.plural(len(self.view.partitions), "partition"),
        ]
        if self.view.invalid_messages:
            facts.append(figures.plural(self.view.invalid_messages, "invalid message"))
        row = Table.grid(expand=True)
        row.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        row.add_column(no_wrap=True, justify="right")
        row.add_row(left, Text(f"  {glyphs.dot}  ".join(facts)))
        return row

    def _headline(self, glyphs: Glyphs) -> Text:
        totals = self.view.totals
        facts = (
            ("written", figures.speed(self.view.total_speed)),
            ("lag", figures.lag(self.view.lag, self.view.lag_s)),
            ("Rscore", f"{totals.rscore:.2f}"),
            ("migrations", figures.count(totals.migrations)),
            ("scaled", f"{glyphs.up}{totals.scale_ups} {glyphs.down}{totals.scale_downs}"),
        )
        line = Text(no_wrap=True, overflow="ellipsis")
        for name, value in facts:
            if line:
                line.append("   ")
            line.append(f"{name} ", FAINT).append(value, STRONG)
        return line

    def _transits(self, glyphs: Glyphs, width: int) -> Iterator[Text]:
        moving = [transit for transit in self.view.transits if transit.is_migration]
        others = [transit for transit in self.view.unread if not transit.is_migration]
        if moving or others or self.view.rests:
            yield Text()
        if self.view.rests:
            yield Text("nothing to read: nobody reads until there is", FAINT)
        for name, transits, style in (("on the move", moving, WAITING), ("no reader", others, WARNING)):
            if transits:
                line = Text.assemble((f"{name:<12}", style), no_wrap=True)
                words = [_transit(transit, glyphs) for transit in transits]
                yield line.append(_fitting(words, width - 12))

    def _incidents(self, glyphs: Glyphs, width: int, shown: int) -> Iterator[Text]:
        if self.incidents:
            yield Text()
        for incident in self.incidents[-shown:]:
            line = Text.assemble(
                (f"{self._time(incident.at):>5} ", FAINT), (f"{glyphs.degraded} ", WARNING), incident.what, no_wrap=True
            )
            line.truncate(width, overflow="ellipsis")
            yield line

    def _decisions(self, glyphs: Glyphs, width: int, shown: int) -> Iterator[Text]:
        decisions = self.view.decisions[-shown:]
        if not decisions:
            yield Text("no decision yet", style=FAINT)
        for decision in reversed(decisions):
            yield from self._decision(decision, decision is decisions[-1], glyphs, width)

    def _decision(self, decision: DecisionRecord, newest: bool, glyphs: Glyphs, width: int) -> Iterator[Text]:
        """A line that says what was decided; for the newest also why."""
        mark, style = (glyphs.tick, GOOD) if decision.carried_out else (glyphs.kept, FAINT)
        at = f"{self._time(decision.decided_at):>5} "
        said = Text.assemble(
            (at, FAINT),
            (f"{mark} ", style),
            (decision_words(decision), STRONG if newest else Style.null()),
            no_wrap=True,
        )
        said.truncate(width, overflow="ellipsis")
        yield said
        if newest:
            indent = len(at) + 2
            for sentence in (*decision.triggers[:2], decision.reason):
                for line in wrap(sentence, max(20, width - indent), max_lines=2, placeholder=f" {glyphs.ellipsis}"):
                    yield Text(f"{' ' * indent}{line}", style=FAINT, no_wrap=True)

    def _time(self, at: float) -> str:
        if self.group is None:
            return figures.clock(at - self.view.began)
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"

    def _courses(self, glyphs: Glyphs, width: int) -> Iterator[Text]:
        """The same stretch of time in each line."""
        view = self.view
        courses: tuple[tuple[str, tuple[Sample, ...], str, Style], ...] = (
            ("written", view.speed_over_time, figures.speed(view.total_speed), SPEED_COURSE),
            ("consumers", view.consumers_over_time, figures.count(view.alive), CONSUMER_COURSE),
            ("lag", view.lag_over_time, figures.count(view.lag), LAG_COURSE),
        )
        for name, samples, now, style in courses:
            values = resample(samples, view.began, view.now, max(1, width - 24))
            yield Text.assemble(
                (f"{name:<12}", FAINT), (sparkline(values, glyphs.levels), style), f" {now:>10}", no_wrap=True
            )


def decision_words(decision: DecisionRecord) -> str:
    """What a decision comes to, in a few words."""
    if not decision.carried_out:
        return "nothing changed"
    return (
        f"{figures.plural(decision.consumers, 'consumer')}, "
        f"{figures.plural(decision.migrations, 'migration')}, Rscore {decision.rscore:.2f}"
    )


def _transit(transit: Transit, glyphs: Glyphs) -> str:
    if transit.is_migration:
        return f"{transit.partition} {transit.source} {glyphs.arrow} {transit.target}"
    if transit.target is not None:
        return f"{transit.partition} {glyphs.arrow} {transit.target}"
    return str(transit.partition)


def _fitting(words: list[str], width: int) -> str:
    """As many of the words as fit, and how many do not."""
    for shown in range(len(words), 0, -1):
        more = f"   and {len(words) - shown} more" if shown < len(words) else ""
        line = "   ".join(words[:shown]) + more
        if len(line) <= width:
            return line
    return f"{len(words)} partitions"
