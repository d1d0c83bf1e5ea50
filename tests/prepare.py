"""All that tests need and that takes minutes to get, got ahead of them: `python -m tests.prepare`.

Whatever is there already is used. What this machine cannot have is said.
"""

import threading
import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from app.class_data import archive_for
from app.errors import KcgaError
from app.jars import DELTA, GCS, KAFKA, S3, obtain
from sandbox import class_data
from tests import apicurio, tools
from tests.go_program import build, program
from tests.kubernetes import control_plane
from tests.object_store import gcs, s3
from tests.sink_examples import POSTGRES_MODULE

_SHOWN_EVERY_S = 30.0


def prepare(console: Console) -> None:
    """Fetches jars, a schema registry and packages of a store, archives Spark's classes, and builds what is of Go:
    control plane, store, a sink.

    Raises:
        KcgaError: the jars, packages or modules are not to be had, or the build failed.
    """
    if said := tools.report():
        console.print(said, highlight=False, markup=False)
    for jars in (KAFKA, DELTA, S3, GCS):
        obtain(jars)
    if not archive_for(obtain(DELTA)).exists():
        console.print("Archiving Spark's classes, by which Spark starts sooner (once, about a minute)", highlight=False)
        class_data.make()
    apicurio.obtain()
    s3.environment()
    go = tools.GO.find()
    wanted = [module for module in (control_plane.MODULE, gcs.MODULE, POSTGRES_MODULE) if not program(module).exists()]
    if go is None or not wanted:
        return
    ended = threading.Event()
    telling = threading.Thread(target=_tell, args=(console, ended), daemon=True)
    telling.start()
    try:
        for module in wanted:
            build(go, module)
    finally:
        ended.set()
        telling.join()


def _tell(console: Console, ended: threading.Event) -> None:
    """How long the build goes on already: on a terminal a line that changes, elsewhere a line now and then."""
    began = time.monotonic()

    def line() -> Text:
        minutes, seconds = divmod(int(time.monotonic() - began), 60)
        return Text(f"Building what tests need of Go (once, about 7 minutes on 2 cores): {minutes}:{seconds:02}")

    if console.is_terminal:
        with Live(line(), console=console, refresh_per_second=1, get_renderable=line):
            ended.wait()
        return
    while True:
        console.print(line())
        if ended.wait(_SHOWN_EVERY_S):
            return


if __name__ == "__main__":
    try:
        prepare(Console(stderr=True))
    except KcgaError as error:
        raise SystemExit(str(error)) from error
