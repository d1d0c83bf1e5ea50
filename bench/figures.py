"""What every benchmark says of its run, and how its figures are laid out: shared by the programs of this folder."""

import os
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

_LIBRARIES = ("kcga", "ortools", "numpy")


def machine() -> str:
    """The processor, how many of its cores this process may use, the memory and the system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = psutil.virtual_memory().total / 2**30
    return f"{_processor()}, {cores} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def versions(libraries: Iterable[str] = _LIBRARIES) -> str:
    """Python and the libraries that the figures depend on."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return ", ".join([python, *(f"{name} {metadata.version(name)}" for name in libraries)])


def command(module: str) -> str:
    """How this program was started."""
    return shlex.join(["python", "-m", module, *sys.argv[1:]])


def run_facts(module: str, facts: Sequence[tuple[str, str]] = ()) -> str:
    """A Markdown list of what it takes to repeat the run."""
    lines = (
        ("Command", f"`{command(module)}`"),
        *facts,
        ("Machine", machine()),
        ("Versions", versions()),
        ("Date", datetime.now(tz=UTC).strftime("%Y-%m-%d")),
    )
    return "\n".join(f"- {name}: {value}" for name, value in lines)


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> str:
    """A Markdown table whose first `words` columns are words, and whose others are figures, set flush right."""
    rule = ["---"] * words + ["---:"] * (len(headings) - words)
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (headings, rule, *rows))


def percent(share: float | None, digits: int = 2) -> str:
    """A share as a figure in percent, without the sign; nothing where there is none."""
    return "" if share is None else f"{100 * share:.{digits}f}"
