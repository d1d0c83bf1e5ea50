"""A stream that is generated: its options, and that it is the paper's."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import UsageError
from cli.packing.generate import GenerateOptions, run
from cli.packing.stream_file import read_stream
from domain.streams import paper_stream


@pytest.fixture
def options(tmp_path: Path) -> GenerateOptions:
    return GenerateOptions(
        file=tmp_path / "stream.csv.gz",
        partitions=3,
        iterations=4,
        delta=10.0,
        start="half",
        capacity=200.0,
        clamp=True,
        whole=False,
        seed=5,
        topic="orders",
    )


def test_the_stream_is_the_papers_and_counts_from_1(options: GenerateOptions) -> None:
    run(options)
    expected = paper_stream(3, 4, 10.0, capacity=200.0, start="half", clamp=200.0, seed=5, topic="orders")
    read = read_stream(options.file)
    assert [each.iteration for each in read] == [1, 2, 3, 4]
    assert [dict(each.speeds) for each in read] == list(expected)
    assert set(read[0].speeds.values()) == {100.0}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"capacity": 0.0}, "--capacity is 0"),
        ({"delta": -1.0}, "--delta is -1"),
        ({"delta": float("nan")}, "--delta is nan"),
        ({"topic": ""}, "--topic: topic is ''"),
        ({"partitions": 0}, "1 partition or more"),
        ({"iterations": -1}, "0 iterations or more"),
    ],
)
def test_what_cannot_be_generated_is_an_error_and_makes_no_file(
    options: GenerateOptions, change: dict[str, object], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        run(replace(options, **change))  # type: ignore[arg-type]
    assert not options.file.exists()
