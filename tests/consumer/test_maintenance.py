"""What is asked of Spark to keep tables quick to read, and what comes of its refusals; on Spark itself: test_lake."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from structlog.testing import capture_logs

from consumer import maintenance
from consumer import session as of_spark
from consumer.maintenance import TOO_SHORT, Compaction, Upkeep, optimize, vacuum
from consumer.session import LakeError
from consumer.settings import ConsumerSettings
from domain.partitions import TopicPartition


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
        self.conf = self
        self.settings: dict[str, str] = {}
        self.released = False
        self._files = list(files)
        self._error = error

    def sql(self, statement: str) -> "FakeSession":
        self.statements.append(statement)
        if self._error is not None:
            raise self._error
        return self

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value

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
    assert session.settings["spark.databricks.delta.vacuum.retentionWindowIgnore.enabled"] == "false"


def test_a_table_that_keeps_files_for_longer_decides(opens: pytest.MonkeyPatch) -> None:
    class Keeps(FakeSession):
        def sql(self, statement: str) -> "FakeSession":
            super().sql(statement)
            if "RETAIN" in statement:
                raise ValueError(f"[{TOO_SHORT}] use at least 720 hours")
            return self

    session = opened(opens, Keeps())
    assert vacuum("sc://spark", "/lake/orders")
    assert session.statements == ["VACUUM delta.`/lake/orders` RETAIN 168 HOURS", "VACUUM delta.`/lake/orders`"]


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


MINUTE = 60.0
ORDERS, OTHER, BILLS = (TopicPartition(*each) for each in (("orders", 0), ("orders", 1), ("bills", 0)))


def upkeep(**chosen: Any) -> Upkeep:
    settings = ConsumerSettings(
        spark_remote=("sc://a", "sc://b"), lake_root="/lake", maintenance={"cron": "*/2 * * * *", **chosen}
    )
    assert settings.maintenance is not None
    return Upkeep(settings, settings.maintenance, consumer=2, at=MINUTE)


def at_once(opens: pytest.MonkeyPatch) -> None:
    def called(call: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()
        call()
        future.set_result(None)
        return future

    opens.setattr(maintenance, "in_thread", called)


def test_at_each_moment_tables_are_taken_care_of_whose_partition_0_is_read_here(opens: pytest.MonkeyPatch) -> None:
    at_once(opens)
    session = opened(opens, FakeSession(files=(9, 1) * 4))
    upkeep().look(2 * MINUTE, {BILLS, ORDERS, OTHER})
    done = [statement for statement in session.statements if not statement.startswith("DESCRIBE")]
    assert done == [
        *("OPTIMIZE delta.`/lake/bills`", "VACUUM delta.`/lake/bills` RETAIN 168 HOURS"),
        *("OPTIMIZE delta.`/lake/orders`", "VACUUM delta.`/lake/orders` RETAIN 168 HOURS"),
    ]
    assert session.settings["spark.databricks.delta.optimize.maxThreads"] == "1"


@pytest.mark.parametrize(("chosen", "word"), [({"vacuum": False}, "OPTIMIZE"), ({"optimize": False}, "VACUUM")])
def test_each_kind_of_care_can_be_left_out(chosen: dict[str, bool], word: str, opens: pytest.MonkeyPatch) -> None:
    at_once(opens)
    session = opened(opens, FakeSession(files=(9, 1)))
    upkeep(**chosen).look(2 * MINUTE, {ORDERS})
    assert {statement.split()[0] for statement in session.statements} - {"DESCRIBE"} == {word}


def test_a_table_that_fails_is_told_and_keeps_no_other_from_being_taken_care_of(opens: pytest.MonkeyPatch) -> None:
    class Refuses(FakeSession):
        def sql(self, statement: str) -> "FakeSession":
            if "bills" in statement:
                raise Denied("you may not")
            return super().sql(statement)

    at_once(opens)
    session = opened(opens, Refuses(files=(9, 1)))
    with capture_logs() as logs:
        upkeep().look(2 * MINUTE, {ORDERS, BILLS})
    assert [(each["log_level"], each["topic"]) for each in logs] == [("warning", "bills"), ("info", "orders")]
    assert "you may not" in logs[0]["reason"]
    assert logs[1]["files_before"] == 9
    assert session.statements[-1].startswith("VACUUM")


def test_care_that_takes_longer_than_from_moment_to_moment_is_not_begun_twice(opens: pytest.MonkeyPatch) -> None:
    begun: list[Future[None]] = []

    def begin(_: object) -> Future[None]:
        begun.append(Future())
        return begun[-1]

    opens.setattr(maintenance, "in_thread", begin)
    care = upkeep()
    with capture_logs() as logs:
        for minute in (2, 4):
            care.look(minute * MINUTE, {ORDERS})
    assert len(begun) == 1
    assert "still under way" in logs[0]["reason"]
    begun[0].set_result(None)
    care.look(6 * MINUTE, {ORDERS})
    assert len(begun) == 2
