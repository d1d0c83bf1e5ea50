"""Where the table of a topic lies."""

import re
from collections.abc import Mapping
from types import MappingProxyType

ROOTED = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
"""How an absolute path, or a Hadoop URL, begins."""

NO_NAMES: Mapping[str, str] = MappingProxyType({})


def location(lake_root: str, topic: str, tables: Mapping[str, str] = NO_NAMES) -> str:
    """The folder of the topic's table: the one that `tables` gives, a URL or under `lake_root`; else the topic's name.

    No two topics have the same by default. Hadoop takes names that begin with `_` or `.` for hidden; these, and those
    that begin with `-`, get a `-` in front.
    """
    folder = tables.get(topic) or (f"-{topic}" if topic[0] in "_.-" else topic)
    return folder.rstrip("/") if ROOTED.match(folder) else f"{lake_root.rstrip('/')}/{folder}"


def quoted(table: str) -> str:
    """The location as SQL takes it between backquotes."""
    return table.replace("`", "``")
