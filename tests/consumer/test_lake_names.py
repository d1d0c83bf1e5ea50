"""Under which names the lake is asked to append, and what it is asked about offsets, with a session in memory; the real
ones are in test_lake."""

from collections import Counter
from datetime import date
from typing import Any, Self

import pyarrow as pa
import pytest

from consumer import lake as lake_module
from consumer.decide.batch import Record
from consumer.decide.reached import Reached
from consumer.decide.spans import Span
from consumer.lake import Lake
from consumer.sink import RefusedError
from consumer.table import SCHEMA, rows
from domain.partitions import TopicPartition

TODAY = date(2026, 1, 31)


class ConstraintError(Exception):
    """As Spark has it."""

    def getSqlState(self) -> str:  # noqa: N802
        return "23001"

    def getCondition(self) -> str:  # noqa: N802
        return "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


class Session:
    """A session of Spark with one table, of Delta Lake: it takes a name once, and none that is older than another."""

    def __init__(self) -> None:
        self.table = SCHEMA.empty_table()
        self.versions: Counter[str] = Counter()
        self.notes: list[str | None] = []
        """Of the log's entries, the newest first."""
        self.refused: set[int] = set()
        """Offsets that the table does not take."""

    def sql(self, statement: str) -> "Frame":
        del statement
        return Frame(self, pa.table({"userMetadata": pa.array(self.notes, pa.string())}))

    def createDataFrame(self, data: Any, schema: object = None) -> "Frame":  # noqa: N802
        return Frame(self, data if schema is None else SCHEMA.empty_table())

    @property
    def read(self) -> Self:
        return self

    def format(self, name: str) -> Self:
        del name
        return self

    def load(self, table: str) -> "Frame":
        del table
        return Frame(self, self.table)


class Frame:
    def __init__(self, session: Session, rows: pa.Table) -> None:
        self.session = session
        self.rows = rows

    @property
    def write(self) -> "Writer":
        return Writer(self)

    def where(self, condition: str) -> Self:
        del condition
        return self

    def select(self, column: str) -> Self:
        self.rows = self.rows.select([column])
        return self

    def groupBy(self, column: str) -> "Grouped":  # noqa: N802
        return Grouped(self, column)

    def collect(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.rows.to_pylist()]


class Grouped:
    def __init__(self, frame: Frame, column: str) -> None:
        self._frame = frame
        self._column = column

    def agg(self, functions: dict[str, str]) -> Frame:
        ((column, function),) = functions.items()
        grouped = self._frame.rows.group_by(self._column).aggregate([(column, function)])
        return Frame(self._frame.session, grouped.select([self._column, f"{column}_{function}"]))


class Writer:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._options: dict[str, Any] = {}

    def format(self, name: str) -> Self:
        del name
        return self

    def mode(self, name: str) -> Self:
        assert name == "append"
        return self

    def option(self, name: str, value: Any) -> Self:
        self._options[name] = value
        return self

    def options(self, **options: Any) -> Self:
        self._options |= options
        return self

    def save(self, table: str) -> None:
        del table
        session = self._frame.session
        writer, version = self._options.get("txnAppId"), self._options.get("txnVersion")
        if writer is not None and version is not None:
            if version <= session.versions[writer]:
                return
            if session.refused.intersection(self._frame.rows["offset"].to_pylist()):
                raise ConstraintError
            session.versions[writer] = version
        session.table = pa.concat_tables([session.table, self._frame.rows], promote_options="default")
        session.notes.insert(0, self._options.get("userMetadata"))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    session = Session()
    monkeypatch.setattr(lake_module, "open_session", lambda *_: session)
    return session


def a_lake(writer: str) -> Lake:
    lake = Lake(["local[1]"], "/lake", writer)
    lake.connect()
    return lake


def batch(*offsets: int) -> pa.Table:
    return rows([Record(TopicPartition("orders", 0), offset, None, None, b"", ()) for offset in offsets], TODAY)


def offsets(session: Session) -> list[int]:
    return list(session.table["offset"].to_pylist())


def test_an_append_that_is_repeated_is_there_once(session: Session) -> None:
    lake = a_lake("group/1/a")
    lake.append("orders", 1, batch(0, 1))
    lake.append("orders", 1, batch(0, 1))
    lake.append("orders", 2, batch(2))
    a_lake("group/2/b").append("orders", 1, batch(3))
    assert offsets(session) == [0, 1, 2, 3]


def test_nothing_of_a_writer_that_is_sealed_takes_effect(session: Session) -> None:
    former, successor = a_lake("group/1/a"), a_lake("group/1/b")
    former.append("orders", 1, batch(0))
    successor.seal("orders", "group/1/a")
    former.append("orders", 2, batch(1))
    former.append("orders", 2**40, batch(1))
    successor.append("orders", 1, batch(1))
    assert offsets(session) == [0, 1]


def test_the_highest_offset_is_the_last_one_by_the_log_and_by_the_rows(session: Session) -> None:
    lake = a_lake("group/1/a")
    lake.append("orders", 1, batch(0, 1))
    lake.append("orders", 2, batch(2, 4, 3))
    assert lake.last_appended("orders", {0}) == {0: Reached(4)}
    assert lake.last_offsets("orders", {0: Span(0, 9)}) == {0: 4}
    lake.append("orders", 3, batch(3), {0: 5})
    assert lake.last_appended("orders", {0}) == {0: Reached(3, 5)}, "of a later leader"
    assert session.notes[0] is not None


def test_a_dead_letter_is_there_once_whoever_appends_it(session: Session) -> None:
    for writer in ("group/1/a", "group/2/b"):
        lake = a_lake(writer)
        lake.set_aside("orders", batch(7), "because", {0: 4})
        lake.set_aside("orders", batch(8), "because", {0: 4})
    assert offsets(session) == [7, 8]
    assert lake.last_set_aside("orders", {0, 1}) == {0: Reached(8, 4)}
    assert lake.last_set_aside("clicks", {0}) == {}


def test_what_was_refused_never_comes_though_it_was_asked_for_before_and_the_table_takes_it_now(
    session: Session,
) -> None:
    lake, late = a_lake("group/1/a"), a_lake("group/1/a")
    session.refused = {1}
    for _ in range(2):
        with pytest.raises(RefusedError):
            lake.append("orders", 1, batch(0, 1))
    session.refused = set()
    late.append("orders", 1, batch(0, 1))
    assert offsets(session) == []
    lake.append("orders", 2, batch(0, 1))
    assert offsets(session) == [0, 1]


def test_an_append_whose_answer_got_lost_is_not_told_as_refused_though_the_table_would_refuse_it_now(
    session: Session,
) -> None:
    lake = a_lake("group/1/a")
    lake.append("orders", 1, batch(0))
    session.refused = {0}
    session.versions.clear()  # the same again looks at the table as it was before
    lake.append("orders", 1, batch(0))
    assert offsets(session) == [0]
