"""Whatever a file holds that kcga is given, it is read or refused by one clear error; nothing in it is carried out."""

import gzip
import json
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.errors import UsageError
from app.settings import load
from cli.files.snapshot_file import read_current, read_snapshot
from cli.files.stream_file import read_stream
from controller.local_processes import LocalProcesses
from tests.examples import examples
from tests.untrusted import TEMPTING, VALUES, WORDS, altered, as_bytes, damaged, nothing_carried_out

Reader = Callable[[Path], object]

CSV = {
    "snapshot": b"topic,partition,speed,consumer\norders,0,5.0,1\norders,1,7,2\n",
    "current": b"topic,partition,consumer\norders,0,1\norders,1,2\n",
    "stream": b"iteration,topic,partition,speed\n1,orders,0,5.0\n2,orders,0,6\n",
}
READERS: dict[str, Reader] = {"snapshot": read_snapshot, "current": read_current, "stream": read_stream}
JSON: dict[str, Any] = {
    "snapshot": {
        "version": 1,
        "kind": "write_speed",
        "measured_at": 1.0,
        "partitions": [{"topic": "orders", "partition": 0, "speed": 5.0}],
    },
    "current": {
        "assignment": [{"topic": "orders", "partition": 0, "consumer": 1}],
        "unknown": [{"topic": "orders", "partition": 1, "consumer": None}],
    },
}
SETTINGS = """\
[kafka]
bootstrap_servers = "127.0.0.1:9092"
client = { "security.protocol" = "SSL" }
[topics]
metadata = "m"
[monitor]
topics = ["orders", "^clicks-.*"]
[controller]
migration_weight = 0.5
pinned = { "orders-3" = 1 }
quiet_periods = [{ cron = "0 8 * * MON-FRI", duration_s = 36_000, time_zone = "Europe/Lisbon" }]
[consumer]
spark_remote = "sc://spark:15002"
lake_root = "/lake"
tables = { orders = "sales/orders" }
[local]
grace_s = 5
"""

fuzzed = settings(
    max_examples=examples(60),
    deadline=None,
    # The file is written anew for each example.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(autouse=True, scope="module")
def _everything_is_loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the readers load when they are used first is not what files bring about."""
    folder = tmp_path_factory.mktemp("valid")
    for name, read in READERS.items():
        for content in (CSV[name], gzip.compress(CSV[name]), b"topic\n\xff", b'{"assignment": 1}'):
            refused_or_read(read, folder / name, content)
    refused_or_read(load, folder / "settings.toml", b"[monitor]\ntopics = 1\n")
    refused_or_read(load, folder / "settings.toml", SETTINGS.encode())


def refused_or_read(read: Reader, file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with suppress(UsageError):
        read(file)


def refused_or_read_only(read: Reader, file: Path, content: bytes) -> None:
    with nothing_carried_out():
        refused_or_read(read, file, content)


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
@fuzzed
def test_tables_of_any_kind_are_read_or_refused(name: str, tmp_path: Path, data: st.DataObject) -> None:
    fields = st.lists(st.one_of(WORDS, st.sampled_from(["orders", "0", "1e400", "-1", "nan", ""])), max_size=5)
    rows = st.lists(fields.map(",".join), max_size=4).map(lambda lines: "\n".join(lines).encode("utf-8", "replace"))
    header = CSV[name].partition(b"\n")[0] + b"\n"
    content = data.draw(
        st.one_of(
            st.binary(max_size=200),
            damaged(CSV[name]),
            damaged(gzip.compress(CSV[name], mtime=0)),
            rows,
            rows.map(lambda some: header + some),
        )
    )
    refused_or_read_only(READERS[name], tmp_path / "file.csv", content)


@pytest.mark.parametrize("name", JSON)
@given(data=st.data())
@fuzzed
def test_json_of_any_kind_is_read_or_refused(name: str, tmp_path: Path, data: st.DataObject) -> None:
    content = data.draw(st.one_of(altered(JSON[name]).map(as_bytes), damaged(as_bytes(JSON[name]))))
    refused_or_read_only(READERS[name], tmp_path / "file.json", content)


@pytest.mark.parametrize("name", JSON)
def test_json_that_is_nested_without_end_is_refused(name: str, tmp_path: Path) -> None:
    refused_or_read_only(READERS[name], tmp_path / "file.json", b'{"a":' * 100_000)


def as_toml(value: Any) -> str:
    """What a person could have written for it; what TOML has no word for is left to be refused."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(name))} = {as_toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value)


@given(data=st.data())
@fuzzed
def test_settings_of_any_kind_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    whole = tomllib.loads(SETTINGS)
    content = data.draw(
        st.one_of(
            altered(whole).map(
                lambda value: (
                    "\n".join(f"{json.dumps(str(name))} = {as_toml(each)}" for name, each in value.items())
                    if isinstance(value, dict)
                    else as_toml(value)
                ).encode("utf-8", "replace")
            ),
            damaged(SETTINGS.encode()),
        )
    )
    refused_or_read_only(load, tmp_path / "settings.toml", content)


def test_settings_that_are_nested_without_end_are_refused(tmp_path: Path) -> None:
    refused_or_read_only(load, tmp_path / "settings.toml", b"a = " + b"[" * 100_000)


@pytest.mark.parametrize("text", TEMPTING)
@pytest.mark.parametrize("setting", ["controller.engine", "consumer.spark_remote", "consumer.lake_root", "kafka.group"])
def test_a_setting_is_never_more_than_text(setting: str, text: str, tmp_path: Path) -> None:
    section, _, name = setting.partition(".")
    values = tomllib.loads(SETTINGS)
    values[section][name] = text
    content = "\n".join(f"{key} = {as_toml(each)}" for key, each in values.items())
    refused_or_read_only(load, tmp_path / "settings.toml", content.encode("utf-8", "replace"))


@given(data=st.data())
@fuzzed
def test_a_file_that_names_no_process_of_the_group_is_of_no_account(tmp_path: Path, data: st.DataObject) -> None:
    identity = {"pid": 2**22 + 1, "create_time": 1.0}
    content = data.draw(st.one_of(altered(identity).map(as_bytes), VALUES.map(as_bytes), st.binary(max_size=50)))
    name = data.draw(st.sampled_from(["consumer-1.json", "consumer-.json", "consumer-x.json", "other.json"]))
    (tmp_path / name).write_bytes(content)
    fleet = LocalProcesses(tmp_path, lambda _number, _class_name: ["false"])
    assert fleet.consumers() == frozenset()
