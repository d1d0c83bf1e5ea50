"""A group of 10,000 partitions and 1,000 consumers over a real broker: `python -m bench.scale`.

The broker, the controller's process, its solver and every message are real. The consumers are simulated: they speak the
protocol of `domain.messages.metadata` and read no data, so that one machine has room for a thousand. So are the write
speeds, in place of a monitor; the topics that they tell of do not exist.

First the whole group begins from nothing. Then the speeds change, again and again, so that consumers are overloaded and
partitions move. Every command has to arrive, and every report. At last consumers die, one every few seconds, while the
solver is at work: what they read has to have another reader soon. All times are real ones. Writes a page and its plot
into a folder, and ends with exit code 1 where a bar is missed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from app.jars import KAFKA, obtain
from app.java import find_java
from app.topics import Cluster
from bench.figures import draw_course, markdown_table, plot_in, run_facts
from bench.quiet import LoadBefore, add_busy, await_quiet
from bench.scale.crowd import Crowd, Traffic
from bench.scale.deaths import BY_RULE, FOR_S, Deaths, deaths, section
from bench.scale.process import NAMES, Watch, controller
from controller.settings import ControllerSettings
from domain.messages import Decision
from domain.partitions import TopicPartition
from sandbox.broker import Broker

CAPACITY = 2_300_000.0
FASTEST = 0.7
"""Of a partition, over the capacity."""
FILL = 0.95
"""Of what plans give a consumer at most: no number of consumers fits to the last byte."""
TRIPLED = 0.1
REST_S = 10.0
"""So long it is watched while nothing changes."""
DECIDED_WITHIN_S = 20.0
MOST_BYTES = 2**30
"""Of the controller's process."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One change of the group, from the new speeds to every partition read where the plan has it."""

    what: str
    decided_after_s: float
    """From the publication of the speeds until the decision could be read."""
    solve_s: float
    cpu_s: float
    """Of the controller's process, until the decision."""
    handed_over_after_s: float
    """From the decision."""
    consumers: int
    migrations: int
    commands: int


def passage(what: str, crowd: Crowd, watch: Watch, speeds: Mapping[TopicPartition, float], within_s: float) -> Passage:
    """Publishes new speeds, and waits until the group is as the last decision that was carried out wants it.

    Raises:
        SystemExit: that is not so in time.
    """
    decisions, commands = len(crowd.decisions), crowd.traffic.commands
    began, cpu_s = time.monotonic(), watch.cpu_s
    crowd.publish(speeds)
    first: tuple[float, float, Decision] | None = None
    while time.monotonic() - began < within_s:
        time.sleep(0.1)
        spent_s = watch.cpu_s - cpu_s
        carried_out = [(at, each) for at, each in crowd.decisions[decisions:] if each.carried_out]
        if not carried_out:
            continue
        if first is None:
            first = (carried_out[0][0], spent_s, carried_out[0][1])
        planned = {entry.key: [entry.consumer] for entry in carried_out[-1][1].assignment}
        if crowd.held() == planned:
            decided_at, decided_cpu_s, decision = first
            return Passage(
                what=what,
                decided_after_s=decided_at - began,
                solve_s=decision.solve_s,
                cpu_s=decided_cpu_s,
                handed_over_after_s=time.monotonic() - decided_at,
                consumers=decision.plan.consumers,
                migrations=sum(
                    entry.previous not in (None, entry.consumer) for _, each in carried_out for entry in each.assignment
                ),
                commands=crowd.traffic.commands - commands,
            )
    made = [each for _, each in crowd.decisions[decisions:]]
    held, wanted = crowd.held(), made[-1].assignment if made else ()
    elsewhere = sum(held.get(entry.key) != [entry.consumer] for entry in wanted)
    raise SystemExit(
        f"{what}: the group was not as planned after {within_s:g} s; {len(made)} decisions, "
        f"{sum(each.carried_out for each in made)} carried out, {elsewhere} partitions not where the last one has them"
    )


