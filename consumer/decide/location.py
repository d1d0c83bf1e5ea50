"""Where the table of a topic is: a folder, or by its name in a catalog of Spark's."""

import re
from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType

ROOTED = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
"""How an absolute path, or a Hadoop URL, begins."""

_PART = r"[^`./:\s]+"
_SCHEMA = re.compile(rf"{_PART}(\.{_PART})+")
_NAME = re.compile(rf"{_PART}(\.{_PART}){{2,}}")
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_]*")
"""Topics that every catalog takes as the names of tables."""
_DIGEST = re.compile(r".*_[0-9a-f]{8}")

S3A = "s3a"
"""The scheme of Hadoop's connector to S3."""

_OF_ONE_WRITER = ("s3", S3A, "s3n")
"""Schemes on which a file can be written over that another has just written: what Delta Lake's log is safe with there
by default is one JVM that writes."""

DEAD_LETTERS = "_dead_letters"
"""The folder of the table of records that their topics' tables refuse: no topic has it by default."""

NO_NAMES: Mapping[str, str] = MappingProxyType({})


def location(lake_root: str, topic: str, tables: Mapping[str, str] = NO_NAMES) -> str:
    """The topic's table: the one that `tables` gives, a URL, a name or under `lake_root`; else by the topic's name.

    No two topics have the same by default. Hadoop takes folders that begin with `_` or `.` for hidden; these, and those
    that begin with `-`, get a `-` in front. Catalogs have names of lower case letters, digits and `_`: of other topics
    it is made of that, and a digest.
    """
    given = tables.get(topic)
    if given is not None and (ROOTED.match(given) or is_name(given)):
        return given.rstrip("/")
    if given is None and is_schema(lake_root):
        return f"{lake_root}.{_name(topic)}"
    folder = given or (f"-{topic}" if topic[0] in "_.-" else topic)
    return f"{lake_root.rstrip('/')}/{folder.rstrip('/')}"


def dead_letters(lake_root: str) -> str:
    """The table of the dead letters."""
    return f"{lake_root.rstrip('/')}{'.' if is_schema(lake_root) else '/'}{DEAD_LETTERS}"


def is_schema(lake_root: str) -> bool:
    """Whether it is a schema of a catalog, as `catalog.schema`, and no folder."""
    return _SCHEMA.fullmatch(lake_root) is not None


def is_name(table: str) -> bool:
    """Whether it is a table's name in a catalog, as `catalog.schema.table`, and no folder."""
    return _NAME.fullmatch(table) is not None


def in_sql(table: str) -> str:
    """The table as statements name it."""
    if is_name(table):
        return ".".join(f"`{part}`" for part in table.split("."))
    return f"delta.`{quoted(table)}`"


def quoted(name: str) -> str:
    """A name, or a location, as SQL takes it between backquotes."""
    return name.replace("`", "``")


def _name(topic: str) -> str:
    if _PLAIN.fullmatch(topic) and not _DIGEST.fullmatch(topic):
        return topic
    return f"{re.sub('[^a-z0-9_]', '_', topic.lower())}_{sha256(topic.encode()).hexdigest()[:8]}"


def schemes(lake_root: str, tables: Mapping[str, str] = NO_NAMES) -> tuple[str, ...]:
    """Of all tables' URLs; in ascending order."""
    return tuple(sorted({place.partition(":")[0].lower() for place in (lake_root, *tables.values()) if ":" in place}))


def of_one_writer(lake_root: str, tables: Mapping[str, str] = NO_NAMES) -> tuple[str, ...]:
    """The schemes among those of all tables on which one JVM may write at a time, unless Delta Lake has a log store."""
    return tuple(scheme for scheme in schemes(lake_root, tables) if scheme in _OF_ONE_WRITER)


def log_store_settings(scheme: str) -> tuple[str, str]:
    """Spark's settings that give Delta Lake a log store: for one scheme, and for all."""
    return f"spark.delta.logStore.{scheme}.impl", "spark.delta.logStore.class"
