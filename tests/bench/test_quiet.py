"""A benchmark begins on a quiet machine, or is told not to mind, and its page says which."""

import importlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from bench import heuristics, quiet, steady
from bench.figures import run_facts
from bench.quiet import LOOK_EVERY_S, MOST, REFUSES, WAIT_S, LoadBefore, await_quiet

PAGES = {
    "bench.asking": "asking.md",
    "bench.begin": "begin.md",
    "bench.command_sink": "command-sink.md",
    "bench.consumer_throughput": "consumer.md",
    "bench.engines": "engines.md",
    "bench.heuristics": "heuristics.md",
    "bench.latency.__main__": "latency.md",
    "bench.latency.check": "latency-check.md",
    "bench.latency.prices": "prices.md",
    "bench.one_machine": "one-machine.md",
    "bench.paper": "paper.md",
    "bench.parameters": "parameters.md",
    "bench.pipeline": "pipeline.md",
    "bench.positions": "positions.md",
    "bench.reaction": "reaction.md",
    "bench.regret.__main__": "regret.md",
    "bench.rollout": "rollout.md",
    "bench.scale.__main__": "scale.md",
    "bench.scaling": "scaling.md",
    "bench.classes": "classes.md",
    "bench.steady": "steady.md",
    "tests.kubernetes.measure": "deployments.md",
}
BENCHMARKS = Path(__file__).parents[2] / "docs" / "benchmarks"


class Machine:
    """Its loads, one for each look, and how long was slept between them."""

    def __init__(self, loads: Iterable[float]) -> None:
        self._loads: Iterator[float] = iter(loads)
        self.slept: list[float] = []

    def load(self) -> float:
        return next(self._loads)

    def before(self, *, busy: bool = False) -> LoadBefore:
        return await_quiet(busy, load=self.load, sleep=self.slept.append)


@pytest.fixture
def set_load(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Makes this the machine's load per core, and nobody wait for another."""
    monkeypatch.setattr(quiet, "WAIT_S", 0.0)

    def set_load(per_core: float) -> None:
        monkeypatch.setattr(os, "getloadavg", lambda: (per_core * (os.cpu_count() or 1), 0.0, 0.0))

    return set_load


def test_on_a_quiet_machine_it_begins_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine([MOST])
    assert machine.before() == LoadBefore(MOST)
    assert machine.slept == []
    assert capsys.readouterr().err == ""


def test_it_waits_until_the_load_is_gone_and_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine([1.25, 0.8, 0.51, 0.3])
    assert machine.before() == LoadBefore(0.3)
    assert machine.slept == [LOOK_EVERY_S] * 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "1.25" in said


def test_it_refuses_where_the_load_stays(capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine(itertools.repeat(0.9))
    with pytest.raises(SystemExit) as refused:
        machine.before()
    assert refused.value.code == REFUSES == 2
    assert sum(machine.slept) == WAIT_S
    *_, last = capsys.readouterr().err.splitlines()
    assert all(word in last for word in ("0.90", f"{MOST:g} or less", "--busy"))


def test_told_not_to_mind_it_begins_at_once_whatever_the_load_is(capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine([7.0])
    assert machine.before(busy=True) == LoadBefore(7.0, busy=True)
    assert machine.slept == []
    assert capsys.readouterr().err == ""


def test_the_page_names_the_load_and_whether_it_was_minded() -> None:
    assert "- Load per core before: 0.12\n" in run_facts("bench.x", LoadBefore(0.123))
    told = "- Load per core before: 1.90 (begun with `--busy`, whatever the load)\n"
    assert told in run_facts("bench.x", LoadBefore(1.9, busy=True))


def test_every_page_has_its_program_here() -> None:
    assert {page.name for page in BENCHMARKS.glob("*.md")} == set(PAGES.values())


@pytest.mark.parametrize(("module", "page"), PAGES.items())
def test_a_benchmark_that_refuses_leaves_its_page_as_it_is(
    module: str,
    page: str,
    tmp_path: Path,
    set_load: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / page).write_text("the former page")
    to_folder = ["run", "summary.json", "--to"] if module == "bench.latency.check" else ["--folder"]
    monkeypatch.setattr("sys.argv", [module, *to_folder, str(tmp_path)])
    set_load(MOST + 0.1)
    with pytest.raises(SystemExit) as refused:
        importlib.import_module(module).main()
    assert refused.value.code == REFUSES
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {page: "the former page"}


def test_a_benchmark_writes_its_page_with_the_load_before_it(
    tmp_path: Path, set_load: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["bench.heuristics", "--partitions", "8", "--folder", str(tmp_path / "new")]
    for load, options, told in ((0.25, [], "0.25\n"), (3.0, ["--busy"], "3.00 (begun with `--busy`")):
        monkeypatch.setattr("sys.argv", [*command, *options])
        set_load(load)
        heuristics.main()
        page = (tmp_path / "new" / "heuristics.md").read_text()
        assert f"- Load per core before: {told}" in page
        assert "\n| 8 | mbfp | " in page


def test_each_load_of_the_steady_group_has_a_part_of_the_page_of_its_own() -> None:
    steady_alone = steady.page_of("- steady", "", swings=False)
    both = steady.page_of("- swings", steady_alone, swings=True)
    assert both == f"{steady.HEADING}\n## A steady load\n\n- steady\n\n## A load that swings\n\n- swings\n"
    assert steady.page_of("- swings", both, swings=True) == both
    assert steady.page_of("- steady", both, swings=False) == both
    assert steady.page_of("- anew", both, swings=False) == both.replace("- steady", "- anew")
    assert steady.page_of("- swings", "", swings=True) == f"{steady.HEADING}\n## A load that swings\n\n- swings\n"