def await_solver(crowd: Crowd, within_s: float) -> None:
    """What was placed by rule the solver may improve on: waits for its answer, which a change would have to wait for.

    Raises:
        SystemExit: it does not come in time.
    """
    deadline = time.monotonic() + within_s
    while crowd.decisions[-1][1].engine == BY_RULE:
        if time.monotonic() > deadline:
            raise SystemExit(f"the solver has not answered after {within_s:g} s")
        time.sleep(0.1)


def changing(partitions: int, load: float, changes: int, seed: int) -> Iterator[dict[TopicPartition, float]]:
    """Log-normal speeds; then, at each change, a tenth of the partitions triples, and all others slow down for it.

    Args:
        partitions: how many.
        load: of all together, in bytes/s; always the same.
        changes: how many.
        seed: of what is drawn.
    """
    chance = np.random.default_rng(seed)
    names = [TopicPartition("topic", number) for number in range(partitions)]
    sizes = chance.lognormal(0.0, 1.0, partitions)
    for _ in range(changes + 1):
        # A partition faster than a consumer is another matter: nobody could keep up with it.
        sizes = np.minimum(sizes * load / sizes.sum(), FASTEST * CAPACITY)
        yield dict(zip(names, sizes.tolist(), strict=True))
        sizes = np.where(chance.random(partitions) < TRIPLED, 3 * sizes, sizes)


