"""The doctor writes to a real lake, and leaves nothing there."""

from pathlib import Path

import pytest

from app.settings import Settings
from cli.doctor.finding import Finding, Grade
from cli.doctor.lake import check_lake
from tests.services import SharedSpark


def examined(spark_server: SharedSpark, lake_root: Path) -> list[Finding]:
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "group": "any"},
            "monitor": {"topics": ["orders"]},
            "controller": {"consumer_capacity": 1000},
            "consumer": {"spark_remote": spark_server.remote, "lake_root": str(lake_root)},
        }
    )
    return list(check_lake(settings))


@pytest.mark.parametrize("name", ["lake", "somebody's `lake`"])
def test_what_the_doctor_writes_is_removed_again(name: str, spark_server: SharedSpark, lake_root: Path) -> None:
    lake = lake_root / name
    (lake / "orders").mkdir(parents=True)
    findings = examined(spark_server, lake)
    assert {finding.grade for finding in findings} == {Grade.OK}
    assert "removed again" in findings[-1].what
    assert [file.name for file in lake.iterdir()] == ["orders"]


def test_a_lake_that_cannot_be_written_to_is_a_fault(spark_server: SharedSpark, lake_root: Path) -> None:
    lake = lake_root / "file"
    lake.write_text("no folder")
    (finding,) = examined(spark_server, lake)
    assert finding.grade is Grade.FAULT
    assert str(lake) in finding.what
