"""What befell the components while a group is watched: something was broken on purpose, or ended and begins anew."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Incident:
    at: float
    """Seconds since the epoch."""
    what: str
