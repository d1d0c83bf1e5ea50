"""How long partitions wait while every consumer is replaced under load: `python -m bench.rollout`.

A group reads a steady load; again and again its consumers' settings are changed, so that the controller replaces them
all, one after the other. A real broker, a real lake, local processes. Writes a page into a folder.
"""

import argparse
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from app.settings import load
from bench.figures import markdown_table, run_facts, write_page
from bench.quiet import LoadBefore, add_busy, await_quiet
from bench.running_group import Bench
from bench.stepped_load import SteppedLoad
from bench.transcript import Transcript
from controller.decide.decider import ROLLOUT
from controller.local_processes import running_consumers
from domain.partitions import TopicPartition
from sandbox.readers import ReadLog, gaps_s
from sandbox.services import start_services

CAPACITY = 200_000.0
"""Of a consumer, in bytes/s."""
LOAD = 1.35
"""In consumers: with the usual headroom it takes two."""
CALM_S = 8.0
ALLOWED_S = 2.0
"""Beyond a cycle, for one partition."""


def main() -> None:
    options = parse_options()
    before = await_quiet(options.busy)
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="kcga-rollout-") as folder, ExitStack() as stack:
        services = start_services(stack, Path(folder), console)
        partitions = [TopicPartition("rolled", number) for number in range(options.partitions)]
        speeds = dict.fromkeys(partitions, LOAD * CAPACITY / options.partitions)
        bench = Bench(services, Path(folder), "rolled", options.partitions, CAPACITY, window_s=5)
        with (
            console.status(f"{options.rollouts} rollouts ..."),
            bench.monitored() as heard,
            SteppedLoad(services.bootstrap_servers, speeds),
            bench.controlled(heard),
        ):
            time.sleep(CALM_S)
            began = time.time()
            took_s = [replace_all(bench, heard, number) for number in range(options.rollouts)]
        tell(heard, began, took_s, options, before)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.rollout", description=__doc__)
    parser.add_argument("--partitions", type=int, default=40, help="(%(default)s)")
    parser.add_argument("--rollouts", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the page (%(default)s)")
    add_busy(parser)
    return parser.parse_args()


def replace_all(bench: Bench, heard: Transcript, number: int) -> float:
    """From the change of the settings until all that they began with is gone, in seconds."""
    folder = load(bench.settings_file).local.folder
    first = set(running_consumers(folder).values())
    began = time.monotonic()
    bench.change_consumers(wait_time_secs=5 + (number + 1) / 1000)
    heard.wait_until(lambda: not first & set(running_consumers(folder).values()), "all are replaced", within_s=300)
    took_s = time.monotonic() - began
    time.sleep(CALM_S)
    return took_s


def tell(heard: Transcript, began: float, took_s: list[float], options: argparse.Namespace, before: LoadBefore) -> None:
    """Writes the page.

    Raises:
        SystemExit: the bar is missed.
    """
    reports = [report for report in heard.reports if report.sent_at >= began]
    cycles = [cycle.fetch_s + cycle.write_s for report in reports if (cycle := report.cycle) is not None]
    gaps = gaps_s(ReadLog(heard.reports).stints, since=began)
    replaced = sum(decision.engine == ROLLOUT and decision.decided_at >= began for decision in heard.decisions)
    rows = [
        ("a partition, from one reader to the next", gaps),
        ("a consumer's cycle", cycles),
        ("a whole rollout", took_s),
    ]
    table = markdown_table(
        ["what, in seconds", "median", "shortest", "longest", "times"],
        [(what, *(f"{of(each):.2f}" for of in (statistics.median, min, max)), len(each)) for what, each in rows],
    )
    bar = statistics.median(cycles) + ALLOWED_S
    facts = run_facts("bench.rollout", before)
    page = PAGE.format(facts=facts, table=table, replaced=replaced, partitions=options.partitions, bar=bar)
    write_page(options.folder / "rollout.md", page)
    if max(gaps) > bar:
        raise SystemExit(
            f"a partition had no reader for {max(gaps):.2f} s: above a cycle and {ALLOWED_S:g} s, {bar:.2f}"
        )


PAGE = """\
# While every consumer is replaced

{facts}

{table}

{replaced} consumers were replaced, one at a time, under a load of 1.35 consumers on {partitions} partitions, as their
settings changed. The bar for a partition without a reader is one cycle (the median) and 2 s: {bar:.2f} s. It is taken
from the last record that the one read to the first that the other read, by the consumers' clocks; meanwhile the old
consumer writes its batch, and the new one takes over.
"""


if __name__ == "__main__":
    main()
