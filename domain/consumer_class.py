"""Sizes of consumers: how much one of a class reads, and what it costs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from domain.assignment import ConsumerId

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


def by_class(names: Mapping[ConsumerId, str]) -> dict[str, tuple[ConsumerId, ...]]:
    """The consumers of each class, those of the ordinary one left out, in ascending order; by the class of each."""
    return {
        name: tuple(consumer for consumer in sorted(names) if names[consumer] == name)
        for name in sorted({*names.values()} - {ORDINARY})
    }


def class_names(consumers: Mapping[str, Sequence[ConsumerId]]) -> dict[ConsumerId, str]:
    """The class of each consumer, by the consumers of each; those that are left out are ordinary."""
    return {consumer: name for name, those in consumers.items() for consumer in those}
