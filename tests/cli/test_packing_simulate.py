"""`kcga simulate` and `kcga generate` as a person types them."""

import csv
import gzip
import json
import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from app.components import command
from cli.files.stream_file import read_stream
from cli.packing.engine_spec import EngineSpec, parse_engines
from cli.packing.simulation import Answer, summarize
from solver import Status
from tests.cli.packing_command import Kcga, kcga_command
from tests.patience import PATIENCE_S

kcga = pytest.fixture(kcga_command)

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "streams"
DETERMINISTIC = "nfd,ffd,wfd,bfd,mwf,mwfp,mbf,mbfp"
"""In the order of the recorded results."""


def recorded(name: str) -> Path:
    file = REFERENCE / name
    if not file.exists():
        pytest.skip(f"the reference data is not here: {file}")
    return file


@pytest.fixture
def stream(kcga: Kcga, tmp_path: Path) -> Path:
    file = tmp_path / "stream.csv.gz"
    assert kcga("generate", file, "--partitions", 20, "--iterations", 6, "--delta", 15, "--clamp").exit_code == 0
    return file


def figures(kcga: Kcga, *arguments: object) -> dict[str, Any]:
    ended = kcga("simulate", *arguments, "--time-limit", PATIENCE_S, "--output", "json")
    assert ended.exit_code == 0, ended.stderr
    assert ended.stderr == ""
    return {engine["algorithm"]: engine for engine in json.loads(ended.stdout)["engines"]}


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_every_line_of_the_authors_assignments_and_metrics_is_the_same(kcga: Kcga, tmp_path: Path) -> None:
    stream = recorded("oracle_p32_n100_d10.csv.gz")
    assignments, metrics = tmp_path / "assignments.csv.gz", tmp_path / "metrics.csv"
    ended = kcga("simulate", stream, "--engines", DETERMINISTIC, "--assignments", assignments, "--metrics", metrics)
    assert ended.exit_code == 0, ended.stderr
    expected = gzip.decompress(recorded("oracle_p32_n100_d10__expected.csv.gz").read_bytes()).decode().splitlines()
    assert gzip.decompress(assignments.read_bytes()).decode().splitlines() == expected
    for ours, theirs in zip(rows(metrics), rows(recorded("oracle_p32_n100_d10__metrics.csv")), strict=True):
        assert (ours["algorithm"], ours["iteration"]) == (theirs["algorithm"], theirs["iteration"])
        assert (ours["consumers"], ours["reassigned"]) == (theirs["n_consumers"], theirs["n_reassigned"])
        assert float(ours["rscore"]) == pytest.approx(float(theirs["rscore_algo_capacity"]), abs=1e-9)


def test_the_metrics_of_heuristics_have_no_gap_and_those_of_exact_engines_do(
    kcga: Kcga, stream: Path, tmp_path: Path
) -> None:
    metrics = tmp_path / "metrics.csv"
    kcga("simulate", stream, "--engines", "mbfp,exact@0.5", "--time-limit", 60, "--metrics", metrics)
    lines = metrics.read_text().splitlines()
    assert lines[0] == "algorithm,iteration,consumers,rscore,reassigned,seconds,status,gap,price"
    table = rows(metrics)
    assert [(row["algorithm"], row["iteration"]) for row in table] == [
        (engine, str(iteration)) for engine in ("mbfp", "exact@0.5") for iteration in range(1, 7)
    ]
    assert {(row["status"], row["gap"]) for row in table[:6]} == {("heuristic", "")}
    assert {row["status"] for row in table[6:]} == {"optimal"}
    assert all(0 <= float(row["gap"]) <= 1e-6 for row in table[6:])


