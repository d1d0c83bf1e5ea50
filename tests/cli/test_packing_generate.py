"""A stream that is generated: its options, and that it is the paper's."""

from pathlib import Path
from typing import Any

import pytest

from app.errors import UsageError
from cli.commands.generate import StartSpeeds, generate
from cli.files.stream_file import read_stream
from domain.streams import paper_stream

OPTIONS: dict[str, Any] = {
    "partitions": 3,
    "iterations": 4,
    "delta": 10.0,
    "start": StartSpeeds.HALF,
    "capacity": 200.0,
    "clamp": True,
    "seed": 5,
    "topic": "orders",
}


def test_the_stream_is_the_papers_and_counts_from_1(tmp_path: Path) -> None:
    file = tmp_path / "stream.csv.gz"
    generate(file, **OPTIONS)
    expected = paper_stream(3, 4, 10.0, capacity=200.0, start="half", clamp=200.0, seed=5, topic="orders")
    read = read_stream(file)
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
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    file = tmp_path / "stream.csv.gz"
    with pytest.raises(UsageError, match=reason):
        generate(file, **OPTIONS | change)
    assert not file.exists()
