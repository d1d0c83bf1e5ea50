"""How long a consumer takes to find in the lake where reading goes on: `python -m bench.positions`.

On a real Spark Connect server, with tables whose files are as appends make them: each has a few records of every
partition, and some partitions are ten times as fast as others, so that their offsets are far apart. The table's log
has an entry for each file. Positions are asked for as at a take-over after a death: of the log, what the dead writer
appended last, a hundred entries ago; where that does not tell, of the rows near the end; where nothing is known, of all
rows. Of a partition that was released nothing need be asked. Writes a page into a folder.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from datetime import date
from pathlib import Path

from app.errors import KcgaError
from app.jars import DELTA, obtain
from app.java import find_java
from bench.figures import markdown_table, run_facts
from bench.quiet import LoadBefore, add_busy, await_quiet
from consumer.decide.batch import Record
from consumer.decide.columns import OF_EVERY_RECORD
from consumer.decide.spans import Span
from consumer.lake import Lake
from consumer.session import open_session, release
from consumer.table import creation, rows
from domain.partitions import TopicPartition
from sandbox.spark import SparkConnectServer

MOST_PARTITIONS = 144
PER_FILE = 10
"""Records of each partition."""
FILES_AT_A_TIME = 500
FASTEST = 10
"""Times as fast as the slowest partition is the fastest."""
ENTRIES_SINCE = 100
"""After the dead writer's last."""
INGESTED = date(2026, 1, 31)
DEAD = "bench/1/dead"
BAR_S = 1.0
"""For what is asked after a death, whatever the table."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.positions", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000], help="of the tables (1000 10000)")
    parser.add_argument("--times", type=int, default=2, help="that each is asked for (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the results (%(default)s)")
    add_busy(parser)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    before = await_quiet(options.busy)
    figures = []
    try:
        with tempfile.TemporaryDirectory(prefix="kcga-positions-") as scratch:
            server = SparkConnectServer(Path(scratch) / "spark", jars=obtain(DELTA), java=find_java())
            with server:
                root = Path(scratch) / "lake"
                lake = Lake([server.remote], str(root), "bench")
                lake.connect()
                for files in options.files:
                    write(server.remote, root / f"of-{files}", files)
                    die(server.remote, root, files)
                    figures += list(ask(lake, files, options.times))
                lake.close()
    except KcgaError as error:
        raise SystemExit(str(error)) from error
    page = options.folder / "positions.md"
    page.write_text(page_of(figures, before) + "\n", encoding="utf-8")
    print(f"{page} is written")
    if missed := [f"{row[0]} files, {row[1]} partitions" for row in figures if row[2] == LOG and float(row[4]) > BAR_S]:
        sys.exit(f"the median is above {BAR_S:g} s: {'; '.join(missed)}")


LOG, NEAR, EVERYWHERE = "the log", "the rows near the end", "all rows"


def speed(partition: int) -> int:
    """Records of a file, in records of the slowest partition's; of what there are less rows, offsets are left out."""
    return 1 + partition % FASTEST


def last_offset(partition: int, files: int) -> int:
    return (files * PER_FILE - 1) * speed(partition)


def write(remote: str, table: Path, files: int) -> None:
    """A table of so many files, by several appends."""
    session = open_session(remote)
    # Or it would make fewer files of what is as little as this.
    session.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        session.sql(creation(str(table)))
        given = {
            "topic": "'bench'",
            "partition": f"id % {MOST_PARTITIONS}",
            "offset": f"(id DIV {MOST_PARTITIONS}) * (1 + id % {MOST_PARTITIONS} % {FASTEST})",
            "timestamp": "CURRENT_TIMESTAMP()",
            "value": "'a value'",
            "ingest_date": "CURRENT_DATE()",
        }
        columns = [f"CAST({given.get(name, 'NULL')} AS {sql}) AS `{name}`" for name, sql in OF_EVERY_RECORD.items()]
        for first in range(0, files, FILES_AT_A_TIME):
            count = min(FILES_AT_A_TIME, files - first)
            ids = (step * PER_FILE * MOST_PARTITIONS for step in (first, first + count))
            rows = session.range(*ids).repartitionByRange(count, "id").selectExpr(*columns)
            rows.write.format("delta").mode("append").save(str(table))
            print(f"{table.name}: {first + count:,} files", file=sys.stderr)
    finally:
        release(session)


