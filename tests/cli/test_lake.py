"""`kcga lake` on real tables and a real broker."""

import json
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path

import pytest

from app.errors import KcgaError, UsageError
from cli.commands.lake import dead_letters, optimize, replay, vacuum, verify
from cli.options import OutputFormat
from consumer.decide.batch import Record
from consumer.lake import Lake
from consumer.table import rows
from domain.partitions import TopicPartition
from tests.services import SharedBroker, SharedSpark

DAY = date(2026, 1, 31)
WriteOffsets = Callable[[str, Iterable[int]], None]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def topic(unique_name: str, create_topic: Callable[..., str]) -> str:
    return create_topic(f"{unique_name}.data")


@pytest.fixture
def settings(broker: SharedBroker, spark_server: SharedSpark, lake_root: Path, tmp_path: Path, topic: str) -> Path:
    file = tmp_path / "settings.toml"
    file.write_text(
        f"""
        [kafka]
        bootstrap_servers = "{broker.bootstrap_servers}"
        [monitor]
        topics = ["^{topic}$"]
        [consumer]
        spark_remote = "{spark_server.remote}"
        lake_root = "{lake_root}"
        tables = {{ "{topic}" = "elsewhere/{topic}" }}
        """
    )
    return file


@pytest.fixture
def write(spark_server: SharedSpark, lake_root: Path, topic: str) -> WriteOffsets:
    """Writes one row for each offset, each in a file of its own."""

    def write(writer: str, offsets: Iterable[int]) -> None:
        lake = Lake([spark_server.remote], str(lake_root), writer, {topic: f"elsewhere/{topic}"})
        lake.connect()
        for version, offset in enumerate(offsets, start=1):
            record = Record(TopicPartition(topic, 0), offset, None, None, b"value", ())
            lake.append(topic, version, rows([record], DAY))
        lake.close()

    return write


def test_each_partition_is_accounted_for(
    settings: Path, write: WriteOffsets, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("a", [0, 1, 2])
    verify(settings, output=OutputFormat.JSON)
    assert json.loads(capsys.readouterr().out) == {
        "topic": topic, "partition": 0, "rows": 3, "first_offset": 0, "last_offset": 2, "doubled": 0, "missing": 0,
        "dead_letters": 0,
    }  # fmt: skip
    verify(settings, [topic])
    assert f"{topic}-0" in capsys.readouterr().out


def test_what_a_table_refused_is_shown_with_all_its_bytes_and_why(
    settings: Path,
    spark_server: SharedSpark,
    lake_root: Path,
    topic: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dead_letters(settings)
    assert capsys.readouterr().out == "no dead letters\n"
    lake = Lake([spark_server.remote], str(lake_root), "a")
    lake.connect()
    for offset in (8, 7):
        record = Record(TopicPartition(topic, 0), offset, 1_700_000_000_123, b"\xff", b"value", (("h", b"\x00"),))
        lake.set_aside(topic, rows([record], DAY), "[CHECK] refuses it")
    lake.close()
    capsys.readouterr()  # the log
    dead_letters(settings, output=OutputFormat.JSON, most=1)
    assert json.loads(capsys.readouterr().out) == {
        "topic": topic, "partition": 0, "offset": 7, "timestamp": "2023-11-14T22:13:20.123000+00:00",
        "key": "/w==", "value": "dmFsdWU=", "headers": [{"key": "h", "value": "AA=="}], "reason": "[CHECK] refuses it",
    }  # fmt: skip
    dead_letters(settings, [topic])
    told = capsys.readouterr().out
    assert told.index(f"{topic}-0  7") < told.index(f"{topic}-0  8")
    assert told.count("[CHECK] refuses it") == 2
    dead_letters(settings, [f"{topic}.other"])
    assert capsys.readouterr().out == "no dead letters\n"
    replay(settings, topic)
    assert f"{topic}: 2 records are in its table" in capsys.readouterr().out
    dead_letters(settings)
    assert capsys.readouterr().out == "no dead letters\n"


def test_what_is_doubled_or_missing_is_a_fault(settings: Path, write: WriteOffsets) -> None:
    write("a", [0, 3])
    with pytest.raises(KcgaError, match="0 rows are doubled, 2 offsets"):
        verify(settings)
    verify(settings, allow_gaps=True)
    write("b", [3])
    with pytest.raises(KcgaError, match="1 rows are doubled"):
        verify(settings, allow_gaps=True)


def test_files_become_fewer_and_the_rows_stay(
    settings: Path, write: WriteOffsets, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("a", range(3))
    optimize(settings)
    assert f"{topic}: 3 files became 1" in capsys.readouterr().out
    vacuum(settings, [topic])
    assert f"{topic}: done" in capsys.readouterr().out
    verify(settings)


def test_a_topic_without_a_table_says_so(settings: Path, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    optimize(settings, [topic])
    vacuum(settings, [topic])
    assert capsys.readouterr().out.count(f"{topic}: has no table") == 2


def test_a_lake_of_no_topic_is_refused(settings: Path, topic: str) -> None:
    settings.write_text(settings.read_text().replace(f"^{topic}$", f"^{topic}.none"))
    with pytest.raises(UsageError, match="name some"):
        verify(settings)
