"""What a Delta table on this machine holds, read without Spark: by the table's log, as Delta's protocol has it.

Another witness than `consumer.verify`, and a quicker one.
"""

import json
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq

from consumer.verify import PartitionAccount


def files(table: Path) -> list[Path]:
    """The files that the table consists of. Its log must still have every commit, as that of a new table has."""
    commits = sorted((table / "_delta_log").glob("[0-9]*.json"))
    assert [int(commit.stem) for commit in commits] == list(range(len(commits))), "commits are missing"
    held = set()
    for commit in commits:
        for action in map(json.loads, commit.read_text(encoding="utf-8").splitlines()):
            if "add" in action:
                held.add(action["add"]["path"])
            elif "remove" in action:
                held.discard(action["remove"]["path"])
    return [table / unquote(path) for path in sorted(held)]


def accounts(table: Path) -> dict[int, PartitionAccount]:
    """The account of each partition that has a row."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for file in files(table):
        rows = pq.ParquetFile(file).read(["partition", "offset"])
        for partition, offset in zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True):
            offsets[partition].append(offset)
    return {
        partition: PartitionAccount(len(held), len(set(held)), min(held), max(held))
        for partition, held in offsets.items()
    }
