"""`kcga up`: the whole system on this machine, under a load that rises and falls, with proof at the end. From its
options to its summary: a folder, the services, one run, and nothing left of any of it."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app import logs
from app.access import client_config
from app.errors import KcgaError
from app.interrupts import Interrupts
from app.settings import checked
from cli.options import OutputFormat
from cli.terminal.live_view import LiveView
from cli.terminal.summary_table import SummaryTable
from sandbox.demonstration import Demonstration, Story
from sandbox.services import start_services
from sandbox.summary import Summary


def up(
    seconds: Annotated[
        float | None, typer.Option("--for", min=1, help="End by itself after so many seconds of load.")
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            help="Use these Kafka brokers (host:port) in place of one that is started; KCGA_KAFKA__CLIENT says how."
        ),
    ] = None,
    kafka_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port of the Kafka broker that is started.")
    ] = None,
    spark_master: Annotated[
        str | None,
        typer.Option(
            help="Have this Spark cluster (spark://host:7077) do the work; its workers must see the folder of the run "
            "(--keep) under the same path."
        ),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Put logs, lake and settings into this folder and leave them there.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the records that are produced, and of the faults.")] = 0,
    chaos: Annotated[
        bool,
        typer.Option(
            "--chaos",
            help="Kill or freeze controller, monitor, a consumer, Spark or the broker, one after the other.",
        ),
    ] = False,
    chaos_every: Annotated[float, typer.Option(min=5, help="Seconds from one fault to the next.")] = 10,
    oversized: Annotated[
        bool,
        typer.Option(
            "--oversized", help="Have one partition outgrow a consumer for a while, and a class of larger ones for it."
        ),
    ] = False,
    output: Annotated[OutputFormat, typer.Option(help="How the closing summary is printed.")] = OutputFormat.TEXT,
) -> None:
    console = Console(stderr=True)
    interrupts = Interrupts()
    with interrupts.handled():
        try:
            summary = demonstrate(
                console,
                interrupts,
                Story(seconds, seed, chaos_every if chaos else None, oversized),
                bootstrap_servers=bootstrap_servers,
                kafka_port=kafka_port,
                spark_cluster=spark_master,
                keep=keep,
            )
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
    console.print(SummaryTable(summary))
    if output is OutputFormat.JSON:
        print(summary.model_dump_json())  # noqa: T201
    if not summary.ok:
        raise typer.Exit(1)


def demonstrate(
    console: Console,
    interrupts: Interrupts,
    story: Story,
    *,
    bootstrap_servers: str | None = None,
    kafka_port: int | None = None,
    spark_cluster: str | None = None,
    keep: Path | None = None,
) -> Summary:
    """Runs the demonstration and returns what it proved. Whatever ends it, nothing that it started is left.

    Args:
        console: where it is shown.
        interrupts: they end it.
        story: what happens in it.
        bootstrap_servers: brokers of one's own, in place of the one that comes with kcga.
        kafka_port: of the broker that comes with kcga; a free one where there is none.
        spark_cluster: does what Spark has to do; this machine alone where there is none.
        keep: a folder for logs, lake and settings that is left in place; a temporary one is removed at the end.

    Raises:
        UsageError: `spark_cluster` names none.
        KcgaError: something could not be started, or keeps ending by itself.
        KeyboardInterrupt: it was interrupted while it started, or for the second time.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(_run_folder(keep))
            # Standard error is the picture's.
            logs.configure("up", stack.enter_context((folder / "up.log").open("a", encoding="utf-8")))
            services = start_services(
                stack,
                folder,
                console,
                bootstrap_servers=bootstrap_servers,
                client_config=_client_config(bootstrap_servers),
                kafka_port=kafka_port,
                spark_cluster=spark_cluster,
            )
            return Demonstration(folder, services, console, interrupts, partial(LiveView, console), story).run()
        except OSError as error:
            raise KcgaError(f"kcga up cannot go on: {error}") from error


def _client_config(bootstrap_servers: str | None) -> Mapping[str, str]:
    """How the environment says to connect to somebody's brokers."""
    if bootstrap_servers is None:
        return {}
    needed = {
        "kafka": {"bootstrap_servers": bootstrap_servers},
        "monitor": {"topics": ["orders"]},
        "consumer": {"spark_remote": "sc://127.0.0.1", "lake_root": "/"},
    }
    return client_config(checked(needed, "in the environment").kafka)


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
