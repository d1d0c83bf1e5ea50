"""How soon a controller begins after its group has run for a week, and in what memory: `python -m bench.begin`.

A script says on `consumer.metadata`, on a real broker, what a group of 20 consumers and 200 partitions says: a report
of each consumer every second, one of its cycles every five, a claim of the controller every two. The topic has the
bounds that kcga gives it, and then holds what they leave of any week; or it has none, and holds the whole week. What is
measured is the real command, `kcga controller`, from its start until it acts, and the most memory that its process took
by then. Writes a page into a folder, and ends with exit code 1 where a bar is missed.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Position

from app.child import Child
from app.components import command
from app.jars import KAFKA, obtain
from app.java import find_java
from app.settings import Settings, load
from app.topics import Cluster
from bench.figures import markdown_table, run_facts, write_page
from bench.quiet import add_busy, await_quiet
from bench.spoken_group import settings_text
from domain.messages import ConsumerReport, ConsumerState, ControllerClaim, Cycle, Order, PartitionRef, Read, writer
from domain.partitions import TopicPartition
from domain.topics import CONTROLLER_PARTITION
from sandbox.broker import Broker

CONSUMERS = 20
PARTITIONS = 200
CLAIM_EVERY = 2
CYCLE_EVERY = 5
"""Seconds, both. Heartbeats come every second."""
SETTLED = 100
"""Processes that are gone, and that a claim names: it names no more."""
MOST_S = 3.0
MOST_BYTES = 150 * 2**20
AN_HOUR_S = 3600
LEFT_S = AN_HOUR_S + 600
"""What the bounds by age leave, at most: an hour and a segment. Those by size leave less of so large a group."""
WEEK_S = 7 * 24 * AN_HOUR_S
PATIENCE_S = 120.0
A_MOMENT_S = 60
"""So much more is said between two beginnings."""
BEGINS = b"the controller begins"
EPOCH = 7
BESIDES = """\
[http]
controller_port = 0
[local]
folder = "{folder}"
"""


@dataclass(frozen=True, slots=True)
class Case:
    """What there is to read when a controller begins."""

    what: str
    seconds: int
    """Of talk."""
    away_s: int = 0
    """So much of it at the end is without a controller."""
    bounded: bool = True
    """Whether the topic has kcga's settings."""
    barred: bool = True
    """Whether the bars are for it."""


@dataclass(frozen=True, slots=True)
class Beginning:
    seconds: float
    """From the start of the process."""
    cpu_s: float
    peak_bytes: int


CASES = (
    Case("nothing", 0),
    Case("what the topic's bounds leave of a week", LEFT_S),
    Case("the same, the last hour of it without a controller", LEFT_S, away_s=AN_HOUR_S, barred=False),
    Case("a whole week, in a topic without bounds", WEEK_S, bounded=False),
)