def test_with_classes_each_engine_has_a_price(kcga: Kcga, stream: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.csv"
    asked = ("--engines", "mbfp,exact@0.5", "--class", "cheap=200:0.5", "--time-limit", 60)
    assert "price" in kcga("simulate", stream, *asked, "--metrics", metrics).stdout
    table = rows(metrics)
    assert any(float(row["price"]) < float(row["consumers"]) for row in table)
    refused = kcga("simulate", stream, "--policy", "controller", "--class", "small=30:0.25")
    assert (refused.exit_code, "--class is for engines" in refused.stderr) == (2, True)


def test_an_exact_engine_is_at_least_as_good_as_a_heuristic_at_the_first_iteration(kcga: Kcga, stream: Path) -> None:
    engines = figures(kcga, stream, "--engines", "bfd,exact@0")
    assert engines["exact@0"]["mean_consumers"] <= engines["bfd"]["mean_consumers"]
    assert engines["exact@0"]["cbs"] == 0
    assert (engines["exact@0"]["proven"], engines["bfd"]["proven"]) == (1, None)


def test_a_dear_migration_is_made_less_often(kcga: Kcga, stream: Path) -> None:
    engines = figures(kcga, stream, "--engines", "exact@0.01,exact@5")
    assert engines["exact@5"]["mean_rscore"] < engines["exact@0.01"]["mean_rscore"]
    assert engines["exact@5"]["mean_consumers"] > engines["exact@0.01"]["mean_consumers"]


def test_same_stream_engines_and_seed_same_assignments(kcga: Kcga, stream: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.csv.gz" for name in ("one", "same", "other")]
    for file, seed in zip(files, (1, 1, 2), strict=True):
        kcga(
            "simulate",
            stream,
            "--engines",
            "bf,exact@0.5",
            "--seed",
            seed,
            "--time-limit",
            PATIENCE_S,
            "--assignments",
            file,
        )
    one, same, other = (file.read_bytes() for file in files)
    assert one == same
    assert one != other


def test_partitions_may_appear_and_vanish(kcga: Kcga, tmp_path: Path) -> None:
    stream, assignments = tmp_path / "stream.csv", tmp_path / "assignments.csv"
    stream.write_text(
        "iteration,topic,partition,speed\n1,a,0,60\n1,a,1,60\n2,a,1,60\n2,b,0,60\n3,a,0,60\n3,a,1,60\n3,b,0,60\n"
    )
    engines = figures(kcga, stream, "--engines", "mbfp,exact@0.5", "--assignments", assignments)
    assert {row["iteration"] for row in rows(assignments)} == {"1", "2", "3"}
    # What vanished and came back has no consumer that it could migrate from.
    assert [engine["mean_rscore"] for engine in engines.values()] == [0, 0]
    assert all(row["consumer"] in ("0", "1", "2") for row in rows(assignments))


def test_the_table_has_a_line_for_each_engine(kcga: Kcga, stream: Path) -> None:
    ended = kcga("simulate", stream, "--engines", "nf,mbfp,exact@1", "--time-limit", PATIENCE_S)
    lines = ended.stdout.splitlines()
    assert lines[1].split() == ["engine", "consumers", "CBS", "Rscore", "proven", "gap", "s/call"]
    assert [line.replace("✓", " ").split()[0] for line in lines[2:5]] == ["nf", "mbfp", "exact@1"]
    assert "100%" in lines[4]


def answer(algorithm: str, consumers: int, rscore: float = 0.0, gap: float | None = None) -> Answer:
    status = Status.HEURISTIC if gap is None else Status.FEASIBLE if gap else Status.OPTIMAL
    return Answer(algorithm, 1, consumers, rscore, 0, 0.5, status, gap, consumers)


def test_the_cardinal_bin_score_is_the_mean_share_of_consumers_above_the_fewest() -> None:
    one, other = summarize(
        {
            "one": [answer("one", 10, 1.0), answer("one", 6, 2.0)],
            "other": [answer("other", 8, gap=0.0), answer("other", 12, gap=0.1)],
        }
    )
    assert one.cbs == pytest.approx((2 / 8 + 0 / 6) / 2)
    assert other.cbs == pytest.approx((0 / 8 + 6 / 6) / 2)
    assert (one.mean_rscore, one.proven, one.mean_gap) == (1.5, None, None)
    assert (other.proven, other.mean_gap) == (0.5, 0.05)


def test_room_to_grow_saves_migrations_and_takes_consumers(kcga: Kcga, stream: Path) -> None:
    engines = figures(kcga, stream, "--engines", "exact@1,exact@1/0.8")
    assert engines["exact@1/0.8"]["mean_rscore"] < engines["exact@1"]["mean_rscore"]
    assert engines["exact@1/0.8"]["mean_consumers"] > engines["exact@1"]["mean_consumers"]


def test_engines_are_named_with_their_weight_and_how_far_they_fill_consumers() -> None:
    assert parse_engines("mbfp, exact@0.5,exact@1/0.95,auto,exact") == (
        EngineSpec("mbfp", "mbfp"),
        EngineSpec("exact@0.5", "auto", 0.5),
        EngineSpec("exact@1/0.95", "auto", 1.0, 0.95),
        EngineSpec("auto", "auto"),
        EngineSpec("exact", "auto"),
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--engines", "magic"], "there is no engine 'magic': it must be one of exact, auto, "),
        (["--engines", ""], "there is no engine ''"),
        (["--engines", "mbfp,mbfp"], "the engine mbfp is named twice"),
        (["--engines", "mbfp@1"], "a heuristic knows no weight of migration; it must be mbfp"),
        (["--engines", "exact@much"], "lambda is 'much'"),
        (["--engines", "exact@-1"], "lambda in 'exact@-1' is -1"),
        (["--engines", "exact@nan"], "lambda in 'exact@nan' is nan"),
        (["--engines", "exact@1/"], "the share of the capacity is ''"),
        (["--engines", "exact@1/1.2"], "the share of the capacity in 'exact@1/1.2' is 1.2"),
        (["--capacity", "0"], "--capacity is 0: it must be above 0"),
        (["--time-limit", "-1"], "--time-limit is -1"),
        (["--metrics", "-"], "--metrics is -: standard output is for the figures"),
        (["--metrics", "no/such/metrics.csv"], "no/such/metrics.csv cannot be written: No such file or directory"),
        (["--metrics", "x.csv", "--assignments", "x.csv"], "each needs a file of its own"),
        (["--plot", "plot.bmp"], "the name of a plot must end in"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_2(
    kcga: Kcga, stream: Path, arguments: list[str], reason: str
) -> None:
    ended = kcga("simulate", stream, *arguments)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert reason in ended.stderr


def test_results_never_overwrite_the_stream(kcga: Kcga, stream: Path) -> None:
    before = stream.read_bytes()
    ended = kcga("simulate", stream, "--engines", "mbfp", "--metrics", stream)
    assert ended.exit_code == 2
    assert "the stream" in ended.stderr
    assert stream.read_bytes() == before


@pytest.mark.parametrize("way", ["a way round", "symbolic link", "hard link"])
def test_results_never_overwrite_the_stream_by_another_name(kcga: Kcga, stream: Path, tmp_path: Path, way: str) -> None:
    """Hole 20: only the text of the paths was compared."""
    other = tmp_path / "other.csv"
    match way:
        case "symbolic link":
            other.symlink_to(stream)
        case "hard link":
            other.hardlink_to(stream)
        case _:
            other = tmp_path / ".." / tmp_path.name / stream.name
    before = stream.read_bytes()
    ended = kcga("simulate", stream, "--engines", "mbfp", "--assignments", other)
    assert (ended.exit_code, stream.read_bytes()) == (2, before)
    assert "--assignments is" in ended.stderr


def test_two_results_by_two_names_of_a_file_that_is_not_there_yet_are_refused(
    kcga: Kcga, stream: Path, tmp_path: Path
) -> None:
    """Hole 20: the second would have overwritten the first."""
    (tmp_path / "link").symlink_to(tmp_path)
    files = ["--assignments", tmp_path / "x.csv", "--metrics", tmp_path / "link" / "x.csv"]
    ended = kcga("simulate", stream, "--engines", "mbfp", *files)
    assert (ended.exit_code, (tmp_path / "x.csv").exists()) == (2, False)


def test_a_full_disk_is_one_clear_error(kcga: Kcga, stream: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    ended = kcga("simulate", stream, "--engines", "mbfp", "--metrics", "/dev/full")
    assert ended.exit_code == 1
    assert ended.stderr == "kcga: /dev/full cannot be written: No space left on device\n"


def test_a_generated_stream_counts_from_1_and_is_the_same_for_the_same_seed(kcga: Kcga, tmp_path: Path) -> None:
    file = tmp_path / "stream.csv"
    options = ("--partitions", 3, "--iterations", 4, "--delta", 10, "--seed", 5, "--topic", "clicks")
    kcga("generate", file, *options)
    ended = kcga("generate", *options)
    assert ended.stdout == file.read_text()
    stream = read_stream(file)
    assert [measurement.iteration for measurement in stream] == [1, 2, 3, 4]
    assert all({partition.topic for partition in measurement.speeds} == {"clicks"} for measurement in stream)
    assert kcga("generate", *options[:-4], "--seed", 6, "--topic", "clicks").stdout != ended.stdout


@pytest.mark.parametrize(("start", "first"), [("zero", 0), ("half", 25), ("full", 50)])
def test_a_stream_starts_where_it_is_told_to(kcga: Kcga, tmp_path: Path, start: str, first: float) -> None:
    file = tmp_path / "stream.csv"
    kcga("generate", file, "--partitions", 5, "--iterations", 1, "--start", start, "--capacity", 50)
    assert set(read_stream(file)[0].speeds.values()) == {first}


def test_clamped_speeds_stay_below_the_capacity_and_whole_ones_are_whole(kcga: Kcga, tmp_path: Path) -> None:
    file = tmp_path / "stream.csv"
    options = ("--partitions", 30, "--iterations", 10, "--delta", 25, "--start", "full", "--whole")
    for clamp in ((), ("--clamp",)):
        kcga("generate", file, *options, *clamp)
        speeds = [speed for measurement in read_stream(file) for speed in measurement.speeds.values()]
        assert (max(speeds) <= 100) is bool(clamp)
        assert all(speed.is_integer() for speed in speeds)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--delta", "-1"], "--delta is -1"),
        (["--delta", "nan"], "--delta is nan"),
        (["--capacity", "0"], "--capacity is 0"),
        (["--topic", ""], "--topic: topic is ''"),
        (["no/such/folder.csv"], "no/such/folder.csv cannot be written"),
    ],
)
def test_a_stream_that_cannot_be_made_is_one_line_and_exit_code_2(
    kcga: Kcga, arguments: list[str], reason: str
) -> None:
    ended = kcga("generate", *arguments)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert reason in ended.stderr


def test_a_reader_that_has_seen_enough_ends_the_stream_quietly() -> None:
    generate = subprocess.Popen(command("generate"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert generate.stdout is not None
    assert generate.stdout.readline() == b"iteration,topic,partition,speed\n"
    generate.stdout.close()
    assert generate.stderr is not None
    assert generate.stderr.read() == b""
    generate.stderr.close()
    generate.wait(PATIENCE_S)


def test_long_work_shows_on_a_terminal_how_far_it_is_and_nothing_of_it_in_the_result(stream: Path) -> None:
    terminal, side = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    simulate = subprocess.Popen(
        command("simulate", str(stream), "--engines", "mbfp", "--output", "json"),
        stdout=subprocess.PIPE,
        stderr=side,
        env=environment,
    )
    os.close(side)
    assert simulate.stdout is not None
    result = simulate.stdout.read()
    simulate.stdout.close()
    assert simulate.wait(PATIENCE_S) == 0
    shown = b""
    with suppress(OSError):  # nobody writes to it any more
        while more := os.read(terminal, 100_000):
            shown += more
    os.close(terminal)
    assert json.loads(result)["engines"][0]["algorithm"] == "mbfp"
    assert b"mbfp" in shown
    assert b"/6" in shown
