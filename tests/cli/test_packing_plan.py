"""A plan as JSON, CSV, a table and a picture, and what simulations came to: each by itself."""

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from app.errors import KcgaError, UsageError
from cli.files.plan_output import Plan, plan_csv, plan_json
from cli.packing.simulate_table import SimulationTable, simulation_json
from cli.packing.simulation import Summary
from cli.plots import plotting
from cli.plots.plan_plot import plot_plan
from cli.plots.plotting import require_plotting
from cli.terminal.plan_table import PlanTable
from domain.assignment import Assignment, Migration
from domain.partitions import TopicPartition
from solver import Problem, Solution, Status
from solver.evaluation import evaluate

A, B, C, D, HOT = (TopicPartition("orders", number) for number in (0, 1, 2, 10, 3))
UNKNOWN = TopicPartition("clicks", 0)
PROBLEM = Problem(
    speeds={A: 60.0, B: 50.0, C: 0.5, D: 20.0, HOT: 150.0},
    capacity=100.0,
    current=Assignment({A: 1, B: 1, C: 1, HOT: 2, UNKNOWN: 2}),
    migration_weight=0.5,
)
TARGET = Assignment({A: 1, B: 3, C: 3, D: 3, HOT: 2})


def plan(status: Status = Status.OPTIMAL, lower_bound: float | None = None, reason: str = "") -> Plan:
    figures = evaluate(PROBLEM, TARGET)
    solution = Solution(
        assignment=TARGET,
        engine="arc-flow",
        status=status,
        consumers=figures.consumers,
        rscore=figures.rscore,
        objective=figures.objective,
        lower_bound=figures.objective if lower_bound is None else lower_bound,
        seconds=0.25,
        saturated=figures.saturated,
        reason=reason,
    )
    return Plan(PROBLEM, solution, frozenset({UNKNOWN}))


def text(renderable: object, width: int = 100, encoding: str = "utf-8") -> str:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding=encoding)
    Console(file=stream, width=width, legacy_windows=False).print(renderable)
    stream.flush()
    return written.getvalue().decode(encoding)


def test_a_plan_knows_what_migrates_and_what_nobody_read() -> None:
    assert plan().migrations == (Migration(B, 1, 3), Migration(C, 1, 3))
    assert plan().first_assigned == (D,)


def test_json_has_the_assignment_in_order_of_partitions_and_no_figure_that_is_none() -> None:
    told = json.loads(plan_json(plan()))
    assert [(each["partition"], each["consumer"], each["previous"]) for each in told["assignment"]] == [
        (0, 1, 1),
        (1, 3, 1),
        (2, 3, 1),
        (3, 2, 2),
        (10, 3, None),
    ]
    assert (told["status"], told["gap"], told["consumers"]) == ("optimal", 0.0, 3)
    assert told["saturated"] == [{"topic": "orders", "partition": 3}]
    assert told["unknown"] == [{"topic": "clicks", "partition": 0, "consumer": 2}]


def test_csv_has_a_row_for_each_partition_and_an_empty_field_where_nobody_read_it() -> None:
    table = list(csv.reader(io.StringIO(plan_csv(plan()))))
    assert table[0] == ["topic", "partition", "speed", "consumer", "previous"]
    assert table[1] == ["orders", "0", "60", "1", "1"]
    assert table[3:] == [
        ["orders", "2", "0.5", "3", "1"],
        ["orders", "3", "150", "2", "2"],
        ["orders", "10", "20", "3", ""],
    ]


def test_the_table_says_what_the_plan_costs_what_moves_and_what_will_lag() -> None:
    lines = text(PlanTable(plan())).splitlines()
    assert lines[0].startswith("3 consumers for 5 partitions, 280 B/s")
    assert lines[0].endswith("2 migrations, Rscore 0.51")
    assert "proven optimal" in lines[1]
    assert "arc-flow, 0.25 s" in lines[1]
    moves = [line.split() for line in lines if line.startswith("orders-")]
    assert [move[0] for move in moves[:2]] == ["orders-1", "orders-2"]
    assert moves[0][1:4] == ["1", "→", "3"]
    assert "0.250" in moves[0]
    assert "1 partition had no consumer and cost nothing to assign." in lines
    assert lines[-1] == "orders-3 is faster than a consumer (150 B/s): it has one of its own, and will lag."


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (plan(Status.FEASIBLE, 3.0), "at most 7.76% above the optimum"),
        (plan(Status.HEURISTIC, 3.0), "by a heuristic, at most 7.76% above the optimum"),
        (plan(Status.HEURISTIC), "proven optimal"),
        (plan(Status.INFEASIBLE, reason="too few"), "not every rule can be kept: too few"),
    ],
)
def test_the_verdict_is_what_is_proven_whoever_found_it(given: Plan, verdict: str) -> None:
    line = " ".join(text(PlanTable(given), width=200).splitlines()[1].split())
    assert f"· {verdict} ·" in line


