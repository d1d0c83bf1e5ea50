"""The characters and colours of the terminal view, with a set for terminals that know ASCII alone."""

from dataclasses import dataclass

from rich.style import Style


@dataclass(frozen=True, slots=True)
class Glyphs:
    levels: str
    """Of a sparkline, lowest first."""
    fills: str
    """Of the topics, in turn, where there are no colours."""
    overload: str
    """Fill beyond the capacity, where there are no colours."""
    edge: str
    """The right edge of a partition in a bar."""
    packing: str
    capacity: str
    beyond: str
    """The end of a bar that is longer than the scale."""
    swatch: str
    ready: str
    starting: str
    degraded: str
    silent: str
    tick: str
    cross: str
    kept: str
    """A decision that changed nothing."""
    arrow: str
    dot: str
    """Between two facts in a line."""
    rule: str
    up: str
    down: str
    ellipsis: str


UNICODE = Glyphs(
    levels="▁▂▃▄▅▆▇█",
    fills="▒░▓",
    overload="█",
    edge="▕",
    packing="┊",
    capacity="│",
    beyond="▶",
    swatch="■",
    ready="●",
    starting="○",
    degraded="▲",
    silent="✗",
    tick="✓",
    cross="✗",
    kept="·",
    arrow="→",
    dot="·",
    rule="─",
    up="↑",
    down="↓",
    ellipsis="…",
)

ASCII = Glyphs(
    levels="_.-=*#",
    fills="=+-",
    overload="#",
    edge="|",
    packing=":",
    capacity="|",
    beyond=">",
    swatch="#",
    ready="*",
    starting="o",
    degraded="!",
    silent="x",
    tick="+",
    cross="x",
    kept="-",
    arrow="->",
    dot="-",
    rule="-",
    up="+",
    down="-",
    ellipsis="~",
)

TOPIC_COLOURS = (67, 29, 97, 130, 132, 101)
"""Of the 256 colours, those of medium brightness: legible as text, and under text, on a dark and on a light ground."""

SPEED_COURSE, CONSUMER_COURSE, LAG_COURSE = (Style(color=f"color({number})") for number in (67, 29, 130))
STRONG = Style(bold=True)
GOOD = Style(color="green")
WARNING = Style(color="yellow")
BAD = Style(color="red", bold=True)
WAITING = Style(color="cyan")
FAINT = Style(dim=True)
OVERLOAD = BAD


class TopicPalette:
    """Gives each topic a place in the row of colours and fills, and keeps it."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def _place(self, topic: str) -> int:
        return self._places.setdefault(topic, len(self._places))

    def style(self, topic: str) -> Style:
        return Style(color=f"color({TOPIC_COLOURS[self._place(topic) % len(TOPIC_COLOURS)]})")

    def fill(self, topic: str, glyphs: Glyphs) -> str:
        return glyphs.fills[self._place(topic) % len(glyphs.fills)]
