"""Shows on standard error how far long work is. Where that is no terminal, nothing is shown."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Advance = Callable[[str], None]
"""One step is done, of what is named."""


@contextmanager
def progress(what: str, steps: int) -> Iterator[Advance]:
    """A bar that disappears at the end."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    console, hidden = Console(stderr=True), not sys.stderr.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, disable=hidden) as bar:
        task = bar.add_task(what, total=steps)
        yield lambda what: bar.update(task, advance=1, description=what)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Says what is being done, until it is done."""
    with Console(stderr=True).status(what) if sys.stderr.isatty() else nullcontext():
        yield
