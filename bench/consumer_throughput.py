"""How fast a consumer is, how even, and in how much memory: `python -m bench.consumer_throughput`.

Everything is real and on this machine: a broker, a Spark Connect server with Delta Lake, consumers as processes. The
paper's three tests differ in bytes, partitions and tables; beside them, one consumer with small and with large batches,
it and its Spark on one core; three consumers on one server; memory over time; and the time from the start of a consumer
to its first committed batch. What is read is there before: each consumer reads as fast as it can.

A cycle's rate is its bytes of keys and values over the time since the report of the cycle before. The first cycle of
each consumer is left out, and so are the first minutes of a server, which compiles. The server is one for hours: Java
compiles as well as it can, and has 2 GiB at once, two thirds of it for what is young. The one of `kcga up` is made to
start quickly instead, and is slower. The paper's tests are run twice: as fast as it goes, and with `rate_limit`, at
a little more than twice the paper's rate.
"""

import argparse
import base64
import math
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import numpy as np
import psutil
from confluent_kafka import Producer

from app.errors import KcgaError
from app.jars import DELTA, KAFKA, obtain
from app.java import find_java
from app.topics import Cluster
from bench.consumer_group import MeasuredGroup, WrittenCycle
from bench.figures import markdown_table, percent, plot_in, run_facts
from bench.quiet import LoadBefore, add_busy, await_quiet
from cli.plots.plotting import EXACT_COLOUR, FAINT_INK, TOPIC_COLOURS, new_figure, save
from domain.partitions import TopicPartition
from sandbox.broker import Broker
from sandbox.spark import SparkConnectServer

PAPERS_RATE = 2_300_000
"""Bytes/s: the common mode of the paper's density plot."""
RECORD_BYTES = 1_000
LARGE_BATCH, SMALL_BATCH = 20_000_000, 5_000_000
LEFT_OUT = 1
"""Cycles at the beginning of each consumer: its first one also makes the table. The server is warmed up before."""
WARM_UP_S = 60.0
TOGETHER = 5
"""Successive cycles."""
NOISE_TIMES, NOISE_STEPS = 20, 10_000_000
FEWEST_CYCLES = 8
"""Of a condition: one with less to read is run again."""
SAMPLE_EVERY_S = 1.0
MORE_MEGABYTES = 100
"""Written at a time while memory is watched."""


