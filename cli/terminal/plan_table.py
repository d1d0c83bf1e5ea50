"""A plan in the terminal: what it costs and how good it is, its consumers as bars, each migration with its price."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.rule import Rule
from rich.style import Style
from rich.table import Table
from rich.text import Text

from app import figures
from cli.files.plan_output import Plan
from cli.terminal.bars import Scale, bar
from cli.terminal.glyphs import ASCII, BAD, FAINT, GOOD, OVERLOAD, STRONG, UNICODE, WARNING, Glyphs, TopicPalette
from domain.group_view.view import HeldPartition
from solver import Solution, Status
from solver.solution import OPTIMALITY_TOLERANCE

_RIGHT_OF_BARS = 22
"""Characters of speed, share and number of partitions."""


@dataclass(frozen=True, slots=True)
class PlanTable:
    """Renders itself in whatever width it gets."""

    plan: Plan

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        glyphs = ASCII if options.ascii_only else UNICODE
        colours = console.color_system is not None and not console.no_color
        palette = TopicPalette()
        yield self._headline(glyphs)
        yield self._proof(glyphs)
        yield Rule(characters=glyphs.rule, style=FAINT)
        yield from self._consumers(palette, glyphs, colours, options.max_width)
        yield from self._topics(palette, glyphs, colours)
        yield Text()
        yield from self._changes(glyphs)
        yield from self._warnings()

    def _headline(self, glyphs: Glyphs) -> Text:
        solution, problem = self.plan.solution, self.plan.problem
        separator = f"  {glyphs.dot}  "
        total = figures.speed(sum(problem.speeds.values()))
        price = f" at the price of {self.plan.price:.2f}" if problem.classes else ""
        return Text.assemble(
            (figures.plural(solution.consumers, "consumer"), STRONG),
            f"{price} for {figures.plural(len(problem.speeds), 'partition')}, {total}",
            separator,
            (figures.plural(len(self.plan.migrations), "migration"), STRONG),
            f", Rscore {solution.rscore:.2f}",
        )

    def _proof(self, glyphs: Glyphs) -> Text:
        solution = self.plan.solution
        words, style = _verdict(solution)
        separator = f"  {glyphs.dot}  "
        return Text.assemble(
            f"objective {solution.objective:.3f}, lower bound {solution.lower_bound:.3f}",
            separator,
            (words, style),
            f"{separator}{solution.engine}, {solution.seconds:.2f} s",
        )

    def _consumers(self, palette: TopicPalette, glyphs: Glyphs, colours: bool, width: int) -> Iterator[Text]:
        problem, held = self.plan.problem, self.plan.solution.assignment.by_consumer
        loads = self.plan.solution.assignment.loads(problem.speeds)
        digits = max(4, *(len(str(consumer)) for consumer in held)) if held else 4
        room = max(10, width - digits - 1 - _RIGHT_OF_BARS)
        classes = self.plan.solution.classes
        names = max((len(of.name) for of in classes.values()), default=0) + 2 if problem.classes else 0
        scale = Scale.over(list(loads.values()), problem.capacity, problem.capacity, room - names)
        yield _axis(scale, glyphs, figures.speed(problem.capacity), digits + 1)
        for consumer, partitions in held.items():
            share = loads[consumer] / (classes[consumer].capacity if problem.classes else problem.capacity)
            shown = [HeldPartition(partition, problem.speeds[partition]) for partition in partitions]
            yield Text.assemble(
                (f"{consumer:>{digits}} ", STRONG),
                bar(shown, scale, palette, glyphs, colours),
                f" {figures.speed(loads[consumer]):>9}",
                (f"{share:>6.0%}", OVERLOAD if share > 1 else Style.null()),
                f"{len(partitions):>6}",
                f"  {classes[consumer].name}" if problem.classes else "",
                no_wrap=True,
            )

    def _topics(self, palette: TopicPalette, glyphs: Glyphs, colours: bool) -> Iterator[Text]:
        """What the colours, or fills, mean."""
        line = Text(" " * 5, overflow="fold")
        for topic in sorted({partition.topic for partition in self.plan.problem.speeds}):
            swatch = glyphs.swatch if colours else palette.fill(topic, glyphs) * 2
            line.append(swatch, palette.style(topic)).append(f" {topic}   ")
        line.rstrip()
        yield line

    def _changes(self, glyphs: Glyphs) -> Iterator[Table | Text]:
        problem, migrations = self.plan.problem, self.plan.migrations
        if first := len(self.plan.first_assigned):
            yield Text(f"{figures.plural(first, 'partition')} had no consumer and cost nothing to assign.")
        if not migrations:
            yield Text("Nothing migrates.")
            return
        table = Table.grid(padding=(0, 3, 0, 0))
        table.add_column(overflow="fold")
        for _ in range(4):
            table.add_column(justify="right", no_wrap=True)
        headings = ("migration", f"from {glyphs.arrow} to", "speed", "Rscore", "cost in consumers")
        table.add_row(*(Text(heading, FAINT) for heading in headings))
        # The dearest first: equal ones in partition order.
        for migration in sorted(migrations, key=lambda each: (-problem.speeds[each.partition], each.partition)):
            speed = problem.speeds[migration.partition]
            table.add_row(
                Text(str(migration.partition)),
                Text(f"{migration.source} {glyphs.arrow} {migration.target}"),
                Text(figures.speed(speed)),
                Text(f"{speed / problem.capacity:.3f}"),
                Text(f"{problem.migration_weight * speed / problem.capacity:.3f}"),
            )
        total = self.plan.solution.rscore
        moved = figures.speed(sum(problem.speeds[migration.partition] for migration in migrations))
        table.add_row(
            Text(f"{figures.plural(len(migrations), 'migration')}", STRONG),
            Text(),
            Text(moved, STRONG),
            Text(f"{total:.3f}", STRONG),
            Text(f"{problem.migration_weight * total:.3f}", STRONG),
        )
        yield table

    def _warnings(self) -> Iterator[Text]:
        problem = self.plan.problem
        than = "any consumer" if problem.classes else "a consumer"
        for partition in self.plan.solution.saturated:
            speed = figures.speed(problem.speeds[partition])
            yield Text(f"{partition} is faster than {than} ({speed}): it has one of its own, and will lag.", WARNING)


def _verdict(solution: Solution) -> tuple[str, Style]:
    """How good it is, whoever found it."""
    if solution.status is Status.INFEASIBLE:
        return f"not every rule can be kept: {solution.reason}", BAD
    if solution.gap <= OPTIMALITY_TOLERANCE:
        return "proven optimal", GOOD
    found = "by a heuristic, " if solution.status in (Status.HEURISTIC, Status.FALLBACK) else ""
    return f"{found}at most {solution.gap:.2%} above the optimum", WARNING


def _axis(scale: Scale, glyphs: Glyphs, capacity: str, indent: int) -> Text:
    """The line above the bars: where the capacity is."""
    return Text(f"{' ' * (indent + scale.capacity_cell)}{glyphs.capacity} capacity {capacity}", FAINT, no_wrap=True)
