"""The classic algorithms, adapted to a group that already runs (section "Approximation Algorithms Adaptation")."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from heuristics.fits import Fit, NextFit
from heuristics.items import Items


class Openings:
    """Which consumers are open, and which is opened next."""

    def __init__(self, items: Items) -> None:
        self._owners = items.owners
        self._is_open = bytearray(len(items.consumers))
        self._lowest = items.first_new

    def open(self, consumer: int) -> None:
        self._is_open[consumer] = True

    def open_for(self, item: int) -> int:
        """Opens the item's owner where it is not open yet, otherwise the lowest consumer that is not."""
        owner = self._owners[item]
        if owner is None or self._is_open[owner]:
            return self.open_lowest()
        self._is_open[owner] = True
        return owner

    def open_lowest(self) -> int:
        self._lowest = self._is_open.index(False, self._lowest)
        self._is_open[self._lowest] = True
        return self._lowest


def assign(items: Items, order: Iterable[int], bins: Fit, openings: Openings, consumer_of: list[int]) -> None:
    """Assigns the items one by one: where the rule says, or to a newly opened consumer where they fit nowhere."""
    for item in order:
        size = items.sizes[item]
        consumer = bins.place(size)
        if consumer is None:
            consumer = openings.open_for(item)
            bins.open(consumer, size)
        consumer_of[item] = consumer


Order = Callable[[Items, int], list[int]]
"""The order in which the items are taken, given a seed."""


def decreasing(items: Items, _seed: int) -> list[int]:
    """Largest first, equal ones in partition order."""
    return list(range(len(items.sizes)))


def in_random_order(items: Items, seed: int) -> list[int]:
    """Same items and seed, same order."""
    order = list(range(len(items.sizes)))
    random.Random(seed).shuffle(order)
    return order


@dataclass(frozen=True, slots=True)
class AnyFit:
    """Next, first, worst or best fit, online or decreasing."""

    fit: type[Fit]
    order: Order

    def __call__(self, items: Items, seed: int) -> list[int]:
        """The consumer of each item."""
        order = self.order(items, seed)
        bins, openings = self.fit(items), Openings(items)
        consumer_of = [0] * len(order)
        if self.fit is NextFit and order:
            # The authors' next fit starts on the lowest consumer, whoever has the first item now.
            first = order.pop(0)
            consumer_of[first] = openings.open_lowest()
            bins.open(consumer_of[first], items.sizes[first])
        assign(items, order, bins, openings, consumer_of)
        return consumer_of
