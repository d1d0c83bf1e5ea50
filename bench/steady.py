"""What a group does under a load that asks for nothing: `python -m bench.steady`.

A steady load, written record by record or in bursts, must move no partition. A load that swings about the threshold of
one consumer more must have consumers removed at most once in a scale-down window. Runs a real broker, a real lake and
local processes, writes what was decided into a page in a folder, each of the two loads into its own part of it, and
ends with exit code 1 where that was too much.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from rich.console import Console

from bench.figures import run_facts, write_page
from bench.quiet import add_busy, await_quiet
from bench.running_group import Bench
from bench.stepped_load import SteppedLoad
from bench.timings import shrinks
from bench.transcript import Transcript
from domain.messages import Decision
from domain.partitions import TopicPartition
from sandbox.services import start_services

CAPACITY = 200_000.0
"""Of a consumer, in bytes/s."""
STEADY = 2.2
"""The steady load, in consumers: three of them, as plans fill them, and 2 % less."""
SWING = (1.0, 2.0)
"""Between these the load swings, in consumers: as plans fill them, two and three."""
HEADING = """\
# A load that asks for nothing

What a group decides while the load does not change, and below while it swings about the threshold of one consumer more.
Nothing may be moved in the one, and in the other consumers be removed once in a scale-down window.
"""
STEADY_HEADING = "\n## A steady load\n\n"
SWING_HEADING = "\n## A load that swings\n\n"
"""Its part goes below that of the other."""
SETTLE_S = 30.0
"""Time to begin: what is decided meanwhile is no answer to a steady load."""


def main() -> None:
    options = parse_options()
    before = await_quiet(options.busy)
    console = Console(stderr=True)
    shares = {TopicPartition("steady", n): 0.5 + (n * 0.618) % 1 for n in range(options.partitions)}
    unit = CAPACITY / sum(shares.values())
    low, high = (STEADY, STEADY) if options.swing is None else SWING
    with tempfile.TemporaryDirectory(prefix="kcga-steady-") as folder, ExitStack() as stack:
        services = start_services(stack, Path(folder), console)
        bench = Bench(
            services,
            Path(folder),
            "steady",
            options.partitions,
            CAPACITY,
            options.window,
            scale_down_window_s=options.scale_down_window,
        )
        load = stack.enter_context(
            SteppedLoad(
                services.bootstrap_servers, {p: high * unit * share for p, share in shares.items()}, options.burst
            )
        )
        heard = stack.enter_context(bench.monitored())
        stack.enter_context(bench.controlled(heard))
        with console.status("Settling ..."):
            time.sleep(SETTLE_S)
        began = time.time()
        with console.status(f"Watching for {options.seconds:g} s ..."):
            while (elapsed := time.time() - began) < options.seconds:
                is_high = options.swing is None or int(2 * elapsed / options.swing) % 2 == 0
                load.step({p: (high if is_high else low) * unit * share for p, share in shares.items()})
                time.sleep(0.5)
        part = "\n".join([run_facts("bench.steady", before), *told(heard, began)])
        page = options.folder / "steady.md"
        former = page.read_text(encoding="utf-8") if page.exists() else ""
        write_page(page, page_of(part, former, swings=options.swing is not None))
        judge(heard, began, options)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.steady", description=__doc__)
    parser.add_argument("--seconds", type=float, default=240.0, help="so long the group is watched")
    parser.add_argument("--partitions", type=int, default=40)
    parser.add_argument("--window", type=float, default=30.0, help="the monitor's, in seconds")
    parser.add_argument("--scale-down-window", type=float, default=60.0, help="in seconds")
    parser.add_argument("--burst", type=float, default=0.02, help="what is due is written so often, in seconds")
    parser.add_argument("--swing", type=float, help="the load swings with this period, in seconds; steady unless given")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the page (%(default)s)")
    add_busy(parser)
    return parser.parse_args()


def page_of(part: str, former: str, *, swings: bool) -> str:
    """The page with this part in it; the other one stays as it was in the former page, if there was one."""
    steady, swing_heading, swing = former.partition(SWING_HEADING)
    if swings:
        return f"{steady or HEADING}{SWING_HEADING}{part}\n"
    return f"{HEADING}{STEADY_HEADING}{part}\n{swing_heading}{swing}"


def decided(heard: Transcript, since: float) -> list[Decision]:
    return [decision for decision in heard.decisions if decision.decided_at >= since]


def told(heard: Transcript, since: float) -> Iterator[str]:
    """What was decided, and how much the load of all seemed to change: lines of a list."""
    totals = [report.speeds.total for at, report in heard.speeds if at >= since and not report.speeds.unknown]
    if totals:
        yield f"- Load, as measured: {min(totals):,.0f} to {max(totals):,.0f} bytes/s"
    decisions = decided(heard, since)
    carried_out = [decision for decision in decisions if decision.carried_out]
    yield f"- Decisions: {len(decisions)}, carried out: {len(carried_out)}"
    for decision in carried_out:
        moves = sum(entry.previous not in (None, entry.consumer) for entry in decision.assignment)
        why = f"{'; '.join(decision.triggers)}: {decision.reason}"
        yield f"  - after {decision.decided_at - since:.0f} s: {moves} migrations; {why}"


def judge(heard: Transcript, since: float, options: argparse.Namespace) -> None:
    carried_out = [decision for decision in decided(heard, since) if decision.carried_out]
    if options.swing is None and carried_out:
        sys.exit("a steady load moved partitions")
    fewer = [decision.decided_at for decision in carried_out if shrinks(decision)]
    if any(later - earlier < options.scale_down_window for earlier, later in pairwise(fewer)):
        sys.exit("consumers were removed twice within a scale-down window")


if __name__ == "__main__":
    main()
