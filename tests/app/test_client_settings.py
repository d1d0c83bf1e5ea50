"""Settings of the Kafka client that it does not take are one clear line, whatever is asked for. No broker is needed."""

import gc
from pathlib import Path

import pytest

from tests.cli.packing_command import Kcga, kcga_command

kcga = pytest.fixture(kcga_command)

SETTINGS = """
[kafka]
bootstrap_servers = "127.0.0.1:1"
client = {{ "{name}" = "x" }}
[monitor]
topics = ["orders"]
[consumer]
spark_remote = "sc://127.0.0.1:1"
lake_root = "/lake"
"""


@pytest.mark.parametrize("name", ["no.such.property", "error_cb"])
@pytest.mark.parametrize("command", ["explain", "status", "plan", "record", "pause"])
def test_what_the_client_does_not_take_is_one_line_and_exit_code_2(
    kcga: Kcga, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, name: str
) -> None:
    """Hole 24: some commands ended in a traceback."""
    monkeypatch.setattr(gc, "disable", lambda: None)
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS.format(name=name))
    more = [tmp_path / "speeds.csv"] if command == "record" else []
    ended = kcga(command, "--settings", file, *more)
    assert (ended.exit_code, ended.stdout, len(ended.stderr.splitlines())) == (2, "", 1)
    assert "kcga: kafka.client is not right" in ended.stderr
    assert name in ended.stderr
