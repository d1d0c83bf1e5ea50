"""What every benchmark says of its run, and how its figures are laid out: shared by the programs of this folder."""

import math
import os
import platform
import shlex
import statistics
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

from app.errors import KcgaError
from bench.quiet import LoadBefore
from cli.plots.plotting import FAINT_INK, GRID, TOPIC_COLOURS, new_figure, require_plotting, save

_LIBRARIES = ("kcga", "ortools", "numpy")
_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045),
)
"""The 97.5 % quantiles of Student's t, by degrees of freedom from 1 on."""
MOST_VALUES = len(_STUDENT) + 1
"""As many as `interval` takes."""


def processors() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> str:
    """The processor, how many of its cores this process may use, the memory and the system."""
    memory = psutil.virtual_memory().total / 2**30
    return f"{_processor()}, {processors()} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def versions() -> str:
    """Python and the libraries that the figures depend on."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return ", ".join([python, *(f"{name} {metadata.version(name)}" for name in _LIBRARIES)])


def command(module: str) -> str:
    """How this program was started."""
    return shlex.join(["python", "-m", module, *sys.argv[1:]])


def run_facts(module: str, before: LoadBefore | None, facts: Sequence[tuple[str, str]] = ()) -> str:
    """A Markdown list of what it takes to repeat the run, and of what else the machine was doing.

    Args:
        module: the program.
        before: the load before it began; None where nothing is measured that a load could change.
        facts: what else there is to say.
    """
    lines = (
        ("Command", f"`{command(module)}`"),
        *facts,
        ("Machine", machine()),
        *([] if before is None else [("Load per core before", str(before))]),
        ("Versions", versions()),
        ("Date", datetime.now(tz=UTC).strftime("%Y-%m-%d")),
    )
    return "\n".join(f"- {name}: {value}" for name, value in lines)


def plot_in(folder: Path, name: str) -> Path:
    """The file of a plot, in a folder that need not be there yet; before any long work.

    Raises:
        SystemExit: no plot can be made here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        require_plotting(folder / name)
    except KcgaError as error:
        raise SystemExit(str(error)) from error
    return folder / name


def write_page(file: Path, text: str) -> None:
    """Writes a page, in a folder that need not be there, and says so."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    print(f"{file} is written")


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> str:
    """A Markdown table whose first `words` columns are words, and whose others are figures, set flush right."""
    rule = ["---"] * words + ["---:"] * (len(headings) - words)
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (headings, rule, *rows))


def percent(share: float | None, digits: int = 2) -> str:
    """A share as a figure in percent, without the sign; nothing where there is none."""
    return "" if share is None else f"{100 * share:.{digits}f}"


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean of a few values, and half the width of its 95 % interval by Student's t; not a number for one value."""
    if len(values) < 2:
        return statistics.fmean(values), math.nan
    return statistics.fmean(values), _STUDENT[len(values) - 2] * statistics.stdev(values) / math.sqrt(len(values))


def change(shares: Sequence[float]) -> str:
    """The mean of by what shares something is more than it was, in percent, and half the width of its interval."""
    mean, half = interval(shares)
    return f"{100 * mean:+.1f} ± {percent(half, 1)} %"


def draw_course(
    names: Sequence[str], phases: Sequence[tuple[str, Sequence[float]]], file: Path, limit_s: float | None = None
) -> None:
    """A bar for each name, of its phases one after the other.

    Args:
        names: what was done, from the first to the last.
        phases: what each is, and how many seconds it took for each name.
        file: the plot to write.
        limit_s: where the line is that no bar should reach.
    """
    figure = new_figure(7.0, 1.2 + 0.5 * len(names))
    axes = figure.subplots()
    begins = [0.0] * len(names)
    for (what, lengths), colour in zip(phases, TOPIC_COLOURS[::3], strict=False):
        axes.barh(names, lengths, left=begins, color=colour, label=what)
        begins = [begin + length for begin, length in zip(begins, lengths, strict=True)]
    if limit_s is not None:
        axes.axvline(limit_s, color=FAINT_INK, linewidth=1, linestyle="--")
    axes.invert_yaxis()
    axes.set_xlabel("seconds", color=FAINT_INK)
    axes.grid(visible=True, axis="x", color=GRID)
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=len(phases), frameon=False)
    save(figure, file)
