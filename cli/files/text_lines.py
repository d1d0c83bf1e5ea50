"""The lines of a text file, plain or gzipped, or of standard input (`-`)."""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from app.errors import UsageError

STANDARD_INPUT = Path("-")
LONGEST = 2**26
"""Bytes of a line, and of JSON: some hundred thousand partitions. What is packed may be a thousand times its size."""
MOST_BLANK = 10_000
"""Lines, one after another: somebody writes them without end."""
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
        """All that is left.

        Raises:
            UsageError: it is too long.
        """
        parts, size = list[str](), 0
        for line in self.lines:
            parts.append(line)
            size += len(line)
            if size > LONGEST:
                Place(self.name).fail(f"JSON must have no more than {LONGEST:,} characters")
        return "".join(parts)

    def peeked(self) -> tuple[str, "TextLines"]:
        """The first line that is not blank, or nothing where there is none, and the same lines once more."""
        seen: list[str] = []
        for line in self.lines:
            seen.append(line)
            if line.strip():
                break
        return (seen[-1] if seen else ""), TextLines(self.name, chain(seen, self.lines))


def read_lines(file: Path) -> TextLines:
    """The lines of `file`, which is gzipped if it begins as such files do. It is read as they are taken.

    Taking them raises UsageError where the file cannot be read, is no UTF-8, damaged, or has no end.
    """
    name = "standard input" if file == STANDARD_INPUT else str(file)
    return TextLines(name, _lines(file, name))


def _lines(file: Path, name: str) -> Iterator[str]:
    line = 0
    try:
        with _opened(file, name) as stream:
            blank = 0
            while content := stream.readline(LONGEST + 1):
                line += 1
                blank = 0 if content.strip() else blank + 1
                if len(content) > LONGEST:
                    Place(name, line).fail(f"a line must have no more than {LONGEST:,} bytes")
                if blank > MOST_BLANK:
                    Place(name, line).fail(f"more than {MOST_BLANK:,} lines, one after another, are blank")
                yield content.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        Place(name, line).fail(f"byte {error.start + 1} is no UTF-8")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        Place(name, line + 1).fail(f"the gzip data is damaged: {error}")
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from error


@contextmanager
def _opened(file: Path, name: str) -> Iterator[io.BufferedIOBase]:
    """What is in the file, unpacked."""
    with ExitStack() as opened:
        if file == STANDARD_INPUT:
            source: io.BufferedReader[Any] = io.BufferedReader(sys.stdin.buffer)
            opened.callback(source.detach)
        else:
            source = opened.enter_context(file.open("rb"))
        gzipped = source.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
        if file.suffix == ".gz" and not gzipped:
            raise UsageError(f"{name} is not gzip, which its name says")
        yield opened.enter_context(gzip.GzipFile(fileobj=source)) if gzipped else source
