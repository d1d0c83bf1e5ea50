"""Shows the view while it changes: as a picture where standard error is a terminal, otherwise line by line."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live

from cli.terminal.glyphs import TopicPalette
from cli.terminal.plain_lines import PlainLines
from cli.terminal.screen import GroupScreen
from domain.consumer_class import ConsumerClass
from domain.group_view.view import GroupView
from sandbox.incident import Incident


class LiveView:
    """Shows each view that it is given, from entering the context to leaving it; the last picture stays.

    Args:
        console: writes to standard error; standard output is left alone.
        capacity_bytes_per_s: what one consumer reads at most.
        packing_capacity_bytes_per_s: what a plan gives a consumer at most.
        classes: that consumers may be of beside ordinary ones.
    """

    def __init__(
        self,
        console: Console,
        capacity_bytes_per_s: float,
        packing_capacity_bytes_per_s: float,
        classes: Sequence[ConsumerClass] = (),
    ) -> None:
        self._console = console
        self._capacity = capacity_bytes_per_s
        self._packing = packing_capacity_bytes_per_s
        self._classes = classes
        self._palette = TopicPalette()
        self._plain = PlainLines()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            # Drawn by update() alone. Whatever else is written to standard error appears above the picture.
            self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def update(self, view: GroupView, phase: str | None = None, incidents: Sequence[Incident] = ()) -> None:
        """Shows `view`, the phase of the load that is produced, if there is one, and all that befell the components."""
        if self._live is not None:
            screen = GroupScreen(
                view,
                self._capacity,
                self._packing,
                self._palette,
                phase,
                incidents=incidents,
                classes=self._classes,
            )
            self._live.update(screen, refresh=True)
            return
        for line in self._plain.lines(view, phase, incidents):
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