class Group:
    """Says what a group would have said, up to now."""

    def __init__(self, servers: str, folder: Path, number: int, case: Case) -> None:
        name = f"group-{number}"
        self.file = folder / f"{name}.toml"
        self.file.write_text(settings_text(servers, name) + BESIDES.format(folder=folder / name))
        settings: Settings = load(self.file)
        self._topic = settings.topics.metadata
        cluster, highest = Cluster(servers), settings.controller.highest_consumer
        if not case.bounded:
            # As where the broker does not let kcga set anything: it keeps everything for its own week and a day.
            unbounded = {"retention.ms": 8 * 24 * AN_HOUR_S * 1000, "retention.bytes": -1}
            cluster.create({self._topic: highest + 1}, settings={self._topic: unbounded})
        else:
            cluster.ensure_internal_topics(settings.topics.names, highest)
        self._case = case
        self._group = name
        self._heartbeats = [_report(name, number, cycle=False) for number in range(1, CONSUMERS + 1)]
        self._cycles = [_report(name, number, cycle=True) for number in range(1, CONSUMERS + 1)]
        client = {"bootstrap.servers": servers, "log_level": 0}
        self._producer = Producer({**client, "linger.ms": 5, "compression.type": "lz4"})
        self._reader = Consumer({**client, "group.id": f"{name}.bench"})
        self._sequence = 0

    def speak(self) -> None:
        """Everything up to now: all of it the first time, then a moment more, or what is said without a controller."""
        case = self._case
        seconds = max(case.away_s, A_MOMENT_S) if self._sequence else case.seconds
        self._say(min(seconds, case.seconds), case.away_s)

    @property
    def held(self) -> tuple[int, int]:
        """The offsets of the first record and of the end."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._reader.get_watermark_offsets(Position(self._topic, CONTROLLER_PARTITION), PATIENCE_S)
            except KafkaException:  # the topic is so new that nobody leads it yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        self._reader.close()

    def _say(self, seconds: int, away_s: int) -> None:
        began, (_, offset) = time.time() - seconds, self.held
        for second in range(seconds):
            at = began + second
            for number in range(CONSUMERS):
                said = [self._heartbeats[number]]
                if (second + number) % CYCLE_EVERY == 0:
                    said.append(self._cycles[number])
                for template in said:
                    self._sequence += 1
                    self._send(_filled(template, self._sequence, at), at)
                    offset += 1
            if second % CLAIM_EVERY == 0 and second < seconds - away_s:
                self._send(_claim(self._group, self._sequence, at, heard_to=offset), at)
                offset += 1
            if seconds - second < A_MOMENT_S:
                self._producer.flush()  # as it is in life, where batches are small
        self._producer.flush()

    def _send(self, value: bytes, at: float) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, partition=CONTROLLER_PARTITION, timestamp=int(1000 * at))
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.5)


SEQUENCE, SENT_AT = 987_654_321, 123_456_789.25


def _report(group: str, consumer: int, *, cycle: bool) -> bytes:
    """A report, but for its sequence and when it is sent: to make each of millions anew would take too long."""
    share = PARTITIONS // CONSUMERS
    held = [TopicPartition("clicks", share * (consumer - 1) + place) for place in range(share)]
    reads = tuple(
        Read(
            topic=partition.topic,
            partition=partition.partition,
            stint=Order(EPOCH, 1),
            first_offset=10**9,
            last_offset=10**9 + 999,
            records=1_000,
            first_read_at=SENT_AT,
            last_read_at=SENT_AT,
        )
        for partition in held
    )
    done = Cycle(bytes=5_000_000, records=10_000, fetch_s=2.5, write_s=1.5, reads=reads)
    return ConsumerReport(
        group=group,
        consumer=consumer,
        incarnation=f"{consumer:032x}",
        sequence=SEQUENCE,
        sent_at=SENT_AT,
        state=ConsumerState.READY,
        applied_epoch=EPOCH,
        applied_sequence=1,
        partitions=tuple(map(PartitionRef.of, held)),
        cycle=done if cycle else None,
    ).encode()


def _filled(template: bytes, sequence: int, at: float) -> bytes:
    return template.replace(b"%d" % SEQUENCE, b"%d" % sequence, 1).replace(b"%.2f" % SENT_AT, b"%.2f" % at)


def _claim(group: str, sequence: int, at: float, heard_to: int) -> bytes:
    return ControllerClaim(
        group=group,
        epoch=EPOCH,
        incarnation="a" * 32,
        sequence=sequence,
        sent_at=at,
        settled=tuple(writer(1 + number % CONSUMERS, f"{1000 + number:032x}") for number in range(SETTLED)),
        members=tuple(sorted(writer(number, f"{number:032x}") for number in range(1, CONSUMERS + 1))),
        heard_to=heard_to,
    ).encode()


def begin(settings: Path, log: Path) -> Beginning:
    """Starts a controller, and ends it once it acts.

    Raises:
        SystemExit: it does not in time.
    """
    began = time.monotonic()
    with Child("the controller", command("controller", "--settings", str(settings)), log) as child:
        while not (log.exists() and BEGINS in log.read_bytes()):
            if time.monotonic() - began > PATIENCE_S or not child.running:
                raise SystemExit(f"the controller has not begun:\n{log.read_text(encoding='utf-8')}")
            time.sleep(0.01)
        seconds = time.monotonic() - began
        times = psutil.Process(child.pid).cpu_times()
        return Beginning(seconds, times.user + times.system, _peak_bytes(child.pid))


def _peak_bytes(pid: int) -> int:
    """The most memory of its own that a process ever had in use, by Linux."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    if found is None:
        raise SystemExit("this system does not tell how much memory a process has taken")
    return 1024 * int(found[1])


