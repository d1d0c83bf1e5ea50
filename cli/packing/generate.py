"""`kcga generate`: a stream of measurements as the paper makes them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.errors import UsageError
from cli.packing.csv_rows import require_topic
from cli.packing.progress import progress
from cli.packing.ranges import HIGHEST_DELTA, require, require_capacity
from cli.packing.stream_file import Measurement, write_stream
from cli.packing.text_lines import Place
from domain.partitions import TopicPartition
from domain.streams import Start, paper_stream


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    file: Path
    """`-` is standard output."""
    partitions: int
    iterations: int
    delta: float
    start: Start
    capacity: float
    clamp: bool
    whole: bool
    seed: int
    topic: str


def run(options: GenerateOptions) -> None:
    """Writes the stream.

    Raises:
        UsageError: an option is wrong, or the file cannot be made.
        KcgaError: the file cannot be written any further.
    """
    require_capacity(options.capacity)
    require("--delta", options.delta, 0, HIGHEST_DELTA)
    require_topic(options.topic, Place("--topic"))
    try:
        stream = paper_stream(
            options.partitions,
            options.iterations,
            options.delta,
            capacity=options.capacity,
            start=options.start,
            clamp=options.capacity if options.clamp else None,
            whole=options.whole,
            seed=options.seed,
            topic=options.topic,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    write_stream(options.file, _numbered(stream, options.iterations))


def _numbered(stream: Iterator[Mapping[TopicPartition, float]], iterations: int) -> Iterator[Measurement]:
    """Iterations count from 1, as in the authors' recorded inputs."""
    with progress("generate", iterations) as advance:
        for iteration, speeds in enumerate(stream, 1):
            yield Measurement(iteration, speeds)
            advance("generate")
