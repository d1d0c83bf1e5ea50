"""`kcga sink check`: which programs are sinks, and what it says that they promise."""

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.doctor.lake import check_lake
from cli.main import app
from tests.app.any_settings import settings
from tests.consumer.test_command_sink import EXAMPLES
from tests.sink_examples import Example

PROGRAM = """\
import json, sys
rows, last = 0, {}
for line in iter(sys.stdin.buffer.readline, b""):
    asked = json.loads(line)
    sys.stdin.buffer.read(asked["bytes"])
    said = {"ask": asked["ask"]}
    %s
    print(json.dumps(said), flush=True)
"""


def check(*command: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["sink", "check", "--limit", "60", "--", *command])
    return done.exit_code, done.output + str(done.exception or "")


@pytest.mark.slow
@EXAMPLES
def test_the_example_keeps_each_record_exactly_once(example: Example) -> None:
    code, said = check(*example.command)
    assert code == 0, said
    assert "✗" not in said
    assert "It keeps each record exactly once." in said


@pytest.mark.slow
def test_one_that_tells_no_last_row_keeps_each_record_at_least_once() -> None:
    code, said = check(sys.executable, "-c", PROGRAM % "pass")
    assert code == 0, said
    assert "✗ it tells no last row" in said
    assert "It keeps each record at least once." in said


@pytest.mark.slow
def test_one_that_keeps_what_comes_again_is_found_out(tmp_path: Path) -> None:
    """A write that came again is counted twice, and so are those whose answer a kill came before."""
    kept = tmp_path / "kept"
    kept.touch()
    # A byte for each row, all by one call: a kill takes back nothing that was kept.
    doubling = f"""
    if asked["do"] == "write":
        open({str(kept)!r}, "ab", buffering=0).write(bytes(2000))
    if asked["do"] in ("last", "count"):
        rows = len(open({str(kept)!r}, "rb").read())
        said |= {{"last": {{"0": [rows - 1, None]}}}} if asked["do"] == "last" else {{"rows": rows}}"""
    code, said = check(sys.executable, "-c", PROGRAM % doubling.strip())
    assert code == 0, said
    assert re.search(r"✗ what it tells is last is offset \d+, \d+ of 18000 rows after repeats and kills", said)
    assert "It keeps each record at least once." in said


@pytest.mark.parametrize(
    ("command", "why"), [(("/bin/cat",), "which is no answer"), (("/no/such",), "cannot be started")]
)
def test_what_is_no_sink_is_told(command: tuple[str, ...], why: str) -> None:
    code, said = check(*command)
    assert code == 1
    assert why in said
    assert f"{command[0]} is no sink: it must do what docs/sinks.md says" in said


def of_program(*command: str) -> dict[str, object]:
    return {"sink": "command", "command": command, "spark_remote": None, "lake_root": ""}


def test_the_doctor_begins_the_program() -> None:
    program = of_program(sys.executable, "-c", PROGRAM % "pass")
    assert [finding.what for finding in check_lake(settings(consumer=program))] == [
        f"{sys.executable} begins, and answers"
    ]
    (finding,) = check_lake(settings(consumer=of_program("/no/such")))
    assert "/no/such cannot be started" in finding.what


def test_commands_of_a_lake_say_that_there_is_none(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(
        '[kafka]\nbootstrap_servers = "127.0.0.1:1"\n[monitor]\ntopics = ["orders"]\n'
        '[consumer]\nsink = "command"\ncommand = ["my-sink"]\n'
    )
    for command in (["verify"], ["dead-letters"], ["optimize"], ["vacuum"]):
        done = CliRunner().invoke(app, ["lake", *command, "orders", "--settings", str(file)])
        assert "is 'command': this is for the tables of a lake" in str(done.exception)
