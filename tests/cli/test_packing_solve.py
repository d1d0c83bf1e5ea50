"""`kcga solve` as a person types it."""

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.components import command
from cli.main import app
from domain.messages import WriteSpeedReport
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from solver import ENGINES, Solution
from tests.cli.packing_command import Kcga, kcga_command
from tests.patience import PATIENCE_S

kcga = pytest.fixture(kcga_command)

PROVEN = ("--capacity", 100, "--time-limit", 60)
"""A proof is there in that time, however busy the machine."""

SNAPSHOT = """topic,partition,speed,consumer
clicks,0,60,1
clicks,1,50,1
clicks,2,30,2
orders,0,20,2
orders,1,10,
"""
"""Consumer 1 has 110: something must leave it, and its 50 can go to consumer 2."""


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    file = tmp_path / "snapshot.csv"
    file.write_text(SNAPSHOT)
    return file


def planned(kcga: Kcga, *arguments: object, stdin: bytes = b"") -> dict[str, Any]:
    ended = kcga("solve", *arguments, "--output", "json", stdin=stdin)
    assert ended.exit_code == 0, ended.stderr
    return json.loads(ended.stdout)  # type: ignore[no-any-return]


def test_json_has_the_fields_of_the_solution_and_every_partition_in_order(kcga: Kcga, snapshot: Path) -> None:
    plan = planned(kcga, snapshot, *PROVEN)
    assert {field.name for field in fields(Solution)} - {"classes"} | {"gap"} <= plan.keys()
    assert (plan["status"], plan["consumers"], plan["gap"]) == ("optimal", 2, 0)
    assert [(row["topic"], row["partition"]) for row in plan["assignment"]] == [
        ("clicks", 0),
        ("clicks", 1),
        ("clicks", 2),
        ("orders", 0),
        ("orders", 1),
    ]
    assert all(row.keys() == {"topic", "partition", "speed", "consumer", "previous"} for row in plan["assignment"])
    assert [row["previous"] for row in plan["assignment"]] == [1, 1, 2, 2, None]
    moved = sum(row["speed"] for row in plan["assignment"] if row["previous"] not in (row["consumer"], None))
    assert plan["rscore"] == pytest.approx(moved / 100)
    assert plan["objective"] == pytest.approx(2 + 0.5 * plan["rscore"])


CLASSES = ("--class", "large=200:1.6", "--class", "small=50:0.4")


def test_a_plan_says_the_class_of_each_consumer_and_takes_it_back(kcga: Kcga, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.csv"
    fresh.write_text("topic,partition,speed\nclicks,0,150\norders,0,45\n")
    plan = planned(kcga, fresh, *PROVEN, *CLASSES)
    assert {row["topic"]: row["class"] for row in plan["assignment"]} == {"clicks": "large", "orders": "large"}
    assert (plan["price"], plan["objective"], plan["status"]) == (1.6, 1.6, "optimal")
    for format_ in ("json", "csv"):
        current = tmp_path / f"current.{format_}"
        current.write_text(kcga("solve", fresh, *PROVEN, *CLASSES, "--output", format_).stdout)
        again = planned(kcga, fresh, *PROVEN, *CLASSES, "--current", current)
        assert (again["rscore"], again["assignment"][0]["class"]) == (0, "large")
    assert "large" in kcga("solve", fresh, *PROVEN, *CLASSES).stdout


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        (["large"], "NAME=CAPACITY:PRICE"),
        (["Large=2:1"], "lower case"),
        (["large=two:1"], "its capacity is 'two'"),
        (["large=2:0"], "the price of --class large is 0"),
        (["large=2:1", "large=3:1"], "it is there twice"),
        (["ordinary=2:1"], "those of --capacity"),
    ],
)
def test_a_class_that_says_nothing_is_an_error_that_says_what_would(
    kcga: Kcga, snapshot: Path, classes: list[str], words: str
) -> None:
    ended = kcga("solve", snapshot, *(word for each in classes for word in ("--class", each)))
    assert ended.exit_code == 2
    assert words in ended.stderr


def test_a_consumer_of_a_class_that_nobody_describes_is_an_error(kcga: Kcga, tmp_path: Path) -> None:
    current = tmp_path / "current.csv"
    current.write_text("topic,partition,speed,consumer,class\nclicks,0,60,1,large\n")
    ended = kcga("solve", current, "--capacity", 100)
    assert (ended.exit_code, "--class must say what that is" in ended.stderr) == (2, True)
    current.write_text("topic,partition,speed,consumer,class\nclicks,0,60,1,large\nclicks,1,6,1,small\n")
    ended = kcga("solve", current, "--capacity", 100, *CLASSES)
    assert (ended.exit_code, "of the class small, and of large" in ended.stderr) == (2, True)


