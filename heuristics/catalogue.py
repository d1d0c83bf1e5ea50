"""The heuristics by name: each is a fit rule and the order in which it is applied."""

from collections.abc import Callable, Mapping

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition
from heuristics.any_fit import AnyFit, decreasing, in_random_order
from heuristics.fits import BestFit, FirstFit, NextFit, WorstFit
from heuristics.items import Items, items_of
from heuristics.modified_any_fit import ModifiedAnyFit, largest_partition, total_speed

_DEFINITIONS: Mapping[str, Callable[[Items, int], list[int]]] = {
    "nf": AnyFit(NextFit, in_random_order),
    "nfd": AnyFit(NextFit, decreasing),
    "ff": AnyFit(FirstFit, in_random_order),
    "ffd": AnyFit(FirstFit, decreasing),
    "wf": AnyFit(WorstFit, in_random_order),
    "wfd": AnyFit(WorstFit, decreasing),
    "bf": AnyFit(BestFit, in_random_order),
    "bfd": AnyFit(BestFit, decreasing),
    "mwf": ModifiedAnyFit(WorstFit, total_speed),
    "mwfp": ModifiedAnyFit(WorstFit, largest_partition),
    "mbf": ModifiedAnyFit(BestFit, total_speed),
    "mbfp": ModifiedAnyFit(BestFit, largest_partition),
}

HEURISTICS: tuple[str, ...] = tuple(_DEFINITIONS)
"""The names of the twelve, as in the paper but in lower case."""


def pack(
    name: str,
    speeds: Mapping[TopicPartition, float],
    capacity: float,
    current: Assignment = Assignment(),  # noqa: B008 (immutable)
    *,
    first_consumer: ConsumerId = 1,
    seed: int = 0,
) -> Assignment:
    """Packs the partitions into as few consumers as the heuristic finds, starting from who reads what now.

    No consumer is given more than the capacity, unless a single partition is more than that: it then has a consumer of
    its own. A new consumer is the partition's current one where that is not in use yet, otherwise the lowest number,
    `first_consumer` or above, that is not. Takes O(n log n) comparisons.

    Args:
        name: one of `HEURISTICS`.
        speeds: bytes/s of every partition that must have a consumer.
        capacity: what a consumer reads at most, in bytes/s.
        current: who reads what now; partitions that have no speed here are left aside.
        first_consumer: the lowest number that a new consumer may have.
        seed: of the order in which `nf`, `ff`, `wf` and `bf` take the partitions; the others do not use it. Vary it
            from one iteration to the next, or the orders are not independent.

    Raises:
        ValueError: an unknown name, or a value outside its range.
    """
    if name not in _DEFINITIONS:
        raise ValueError(f"there is no heuristic {name!r}: it must be one of {', '.join(HEURISTICS)}")
    items = items_of(speeds, capacity, current, first_consumer)
    return items.assignment(_DEFINITIONS[name](items, seed))
