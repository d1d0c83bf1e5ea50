"""The doctor writes to a real lake, and leaves nothing there."""

from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from cli.doctor.finding import Finding, Grade
from cli.doctor.lake import check_lake
from consumer.session import open_session, release
from consumer.table import creation
from tests.services import SharedSpark


def examined(spark_server: SharedSpark, lake_root: Path, **consumer: Any) -> list[Finding]:
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "group": "any"},
            "monitor": {"topics": ["orders"]},
            "controller": {"consumer_capacity": 1000},
            "consumer": {"spark_remote": spark_server.remote, "lake_root": str(lake_root), **consumer},
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


def test_a_schema_of_a_catalog_is_written_to_by_name(spark_server: SharedSpark, lake_root: Path) -> None:
    *others, finding = examined(spark_server, Path("spark_catalog.default"))
    assert {other.grade for other in (*others, finding)} == {Grade.OK}
    assert "a row was written to spark_catalog.default.kcga_doctor" in finding.what
    missing = {"orders": {"name": "spark_catalog.no_such.orders"}}
    *others, finding = examined(spark_server, lake_root, tables=missing)
    assert finding.grade is Grade.FAULT
    assert "no_such" in finding.what


def test_a_lake_that_cannot_be_written_to_is_a_fault(spark_server: SharedSpark, lake_root: Path) -> None:
    lake = lake_root / "file"
    lake.write_text("no folder")
    (finding,) = examined(spark_server, lake)
    assert finding.grade is Grade.FAULT
    assert str(lake) in finding.what


def test_a_table_of_another_layout_is_a_fault_with_what_would_be_right(
    spark_server: SharedSpark, lake_root: Path
) -> None:
    session = open_session(spark_server.remote)
    session.sql(creation(f"{lake_root}/orders"))
    release(session)
    tables = {"orders": {"cluster_by": ["offset"]}, "none": {"cluster_by": ["offset"]}}
    *others, finding = examined(spark_server, lake_root, tables=tables)
    assert {other.grade for other in others} == {Grade.OK}
    assert finding.grade is Grade.FAULT
    assert "orders is partitioned by ingest_date, and was to be clustered by offset" in finding.what
    assert finding.remedy.startswith('set partition_by = ["ingest_date"] and cluster_by = []')
    assert {each.grade for each in examined(spark_server, lake_root, partition_by=["ingest_date"])} == {Grade.OK}
