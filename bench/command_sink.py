"""How fast a consumer is whose sink is a program: `python -m bench.command_sink`.

A consumer reads what lies in a real broker, as fast as it can, and hands it to a program that discards it: what is left
is the consumer, and the way to the program. Consumer and program share one core, the broker has the others. The first
cycle is left out.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.consumer_group import MeasuredGroup
from bench.consumer_throughput import Bench, Data
from bench.figures import markdown_table, run_facts, write_page
from bench.quiet import add_busy, await_quiet

DATA = Data("discarded", 600, 16, 1)
BATCHES = (5_000_000, 20_000_000)
LIMIT_S = 300.0
DISCARDS = """\
import json, sys
for line in iter(sys.stdin.buffer.readline, b""):
    asked = json.loads(line)
    left = asked["bytes"]
    while left:
        left -= len(sys.stdin.buffer.read1(min(left, 1 << 20)))
    print(json.dumps({"ask": asked["ask"]}), flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="A consumer whose sink is a program that discards.")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the page (%(default)s)")
    add_busy(parser)
    given = parser.parse_args()
    before = await_quiet(given.busy)
    with tempfile.TemporaryDirectory(prefix="kcga-bench-") as scratch:
        bench = Bench(Path(scratch))
        with bench.broker:
            bench.fill([DATA])
            rows = [_measured(bench, Path(scratch), batch) for batch in BATCHES]
    headings = ("batches of [MB]", "MB/s", "CPU of the consumer [ms/MB]", "CPU of the program [ms/MB]")
    data = f"{DATA.megabytes} MB in {DATA.partitions} partitions, records of 1 kB"
    text = f"""\
# A program as a sink

A consumer reads what lies in a real broker, as fast as it can, and hands it to a program that discards it. Consumer and
program share one core, the broker has the others. The first cycle is left out.

{markdown_table(headings, rows, words=0)}

A consumer that writes to a lake is [measured beside its Spark](consumer.md).

{run_facts("bench.command_sink", before, [("Data", data)])}
"""
    print(text)
    write_page(given.folder / "command-sink.md", text)


def _measured(bench: Bench, scratch: Path, batch_bytes: int) -> tuple[str, ...]:
    """A line of the table."""
    name = f"discarded-{batch_bytes}"
    settings = {"sink": "command", "command": [sys.executable, "-c", DISCARDS], "batch_bytes": batch_bytes}
    core = {min(os.sched_getaffinity(0))}
    with MeasuredGroup(bench.broker.bootstrap_servers, name, scratch / name, settings, core) as group:
        group.start(1)
        group.read(1, DATA.held)
        while not group.cycles(1):
            group.listen(0.1)
        consumer = group.process(1)
        (program,) = consumer.children()
        read, began, cpu = group.bytes_read, time.monotonic(), (_cpu_s(consumer), _cpu_s(program))
        group.listen_until_read(DATA.megabytes * 1_000_000 - batch_bytes, LIMIT_S)
        seconds, megabytes = time.monotonic() - began, (group.bytes_read - read) / 1e6
        took = _cpu_s(consumer) - cpu[0], _cpu_s(program) - cpu[1]
    return (
        f"{batch_bytes / 1e6:g}",
        f"{megabytes / seconds:.1f}",
        *(f"{1000 * each / megabytes:.1f}" for each in took),
    )


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


if __name__ == "__main__":
    main()