def main() -> None:
    options = parse_options()
    before = await_quiet(options.busy)
    rows, missed = list[Sequence[object]](), list[str]()
    with (
        tempfile.TemporaryDirectory(prefix="kcga-begin-") as made,
        Broker(Path(made, "broker"), jars=obtain(KAFKA), java=find_java()) as broker,
    ):
        for number, case in enumerate(case for case in CASES if case.seconds <= options.days * 24 * AN_HOUR_S):
            begun = []
            with closing(Group(broker.bootstrap_servers, Path(made), number, case)) as group:
                for turn in range(options.times):
                    group.speak()
                    first, end = group.held
                    begun.append(begin(group.file, Path(made, f"{number}-{turn}.log")))
                    print(f"{case.what}: {begun[-1]}", file=sys.stderr)
            rows.append(_row(case, end - first, begun))
            missed += misses(case, begun)
    facts = [
        ("Group", f"{CONSUMERS} consumers, {PARTITIONS} partitions"),
        ("Begun", f"{options.times} times each, with some more said before each time"),
    ]
    headings = ("the topic holds", "offsets", "median [s]", "longest [s]", "CPU, median [s]", "memory, at most [MiB]")
    page = PAGE.format(
        facts=run_facts("bench.begin", before, facts), table=markdown_table(headings, rows), script=_TALK
    )
    write_page(options.folder / "begin.md", page)
    if missed:
        sys.exit(f"a bar is missed: {'; '.join(missed)}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.begin", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--times", type=int, default=5, help="that a controller begins each (%(default)s)")
    parser.add_argument("--days", type=float, default=7.0, help="leave out what takes longer (%(default)g)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the page (%(default)s)")
    add_busy(parser)
    return parser.parse_args()


def misses(case: Case, begun: Sequence[Beginning]) -> Iterator[str]:
    """The bars that were not kept."""
    if not case.barred:
        return
    slowest, most = max(each.seconds for each in begun), max(each.peak_bytes for each in begun)
    if slowest > MOST_S:
        yield f"{case.what}: {slowest:.1f} s"
    if most > MOST_BYTES:
        yield f"{case.what}: {most / 2**20:.0f} MiB"


def _row(case: Case, offsets: int, begun: Sequence[Beginning]) -> Sequence[object]:
    seconds = [each.seconds for each in begun]
    peak = max(each.peak_bytes for each in begun)
    return (
        case.what,
        f"{offsets:,}",
        f"{median(seconds):.2f}",
        f"{max(seconds):.2f}",
        f"{median(each.cpu_s for each in begun):.2f}",
        f"{peak / 2**20:.0f}",
    )


_TALK = (
    f"a report of each consumer every second, one of its cycle every {CYCLE_EVERY} s, and a claim of the controller "
    f"every {CLAIM_EVERY} s, which names {CONSUMERS} members and {SETTLED} processes that are gone"
)
PAGE = """\
# How soon a controller begins

{facts}

{table}

A script has said on partition 0 of `consumer.metadata` what such a group says: {script}. Each beginning is that of the
whole command, `kcga controller`, from its start until it has fenced the one before it, read what it has to know, and
claimed the group. The memory is the most that its process had in use by then.

With its bounds the topic keeps an hour and a segment of ten minutes; and no more than 32 MiB and a segment, which is
less for such a group, so more was read here than there would be. A broker that does not let kcga set bounds keeps
everything for a week, unless it is told otherwise. A controller reads from the newest claim on: where there was no
controller for an hour, that is what the consumers have said in this hour.

The bars are 3 s and 150 MiB, except where there was no controller.
"""


if __name__ == "__main__":
    main()
