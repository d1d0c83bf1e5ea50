"""The twelve heuristics as their rules are written: every open consumer is looked at for every partition.

Quadratic, and easy to believe. The fast ones of `heuristics` must give the same plans, and are measured against these.
"""

import math
import random
from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition


@dataclass
class Bin:
    """A consumer of the next assignment."""

    consumer: ConsumerId
    load: float = 0.0
    held: list[TopicPartition] = field(default_factory=list)


class Packing:
    """The next assignment while it is made."""

    def __init__(
        self, speeds: Mapping[TopicPartition, float], capacity: float, current: Assignment, first_consumer: ConsumerId
    ) -> None:
        self.speeds = speeds
        self.capacity = capacity
        self.current = current
        self.first_consumer = first_consumer
        self.bins: list[Bin] = []
        """By consumer."""
        self.last: Bin | None = None
        """The bin that was opened last."""

    def fits(self, size: float, bin_: Bin) -> bool:
        return not bin_.held or bin_.load + size <= self.capacity

    def put(self, partition: TopicPartition, bin_: Bin) -> None:
        bin_.held.append(partition)
        bin_.load += self.speeds[partition]

    def is_open(self, consumer: ConsumerId) -> bool:
        return any(bin_.consumer == consumer for bin_ in self.bins)

    def open(self, consumer: ConsumerId) -> Bin:
        self.last = Bin(consumer)
        insort(self.bins, self.last, key=attrgetter("consumer"))
        return self.last

    def open_lowest(self) -> Bin:
        lowest = self.first_consumer
        for bin_ in self.bins:
            if bin_.consumer == lowest:
                lowest += 1
        return self.open(lowest)

    def open_for(self, partition: TopicPartition) -> Bin:
        owner = self.current.get(partition)
        return self.open_lowest() if owner is None or self.is_open(owner) else self.open(owner)

    @property
    def assignment(self) -> Assignment:
        return Assignment({partition: bin_.consumer for bin_ in self.bins for partition in bin_.held})


Fit = Callable[[Packing, float], Bin | None]


def next_fit(packing: Packing, size: float) -> Bin | None:
    return packing.last if packing.last and packing.fits(size, packing.last) else None


def first_fit(packing: Packing, size: float) -> Bin | None:
    for bin_ in packing.bins:
        if packing.fits(size, bin_):
            return bin_
    return None


def worst_fit(packing: Packing, size: float) -> Bin | None:
    emptiest = None
    for bin_ in packing.bins:
        if packing.fits(size, bin_) and (emptiest is None or bin_.load < emptiest.load):
            emptiest = bin_
    return emptiest


def best_fit(packing: Packing, size: float) -> Bin | None:
    fullest = None
    for bin_ in packing.bins:
        if packing.fits(size, bin_) and (fullest is None or bin_.load > fullest.load):
            fullest = bin_
    return fullest


FITS: Mapping[str, Fit] = {"nf": next_fit, "ff": first_fit, "wf": worst_fit, "bf": best_fit}


def decreasing(packing: Packing, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    return sorted(partitions, key=lambda p: (-packing.speeds[p], p.topic, p.partition))


def in_random_order(packing: Packing, partitions: Iterable[TopicPartition], seed: int) -> list[TopicPartition]:
    order = decreasing(packing, partitions)
    random.Random(seed).shuffle(order)
    return order


def assign_all(packing: Packing, order: Iterable[TopicPartition], fit: Fit) -> None:
    for partition in order:
        bin_ = fit(packing, packing.speeds[partition])
        if bin_ is None and fit is next_fit and not packing.bins:
            bin_ = packing.open_lowest()
        elif bin_ is None:
            bin_ = packing.open_for(partition)
        packing.put(partition, bin_)


def modified_any_fit(packing: Packing, fit: Fit, key: Callable[[Iterable[float]], float]) -> None:
    unassigned = [partition for partition in packing.speeds if partition not in packing.current]
    keys: dict[ConsumerId, float] = {}
    psets: dict[ConsumerId, list[TopicPartition]] = {}
    for consumer, held in packing.current.by_consumer.items():
        pset = decreasing(packing, (partition for partition in held if partition in packing.speeds))
        if pset:
            psets[consumer] = pset
            keys[consumer] = key([packing.speeds[partition] for partition in pset])

    for consumer in sorted(psets, key=lambda consumer: (-keys[consumer], consumer)):
        pset = psets[consumer]
        while pset:
            bin_ = fit(packing, packing.speeds[pset[-1]])
            if bin_ is None:
                break
            packing.put(pset.pop(), bin_)
        if not pset:
            continue
        own = packing.open(consumer)
        while pset and packing.fits(packing.speeds[pset[0]], own):
            packing.put(pset.pop(0), own)
        unassigned += pset
    assign_all(packing, decreasing(packing, unassigned), fit)


def pack(
    name: str,
    speeds: Mapping[TopicPartition, float],
    capacity: float,
    current: Assignment | None = None,
    *,
    first_consumer: ConsumerId = 1,
    seed: int = 0,
) -> Assignment:
    """What `heuristics.pack` gives for the same arguments."""
    packing = Packing(speeds, capacity, current or Assignment(), first_consumer)
    if name.startswith("m"):
        modified_any_fit(packing, FITS[name[1:3]], max if name.endswith("p") else math.fsum)
    elif name.endswith("d"):
        assign_all(packing, decreasing(packing, speeds), FITS[name[:2]])
    else:
        assign_all(packing, in_random_order(packing, speeds, seed), FITS[name])
    return packing.assignment
