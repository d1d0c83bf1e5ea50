"""Where the table of a topic lies."""

import re
from collections.abc import Mapping
from types import MappingProxyType

ROOTED = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
"""How an absolute path, or a Hadoop URL, begins."""

S3A = "s3a"
"""The scheme of Hadoop's connector to S3."""

_OF_ONE_WRITER = ("s3", S3A, "s3n")
"""Schemes on which a file can be written over that another has just written: what Delta Lake's log is safe with there
by default is one JVM that writes."""

DEAD_LETTERS = "_dead_letters"
"""The folder of the table of records that their topics' tables refuse: no topic has it by default."""

NO_NAMES: Mapping[str, str] = MappingProxyType({})


def location(lake_root: str, topic: str, tables: Mapping[str, str] = NO_NAMES) -> str:
    """The folder of the topic's table: the one that `tables` gives, a URL or under `lake_root`; else the topic's name.

    No two topics have the same by default. Hadoop takes names that begin with `_` or `.` for hidden; these, and those
    that begin with `-`, get a `-` in front.
    """
    folder = tables.get(topic) or (f"-{topic}" if topic[0] in "_.-" else topic)
    return folder.rstrip("/") if ROOTED.match(folder) else f"{lake_root.rstrip('/')}/{folder}"


def dead_letters(lake_root: str) -> str:
    """The folder of the table of the dead letters."""
    return f"{lake_root.rstrip('/')}/{DEAD_LETTERS}"


def quoted(table: str) -> str:
    """The location as SQL takes it between backquotes."""
    return table.replace("`", "``")


def schemes(lake_root: str, tables: Mapping[str, str] = NO_NAMES) -> tuple[str, ...]:
    """Of all tables' URLs; in ascending order."""
    return tuple(sorted({place.partition(":")[0].lower() for place in (lake_root, *tables.values()) if ":" in place}))


def of_one_writer(lake_root: str, tables: Mapping[str, str] = NO_NAMES) -> tuple[str, ...]:
    """The schemes among those of all tables on which one JVM may write at a time, unless Delta Lake has a log store."""
    return tuple(scheme for scheme in schemes(lake_root, tables) if scheme in _OF_ONE_WRITER)


def log_store_settings(scheme: str) -> tuple[str, str]:
    """Spark's settings that give Delta Lake a log store: for one scheme, and for all."""
    return f"spark.delta.logStore.{scheme}.impl", "spark.delta.logStore.class"