def test_csv_is_the_same_plan(kcga: Kcga, snapshot: Path) -> None:
    plan = planned(kcga, snapshot, *PROVEN)
    ended = kcga("solve", snapshot, *PROVEN, "--output", "csv")
    assert ended.stdout.startswith("topic,partition,speed,consumer,previous\nclicks,0,60,")
    rows = list(csv.DictReader(io.StringIO(ended.stdout)))
    assert [int(row["consumer"]) for row in rows] == [row["consumer"] for row in plan["assignment"]]
    assert [row["previous"] for row in rows] == ["1", "1", "2", "2", ""]


@pytest.mark.parametrize("output", ["json", "csv"])
def test_a_plan_that_is_given_back_as_the_current_assignment_needs_no_migration(
    kcga: Kcga, snapshot: Path, tmp_path: Path, output: str
) -> None:
    before = tmp_path / "plan"
    before.write_text(kcga("solve", snapshot, *PROVEN, "--output", output).stdout)
    speeds = tmp_path / "speeds.csv"
    speeds.write_text("\n".join(line.rpartition(",")[0] for line in SNAPSHOT.splitlines()))
    again = planned(kcga, speeds, *PROVEN, "--current", before)
    assert (again["rscore"], again["consumers"]) == (0, 2)
    assert all(row["previous"] == row["consumer"] for row in again["assignment"])


def test_a_csv_plan_can_be_solved_anew(kcga: Kcga, snapshot: Path) -> None:
    plan = kcga("solve", snapshot, *PROVEN, "--output", "csv").stdout
    assert planned(kcga, "-", *PROVEN, stdin=plan.encode())["rscore"] == 0


def test_the_table_shows_each_consumer_as_a_bar_and_each_migration_with_its_price(kcga: Kcga, snapshot: Path) -> None:
    ended = kcga("solve", snapshot, *PROVEN)
    assert ended.stderr == ""
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("2 consumers for 5 partitions, 170 B/s")
    assert "1 migration, Rscore" in lines[0]
    assert "proven optimal" in " ".join(lines[1:3])
    assert sum("B/s" in line and "%" in line for line in lines) == 2
    [migration] = [line.split() for line in lines if line.startswith("clicks-1 ")]
    assert migration == ["clicks-1", "1", "→", "2", "50", "B/s", "0.500", "0.250"]
    assert any("1 partition had no consumer" in line for line in lines)
    assert all(len(line) <= 80 for line in lines)


def test_a_partition_faster_than_a_consumer_is_named(kcga: Kcga, tmp_path: Path) -> None:
    file = tmp_path / "fast.csv"
    file.write_text("topic,partition,speed\nclicks,0,250\nclicks,1,40\n")
    assert planned(kcga, file, *PROVEN)["saturated"] == [{"topic": "clicks", "partition": 0}]
    assert "clicks-0 is faster than a consumer" in kcga("solve", file, *PROVEN).stdout


def test_partitions_of_unknown_speed_are_left_out_and_keep_their_consumer(kcga: Kcga, tmp_path: Path) -> None:
    known, unknown = TopicPartition("clicks", 0), TopicPartition("clicks", 1)
    file = tmp_path / "message.json"
    file.write_bytes(WriteSpeedReport.of(WriteSpeeds(1.0, {known: 5.0}, frozenset({unknown}))).encode())
    current = tmp_path / "current.csv"
    current.write_text("topic,partition,consumer\nclicks,0,3\nclicks,1,4\ngone,7,4\n")
    ended = kcga("solve", file, "--current", current, "--output", "json")
    plan = json.loads(ended.stdout)
    assert plan["assignment"] == [{"topic": "clicks", "partition": 0, "speed": 5.0, "consumer": 3, "previous": 3}]
    assert plan["unknown"] == [{"topic": "clicks", "partition": 1, "consumer": 4}]
    assert "1 partition of unknown speed (clicks-1) left out of the plan" in ended.stderr
    assert "1 partition with a consumer (gone-7) left out" in ended.stderr
    again = tmp_path / "plan.json"
    again.write_text(ended.stdout)
    assert planned(kcga, file, "--current", again)["unknown"] == plan["unknown"]


def test_new_consumers_count_from_1_unless_the_present_ones_count_from_0(kcga: Kcga) -> None:
    rows = "topic,partition,speed,consumer\na,0,90,{}\na,1,90,\n"
    for present, expected in ((1, {1, 2}), (0, {0, 1})):
        plan = planned(kcga, "-", *PROVEN, stdin=rows.format(present).encode())
        assert {row["consumer"] for row in plan["assignment"]} == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_can_be_asked_for(kcga: Kcga, snapshot: Path, engine: str) -> None:
    plan = planned(kcga, snapshot, *PROVEN, "--engine", engine)
    assert len(plan["assignment"]) == 5
    assert plan["lower_bound"] <= plan["objective"] + 1e-9