@dataclass(frozen=True, slots=True)
class Data:
    """What lies in the broker."""

    name: str
    megabytes: int
    partitions: int
    tables: int

    @property
    def held(self) -> list[TopicPartition]:
        """The partitions, spread over as many topics as there are tables."""
        return [
            TopicPartition(f"{self.name}-{number % self.tables}", number // self.tables)
            for number in range(self.partitions)
        ]


PAPERS_TESTS = (Data("test-1", 648, 32, 1), Data("test-2", 100, 116, 5), Data("test-3", 678, 144, 5))
"""The paper's table of testing conditions."""
PAPERS_TEST = "the paper's test"
RATE_LIMIT = 5_000_000
LIMITED_S = 60.0
"""Of each of the paper's tests with the limit."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One condition: its cycles, and what they took."""

    name: str
    data: Data
    batch_bytes: int
    rate_limit: float | None
    """Of each consumer, in bytes/s."""
    cycles: tuple[WrittenCycle, ...]
    consumers: int
    consumer_cpu_s: float
    """Of all consumers, in the same time."""
    spark_cpu_s: float
    seconds: float

    @property
    def megabytes(self) -> float:
        return sum(cycle.bytes for cycle in self.cycles) / 1e6

    @property
    def rate(self) -> float:
        """Megabytes of keys and values a second, of all consumers together."""
        return self.megabytes / self.seconds

    @property
    def batch_megabytes(self) -> float:
        """The mean."""
        return self.megabytes / len(self.cycles)

    @property
    def cpu_s_a_batch(self) -> tuple[float, float]:
        """Of the consumers, and of Spark."""
        return self.consumer_cpu_s / len(self.cycles), self.spark_cpu_s / len(self.cycles)

    def variation(self, of: int = 1) -> float:
        """The coefficient of variation over the cycles, or over the rates of so many successive ones together."""
        groups = [self.cycles[first : first + of] for first in range(0, len(self.cycles) - of + 1, of)]
        return variation([sum(each.bytes for each in group) / sum(each.seconds for each in group) for group in groups])


@dataclass(frozen=True, slots=True)
class MemorySample:
    """At a moment of a run, in seconds since its beginning; resident, in megabytes."""

    at_s: float
    consumer: float
    spark: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Rate, evenness, memory and start of consumers.")
    parser.add_argument("--single-s", type=float, default=40.0, help="of each run on one core (%(default)g s)")
    parser.add_argument("--group-s", type=float, default=40.0, help="of the three consumers (%(default)g s)")
    parser.add_argument("--memory-s", type=float, default=60.0, help="over which memory is watched (%(default)g s)")
    parser.add_argument("--share", type=float, default=1.0, help="of the paper's bytes (%(default)g)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the results (%(default)s)")
    add_busy(parser)
    given = parser.parse_args()
    plot = plot_in(given.folder, "consumer.svg")
    try:
        before = await_quiet(given.busy)
        noise = machine_noise()
        with tempfile.TemporaryDirectory(prefix="kcga-bench-") as scratch:
            bench = Bench(Path(scratch))
            with bench.broker:
                tests = [replace(data, megabytes=round(data.megabytes * given.share)) for data in PAPERS_TESTS]
                bench.fill(tests)
                measured, memory, starts = measure(bench, tests, given.single_s, given.group_s, given.memory_s)
    except KcgaError as error:
        raise SystemExit(str(error)) from error
    draw(measured, plot)
    page = given.folder / "consumer.md"
    page.write_text(page_of(measured, memory, starts, noise, before, plot.name), encoding="utf-8")
    print(f"{page} and {plot.name} are written")


class Bench:
    """The servers, and what is measured with them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._java = find_java()
        self._runs = 0
        chance = random.Random(1)
        self._fillers = [base64.b64encode(chance.randbytes(RECORD_BYTES)) for _ in range(2_000)]
        self.broker = Broker(folder / "kafka", jars=obtain(KAFKA), java=self._java)

    def fill(self, tests: Sequence[Data]) -> None:
        """Makes the topics of each test, and writes its data."""
        for data in tests:
            held = data.held
            Cluster(self.broker.bootstrap_servers).create(
                {topic: sum(each.topic == topic for each in held) for topic in {each.topic for each in held}}
            )
            self.write(data, data.megabytes)
            print(f"{data.name}: {data.megabytes} MB in {data.partitions} partitions", flush=True)

    def write(self, data: Data, megabytes: int) -> None:
        """Writes so much more to the partitions of a test: records of JSON that hardly compress."""
        producer = Producer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "linger.ms": 50,
                "queue.buffering.max.messages": 500_000,
            }
        )
        held = data.held
        for number in range(megabytes * 1_000_000 // RECORD_BYTES):
            beginning = b'{"number": %d, "filler": "' % number
            filler = self._fillers[number % len(self._fillers)]
            value = beginning + filler[: RECORD_BYTES - len(beginning) - 2] + b'"}'
            partition = held[number % len(held)]
            while True:
                try:
                    producer.produce(partition.topic, value, partition=partition.partition)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()
        producer.close()

    @contextmanager
    def spark(self, name: str, cores: set[int]) -> Iterator[SparkConnectServer]:
        """A Spark Connect server on these cores."""
        before = os.sched_getaffinity(0)
        server = SparkConnectServer(
            self._folder / f"spark-{name}", jars=obtain(DELTA), java=self._java, long_running=True
        )
        os.sched_setaffinity(0, cores)  # the server inherits it
        try:
            server.start()
        finally:
            os.sched_setaffinity(0, before)
        try:
            yield server
        finally:
            server.stop()

    @contextmanager
    def group(self, settings: Mapping[str, object], cores: set[int]) -> Iterator[MeasuredGroup]:
        """A new group with a lake of its own."""
        self._runs += 1
        folder = self._folder / f"run-{self._runs}"
        lake = {"lake_root": str(folder / "lake"), "wait_time_secs": 5, **settings}
        with MeasuredGroup(self.broker.bootstrap_servers, f"run-{self._runs}", folder / "group", lake, cores) as group:
            yield group

    def run(
        self,
        name: str,
        data: Data,
        server: SparkConnectServer,
        batch_bytes: int,
        cores: set[int],
        *,
        consumers: int = 1,
        rate_limit: float | None = None,
        limit_s: float = 300.0,
    ) -> Measured:
        """One condition: so many consumers read everything, or for `limit_s`; again until there are cycles enough."""
        cycles: list[WrittenCycle] = []
        settings: dict[str, object] = {"spark_remote": server.remote, "batch_bytes": batch_bytes}
        if rate_limit is not None:
            settings["rate_limit"] = rate_limit
        consumer_cpu_s = spark_cpu_s = seconds = 0.0
        while len(cycles) < FEWEST_CYCLES:
            numbers = range(1, consumers + 1)
            with self.group(settings, cores) as group:
                for number in numbers:
                    group.start(number)
                for number in numbers:
                    group.read(number, data.held[number - 1 :: consumers])
                while any(len(group.cycles(number)) < LEFT_OUT for number in numbers):
                    group.listen(0.1)
                began = max(group.cycles(number)[LEFT_OUT - 1].reported_at for number in numbers)
                before = self._cpu(group, numbers, server)
                group.listen_until_read(data.megabytes * 1_000_000, limit_s)
                after = self._cpu(group, numbers, server)
                full = [
                    cycle
                    for number in numbers
                    for cycle in group.cycles(number)
                    if cycle.reported_at > began and cycle.bytes >= batch_bytes
                ]
            if not full:
                raise SystemExit(f"{name}: {data.megabytes} MB are too little for batches of {batch_bytes / 1e6:g} MB")
            cycles += full
            consumer_cpu_s += after[0] - before[0]
            spark_cpu_s += after[1] - before[1]
            seconds += max(cycle.reported_at for cycle in full) - began
        measured = Measured(
            name, data, batch_bytes, rate_limit, tuple(cycles), consumers, consumer_cpu_s, spark_cpu_s, seconds
        )
        print(f"{name}: {measured.rate:.1f} MB/s, variation {percent(measured.variation())} %", flush=True)
        return measured

    def warm_up(self, data: Data, server: SparkConnectServer, batch_bytes: int, cores: set[int]) -> None:
        """Has the server compile what such a condition takes."""
        until = time.monotonic() + WARM_UP_S
        while time.monotonic() < until:
            self.run("warm-up", data, server, batch_bytes, cores, limit_s=WARM_UP_S / 2)

    def watch_memory(self, data: Data, server: SparkConnectServer, seconds: float) -> list[MemorySample]:
        """A consumer that has always enough to read, with large batches: the server's memory and its own."""
        samples = []
        written = data.megabytes
        with self.group({"spark_remote": server.remote, "batch_bytes": LARGE_BATCH}, set()) as group:
            group.start(1)
            group.read(1, data.held)
            began = time.monotonic()
            while (at_s := time.monotonic() - began) < seconds:
                consumer = group.process(1).memory_info().rss
                spark = _memory_of(server)
                samples.append(MemorySample(at_s, consumer / 1e6, spark / 1e6))
                if group.bytes_read / 1e6 > written - 5 * LARGE_BATCH / 1e6:
                    self.write(data, MORE_MEGABYTES)
                    written += MORE_MEGABYTES
                group.listen(SAMPLE_EVERY_S)
        return samples

    def start_time(self, settings: Mapping[str, object]) -> tuple[float, float]:
        """Seconds from the start of a consumer until it is ready, and until its first batch is committed."""
        with self.group({"batch_bytes": SMALL_BATCH, **settings}, set()) as group:
            ready_s = group.start(1)
            group.read(1, PAPERS_TESTS[0].held)
            return ready_s, group.seconds_to_first_cycle(1)

    def _cpu(self, group: MeasuredGroup, consumers: Sequence[int], server: SparkConnectServer) -> tuple[float, float]:
        return (
            sum(_cpu_s(group.process(number)) for number in consumers),
            sum(_cpu_s(process) for process in _tree(server)),
        )


def measure(
    bench: Bench, tests: Sequence[Data], single_s: float, group_s: float, memory_s: float
) -> tuple[list[Measured], list[MemorySample], dict[str, tuple[float, float]]]:
    """All conditions, memory over time, and start times."""
    cores = os.sched_getaffinity(0)
    one_core = {min(cores)}
    measured = []
    starts = {}
    with bench.spark("one-core", one_core) as server:
        bench.warm_up(tests[0], server, SMALL_BATCH, one_core)
        bench.warm_up(tests[0], server, LARGE_BATCH, one_core)
        for name, batch_bytes in (("one core, 5 MB", SMALL_BATCH), ("one core, 20 MB", LARGE_BATCH)):
            measured.append(bench.run(name, tests[0], server, batch_bytes, one_core, limit_s=single_s))
    with bench.spark("all-cores", cores) as server:
        for data in (tests[0], tests[2]):
            bench.warm_up(data, server, LARGE_BATCH, cores)
        for number, data in enumerate(tests, 1):
            measured.append(bench.run(f"{PAPERS_TEST} {number}", data, server, LARGE_BATCH, cores))
        for number, data in enumerate(tests, 1):
            name = f"{PAPERS_TEST} {number}, limited"
            limited = bench.run(name, data, server, LARGE_BATCH, cores, rate_limit=RATE_LIMIT, limit_s=LIMITED_S)
            measured.append(limited)
        three = "three consumers"
        measured.append(bench.run(three, tests[0], server, LARGE_BATCH, cores, limit_s=group_s, consumers=3))
        starts["Spark Connect"] = bench.start_time({"spark_remote": server.remote})
        starts["a JVM of its own"] = bench.start_time({"spark_master": "local[1]"})
        memory = bench.watch_memory(tests[0], server, memory_s)
    return measured, memory, starts


def machine_noise() -> float:
    """The coefficient of variation of the time that one and the same computation takes, with nothing beside it."""
    times = []
    for _ in range(NOISE_TIMES):
        began = time.perf_counter()
        sum(number * number for number in range(NOISE_STEPS))
        times.append(time.perf_counter() - began)
    return variation(times)


def variation(values: Sequence[float]) -> float:
    """The coefficient of variation; not a number of fewer than two."""
    return statistics.stdev(values) / statistics.mean(values) if len(values) > 1 else math.nan


def _tree(server: SparkConnectServer) -> list[psutil.Process]:
    root = psutil.Process(server.child.pid)
    return [root, *root.children(recursive=True)]


def _memory_of(server: SparkConnectServer) -> int:
    """Bytes; Java may start a program for a moment, which is of no account."""
    resident = 0
    for process in _tree(server):
        with suppress(psutil.NoSuchProcess):
            resident += process.memory_info().rss
    return resident


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def density(rates: Sequence[float], at: np.ndarray) -> np.ndarray:
    """A Gaussian kernel density estimate, its bandwidth by Silverman's rule."""
    values = np.asarray(rates)
    spread = min(values.std(ddof=1), np.subtract(*np.percentile(values, [75, 25])) / 1.34) or values.std(ddof=1)
    bandwidth = max(0.9 * spread * len(values) ** -0.2, 1e-3)
    kernels = np.exp(-0.5 * ((at[:, None] - values[None, :]) / bandwidth) ** 2)
    return np.asarray(kernels.sum(axis=1) / (len(values) * bandwidth * np.sqrt(2 * np.pi)))


def draw(measured: Sequence[Measured], file: Path) -> None:
    """The densities of the cycles' rates on the paper's tests, beside the paper's rate."""
    figure = new_figure(7.0, 4.0)
    axes = figure.subplots()
    rates = {
        each.name: [cycle.bytes_per_s / 1e6 for cycle in each.cycles]
        for each in measured
        if each.name.startswith(PAPERS_TEST) and each.rate_limit is None
    }
    at = np.linspace(0.0, 1.15 * max(max(several) for several in rates.values()), 400)
    for colour, (name, several) in zip(TOPIC_COLOURS, rates.items(), strict=False):
        axes.plot(at, density(several, at), color=colour, label=name)
    axes.axvline(PAPERS_RATE / 1e6, color=EXACT_COLOUR, linestyle="--", label="the paper's consumer")
    axes.set_xlabel("MB/s of a cycle", color=FAINT_INK)
    axes.set_ylabel("density", color=FAINT_INK)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    save(figure, file)


def page_of(
    measured: Sequence[Measured],
    memory: Sequence[MemorySample],
    starts: Mapping[str, tuple[float, float]],
    noise: float,
    before: LoadBefore,
    plot: str,
) -> str:
    rates = [
        (
            each.name,
            *(each.data.megabytes, each.data.partitions, each.data.tables, f"{each.batch_bytes / 1e6:g}"),
            *(len(each.cycles), f"{each.rate:.1f}", *(_shown(each.variation(of)) for of in (1, TOGETHER))),
            f"{each.rate * 1e6 / PAPERS_RATE / each.consumers:.1f}",
            *(f"{cpu_s:.2f}" for cpu_s in each.cpu_s_a_batch),
        )
        for each in measured
    ]
    headings = (
        *(
            "condition",
            "MB",
            "partitions",
            "tables",
            "batch [MB]",
            "cycles",
            "MB/s",
            "variation [%]",
            f"of {TOGETHER} [%]",
        ),
        *("of the paper's", "consumer [CPU s/batch]", "Spark [CPU s/batch]"),
    )
    late = [sample for sample in memory if sample.at_s >= memory[-1].at_s / 2]
    middle = [sample for sample in memory if memory[-1].at_s / 4 <= sample.at_s < memory[-1].at_s / 2]
    sections = [
        "# Consumers",
        (__doc__ or "").partition("\n\n")[2].strip(),
        run_facts(
            "bench.consumer_throughput",
            before,
            [
                ("Records", f"{RECORD_BYTES:,} bytes of JSON that hardly compresses"),
                ("Spark", f"PySpark {metadata.version('pyspark')}, {DELTA.title}"),
            ],
        ),
        markdown_table(headings, rates),
        f"*Of {TOGETHER}*: the variation of the rates of {TOGETHER} successive cycles together. *Of the paper's*: a "
        f"consumer's share of the rate over the paper's {PAPERS_RATE / 1e6:g} MB/s.",
        f"![Density of the cycles' rates]({plot})",
        "## Where the time goes",
        where_the_time_goes(*measured[:2]),
        "## How even",
        how_even(measured, noise),
        "## Memory",
        f"One consumer, batches of {LARGE_BATCH / 1e6:g} MB, resident memory in MB over {memory[-1].at_s:.0f} s:",
        markdown_table(
            ("process", "most", "mean of the second quarter", "mean of the second half"),
            [
                (
                    name,
                    f"{max(of(each) for each in memory):.0f}",
                    *(f"{_mean(of, part):.0f}" for part in (middle, late)),
                )
                for name, of in (("consumer", _consumer_memory), ("Spark Connect server", _spark_memory))
            ],
        ),
        "## Start",
        "Seconds from the start of a consumer's process; what a controller must expect of a new one:",
        markdown_table(
            ("Spark", "until it is ready", "until its first batch is committed"),
            [(name, f"{ready_s:.1f}", f"{first_s:.1f}") for name, (ready_s, first_s) in starts.items()],
        ),
    ]
    return "\n\n".join(sections) + "\n"


def where_the_time_goes(small: Measured, large: Measured) -> str:
    """What a batch costs whatever its size, and what each megabyte adds, by batches of two sizes."""

    def shares(of_small: float, of_large: float) -> tuple[float, float]:
        a_megabyte = (of_large - of_small) / (large.batch_megabytes - small.batch_megabytes)
        return of_small - a_megabyte * small.batch_megabytes, a_megabyte * 1000

    (consumer_s, consumer_ms), (spark_s, spark_ms) = map(shares, small.cpu_s_a_batch, large.cpu_s_a_batch)
    return (
        f"By batches of two sizes on one core, a batch takes Spark {spark_s:.2f} s of CPU whatever its size (to plan "
        "an append, and Delta Lake's commit: reading back the table's state, the log, now and then a checkpoint) and "
        f"{spark_ms:.0f} ms a megabyte (to take rows in and write them as Parquet); the consumer, "
        f"{max(0.0, consumer_s):.2f} s and {consumer_ms:.0f} ms a megabyte (fetching, and rows as Arrow). An append to "
        "each of five tables costs the first figure five times, so small batches over many tables are what is slow."
    )


def how_even(measured: Sequence[Measured], noise: float) -> str:
    """What there is to say of the variation."""

    def least_to_most(of: int, *, limited: bool) -> str:
        values = [each.variation(of) for each in measured if (each.rate_limit is not None) is limited]
        return f"{_shown(np.nanmin(values))} to {_shown(np.nanmax(values))} %"

    return (
        f"At full speed the rates of single cycles vary by {least_to_most(1, limited=False)} (coefficient of "
        f"variation), those of {TOGETHER} successive ones together by {least_to_most(TOGETHER, limited=False)}. On "
        f"this machine, a computation that is always the same takes times that vary by {percent(noise, 1)} %. What the "
        "rest comes from was not measured: candidates are the next batch, which is fetched on the same cores while "
        "this one is written, Java's collections of garbage, and what it still compiles.\n\n"
        f"A consumer whose rate has to be constant is given a limit below its full speed: with `rate_limit` at "
        f"{RATE_LIMIT / 1e6:g} MB/s the rates of single cycles vary by {least_to_most(1, limited=True)}."
    )


def _shown(variation: float) -> str:
    return "-" if math.isnan(variation) else percent(variation, 1)


def _consumer_memory(sample: MemorySample) -> float:
    return sample.consumer


def _spark_memory(sample: MemorySample) -> float:
    return sample.spark


def _mean(of: Callable[[MemorySample], float], samples: Sequence[MemorySample]) -> float:
    return statistics.mean(map(of, samples))


if __name__ == "__main__":
    main()
