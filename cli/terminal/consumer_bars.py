"""Consumers one below the other, each as a bar of its partitions, as far as there is room."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from app import figures
from cli.terminal.bars import Scale, axis, bar
from cli.terminal.glyphs import BAD, FAINT, GOOD, OVERLOAD, STRONG, WAITING, WARNING, Glyphs, TopicPalette
from domain.consumer_class import ORDINARY, ConsumerClass
from domain.group_view.view import ConsumerView
from domain.messages import ConsumerState
from domain.partitions import TopicPartition

_LEFT_OF_BARS = 6
"""Characters of a consumer's line: its mark and number."""
_LOAD = 10
"""Characters of its load."""
_AROUND_BARS = _LEFT_OF_BARS + 22
"""Characters of a consumer's line without its bar: mark and number, and speed, share, partitions."""


@dataclass(frozen=True, slots=True)
class ConsumerBars:
    """In lines of `width` characters."""

    consumers: Sequence[ConsumerView]
    capacity: float
    packing: float
    palette: TopicPalette
    glyphs: Glyphs
    colours: bool
    width: int
    classes: Sequence[ConsumerClass] = ()
    """That consumers may be of beside ordinary ones."""

    def blocks(self, *, airy: bool) -> Iterator[list[Text]]:
        """The lines of the heading, and then those of each consumer."""
        consumers, glyphs = self.consumers, self.glyphs
        if not consumers:
            yield [Text("no consumers yet", style=FAINT)]
            return
        loads = [consumer.load for consumer in consumers]
        largest = max(map(self._capacity_of, consumers))
        scale = Scale.over(loads, self.capacity, self.packing, max(10, self.width - _AROUND_BARS), largest)
        heading = axis(scale, glyphs, figures.speed(self.packing), figures.speed(self.capacity), _LOAD)
        partitions = f"{'partitions':>{_AROUND_BARS - _LEFT_OF_BARS - _LOAD}}"
        yield [Text.assemble(" " * _LEFT_OF_BARS, heading, (partitions, FAINT), no_wrap=True)]
        air = (
            [Text(" " * _LEFT_OF_BARS).append_text(bar((), scale, self.palette, glyphs, self.colours))] if airy else []
        )
        for place, consumer in enumerate(consumers):
            yield [*(air if place else ()), *self._consumer(consumer, scale)]

    def _consumer(self, consumer: ConsumerView, scale: Scale) -> list[Text]:
        mark, style, words = _condition(consumer, self.glyphs)
        capacity = self._capacity_of(consumer)
        scale, share = scale.of_size(capacity), consumer.load / capacity
        picture = bar(consumer.partitions, scale, self.palette, self.glyphs, self.colours)
        inside = words is not None and consumer.load == 0 and len(words) < scale.width
        if words is not None and inside:
            picture = Text.assemble((words, style), picture[len(words) :])
        line = Text.assemble(
            (mark, style),
            (f"{consumer.consumer:>4} ", STRONG),
            picture,
            f" {figures.speed(consumer.load):>9}",
            (f"{share:>6.0%}", OVERLOAD if share > 1 else Style.null()),
            f"{len(consumer.partitions):>6}",
            no_wrap=True,
        )
        if words is None or inside:
            return [line]
        return [line, Text(f"{' ' * _LEFT_OF_BARS}{words}", style=style, no_wrap=True, overflow="ellipsis")]

    def _capacity_of(self, consumer: ConsumerView) -> float:
        return next((each.capacity for each in self.classes if each.name == consumer.class_name), self.capacity)

    def fitted(self, blocks: Sequence[list[Text]], room: int) -> Iterator[Text]:
        """The lines of the blocks, as far as there is room for all or for the first."""
        total = sum(map(len, blocks))
        used = 0
        for place, lines in enumerate(blocks):
            # One line is kept for the sum, and at least one consumer is shown.
            if total > room and place > 1 and used + len(lines) > room - 1:
                rest = self.consumers[place - 1 :]
                load = figures.speed(sum(consumer.load for consumer in rest))
                yield Text(
                    f"{' ' * _LEFT_OF_BARS}and {figures.plural(len(rest), 'more consumer')}: {load}", style=FAINT
                )
                return
            used += len(lines)
            yield from lines

    def topics(self, bytes_per_s: Mapping[TopicPartition, float]) -> Iterator[Text]:
        """What the colours, or fills, mean, with the write speed of each topic."""
        speeds: dict[str, float] = {}
        for partition, speed in bytes_per_s.items():
            speeds[partition.topic] = speeds.get(partition.topic, 0.0) + speed
        if not speeds:
            return
        line = Text(" " * 6, no_wrap=True, overflow="ellipsis")
        for topic in sorted(speeds):
            swatch = self.glyphs.swatch if self.colours else self.palette.fill(topic, self.glyphs) * 2
            line.append(swatch, self.palette.style(topic)).append(f" {topic} ")
            line.append(f"{figures.speed(speeds[topic])}   ", FAINT)
        line.truncate(self.width, overflow="ellipsis")
        yield line


def _condition(consumer: ConsumerView, glyphs: Glyphs) -> tuple[str, Style, str | None]:
    """The mark of a consumer, its style, and what there is to say of it, if anything."""
    if consumer.silent:
        return glyphs.silent, BAD, "silent: no report from it"
    match consumer.state:
        case ConsumerState.STARTING:
            return glyphs.starting, WAITING, "starting" if consumer.reason is None else f"starting: {consumer.reason}"
        case ConsumerState.DEGRADED:
            return glyphs.degraded, WARNING, f"degraded: {consumer.reason or 'it gives no reason'}"
        case _:
            return (
                glyphs.ready,
                GOOD,
                consumer.reason or (consumer.class_name if consumer.class_name != ORDINARY else None),
            )
