"""How long a consumer takes to find in the lake where reading goes on: `python -m bench.positions`.

On a real Spark Connect server, with tables whose files are as appends make them: each has a few records of every
partition. Positions are asked for as at a take-over: between the group's commit and the log's end, which are near the
last rows (after a death), or anywhere in the table (partitions that are far behind one another), or everywhere (nothing
is known). Prints a page in Markdown.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import markdown_table, run_facts
from cli.embedded.jars import DELTA, obtain
from cli.embedded.java import find_java
from cli.embedded.spark import SparkConnectServer
from cli.errors import KcgaError
from consumer.columns import OF_EVERY_RECORD
from consumer.lake import Lake
from consumer.session import open_session, release
from consumer.spans import Span
from consumer.table import creation

MOST_PARTITIONS = 144
PER_FILE = 10
"""Records of each partition."""
FILES_AT_A_TIME = 500
BAR_S = 1.0
"""For the look near the end, whatever the table."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.positions", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000], help="of the tables (1000 10000)")
    parser.add_argument("--times", type=int, default=5, help="that each is asked for (%(default)s)")
    options = parser.parse_args()
    rows = []
    try:
        with tempfile.TemporaryDirectory(prefix="kcga-positions-") as scratch:
            server = SparkConnectServer(Path(scratch) / "spark", jars=obtain(DELTA), java=find_java())
            with server:
                root = Path(scratch) / "lake"
                lake = Lake(server.remote, str(root), "bench")
                lake.connect()
                for files in options.files:
                    write(server.remote, root / f"of-{files}", files)
                    rows += list(ask(lake, files, options.times))
                lake.close()
    except KcgaError as error:
        raise SystemExit(str(error)) from error
    print(page_of(rows))
    if missed := [f"{row[0]} files, {row[1]} partitions" for row in rows if row[2] == NEAR and float(row[4]) > BAR_S]:
        sys.exit(f"the median is above {BAR_S:g} s: {'; '.join(missed)}")


NEAR, FAR, EVERYWHERE = "near the end", "far apart", "everywhere"


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
            "offset": f"id DIV {MOST_PARTITIONS}",
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


def ask(lake: Lake, files: int, times: int) -> Iterator[tuple[str, ...]]:
    """Rows of the page: each kind of look, for few and for many partitions.

    Raises:
        SystemExit: a position is wrong.
    """
    last = files * PER_FILE - 1
    chance = random.Random(1)
    for partitions in (32, MOST_PARTITIONS):
        looks = {
            NEAR: [last - PER_FILE] * partitions,
            FAR: [chance.randrange(last) for _ in range(partitions)],
            EVERYWHERE: [0] * partitions,
        }
        for kind, lows in looks.items():
            spans = {number: Span(low, last + 1) for number, low in enumerate(lows)}
            took = []
            for _ in range(times + 1):
                began = time.monotonic()
                found = lake.last_offsets(f"of-{files}", spans)
                took.append(time.monotonic() - began)
                if found != dict.fromkeys(range(partitions), last):
                    raise SystemExit(f"{files} files, {kind}: wrong positions, such as {sorted(found.items())[:3]}")
            first, *others = took
            figures = (first, statistics.median(others), max(others))
            yield f"{files:,}", str(partitions), kind, *(f"{figure:.2f}" for figure in figures)


def page_of(rows: list[tuple[str, ...]]) -> str:
    headings = ("files", "partitions", "looked for", "first [s]", "median [s]", "longest [s]")
    return "\n\n".join(
        [
            "# Where reading goes on",
            (__doc__ or "").partition("\n\n")[2].replace(" Prints a page in Markdown.", "").strip(),
            run_facts("bench.positions", [("Lake", DELTA.title)]),
            markdown_table(headings, rows),
            f"The bar is {BAR_S:g} s for the median of the looks near the end. *First*: of its kind; in the first row "
            "the server still loads what it takes.",
        ]
    )


if __name__ == "__main__":
    main()
