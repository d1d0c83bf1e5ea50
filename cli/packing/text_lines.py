"""The lines of a text file, plain or gzipped, or of standard input (`-`)."""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NoReturn

from cli.errors import UsageError

STANDARD_INPUT = Path("-")
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands, to be named in an error."""

    name: str
    """Of the file."""
    line: int | None = None
    """From 1; None for the file as a whole."""

    def fail(self, reason: str) -> NoReturn:
        raise UsageError(f"{self}: {reason}")

    def __str__(self) -> str:
        return self.name if self.line is None else f"{self.name}, line {self.line}"


@dataclass(frozen=True, slots=True)
class TextLines:
    """What a file holds, line by line, each with its line end. Iterated once."""

    name: str
    lines: Iterator[str]

    @property
    def text(self) -> str:
        """All that is left."""
        return "".join(self.lines)

    def peeked(self) -> tuple[str, "TextLines"]:
        """The first line that is not blank, or nothing where there is none, and the same lines once more."""
        seen: list[str] = []
        for line in self.lines:
            seen.append(line)
            if line.strip():
                break
        return (seen[-1] if seen else ""), TextLines(self.name, chain(seen, self.lines))


def read_lines(file: Path) -> TextLines:
    """The lines of `file`, which is gzipped if it begins as such files do.

    Raises:
        UsageError: it cannot be read; and, once the lines are taken, it is no UTF-8 or damaged.
    """
    name = "standard input" if file == STANDARD_INPUT else str(file)
    try:
        data = sys.stdin.buffer.read() if file == STANDARD_INPUT else file.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    gzipped = data.startswith(_GZIP_MAGIC)
    if file.suffix == ".gz" and not gzipped:
        raise UsageError(f"{name} is not gzip, which its name says")
    return TextLines(name, _decoded(name, data, gzipped))


def _decoded(name: str, data: bytes, gzipped: bool) -> Iterator[str]:
    stream = gzip.GzipFile(fileobj=io.BytesIO(data)) if gzipped else io.BytesIO(data)
    line = 0
    try:
        for line, content in enumerate(stream, 1):
            yield content.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        Place(name, line).fail(f"byte {error.start + 1} is no UTF-8")
    except (OSError, EOFError, zlib.error) as error:
        Place(name, line + 1).fail(f"the gzip data is damaged: {error}")
