"""What a consumer may keep: the subsets of its partitions that fit it."""

from dataclasses import dataclass

from solver.instance import FIT_TOLERANCE, Instance


class TooManyError(ValueError):
    """There are more subsets than anyone should list."""


@dataclass(frozen=True, slots=True)
class KeptSet:
    """Items that stay together on the bin that has them, and what that leaves."""

    bin: int
    items: tuple[int, ...]
    """Required ones included, in ascending order."""
    saving: float
    """Lambda times the size of those that are at home, in the unit of the objective."""
    room: float
    """What the bin may be given beside them, in capacities."""


def kept_sets(instance: Instance, at_most: int) -> list[KeptSet]:
    """Every kept set of every bin, but for those that are no better than a new consumer.

    Raises:
        TooManyError: there are more than `at_most`.
    """
    found: list[KeptSet] = []
    sizes = instance.sizes
    for number, bin_ in enumerate(instance.bins):
        subsets: list[tuple[tuple[int, ...], float]] = [((), float(sizes[list(bin_.required)].sum()))]
        for item in bin_.own:
            size = float(sizes[item])
            limit = bin_.capacity * (1 + FIT_TOLERANCE)
            # A partition that is faster than its consumer can only be alone: it extends the empty set.
            subsets += [
                ((*items, item), load + size)
                for items, load in subsets
                if load + size <= limit or not (items or bin_.required)
            ]
            if len(found) + len(subsets) > at_most:
                raise TooManyError(f"there are more than {at_most} sets of partitions that consumers could keep")
        for items, _ in subsets:
            kept = tuple(sorted((*items, *bin_.required)))
            if not kept and bin_.capacity <= 1:
                continue
            room = instance.room_beside(bin_, kept)
            if room is not None:
                at_home = sum(float(sizes[item]) for item in kept if instance.home[item] == number)
                found.append(KeptSet(number, kept, instance.weight * at_home, room))
    return found
