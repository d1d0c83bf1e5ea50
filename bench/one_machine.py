"""1,000 partitions and the load of one machine, through the whole of kcga: `python -m bench.one_machine`.

Monitor, controller, consumers, broker, Spark and lake are real and share this machine. Again and again the load of one
consumer grows to more than its capacity, so that partitions move. In the end the lake has to hold each record once.
Writes a page and a plot into a folder.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from bench.figures import draw_course, markdown_table, plot_in, run_facts
from bench.quiet import LoadBefore, add_busy, await_quiet
from bench.reaction import CALM_S, GROUP_WINDOW_S, LOAD, await_calm, handover, of_shift, planned, scaled, shifted
from bench.running_group import Bench
from bench.scale.process import Watch
from bench.stepped_load import RECORD_BYTES, SteppedLoad
from bench.timings import plan_s
from bench.transcript import Transcript
from consumer.verify import verify
from domain.messages import Decision
from domain.partitions import TopicPartition
from sandbox.services import Services, start_services

TOPIC = "machine"
SETTLES_S = 3.0
"""What the monitor tells so long after the last record counts that record in."""


@dataclass
class Course:
    """What happened, in seconds where it is a time."""

    first_readers_s: float = 0.0
    """From the controller's start until every partition had a reader."""
    decisions: list[Decision] = field(default_factory=list)
    """Those that the shifts of the load led to, as far as they were seen to their ends."""
    plans: list[float] = field(default_factory=list)
    """Of each of them, from its trigger."""
    handovers: list[float] = field(default_factory=list)
    """Of each of them, from the decision until its last start was acknowledged."""
    seconds: float = 0.0
    """For how long the following was counted."""
    records: int = 0
    messages: int = 0
    """Commands, reports, speeds and decisions."""
    controller_cpu_s: float = 0.0
    controller_bytes: int = 0
    produced: int = 0
    distinct: int = 0
    doubled: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.one_machine", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--partitions", type=int, default=1_000, help="(%(default)s)")
    parser.add_argument("--shifts", type=int, default=4, help="of the load (%(default)s)")
    parser.add_argument("--capacity", type=float, default=1_500_000, help="of a consumer, in bytes/s (%(default)g)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the results (%(default)s)")
    add_busy(parser)
    options = parser.parse_args()
    plot = plot_in(options.folder, "one-machine.svg")
    before = await_quiet(options.busy)
    with tempfile.TemporaryDirectory(prefix="kcga-machine-") as folder, ExitStack() as stack:
        services = start_services(stack, Path(folder), Console(stderr=True))
        course = run(services, Path(folder), options)
    page = options.folder / "one-machine.md"
    page.write_text(page_of(course, options, before, plot.name) + "\n", encoding="utf-8")
    names = [f"decision {number}" for number in range(1, len(course.decisions) + 1)]
    phases = (("until the plan", course.plans), ("until the last start is acknowledged", course.handovers))
    draw_course(names, phases, plot)
    print(f"{page} and {plot.name} are written")
    if (course.distinct, course.doubled) != (course.produced, 0):
        sys.exit(f"of {course.produced:,} records the lake holds {course.distinct:,}, {course.doubled:,} twice")


