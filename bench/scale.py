"""A group of 10,000 partitions and 1,000 consumers over a real broker: `python -m bench.scale`.

The broker, the controller's process, its solver and every message are real. The consumers are simulated: they speak the
protocol of `domain.messages.metadata` and read no data, so that one machine has room for a thousand. So are the write
speeds, in place of a monitor; the topics that they tell of do not exist.

First the whole group begins from nothing. Then the speeds change, again and again, so that consumers are overloaded and
partitions move. Every command has to arrive, and every report. Writes a page and its plot into a folder, and ends with
exit code 1 where a bar is missed.
"""

import argparse
import multiprocessing
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Position

from bench.figures import draw_course, markdown_table, run_facts
from bench.quiet import LoadBefore, add_busy, await_quiet
from cli import logs
from cli.background import Background
from cli.embedded.broker import Broker
from cli.embedded.jars import KAFKA, obtain
from cli.embedded.java import find_java
from cli.errors import KcgaError
from cli.packing.plotting import require_plotting
from cli.topics import Cluster
from consumer.commands import Holding
from controller.kafka import KafkaLink
from controller.runner import run as control
from controller.settings import ControllerSettings
from controller.status.board import Board
from domain.assignment import ConsumerId
from domain.messages import (
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    Decision,
    PartitionRef,
    WriteSpeedReport,
)
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from domain.topics import CONTROLLER_PARTITION, TopicNames
from solver import solve

GROUP = "scale"
CAPACITY = 2_300_000.0
FASTEST = 0.7
"""Of a partition, over the capacity."""
FILL = 0.95
"""Of what plans give a consumer at most: no number of consumers fits to the last byte."""
TRIPLED = 0.1
REPORT_EVERY_S = 1.0
"""The heartbeat of each consumer, and the interval of the monitor."""
REST_S = 10.0
"""So long it is watched while nothing changes."""
DECIDED_WITHIN_S = 20.0
MOST_BYTES = 2**30
"""Of the controller's process."""
NAMES = TopicNames()
LARGE = {"compression.type": "lz4", "message.max.bytes": 50_000_000}
"""Ten thousand speeds are one record."""


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


class PipeFleet:
    """The controller's end of a pipe to whoever simulates its consumers."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._exist: frozenset[ConsumerId] = frozenset()

    def consumers(self) -> frozenset[ConsumerId]:
        while self._pipe.poll():
            self._exist -= self._pipe.recv()
        return self._exist

    def create(self, consumer: ConsumerId) -> None:
        self._exist |= {consumer}
        self._pipe.send(("create", consumer))

    def delete(self, consumer: ConsumerId) -> None:
        self._pipe.send(("delete", consumer))


def run_controller(servers: str, settings: ControllerSettings, pipe: Connection, log: str) -> None:
    """What the controller's process does until it is ended."""
    with Path(log).open("w", encoding="utf-8") as stream:
        logs.configure("controller", stream)
        link = KafkaLink(servers, GROUP, names=NAMES)
        control(settings, link, PipeFleet(pipe), solve, threading.Event(), audience=Board(GROUP, settings))


@dataclass(slots=True)
class Fake:
    """A consumer that reads nothing."""

    holding: Holding
    reports: int = 0
    report_at: float = 0.0
    """When the next heartbeat is due."""


@dataclass(slots=True)
class Traffic:
    """Messages, counted where they are sent and where they arrive."""

    commands: int = 0
    reports: int = 0
    speeds: int = 0
    """Reports of the monitor."""
    delivered: int = 0
    errors: list[str] = field(default_factory=list)


