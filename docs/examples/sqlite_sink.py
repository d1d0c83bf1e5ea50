"""A sink that keeps records in SQLite, each exactly once: command = ["python3", "sqlite_sink.py", "records.db"]."""

import json
import sqlite3
import sys

import pyarrow as pa

TABLES = """
CREATE TABLE IF NOT EXISTS records (topic, partition, offset, timestamp, key, value);
CREATE TABLE IF NOT EXISTS set_aside (topic, partition, offset, value, reason, PRIMARY KEY (topic, partition, offset));
CREATE TABLE IF NOT EXISTS writers (topic, writer, sequence, PRIMARY KEY (topic, writer));
CREATE TABLE IF NOT EXISTS last (topic, partition, offset, epoch, PRIMARY KEY (topic, partition));
"""
SEALED = 2**63 - 1


def answer(db, asked, rows):
    """Does what is asked, in one transaction; what it has done before, or a sealed writer asks, it passes over."""
    topic, writer, do = asked.get("topic"), asked["writer"], asked["do"]
    (newest,) = db.execute(
        "SELECT max(sequence) FROM writers WHERE topic = ? AND writer = ?", (topic, writer)
    ).fetchone()
    newest = newest or 0
    if do == "write" and asked["sequence"] > newest:
        db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", rows)
        db.execute("INSERT OR REPLACE INTO writers VALUES (?, ?, ?)", (topic, writer, asked["sequence"]))
    if do == "set_aside" and newest < SEALED:
        refused = [(*row[:3], row[5], asked["reason"]) for row in rows]
        db.executemany("INSERT OR IGNORE INTO set_aside VALUES (?, ?, ?, ?, ?)", refused)
    if (do == "write" and asked["sequence"] > newest) or (do == "set_aside" and newest < SEALED):
        ends = {row[1]: row[2] for row in rows}
        last = [(topic, number, offset, asked["epochs"].get(str(number))) for number, offset in ends.items()]
        db.executemany("INSERT OR REPLACE INTO last VALUES (?, ?, ?, ?)", last)
    if do == "seal":
        db.execute("INSERT OR REPLACE INTO writers VALUES (?, ?, ?)", (topic, asked["sealed"], SEALED))
    if do == "last":
        found = db.execute("SELECT partition, offset, epoch FROM last WHERE topic = ?", (topic,))
        return {"last": {number: place for number, *place in found if number in asked["partitions"]}}
    if do == "count":
        return {"rows": db.execute("SELECT count(*) FROM records WHERE topic = ?", (topic,)).fetchone()[0]}
    return {}


def main():
    db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
    db.executescript(f"PRAGMA journal_mode = WAL; {TABLES}")
    while line := sys.stdin.buffer.readline():
        asked = json.loads(line)
        body = sys.stdin.buffer.read(asked["bytes"])
        table = pa.ipc.open_stream(body).read_all() if body else pa.table({})
        columns = (
            [table[name].to_pylist() for name in ("topic", "partition", "offset", "timestamp", "key", "value")]
            if body
            else []
        )
        db.execute("BEGIN IMMEDIATE")  # one at a time, also where several consumers have a program each
        said = answer(db, asked, list(zip(*columns)))
        db.execute("COMMIT")
        print(json.dumps({"ask": asked["ask"], **said}), flush=True)


main()
