"""No file that a command writes may be one that it reads, nor another that it writes: whatever names and links say."""

import os
from collections.abc import Iterable
from pathlib import Path

from app.errors import UsageError
from cli.files.csv_output import STANDARD_OUTPUT
from cli.files.text_lines import STANDARD_INPUT


def require_own_files(read: Iterable[tuple[str, Path | None]], written: Iterable[tuple[str, Path | None]]) -> None:
    """Makes sure that each file that is written is a file of its own.

    Args:
        read: what the command reads, by what it is called; `-` is standard input.
        written: what it writes, by option; None is left out.

    Raises:
        UsageError: two are the same file, or something is to be written to standard output.
    """
    names = {_identity(file): name for name, file in read if file is not None}
    for name, file in written:
        if file is None:
            continue
        if file == STANDARD_OUTPUT:
            raise UsageError(f"{name} is -: standard output is for the figures, so it must be a file")
        other = names.setdefault(_identity(file), name)
        if other != name:
            raise UsageError(f"{name} is {file}, and so is {other}: each needs a file of its own")


def _identity(file: Path) -> object:
    """The same for two paths exactly if they name one file, which may not be there yet."""
    try:
        found = os.fstat(0) if file == STANDARD_INPUT else file.stat()
    except OSError:
        return os.path.realpath(file)
    return found.st_dev, found.st_ino
