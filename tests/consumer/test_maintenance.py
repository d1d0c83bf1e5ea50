"""What is asked of Spark to keep tables quick to read, and what comes of its refusals; on Spark itself: test_lake."""

from collections.abc import Sequence

import pytest
from pyspark.errors import AnalysisException

from consumer import session as of_spark
from consumer.maintenance import Compaction, optimize, vacuum
from consumer.session import LakeError


class Missing(AnalysisException):
    def getCondition(self) -> str:  # noqa: N802 (PySpark's)
        return "DELTA_TABLE_NOT_FOUND"


class Denied(AnalysisException):
    def getCondition(self) -> str:  # noqa: N802 (PySpark's)
        return "INSUFFICIENT_PERMISSIONS"


class FakeSession:
    """Notes what it is asked; tells the numbers of files one after the other."""

    def __init__(self, files: Sequence[int] = (), error: Exception | None = None) -> None:
        self.statements: list[str] = []
        self.released = False
        self._files = list(files)
        self._error = error

    def sql(self, statement: str) -> "FakeSession":
        self.statements.append(statement)
        if self._error is not None:
            raise self._error
        return self

    def collect(self) -> list[dict[str, int]]:
        return [{"numFiles": self._files.pop(0)}] if self.statements[-1].startswith("DESCRIBE") else []


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(of_spark, "release", lambda session: setattr(session, "released", True))
    return monkeypatch


def opened(opens: pytest.MonkeyPatch, session: FakeSession) -> FakeSession:
    opens.setattr(of_spark, "open_session", lambda _spark, _conf: session)
    return session


def test_files_are_counted_before_and_after_they_are_put_together(opens: pytest.MonkeyPatch) -> None:
    session = opened(opens, FakeSession(files=(40, 3)))
    assert optimize("sc://spark", "/lake/orders") == Compaction(40, 3)
    assert [statement.split()[0] for statement in session.statements] == ["DESCRIBE", "OPTIMIZE", "DESCRIBE"]
    assert session.released


def test_only_files_that_are_old_enough_are_deleted(opens: pytest.MonkeyPatch) -> None:
    session = opened(opens, FakeSession())
    assert vacuum("sc://spark", "/lake/orders")
    assert vacuum("sc://spark", "/lake/somebody's `own`", 200)
    assert session.statements == [
        "VACUUM delta.`/lake/orders` RETAIN 168 HOURS",
        "VACUUM delta.`/lake/somebody's ``own``` RETAIN 200 HOURS",
    ]


def test_a_table_that_does_not_exist_has_nothing_to_be_done_for(opens: pytest.MonkeyPatch) -> None:
    session = opened(opens, FakeSession(error=Missing("no table")))
    assert optimize("sc://spark", "/lake/orders") is None
    assert not vacuum("sc://spark", "/lake/orders")
    assert session.released


@pytest.mark.parametrize("error", [Denied("you may not"), ConnectionError("you may not")])
def test_any_other_refusal_is_an_error_that_names_the_table(error: Exception, opens: pytest.MonkeyPatch) -> None:
    session = opened(opens, FakeSession(error=error))
    for job in (optimize, vacuum):
        with pytest.raises(LakeError, match=r"/lake/orders: .*you may not"):
            job("sc://spark", "/lake/orders")
    assert session.released