def main() -> None:
    options = parse_options()
    plot = plot_in(options.folder, "scale.svg")
    before = await_quiet(options.busy)
    settings = ControllerSettings(
        consumer_capacity=CAPACITY,
        max_consumers=round(1.3 * options.consumers),
        time_limit_s=options.limit,
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kcga-scale-")))
        broker = stack.enter_context(Broker(folder / "kafka", jars=obtain(KAFKA), java=find_java(), heap_mb=1024))
        servers = broker.bootstrap_servers
        Cluster(servers).ensure_internal_topics(NAMES, settings.highest_consumer)
        pid, pipe = stack.enter_context(controller(servers, settings, folder))
        with Crowd(servers, settings, pipe) as crowd:
            watch = Watch(pid)
            passages = []
            load = options.consumers * settings.packing * FILL
            for number, speeds in enumerate(changing(options.partitions, load, options.changes, options.seed)):
                what = f"change {number}" if number else "from nothing"
                if number:
                    await_solver(crowd, options.within)
                    time.sleep(settings.least_interval_s)  # which it keeps between two decisions
                passages.append(passage(what, crowd, watch, speeds, options.within))
                print(passages[-1], file=sys.stderr)
            rest = at_rest(crowd, watch)
            died = deaths(crowd, watch, options.deaths, options.seed)
        said = (folder / "controller.log").read_text(encoding="utf-8")
    messages = Messages(crowd.traffic, said.count("a message was dropped"))
    draw(passages, plot)
    page = options.folder / "scale.md"
    page.write_text(page_of(options, passages, watch, messages, rest, died, before, plot.name) + "\n", encoding="utf-8")
    print(f"{page} and {plot.name} are written")
    if missed := [*misses(passages, watch, messages), *died.misses()]:
        sys.exit(f"a bar is missed: {'; '.join(missed)}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--partitions", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--consumers", type=int, default=1_000, help="about as many as the load needs (%(default)s)")
    parser.add_argument("--changes", type=int, default=3, help="of the speeds (%(default)s)")
    parser.add_argument("--deaths", type=float, default=FOR_S, help="for so many seconds (%(default)g)")
    parser.add_argument("--limit", type=float, default=12.0, help="seconds a call of the solver (%(default)g)")
    parser.add_argument("--within", type=float, default=180.0, help="seconds for each change (%(default)g)")
    parser.add_argument("--seed", type=int, default=1, help="of the speeds (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the results (%(default)s)")
    add_busy(parser)
    return parser.parse_args()


@dataclass(frozen=True, slots=True)
class Rest:
    """What it takes while nothing changes."""

    cores: float
    """Of the controller's process."""
    reports_per_s: float


def at_rest(crowd: Crowd, watch: Watch) -> Rest:
    cpu_s, began, reports = watch.cpu_s, time.monotonic(), crowd.traffic.reports
    time.sleep(REST_S)
    elapsed_s = time.monotonic() - began
    return Rest((watch.cpu_s - cpu_s) / elapsed_s, (crowd.traffic.reports - reports) / elapsed_s)


@dataclass(frozen=True, slots=True)
class Messages:
    """What became of them all."""

    traffic: Traffic
    dropped: int
    """By the controller, as invalid."""

    @property
    def unacknowledged(self) -> int:
        return self.traffic.reports + self.traffic.speeds - self.traffic.delivered - len(self.traffic.errors)

    @property
    def lost(self) -> int:
        return self.unacknowledged + len(self.traffic.errors) + self.dropped


def misses(passages: Sequence[Passage], watch: Watch, messages: Messages) -> Iterator[str]:
    """The bars that were not kept."""
    slowest = max(each.decided_after_s for each in passages)
    if slowest > DECIDED_WITHIN_S:
        yield f"a decision after {slowest:.1f} s"
    if watch.peak_bytes > MOST_BYTES:
        yield f"{watch.peak_bytes / 2**20:,.0f} MiB of memory"
    if messages.lost:
        yield f"{messages.lost} messages lost"


def draw(passages: Sequence[Passage], file: Path) -> None:
    """How long each change took to be decided and to be carried out."""
    decided = [each.decided_after_s for each in passages]
    handed_over = [each.handed_over_after_s for each in passages]
    phases = (("until the decision", decided), ("until every partition is handed over", handed_over))
    draw_course([each.what for each in passages], phases, file, DECIDED_WITHIN_S)


def page_of(
    options: argparse.Namespace,
    passages: Sequence[Passage],
    watch: Watch,
    messages: Messages,
    rest: Rest,
    died: Deaths,
    before: LoadBefore,
    plot: str,
) -> str:
    rows = [
        (
            each.what,
            f"{each.decided_after_s:.1f}",
            f"{each.solve_s:.1f}",
            f"{each.cpu_s:.1f}",
            f"{each.handed_over_after_s:.1f}",
            f"{each.consumers:,}",
            f"{each.migrations:,}",
            f"{each.commands:,}",
        )
        for each in passages
    ]
    headings = (
        "",
        "decided after [s]",
        "solver [s]",
        "CPU until then [s]",
        "handed over after [s]",
        "consumers",
        "migrations",
        "commands",
    )
    traffic = messages.traffic
    facts = [
        (
            "Group",
            f"{options.partitions:,} partitions, log-normal speeds of which a tenth triples at each change; one broker",
        ),
        ("Seed", str(options.seed)),
        ("Solver", f"{options.limit:g} s a call"),
    ]
    sections = [
        f"# {options.partitions:,} partitions, about {options.consumers:,} consumers",
        "Broker, controller, solver and messages are real; the consumers are simulated: they speak the protocol and "
        "read nothing. All of them, and the monitor, are one process beside the controller's.",
        run_facts("bench.scale", before, facts),
        f"![How long each change took; the line is {DECIDED_WITHIN_S:g} s]({plot})",
        markdown_table(headings, rows),
        f"- The controller's memory: {watch.peak_bytes / 2**20:,.0f} MiB at most. At rest it takes {rest.cores:.2f} of "
        f"a core, with {rest.reports_per_s:,.0f} reports a second.\n"
        f"- Median time to a decision: {median(each.decided_after_s for each in passages):.1f} s.\n"
        f"- Messages: {traffic.commands:,} commands arrived; {traffic.reports:,} reports were sent, "
        f"{len(traffic.errors):,} messages failed, {messages.unacknowledged:,} were not acknowledged, "
        f"{messages.dropped:,} were dropped as invalid. After each change every partition was held by the consumer "
        "that the plan names, and by no other.",
        section(died),
    ]
    return "\n\n".join(sections)


if __name__ == "__main__":
    main()