def die(remote: str, root: Path, files: int) -> None:
    """Makes the table's log as long as one of so many appends; the last but a hundred is of a writer that died."""
    log = root / f"of-{files}" / "_delta_log"
    newest = max(int(entry.stem) for entry in log.glob("*.json"))
    said = {
        "timestamp": int(time.time() * 1000),
        "operation": "WRITE",
        "operationParameters": {},
        "isBlindAppend": True,
    }
    for version in range(newest + 1, max(newest + 1, files - ENTRIES_SINCE)):
        (log / f"{version:020d}.json").write_text(json.dumps({"commitInfo": said}) + "\n", encoding="utf-8")
    for writer, appends, partitions in (
        (DEAD, 1, range(MOST_PARTITIONS)),
        ("bench/2/alive", ENTRIES_SINCE, [MOST_PARTITIONS]),
    ):
        lake = Lake([remote], str(root), writer)
        lake.connect()
        places = [(TopicPartition("bench", number), last_offset(number, files)) for number in partitions]
        batch = rows([Record(partition, offset, None, None, None, ()) for partition, offset in places], INGESTED)
        for version in range(appends):
            lake.append(f"of-{files}", version, batch)
        lake.close()


def ask(lake: Lake, files: int, times: int) -> Iterator[tuple[str, ...]]:
    """Rows of the page: each kind of look, for few and for many partitions.

    Raises:
        SystemExit: a position is wrong.
    """
    topic = f"of-{files}"
    lake.seal(topic, DEAD)
    for partitions in (32, MOST_PARTITIONS):
        lasts = {number: last_offset(number, files) for number in range(partitions)}
        near = {number: Span(last - speed(number) * PER_FILE, last + 1) for number, last in lasts.items()}
        everywhere = {number: Span(0, last + 1) for number, last in lasts.items()}
        looks: dict[str, Callable[[], dict[int, int] | None]] = {
            LOG: lambda lasts=lasts: last_appended(lake, topic, lasts.keys()),  # type: ignore[misc]
            NEAR: lambda near=near: lake.last_offsets(topic, near),  # type: ignore[misc]
            EVERYWHERE: lambda everywhere=everywhere: lake.last_offsets(topic, everywhere),  # type: ignore[misc]
        }
        for kind, look in looks.items():
            took = []
            for _ in range(times + 1):
                began = time.monotonic()
                found = look() or {}
                took.append(time.monotonic() - began)
                if not lasts.items() <= found.items():
                    raise SystemExit(f"{files} files, {kind}: wrong positions, such as {sorted(found.items())[:3]}")
            first, *others = took
            shown = (first, statistics.median(others), max(others))
            yield f"{files:,}", str(partitions), kind, *(f"{figure:.2f}" for figure in shown)


def last_appended(lake: Lake, topic: str, partitions: Collection[int]) -> dict[int, int]:
    return {number: last.offset for number, last in lake.last_appended(topic, partitions).items()}


def page_of(figures: list[tuple[str, ...]], before: LoadBefore) -> str:
    headings = ("files", "partitions", "asked of", "first [s]", "median [s]", "longest [s]")
    return "\n\n".join(
        [
            "# Where reading goes on",
            (__doc__ or "").partition("\n\n")[2].replace(" Writes a page into a folder.", "").strip(),
            run_facts("bench.positions", before, [("Lake", DELTA.title)]),
            markdown_table(headings, figures),
            f"The bar is {BAR_S:g} s for the median of what is asked of the log. *First*: of its kind; in the first "
            "row the server still loads what it takes.",
        ]
    )


if __name__ == "__main__":
    main()
