"""Whether something is as it has to be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """Whether something is as it has to be, and otherwise why not."""

    ok: bool
    reason: str
