"""How plots are made and saved. Matplotlib and textalloc are an extra, take long to load, and are loaded for a plot."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import KcgaError, UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
INK = "#24292f"
FAINT_INK = "#6e7781"
GROUND = "#ffffff"
GRID = "#e6e8eb"
TOPIC_COLOURS = ("#5b8db8", "#4f9d78", "#9a7bb5", "#cc8a4c", "#c86f86", "#8f9a4b", "#4ba3ad", "#a3765f")
HEURISTIC_COLOUR, EXACT_COLOUR = "#7d8794", "#c2410c"
OVERLOAD_COLOUR = "#b42318"


def require_plotting(file: Path) -> None:
    """Says before any long work whether a plot can be made and what its file may be.

    Raises:
        UsageError: the name of the file asks for no format that there is, or its folder does not exist.
        KcgaError: Matplotlib or textalloc is not installed.
    """
    if file.suffix.lower() not in FORMATS:
        raise UsageError(f"--plot {file}: the name of a plot must end in {', '.join(FORMATS)}")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"--plot {file}: there is no folder {file.absolute().parent}")
    try:
        importlib.import_module("matplotlib.figure")
        importlib.import_module("textalloc")
    except ImportError as error:
        raise KcgaError(
            f"plots need Matplotlib and textalloc ({error}): install kcga with its extra, kcga[plot]"
        ) from error


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, that no screen is needed for."""
    from matplotlib import rcParams
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = "kcga"  # same figure, same file
    rcParams["hatch.linewidth"] = 0.6
    figure = Figure(figsize=(width, height), facecolor=GROUND, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: "Figure", file: Path) -> None:
    """Writes the figure in the format that the name of the file asks for.

    Raises:
        UsageError: the file cannot be written.
    """
    timeless = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    try:
        figure.savefig(file, dpi=144, metadata=timeless.get(file.suffix.lower()))
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error
