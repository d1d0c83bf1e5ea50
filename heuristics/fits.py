"""Which of the open consumers takes an item: next, first, worst and best fit, each in O(log n) comparisons.

An item fits when `load + size <= capacity`, in floating point, with the load summed in the order in which the items
came: so the plans agree digit by digit with those of the paper's authors. A load may pass the capacity by no more than
the rounding of that sum. A consumer is opened with its first item, which need not fit: one larger than the capacity has
a consumer of its own, which then takes nothing more.
"""

from bisect import bisect_right, insort
from heapq import heappush, heapreplace
from math import inf
from typing import Protocol

from heuristics.items import Items


class Fit(Protocol):
    """The open consumers and their loads."""

    def __init__(self, items: Items) -> None:
        """Nothing is open yet."""

    def open(self, consumer: int, load: float) -> None:
        """Adds a consumer with what it already holds."""

    def place(self, size: float) -> int | None:
        """The consumer that takes an item of this size by the rule, or None when it fits none; the load is added."""


class NextFit:
    """The consumer that was opened last, or none."""

    def __init__(self, items: Items) -> None:
        self._capacity = items.capacity
        self._last: int | None = None
        self._load = inf

    def open(self, consumer: int, load: float) -> None:
        self._last, self._load = consumer, load

    def place(self, size: float) -> int | None:
        if self._load + size > self._capacity:
            return None
        self._load += size
        return self._last


class FirstFit:
    """The lowest consumer that it fits, whenever that was opened.

    A tournament tree: the leaves are the loads of all consumers that may be opened (infinite as long as they are not),
    and each inner node is the least load below it.
    """

    def __init__(self, items: Items) -> None:
        self._capacity = items.capacity
        self._leaves = 1 << max(len(items.consumers) - 1, 0).bit_length()
        self._least = [inf] * (2 * self._leaves)

    def open(self, consumer: int, load: float) -> None:
        self._set(self._leaves + consumer, load)

    def place(self, size: float) -> int | None:
        least, capacity = self._least, self._capacity
        if least[1] + size > capacity:
            return None
        node = 1
        while node < self._leaves:
            node *= 2
            if least[node] + size > capacity:
                node += 1
        self._set(node, least[node] + size)
        return node - self._leaves

    def _set(self, node: int, load: float) -> None:
        least = self._least
        least[node] = load
        while node > 1:
            sibling = least[node ^ 1]
            if sibling < load:
                load = sibling
            node >>= 1
            if least[node] == load:
                return
            least[node] = load


class WorstFit:
    """The least loaded consumer that it fits; of equally loaded ones the lowest."""

    def __init__(self, items: Items) -> None:
        self._capacity = items.capacity
        self._loads: list[tuple[float, int]] = []

    def open(self, consumer: int, load: float) -> None:
        heappush(self._loads, (load, consumer))

    def place(self, size: float) -> int | None:
        if not self._loads:
            return None
        load, consumer = self._loads[0]
        if load + size > self._capacity:
            return None
        heapreplace(self._loads, (load + size, consumer))
        return consumer


class BestFit:
    """The most loaded consumer that it fits; of equally loaded ones the lowest.

    A sorted list: up to tens of thousands of consumers, moving its tail in memory takes less time than a tree would.
    """

    def __init__(self, items: Items) -> None:
        self._capacity = items.capacity
        self._loads: list[tuple[float, int]] = []
        """Ascending; the consumers are negated, so that of equal loads the lowest consumer stands last."""

    def open(self, consumer: int, load: float) -> None:
        insort(self._loads, (load, -consumer))

    def place(self, size: float) -> int | None:
        loads, capacity = self._loads, self._capacity
        if not loads or loads[0][0] + size > capacity:
            return None
        # The difference is rounded otherwise than the sum that decides: it is where to look, no more.
        fitting = bisect_right(loads, (capacity - size, 1))
        while fitting < len(loads) and loads[fitting][0] + size <= capacity:
            fitting += 1
        while loads[fitting - 1][0] + size > capacity:
            fitting -= 1
        load, negated = loads.pop(fitting - 1)
        insort(loads, (load + size, negated), lo=fitting - 1)
        return -negated