def run(services: Services, folder: Path, options: argparse.Namespace) -> Course:
    """From nothing until everything is read."""
    partitions, capacity = options.partitions, options.capacity
    shares = {TopicPartition(TOPIC, n): 0.5 + (n * 0.618) % 1 for n in range(partitions)}
    bench = Bench(services, folder, TOPIC, partitions, capacity, GROUP_WINDOW_S)
    course = Course()
    with (
        bench.monitored() as heard,
        SteppedLoad(services.bootstrap_servers, scaled(shares, list(shares), LOAD * capacity)) as load,
    ):
        started = time.monotonic()
        with bench.controlled(heard) as controller:
            course.first_readers_s = time.monotonic() - started
            time.sleep(CALM_S)
            watch, since = Watch(controller.pid), time.time()
            began, records, messages, cpu_s = time.monotonic(), load.acknowledged, said(heard), watch.cpu_s
            for number in range(options.shifts):
                readers = planned(heard.decisions)
                victim = sorted(readers.consumers)[number % len(readers.consumers)]
                stepped_at = load.step(shifted(shares, readers, victim, capacity))
                await_calm(heard, stepped_at)
            course.seconds = time.monotonic() - began
            course.records, course.messages = load.acknowledged - records, said(heard) - messages
            course.controller_cpu_s, course.controller_bytes = watch.cpu_s - cpu_s, watch.peak_bytes
            load.step(dict.fromkeys(shares, 0.0))
            ended_at = time.time()
            heard.wait_until(lambda: all_read(heard, ended_at + SETTLES_S), "everything is read", within_s=300)
    for decision in of_shift(heard, since):
        planned_s, handed_over_s = plan_s(decision), handover(heard, decision)
        if planned_s is not None and handed_over_s is not None:
            course.decisions.append(decision)
            course.plans.append(planned_s)
            course.handovers.append(handed_over_s)
    course.produced = load.acknowledged
    accounts = verify(services.spark_remote, str(folder / "lake"), [TOPIC]).values()
    course.distinct = sum(account.distinct_offsets for account in accounts)
    course.doubled = sum(account.doubled for account in accounts)
    return course


def said(heard: Transcript) -> int:
    """How many messages have been heard."""
    return len(heard.speeds) + len(heard.decisions) + len(heard.commands) + len(heard.reports)


def all_read(heard: Transcript, since: float) -> bool:
    """Whether the monitor has told since then that nothing is behind."""
    at, report = heard.speeds[-1]
    lags = report.speeds.lags
    return at >= since and len(lags) == len(report.partitions) and not any(lag.records for lag in lags.values())


def page_of(course: Course, options: argparse.Namespace, before: LoadBefore, plot: str) -> str:
    migrations = [
        sum(entry.previous not in (None, entry.consumer) for entry in each.assignment) for each in course.decisions
    ]
    rows = [
        ("from nothing until every partition has a reader [s]", f"{course.first_readers_s:.1f}"),
        ("partitions that a shift moved", _range(migrations, 0)),
        ("trigger to plan [s]", _range(course.plans, 2)),
        ("decision to the last acknowledged start [s]", _range(course.handovers, 2)),
        ("records a second", f"{course.records / course.seconds:,.0f}"),
        ("kcga's messages a second", f"{course.messages / course.seconds:.1f}"),
        ("the controller's share of a core", f"{course.controller_cpu_s / course.seconds:.3f}"),
        ("its memory [MiB]", f"{course.controller_bytes / 2**20:,.0f}"),
        ("records produced", f"{course.produced:,}"),
        ("in the lake", f"{course.distinct:,}"),
        ("of them twice", f"{course.doubled:,}"),
    ]
    load = LOAD * options.capacity
    facts = [
        (
            "Load",
            f"{load / 1e6:.2f} MB/s in records of {RECORD_BYTES} bytes to {options.partitions:,} partitions of one "
            f"broker; {options.shifts} times the load of one consumer grows to more than its capacity of "
            f"{options.capacity / 1e6:g} MB/s",
        )
    ]
    return "\n\n".join(
        [
            f"# {options.partitions:,} partitions on one machine",
            "Producer, broker, Spark, monitor, controller and consumers share the machine; nothing is simulated.",
            run_facts("bench.one_machine", before, facts),
            f"![How long each decision and its handover took]({plot})",
            markdown_table(("what", "measured"), rows),
        ]
    )


def _range(values: Sequence[float], digits: int) -> str:
    """From the least to the most."""
    if not values:
        return "none"
    least, most = (f"{of(values):,.{digits}f}" for of in (min, max))
    return least if least == most else f"{least} to {most}"


if __name__ == "__main__":
    main()
