"""What `--engines` names: a heuristic, or an exact engine with the weight of migration."""

from dataclasses import dataclass
from typing import Self

from app.errors import UsageError
from cli.files.csv_rows import shown
from cli.ranges import HIGHEST_WEIGHT, require
from heuristics import HEURISTICS
from solver import ENGINES

EXACT = "exact"
"""Another name of `auto`."""
DEFAULT_WEIGHT = 0.5
LOWEST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """An engine of a simulation."""

    name: str
    """As it was asked for: it stands in the results."""
    engine: str
    """One of `solver.ENGINES`."""
    migration_weight: float = DEFAULT_WEIGHT
    """Lambda, in consumers per unit of Rscore; heuristics have no use for it."""
    packing_share: float = 1.0
    """Of the capacity: up to there a consumer is given partitions. What it has it keeps, up to the capacity."""

    @property
    def is_heuristic(self) -> bool:
        return self.engine in HEURISTICS

    @classmethod
    def parse(cls, text: str) -> Self:
        """The engine that `NAME`, `NAME@LAMBDA` or `NAME@LAMBDA/SHARE` asks for.

        Raises:
            UsageError: there is no such engine, or lambda or the share is outside its range.
        """
        name = text.strip()
        base, at, figures = name.partition("@")
        engine = "auto" if base == EXACT else base
        if engine not in ENGINES:
            known = ", ".join((EXACT, *ENGINES))
            raise UsageError(f"there is no engine {shown(base)}: it must be one of {known}")
        if not at:
            return cls(name, engine)
        if engine in HEURISTICS:
            raise UsageError(f"{shown(name)}: a heuristic knows no weight of migration; it must be {base}")
        weight, slash, share = figures.partition("/")
        return cls(
            name,
            engine,
            _number(name, "lambda", weight, 0, HIGHEST_WEIGHT),
            _number(name, "the share of the capacity", share, LOWEST_SHARE, 1) if slash else 1.0,
        )


def _number(name: str, what: str, text: str, least: float, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UsageError(
            f"{shown(name)}: {what} is {shown(text)}: it must be a number from {least:g} to {most:g}"
        ) from None
    return require(f"{what} in {shown(name)}", number, least, most)


def parse_engines(text: str) -> tuple[EngineSpec, ...]:
    """The engines in a list with commas, each named once.

    Raises:
        UsageError: one of them is wrong, or named twice.
    """
    specs = tuple(EngineSpec.parse(part) for part in text.split(","))
    names = [spec.name for spec in specs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"the engine {name} is named twice: its results could not be told apart")
    return specs
