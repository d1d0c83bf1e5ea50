"""Writes tables as CSV, gzipped where the name of the file says so."""

import csv
import gzip
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from app.errors import KcgaError, UsageError

STANDARD_OUTPUT = Path("-")


class CsvTable:
    """A table in a file (`-` is standard output), with its columns from the moment that the context is entered.

    Same rows, same bytes: a gzipped table holds neither its name nor the time.

    Raises:
        UsageError: the file cannot be made.
        KcgaError: it cannot be written any further.
    """

    def __init__(self, file: Path, columns: Sequence[str]) -> None:
        self._file = file
        self._columns = columns
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        try:
            stream = sys.stdout if self._file == STANDARD_OUTPUT else _open(self._file, self._closing)
        except OSError as error:
            raise UsageError(f"{self._file} cannot be written: {error.strerror}") from error
        self._writer = csv.writer(stream, lineterminator="\n")
        self.write(self._columns)
        return self

    def write(self, row: Iterable[object]) -> None:
        with self._clear_errors():
            self._writer.writerow(row)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._clear_errors():
            self._closing.close()

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            # Whoever reads standard output has seen enough: the command line ends quietly.
            raise
        except OSError as error:
            raise KcgaError(f"{self._file} cannot be written: {error.strerror}") from error


def _open(file: Path, closing: ExitStack) -> TextIO:
    """`file` for writing; `closing` closes it."""
    binary = closing.enter_context(file.open("wb"))
    if file.suffix != ".gz":
        return closing.enter_context(io.TextIOWrapper(binary, encoding="utf-8", newline=""))
    zipped = closing.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=binary, mtime=0))
    return closing.enter_context(io.TextIOWrapper(zipped, encoding="utf-8", newline=""))


def number(value: float) -> str:
    """The shortest text that reads as the same number; whole numbers without a point."""
    return repr(value).removesuffix(".0")
