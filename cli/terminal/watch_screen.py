"""A group that is watched, in the terminal: members as bars, what kcga would do, and what that would save."""

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

from rich.console import Console, ConsoleOptions, RenderResult
from rich.rule import Rule
from rich.style import Style
from rich.text import Text

from app import figures
from app.watch.decide import words
from app.watch.decide.watcher import MemberPicture, Moment
from cli.terminal.consumer_bars import ConsumerBars
from cli.terminal.glyphs import ASCII, FAINT, GOOD, STRONG, UNICODE, WARNING, Glyphs, TopicPalette
from domain.group_view.view import ConsumerView, HeldPartition
from domain.messages import ConsumerState
from domain.partitions import TopicPartition

_OTHER_LINES = 5
"""Title, rule, headline, and an empty line before and after the bars."""


@dataclass(frozen=True, slots=True)
class WatchScreen:
    """Renders itself in whatever width and height it gets."""

    moment: Moment
    palette: TopicPalette

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        glyphs = ASCII if options.ascii_only else UNICODE
        colours = console.color_system is not None and not console.no_color
        moment, width = self.moment, options.max_width
        consumers = [_consumer(member) for member in moment.members]
        bars = ConsumerBars(consumers, moment.capacity, moment.packing_capacity, self.palette, glyphs, colours, width)
        speeds = {held.partition: held.speed or 0.0 for consumer in consumers for held in consumer.partitions}
        said = [*bars.topics(speeds), Text(), *self._said(glyphs, width)]
        yield Text.assemble(("kcga", STRONG), f"  beside {moment.group}", no_wrap=True, overflow="ellipsis")
        yield Rule(characters=glyphs.rule, style=FAINT)
        yield self._headline()
        yield Text()
        yield from bars.fitted(list(bars.blocks(airy=False)), options.max_height - _OTHER_LINES - len(said))
        yield from said

    def _headline(self) -> Text:
        moment = self.moment
        facts = (
            ("consumers", figures.count(moment.consumers)),
            ("needed", figures.count(moment.needed)),
            ("written", figures.speed(moment.written)),
            ("lag", figures.lag(moment.lag, moment.lag_s)),
        )
        line = Text(no_wrap=True, overflow="ellipsis")
        for name, value in facts:
            line.append("   " if line else "").append(f"{name} ", FAINT).append(value, STRONG)
        return line

    def _said(self, glyphs: Glyphs, width: int) -> Iterator[Text]:
        moment = self.moment
        would_act = moment.decision is not None and moment.decision.carried_out
        yield from _sentence(words.advice(moment), glyphs.tick if would_act else glyphs.kept, GOOD, width)
        for sentence in words.capacity(moment):
            yield from _sentence(sentence, glyphs.dot, FAINT, width)
        for remark in words.remarks(moment):
            yield from _sentence(remark, glyphs.degraded, WARNING, width)
        for sentence in words.rebalances(moment):
            yield from _sentence(sentence, glyphs.dot, FAINT, width)
        for sentence in words.saving(moment):
            yield from _sentence(sentence, glyphs.dot, FAINT, width)


def _consumer(member: MemberPicture) -> ConsumerView:
    held = tuple(HeldPartition(TopicPartition(each.topic, each.partition), each.speed) for each in member.partitions)
    return ConsumerView(member.consumer, ConsumerState.READY, member.client, held, silent=False)


def _sentence(sentence: str, mark: str, style: Style, width: int) -> Iterator[Text]:
    for place, line in enumerate(wrap(sentence, max(20, width - 2))):
        yield Text.assemble((f"{mark} ", style) if place == 0 else "  ", line, no_wrap=True, overflow="ellipsis")
