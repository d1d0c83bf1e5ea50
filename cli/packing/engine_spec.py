"""What `--engines` names: a heuristic, or an exact engine with the weight of migration."""

from dataclasses import dataclass
from typing import Self

from cli.errors import UsageError
from cli.packing.csv_rows import shown
from cli.packing.ranges import HIGHEST_WEIGHT, require
from heuristics import HEURISTICS
from solver import ENGINES

EXACT = "exact"
"""Another name of `auto`."""
DEFAULT_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """An engine of a simulation."""

    name: str
    """As it was asked for: it stands in the results."""
    engine: str
    """One of `solver.ENGINES`."""
    migration_weight: float = DEFAULT_WEIGHT
    """Lambda, in consumers per unit of Rscore; heuristics have no use for it."""

    @property
    def is_heuristic(self) -> bool:
        return self.engine in HEURISTICS

    @classmethod
    def parse(cls, text: str) -> Self:
        """The engine that `NAME` or `NAME@LAMBDA` asks for.

        Raises:
            UsageError: there is no such engine, or lambda is no such weight.
        """
        name = text.strip()
        base, at, weight = name.partition("@")
        engine = "auto" if base == EXACT else base
        if engine not in ENGINES:
            known = ", ".join((EXACT, *ENGINES))
            raise UsageError(f"there is no engine {shown(base)}: it must be one of {known}")
        if not at:
            return cls(name, engine)
        if engine in HEURISTICS:
            raise UsageError(f"{shown(name)}: a heuristic knows no weight of migration; it must be {base}")
        try:
            number = float(weight)
        except ValueError:
            raise UsageError(f"{shown(name)}: lambda is {shown(weight)}: it must be a number, 0 or more") from None
        return cls(name, engine, require(f"lambda in {shown(name)}", number, 0, HIGHEST_WEIGHT))


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