def test_the_table_is_made_of_ascii_where_the_terminal_knows_no_more_and_fits_a_narrow_one() -> None:
    told = text(PlanTable(plan()), width=60, encoding="ascii")
    assert "1 -> 3" in told
    assert all(len(line) <= 60 for line in told.splitlines())


def test_a_plan_that_moves_nothing_says_so() -> None:
    kept = Problem({A: 1.0}, 100.0, Assignment({A: 1}))
    solution = Solution(Assignment({A: 1}), "keep", Status.OPTIMAL, 1, 0.0, 1.0, 1.0, 0.0)
    told = text(PlanTable(Plan(kept, solution, frozenset())))
    assert "Nothing migrates." in told
    nobody = Solution(Assignment(), "keep", Status.OPTIMAL, 0, 0.0, 0.0, 0.0, 0.0)
    assert "0 consumers for 0 partitions" in text(PlanTable(Plan(Problem({}, 100.0), nobody, frozenset())))


def test_the_same_plan_becomes_the_same_picture(tmp_path: Path) -> None:
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for file in files:
        plot_plan(plan(), "a title", file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert "a title" in files[0].read_text()


def test_a_picture_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none/a\.svg cannot be written: No such file"):
        plotting.save(plotting.new_figure(1, 1), tmp_path / "none" / "a.svg")


def test_whether_there_can_be_a_plot_is_said_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_plotting(tmp_path / "a.PDF")
    with pytest.raises(UsageError, match=r"the name of a plot must end in \.png, \.svg, \.pdf"):
        require_plotting(tmp_path / "a.txt")
    with pytest.raises(UsageError, match="there is no folder"):
        require_plotting(tmp_path / "none" / "a.svg")

    def missing(name: str) -> None:
        raise ImportError(f"no {name}")

    monkeypatch.setattr(plotting.importlib, "import_module", missing)  # type: ignore[attr-defined]
    with pytest.raises(KcgaError, match=r"install kcga with its extra, kcga\[plot\]"):
        require_plotting(tmp_path / "a.svg")


def summary(name: str, cbs: float, rscore: float, proven: float | None = None) -> Summary:
    gap = None if proven is None else 0.001
    return Summary(name, 20, 104.75, 104.75, cbs, rscore, 30.0, proven, gap, 0.1192, 0.5)


SUMMARIES = [summary("mbfp", 0.0005, 22.5764), summary("bfd", 0.0005, 24.4), summary("exact", 0.01, 7.3, 0.95)]


def test_the_table_of_engines_marks_those_that_no_other_is_better_than() -> None:
    lines = text(SimulationTable(SUMMARIES, "stream.csv")).splitlines()
    assert lines[0] == "stream.csv  ·  20 iterations"
    rows = [line.split() for line in lines[2:5]]
    assert rows == [
        ["✓", "mbfp", "104.75", "0.05%", "22.576", "-", "-", "0.1192"],
        ["bfd", "104.75", "0.05%", "24.400", "-", "-", "0.1192"],
        ["✓", "exact", "104.75", "1.00%", "7.300", "95%", "0.100%", "0.1192"],
    ]


def test_json_of_a_simulation_says_what_its_figures_depend_on() -> None:
    told = json.loads(simulation_json(SUMMARIES, 100.0, 7))
    assert (told["capacity"], told["seed"]) == (100.0, 7)
    assert [(each["algorithm"], each["pareto_front"]) for each in told["engines"]] == [
        ("mbfp", True),
        ("bfd", False),
        ("exact", True),
    ]
    assert told["engines"][0]["proven"] is None