def test_the_weight_of_migration_decides_between_a_consumer_and_a_move(kcga: Kcga) -> None:
    rows = b"topic,partition,speed,consumer\na,0,40,1\na,1,40,2\n"
    assert planned(kcga, "-", *PROVEN, "--migration-weight", 0.5, stdin=rows)["consumers"] == 1
    assert planned(kcga, "-", *PROVEN, "--migration-weight", 3, stdin=rows)["consumers"] == 2


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_plan_can_be_drawn(kcga: Kcga, snapshot: Path, tmp_path: Path, suffix: str) -> None:
    plot = tmp_path / f"plan{suffix}"
    ended = kcga("solve", snapshot, *PROVEN, "--output", "csv", "--plot", plot)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert plot.stat().st_size > 1000


@pytest.mark.parametrize("module", ["matplotlib.figure", "textalloc"])
def test_without_what_draws_it_a_plot_is_one_clear_error(
    kcga: Kcga, snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    ended = kcga("solve", snapshot, "--plot", tmp_path / "plan.png")
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert len(ended.stderr.splitlines()) == 1
    assert "kcga[plot]" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--capacity", "0"], "--capacity is 0: it must be above 0"),
        (["--capacity", "-5"], "--capacity is -5: it must be above 0"),
        (["--capacity", "nan"], "--capacity is nan: it must be above 0"),
        (["--capacity", "inf"], "--capacity is inf: it must be a number from"),
        (["--time-limit", "0"], "--time-limit is 0: it must be a number of seconds above 0"),
        (["--migration-weight", "-1"], "--migration-weight is -1: it must be a number from 0"),
        (["--engine", "magic"], "there is no engine 'magic': it must be one of auto, "),
        (["--plot", "plan.doc"], "the name of a plot must end in .png, .svg, .pdf"),
        (["--plot", "no/such/plan.png"], "there is no folder"),
        (["--current", "-"], "snapshot.csv says who reads what, and so does --current"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_2(
    kcga: Kcga, snapshot: Path, arguments: list[str], reason: str
) -> None:
    ended = kcga("solve", snapshot, *arguments)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.startswith("kcga: ")
    assert len(ended.stderr.splitlines()) == 1
    assert reason in ended.stderr


def test_standard_input_is_read_once(kcga: Kcga) -> None:
    ended = kcga("solve", "-", "--current", "-", stdin=b"topic,partition,speed\na,0,1\n")
    assert ended.exit_code == 2
    assert "standard input can be read once" in ended.stderr


def test_a_broken_file_is_one_line_with_its_name_and_line_and_no_traceback(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.csv"
    file.write_text("topic,partition,speed\nclicks,0,-1\n")
    done = subprocess.run(command("solve", str(file)), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"kcga: {file}, line 2: speed is '-1': it must be a number from 0 to 1e+18\n"


def test_the_result_can_be_piped_while_everything_else_goes_to_standard_error() -> None:
    """The exact engines are native code that prints when it likes to."""
    rows = "topic,partition,speed\n" + "".join(f"a,{number},{10 + 7 * number % 45}\n" for number in range(40))
    done = subprocess.run(
        command("solve", "-", "--capacity", "100", "--output", "json", "--engine", "auto"),
        input=rows,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert len(json.loads(done.stdout)["assignment"]) == 40


def test_what_native_code_prints_is_kept_out_of_the_result() -> None:
    program = (
        "import ctypes, os, sys\n"
        "from cli.terminal.standard_output import kept_for_the_result\n"
        "print('before')\n"
        "with kept_for_the_result():\n"
        "    ctypes.CDLL(None).puts(b'buffered')\n"
        "    os.write(1, b'at once')\n"
        "print('after')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert done.stdout == "before\nafter\n"
    assert "buffered" in done.stderr
    assert "at once" in done.stderr


def test_neither_matplotlib_nor_a_solver_is_loaded_before_it_is_needed() -> None:
    program = (
        "import sys, cli.main\n"
        "import cli.commands.solve, cli.packing.simulate\n"
        "print({'matplotlib', 'ortools', 'numpy', 'pyspark'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert done.stdout == "set()\n"


def test_a_plot_never_overwrites_what_was_read(kcga: Kcga, snapshot: Path, tmp_path: Path) -> None:
    """Hole 20: nothing was compared here."""
    plot = tmp_path / "plot.svg"
    plot.symlink_to(snapshot)
    ended = kcga("solve", snapshot, "--plot", plot)
    assert (ended.exit_code, snapshot.read_text()) == (2, SNAPSHOT)


def test_help_names_what_can_be_given() -> None:
    result = CliRunner(env={**os.environ, "COLUMNS": "200"}).invoke(app, ["solve", "--help"])
    assert result.exit_code == 0
    for words in ("monitor.writeSpeed", "topic,partition,consumer", "--migration-weight", "cp-sat", "table|json|csv"):
        assert words in result.output
