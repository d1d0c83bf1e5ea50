"""Sizes of consumers: how much one of a class reads, and what it costs."""

import re
from dataclasses import dataclass
from typing import Final

ORDINARY = "ordinary"
"""The name of the class that there always is: its capacity is the unit of the Rscore, and its price is 1."""

CLASS_NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
"""What a class can be called."""
LOWEST_PRICE, HIGHEST_PRICE = 1e-3, 1e3
"""In ordinary consumers."""


@dataclass(frozen=True, slots=True)
class ConsumerClass:
    """Consumers that are alike. One that exists never changes its class: it is replaced."""

    name: str
    capacity: float
    """What one of them reads at most, in bytes/s."""
    price: float
    """What one of them costs, in ordinary consumers."""
