"""`kcga generate`: a stream of measurements as the paper makes them."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from app.errors import UsageError
from cli.files.csv_rows import require_topic
from cli.files.stream_file import Measurement, write_stream
from cli.files.text_lines import Place
from cli.options import Capacity, Seed
from cli.ranges import HIGHEST_DELTA, require, require_capacity
from cli.terminal.progress import progress
from domain.partitions import TopicPartition
from domain.streams import paper_stream


class StartSpeeds(StrEnum):
    RANDOM = "random"
    ZERO = "zero"
    HALF = "half"
    FULL = "full"


def generate(
    file: Annotated[Path, typer.Argument(help="Where to write it (.csv or .csv.gz); - is standard output.")] = Path(
        "-"
    ),
    partitions: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many.")] = 200,
    iterations: Annotated[int, typer.Option(min=1, help="How many measurements.")] = 500,
    delta: Annotated[
        float, typer.Option(help="The largest change from one to the next, in percent of the capacity.")
    ] = 5,
    start: Annotated[
        StartSpeeds, typer.Option(help="The first speeds: random up to the capacity, or none, half or all of it.")
    ] = StartSpeeds.RANDOM,
    capacity: Capacity = 100,
    clamp: Annotated[bool, typer.Option("--clamp", help="No speed goes above the capacity.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="Speeds are whole percents of the capacity.")] = False,
    seed: Seed = 0,
    topic: Annotated[str, typer.Option(help="The topic of all partitions.")] = "topic",
) -> None:
    """Writes the stream.

    Raises:
        UsageError: an option is wrong, or the file cannot be made.
        KcgaError: the file cannot be written any further.
    """
    require_capacity(capacity)
    require("--delta", delta, 0, HIGHEST_DELTA)
    require_topic(topic, Place("--topic"))
    try:
        stream = paper_stream(
            partitions,
            iterations,
            delta,
            capacity=capacity,
            start=start.value,
            clamp=capacity if clamp else None,
            whole=whole,
            seed=seed,
            topic=topic,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    write_stream(file, _numbered(stream, iterations))


def _numbered(stream: Iterator[Mapping[TopicPartition, float]], iterations: int) -> Iterator[Measurement]:
    """Iterations count from 1, as in the authors' recorded inputs."""
    with progress("generate", iterations) as advance:
        for iteration, speeds in enumerate(stream, 1):
            yield Measurement(iteration, speeds)
            advance("generate")
