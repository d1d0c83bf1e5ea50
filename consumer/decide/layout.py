"""How the rows of a table lie in its files: partitioned or clustered by which columns."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from consumer.decide.columns import OF_EVERY_RECORD, Column
from consumer.decide.location import quoted

_PARTITIONED = frozenset({"STRING", "INT", "BIGINT", "DECIMAL", "DATE", "BOOLEAN"})
"""Types in SQL by which a table may be partitioned: of others nearly each record has a value of its own."""
_OF_EACH_RECORD = frozenset({"offset", "error"})
"""Columns that are of such types, and have such values."""
_CLUSTERED = frozenset({"STRING", "INT", "BIGINT", "DECIMAL", "DOUBLE", "TIMESTAMP", "DATE"})
"""Types of which Delta Lake keeps the ranges by which it clusters."""
MOST_CLUSTERED = 4
"""Columns that Delta Lake clusters a table by."""


@dataclass(frozen=True, slots=True)
class Layout:
    """By which columns a table is partitioned or clustered: one of both, or neither."""

    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    chosen: bool = True
    """Whether a setting says it: of a table that was created otherwise it is told."""

    @property
    def sql(self) -> str:
        """The clause of a statement that creates a table; empty for neither."""
        words, columns = ("CLUSTER BY", self.cluster_by) if self.cluster_by else ("PARTITIONED BY", self.partition_by)
        return f"{words} ({', '.join(f'`{quoted(column)}`' for column in columns)})" if columns else ""

    def __str__(self) -> str:
        words, columns = ("clustered", self.cluster_by) if self.cluster_by else ("partitioned", self.partition_by)
        return f"{words} by {', '.join(columns)}" if columns else "neither partitioned nor clustered"

    @property
    def settings(self) -> str:
        """The settings that say it."""
        told = {"partition_by": self.partition_by, "cluster_by": self.cluster_by}
        return " and ".join(f"{name} = {json.dumps(columns)}" for name, columns in told.items())

    def is_like(self, other: "Layout") -> bool:
        """Whether a table has both; in SQL capital letters do not matter."""
        mine, others = (self.partition_by, self.cluster_by), (other.partition_by, other.cluster_by)
        return all(_lower(one) == _lower(another) for one, another in zip(mine, others, strict=True))


BY_DAY = Layout(partition_by=("ingest_date",), chosen=False)
"""What a table has unless a setting says otherwise."""


@dataclass(frozen=True, slots=True)
class Layouts:
    """Of all tables."""

    by_default: Layout = BY_DAY
    of_tables: Mapping[str, Layout] = field(default_factory=dict)
    """Of some, by where they are."""

    def of(self, table: str) -> Layout:
        return self.of_tables.get(table, self.by_default)


AS_EVER = Layouts()


def amiss(layout: Layout, columns: Sequence[Column] = (), *, and_others: bool = False) -> str | None:
    """Why no table with the columns of every record, and these, can have the layout; None if it can.

    Args:
        layout: by which columns.
        columns: of the topic's schema.
        and_others: whether it may have more columns, of which only a schema registry knows.
    """
    types = {**OF_EVERY_RECORD, **{column.name: column.kind.sql.partition("(")[0] for column in columns}}
    if layout.partition_by and layout.cluster_by:
        return "a table has partition_by or cluster_by, not both"
    if len(layout.cluster_by) > MOST_CLUSTERED:
        return f"cluster_by has {len(layout.cluster_by)} columns: it must be at most {MOST_CLUSTERED}"
    for setting, given in (("partition_by", layout.partition_by), ("cluster_by", layout.cluster_by)):
        if len(set(_lower(given))) < len(given):
            return f"{setting} has a column twice: {', '.join(given)}"
        allowed, never = (_PARTITIONED, _OF_EACH_RECORD) if setting == "partition_by" else (_CLUSTERED, ())
        right = [name for name, kind in types.items() if kind in allowed and name not in never]
        for name in given:
            if name.lower() not in _lower(right):
                is_known = name.lower() in _lower(tuple(types))
                if and_others and not is_known:
                    continue
                why = "by which none can be so" if is_known else "which is no column"
                return f"{setting} names {name!r}, {why}: it must be of {', '.join(right)}"
    return None


def _lower(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)
