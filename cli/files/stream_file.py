"""Reads and writes streams of measurements: CSV `iteration,topic,partition,speed`, gzipped or not."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cli.files.csv_output import CsvTable, number
from cli.files.csv_rows import Id, Row, Speed, read_rows
from cli.files.text_lines import read_lines
from domain.partitions import TopicPartition

COLUMNS = ("iteration", "topic", "partition", "speed")


@dataclass(frozen=True, slots=True)
class Measurement:
    """The write speeds at one iteration; partitions appear and vanish from one to the next."""

    iteration: int
    speeds: Mapping[TopicPartition, float]


class _StreamRow(Row):
    iteration: Id
    speed: Speed


def read_stream(file: Path) -> list[Measurement]:
    """The measurements in ascending order of iteration, whatever the order of the rows; numbers may be left out.

    Raises:
        UsageError: the file cannot be read, or something in it is wrong.
    """
    iterations: dict[int, dict[TopicPartition, float]] = {}
    partitions: dict[TopicPartition, TopicPartition] = {}
    for place, row in read_rows(read_lines(file), _StreamRow):
        # One object for all rows of a partition: long streams take a third of the memory.
        partition = partitions.setdefault(key := row.key, key)
        speeds = iterations.setdefault(row.iteration, {})
        if partition in speeds:
            place.fail(f"{partition} is named twice in iteration {row.iteration}")
        speeds[partition] = row.speed
    return [Measurement(iteration, speeds) for iteration, speeds in sorted(iterations.items())]


def write_stream(file: Path, measurements: Iterable[Measurement]) -> None:
    """Writes the measurements one by one, as they come.

    Raises:
        UsageError, KcgaError: the file cannot be written.
    """
    with CsvTable(file, COLUMNS) as table:
        for measurement in measurements:
            for partition, speed in measurement.speeds.items():
                table.write((measurement.iteration, partition.topic, partition.partition, number(speed)))
