"""The Pareto front, where names stand in its plot, and the files that plots become."""

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from bench import paper
from cli.packing.simulation import pareto_front
from cli.plots import plotting
from cli.plots.pareto_plot import Engine, draw_pareto, plot_pareto
from tests.examples import examples

points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda point: (point[0] / 5, point[1] / 5)))


@given(points)
def test_the_front_is_what_nothing_else_is_better_than(points: list[tuple[float, float]]) -> None:
    def is_dominated(point: tuple[float, float]) -> bool:
        return any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in points)

    front = pareto_front(points)
    assert sorted(front) == [index for index, point in enumerate(points) if not is_dominated(point)]
    assert [points[index] for index in front] == sorted(points[index] for index in front)


def named(engines: list[Engine], width: float, height: float) -> tuple[list[Text], list[tuple[float, float]], Bbox]:
    """The names in a plot of that size, where the points are in it, and its frame; in pixels."""
    figure = plotting.new_figure(width, height)
    axes = figure.subplots()
    draw_pareto(axes, engines, "title")
    figure.draw_without_rendering()
    points = axes.transData.transform([(100 * engine.cbs, engine.mean_rscore) for engine in engines]).tolist()
    return list(axes.texts), [(x, y) for x, y in points], axes.get_window_extent()


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=17))
@settings(max_examples=examples(15), deadline=None)
def test_names_hide_neither_points_nor_each_other_where_there_is_room(places: set[tuple[int, int]]) -> None:
    engines = [Engine(f"bfd{number}", x / 9, y, is_exact=False) for number, (x, y) in enumerate(sorted(places))]
    texts, points, frame = named(engines, 9, 6)
    boxes = [text.get_window_extent() for text in texts]
    assert sorted(text.get_text() for text in texts) == sorted(engine.name for engine in engines)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert not any(box.contains(x, y) for box in boxes for x, y in points)
    assert all(frame.contains(*corner) for box in boxes for corner in box.corners().tolist())


@pytest.mark.parametrize(
    "engines",
    [
        [Engine(f"a-long-name-{number}", number / 50, 50 - number, is_exact=False) for number in range(50)],
        [Engine("much-too-long" * 20, 0, 0, is_exact=False)],
    ],
    ids=["many", "long"],
)
def test_where_there_is_no_room_every_name_still_has_a_place(
    engines: list[Engine], capsys: pytest.CaptureFixture[str]
) -> None:
    texts, _, _ = named(engines, 4, 3)
    names = ",".join(text.get_text() for text in texts).replace("\n", "").replace(" ", "")
    assert sorted(names.split(",")) == sorted(engine.name for engine in engines)
    assert capsys.readouterr().out == ""  # which is for the result


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    "engines",
    [
        [],
        [Engine("mbfp", 0, 0, is_exact=False)],
        [Engine(f"exact@{weight}", 0, 0, is_exact=True) for weight in range(9)],
        [Engine("mbfp", 0.001, 20, is_exact=False), Engine("exact@1", 0, 3, is_exact=True)],
    ],
)
def test_any_engines_can_be_drawn_and_the_same_ones_become_the_same_file(engines: list[Engine], tmp_path: Path) -> None:
    files = tmp_path / "one.svg", tmp_path / "other.svg"
    for file in files:
        plot_pareto(engines, "title", file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_text().rstrip().endswith("</svg>")


@pytest.mark.slow(1)
def test_the_papers_experiment_writes_a_page_its_figures_and_its_plots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = tmp_path / "paper.csv"
    recorded.write_text("delta,algorithm,cbs,e_rscore\n5,mbfp,0.123456,98.765\n")
    folder = tmp_path / "results"
    sizes = ["--partitions", "12", "--iterations", "3", "--deltas", "25", "5", "--exact", "exact@0.5"]
    monkeypatch.setattr("sys.argv", ["paper", *sizes, "--folder", str(folder), "--paper", str(recorded), "--busy"])
    paper.main()
    assert "are written" in capsys.readouterr().out
    assert {file.name for file in folder.iterdir()} == {"paper.md", "paper.csv", "paper.svg"}
    page = (folder / "paper.md").read_text()
    assert "| engine | delta 5 | delta 25 |" in page
    assert "(12.35)" in page
    assert "(98.77)" in page
    assert "`python -m bench.paper --partitions 12" in page
    lines = (folder / "paper.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 13
    assert lines[0].startswith("delta,algorithm,cbs,")
