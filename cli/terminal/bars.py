"""A consumer as a bar: the partitions that it reads, each as wide as its write speed, on the scale of the capacity."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rich.style import Style
from rich.text import Text

from cli.terminal.glyphs import FAINT, OVERLOAD, Glyphs, TopicPalette
from domain.group_view.view import HeldPartition

_ENDS = (1.2, 1.5, 2.0)
"""Where the scale may end, in capacities: few steps, so that it does not change with every measurement."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From 0 to `end` bytes/s over `width` characters."""

    capacity: float
    packing: float
    end: float
    width: int

    @classmethod
    def over(
        cls, loads: Sequence[float], capacity: float, packing: float, width: int, largest: float | None = None
    ) -> "Scale":
        """The shortest scale that shows all `loads`, and at most twice the capacity: the largest, where some differ."""
        largest = largest or capacity
        highest = max(loads, default=0.0) / largest
        end = next((end for end in _ENDS if highest <= end), _ENDS[-1])
        return cls(capacity, packing, end * largest, width)

    def of_size(self, capacity: float) -> "Scale":
        """The same, with the marks of a consumer of that capacity."""
        return replace(self, capacity=capacity, packing=self.packing * capacity / self.capacity)

    def cell(self, speed: float) -> int:
        """The first character that lies beyond `speed`; `width` where all lie below."""
        return min(self.width, round(speed / self.end * self.width))

    @property
    def packing_cell(self) -> int:
        return self.cell(self.packing)

    @property
    def capacity_cell(self) -> int:
        return self.cell(self.capacity)


EMPTY = Style.null()


@dataclass(slots=True)
class _Cell:
    character: str = " "
    style: Style = EMPTY
    named: bool = False
    """It shows a letter, which no mark may hide."""


def bar(held: Sequence[HeldPartition], scale: Scale, palette: TopicPalette, glyphs: Glyphs, colours: bool) -> Text:
    """The bar of what a consumer holds, `scale.width` characters wide.

    Partitions come in the order of `held`; those without a (known) speed have no width. With colours a partition is
    painted in its topic's by reversing the terminal's own, so that it suits any ground; without, it has its topic's
    fill. Beyond the capacity the bar shows the overload, whichever partition it is.
    """
    cells = [_Cell() for _ in range(scale.width)]
    below = 0.0
    for partition in held:
        begin, end = scale.cell(below), scale.cell(below + (partition.speed or 0.0))
        below += partition.speed or 0.0
        topic = partition.partition.topic
        style = Style.chain(palette.style(topic), Style(reverse=True)) if colours else EMPTY
        fill = " " if colours else palette.fill(topic, glyphs)
        for cell in cells[begin:end]:
            cell.character, cell.style = fill, style
        if begin < end:
            cells[end - 1].character, cells[end - 1].named = glyphs.edge, True
            for cell, letter in zip(cells[begin : end - 1], _label(partition, end - begin - 1), strict=False):
                cell.character, cell.named = letter, True
    filled = scale.cell(below)
    for cell in cells[scale.capacity_cell : filled]:
        cell.style = Style.chain(OVERLOAD, Style(reverse=True)) if colours else OVERLOAD
        cell.character, cell.named = " " if colours else glyphs.overload, False
    if below > scale.end:
        cells[-1].character, cells[-1].named = glyphs.beyond, True
    for place, mark in ((scale.packing_cell, glyphs.packing), (scale.capacity_cell, glyphs.capacity)):
        if filled <= place < scale.width:
            cells[place] = _Cell(mark, FAINT)
        elif place < filled and not cells[place].named:
            cells[place].character = mark
    return Text.assemble(
        *(
            ("".join(cell.character for cell in run), style)
            for style, run in groupby(cells, key=lambda cell: cell.style)
        ),
        no_wrap=True,
    )


def axis(scale: Scale, glyphs: Glyphs, packing: str, capacity: str, beyond: int) -> Text:
    """The line above the bars: both marks, each with its label where there is room for it.

    The label of the capacity may go on for `beyond` characters to the right of the bars.
    """
    line = list(" " * (scale.width + beyond))
    left, right = scale.packing_cell, scale.capacity_cell
    packing_label = next((label for label in (f"packing {packing} ", f"{packing} ") if len(label) <= left), "")
    room = len(line) - right - 1
    capacity_label = next((label for label in (f" capacity {capacity}", f" {capacity}") if len(label) <= room), "")
    line[left - len(packing_label) : left] = packing_label
    line[left] = glyphs.packing
    line[right] = glyphs.capacity
    line[right + 1 : right + 1 + len(capacity_label)] = capacity_label
    return Text("".join(line), style=FAINT, no_wrap=True)


def _label(held: HeldPartition, room: int) -> str:
    """The longest name of the partition that fits, with a space before it where that fits too, or none."""
    whole, number = str(held.partition), str(held.partition.partition)
    return next((name for name in (f" {whole}", whole, f" {number}", number) if len(name) <= room), "")
