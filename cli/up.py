"""`kcga up`: the whole system on this machine, under a load that rises and falls, with proof at the end. From its
options to its summary: a folder, the services, one run, and nothing left of any of it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from app import logs
from app.errors import KcgaError
from app.interrupts import Interrupts
from cli.watch.terminal import LiveView
from sandbox.demonstration import Demonstration
from sandbox.services import start_services
from sandbox.summary import Summary


@dataclass(frozen=True, slots=True)
class UpOptions:
    seconds: float | None = None
    """How long the load lasts; until it is interrupted where there is none."""
    bootstrap_servers: str | None = None
    """Brokers of one's own, in place of the one that comes with kcga."""
    kafka_port: int | None = None
    """Of the broker that comes with kcga; a free one where there is none."""
    keep: Path | None = None
    """A folder for logs, lake and settings that is left in place; otherwise a temporary one is removed at the end."""
    seed: int = 0
    """Of the records that are produced, and of the faults."""
    chaos_every_s: float | None = None
    """From one fault to the next; nothing is broken on purpose where there is none."""


def up(options: UpOptions, console: Console, interrupts: Interrupts) -> Summary:
    """Runs the demonstration and returns what it proved. Whatever ends it, nothing that it started is left.

    Raises:
        KcgaError: something could not be started, or keeps ending by itself.
        KeyboardInterrupt: it was interrupted while it started, or for the second time.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(_run_folder(options.keep))
            # Standard error is the picture's.
            logs.configure("up", stack.enter_context((folder / "up.log").open("a", encoding="utf-8")))
            services = start_services(
                stack,
                folder,
                console,
                bootstrap_servers=options.bootstrap_servers,
                kafka_port=options.kafka_port,
            )
            run = Demonstration(
                folder,
                services,
                console,
                interrupts,
                partial(LiveView, console),
                seconds=options.seconds,
                seed=options.seed,
                chaos_every_s=options.chaos_every_s,
            )
            return run.run()
        except OSError as error:
            raise KcgaError(f"kcga up cannot go on: {error}") from error


@contextmanager
def _run_folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise KcgaError(f"the folder {keep} is not empty: name one that is, or does not exist")
        yield keep.resolve()
        return
    folder = Path(tempfile.mkdtemp(prefix="kcga-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