class Crowd(Background):
    """All simulated consumers, the simulated monitor, and who reads the decisions; works in its own thread.

    Args:
        servers: of the broker.
        settings: of the controller: how many consumers there may be.
        pipe: the other end of the controller's.
    """

    def __init__(self, servers: str, settings: ControllerSettings, pipe: Connection) -> None:
        super().__init__("crowd")
        self.traffic = Traffic()
        self.decisions: list[tuple[float, Decision]] = []
        """With when each arrived, on the monotonic clock."""
        self._pipe = pipe
        self._fakes: dict[ConsumerId, Fake] = {}
        self._speeds: Mapping[TopicPartition, float] = {}
        self._told_at = 0.0
        self._lock = threading.Lock()
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, **LARGE})
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "crowd",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )
        self._consumer.assign(
            [
                Position(NAMES.decisions, 0, OFFSET_BEGINNING),
                *(Position(NAMES.metadata, n, OFFSET_BEGINNING) for n in range(1, settings.highest_consumer + 1)),
            ]
        )

    def publish(self, speeds: Mapping[TopicPartition, float]) -> None:
        """From now on these are the write speeds."""
        with self._lock:
            self._speeds = speeds
            self._told_at = 0.0

    def held(self) -> dict[TopicPartition, list[ConsumerId]]:
        """Who holds each partition."""
        with self._lock:
            held: dict[TopicPartition, list[ConsumerId]] = {}
            for number, fake in self._fakes.items():
                for partition in fake.holding.stints:
                    held.setdefault(partition, []).append(number)
            return held

    def _work(self) -> None:
        while not self._stop.is_set():
            records = self._consumer.consume(2000, 0.02)
            with self._lock:
                self._obey_the_fleet()
                for record in records:
                    self._take(record)
                self._report()
            self._producer.poll(0)
        self._producer.flush(30)
        self._consumer.close()

    def _obey_the_fleet(self) -> None:
        while self._pipe.poll():
            what, number = self._pipe.recv()
            if what == "create":
                self._fakes[number] = Fake(Holding(number, uuid.uuid4().hex))
            else:
                self._fakes.pop(number, None)
                self._pipe.send(frozenset({number}))

    def _take(self, record: Message) -> None:
        value = record.value()
        if record.error() is not None or value is None:
            self.traffic.errors.append(str(record.error()))
        elif record.topic() == NAMES.decisions:
            self.decisions.append((time.monotonic(), Decision.decode(value)))
        else:
            self.traffic.commands += 1
            fake = self._fakes.get(record.partition() or 0)
            if fake is not None:
                fake.holding, _ = fake.holding.apply([ConsumerCommand.decode(value)])
                fake.report_at = 0.0

    def _report(self) -> None:
        now = time.monotonic()
        for number, fake in self._fakes.items():
            if fake.report_at <= now:
                # Spread over the interval, as those of processes that began at different times are.
                fake.report_at = now + REPORT_EVERY_S * (1.0 if fake.reports else (number % 97) / 97)
                fake.reports += 1
                self._send(NAMES.metadata, _report_of(number, fake).encode())
                self.traffic.reports += 1
        if self._speeds and now >= self._told_at + REPORT_EVERY_S:
            self._told_at = now
            none = {partition: Lag(0, 0.0, None) for partition in self._speeds}
            told = WriteSpeeds(time.time(), self._speeds, lags=none)
            self._send(NAMES.write_speed, WriteSpeedReport.of(told).encode())
            self.traffic.speeds += 1

    def _send(self, topic: str, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(topic, value, partition=CONTROLLER_PARTITION, on_delivery=self._delivered)
                return
            except BufferError:
                self._producer.poll(0.05)

    def _delivered(self, error: KafkaError | None, _record: Message) -> None:
        if error is None:
            self.traffic.delivered += 1
        else:
            self.traffic.errors.append(error.str())


def _report_of(number: ConsumerId, fake: Fake) -> ConsumerReport:
    holding = fake.holding
    return ConsumerReport(
        consumer=number,
        incarnation=holding.incarnation,
        sequence=fake.reports,
        sent_at=time.time(),
        state=ConsumerState.READY,
        applied_epoch=holding.applied.epoch,
        applied_sequence=holding.applied.sequence,
        partitions=tuple(PartitionRef.of(partition) for partition in holding.partitions),
    )


class Watch:
    """The controller's process: its CPU time, and the most memory that it ever took."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.peak_bytes = 0

    @property
    def cpu_s(self) -> float:
        self.peak_bytes = max(self.peak_bytes, self._process.memory_info().rss)
        times = self._process.cpu_times()
        return times.user + times.system


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


@contextmanager
def controller(servers: str, settings: ControllerSettings, folder: Path) -> Iterator[tuple[int, Connection]]:
    """The controller in a process of its own, once it has begun; its id, and the pipe to its fleet."""
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    log = folder / "controller.log"
    process = spawning.Process(target=run_controller, args=(servers, settings, theirs, str(log)), daemon=True)
    process.start()
    try:
        while not (log.exists() and "the controller begins" in log.read_text(encoding="utf-8")):
            if not process.is_alive():
                raise SystemExit("the controller ended before it began")
            time.sleep(0.1)
        yield process.pid or 0, ours
    finally:
        process.terminate()
        process.join()


def main() -> None:
    options = parse_options()
    options.folder.mkdir(parents=True, exist_ok=True)
    plot = options.folder / "scale.svg"
    try:
        require_plotting(plot)
    except KcgaError as error:
        raise SystemExit(str(error)) from error
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
                    time.sleep(settings.least_interval_s)  # which it keeps between two decisions
                passages.append(passage(what, crowd, watch, speeds, options.within))
                print(passages[-1], file=sys.stderr)
            rest = at_rest(crowd, watch)
        said = (folder / "controller.log").read_text(encoding="utf-8")
    messages = Messages(crowd.traffic, said.count("a message was dropped"))
    draw(passages, plot)
    page = options.folder / "scale.md"
    page.write_text(page_of(options, passages, watch, messages, rest, before, plot.name) + "\n", encoding="utf-8")
    print(f"{page} and {plot.name} are written")
    if missed := list(misses(passages, watch, messages)):
        sys.exit(f"a bar is missed: {'; '.join(missed)}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--partitions", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--consumers", type=int, default=1_000, help="about as many as the load needs (%(default)s)")
    parser.add_argument("--changes", type=int, default=3, help="of the speeds (%(default)s)")
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
    ]
    return "\n\n".join(sections)


if __name__ == "__main__":
    main()
