"""Plans made by rule: close some consumers, evict as little as possible from the overloaded ones, place what is left.

Knows all rules of a problem, and needs nothing but arithmetic: what the heuristics cannot take (limits on the number of
consumers, pinned partitions, capacities that differ) starts from here, and so do groups in which a consumer has too
many partitions to list what it could keep.
"""

from bisect import bisect_left, insort

import numpy as np

from domain.assignment import Assignment, ConsumerId
from solver.bounds import fewest_bins
from solver.deadline import Deadline
from solver.instance import FIT_TOLERANCE, Instance
from solver.knapsack import best_sets
from solver.record import Record

NAME = "least-eviction"
_UNITS = 4096
"""To a capacity, in the choice of what an overloaded consumer keeps."""
_MOST_PLANS = 6


def offer_plans(instance: Instance, record: Record, deadline: Deadline) -> None:
    """Tries the numbers of consumers to close that promise most, as long as one could be better than the record."""
    kept = _keep_most(instance)
    loads = [float(instance.sizes[list(bin_.own + bin_.required)].sum()) for bin_ in instance.bins]
    evicted = [load - float(instance.sizes[list(items)].sum()) for load, items in zip(loads, kept, strict=True)]
    closable = sorted(
        (number for number, bin_ in enumerate(instance.bins) if bin_.own and not bin_.required),
        key=lambda number: (loads[number] - evicted[number], number),
    )
    opened = sum(1 for bin_ in instance.bins if bin_.own or bin_.required)
    fewest = max(fewest_bins(instance), instance.problem.min_consumers)
    estimates = []
    penalty = sum(evicted)
    for closings in range(len(closable) + 1):
        if closings:
            number = closable[closings - 1]
            penalty += loads[number] - evicted[number]
        consumers = max(opened - closings, fewest)
        estimates.append((consumers + instance.weight * penalty, closings))
        if opened - closings <= fewest:
            break
    for estimate, closings in sorted(estimates)[:_MOST_PLANS]:
        if deadline.passed or estimate >= record.cutoff:
            return
        record.offer(plan(instance, kept, frozenset(closable[:closings])), NAME)


def least_overloaded(instance: Instance) -> Assignment:
    """A plan that respects the number of consumers and what is fixed, and spreads what is too much."""
    kept = _keep_most(instance)
    opened = [number for number, bin_ in enumerate(instance.bins) if bin_.own or bin_.required]
    most = instance.problem.max_consumers or len(instance.sizes)
    loads = {number: float(instance.sizes[list(kept[number])].sum()) for number in opened}
    closable = sorted((n for n in opened if not instance.bins[n].required), key=lambda n: (loads[n], n))
    return plan(instance, kept, frozenset(closable[: max(0, len(opened) - most)]))


def _keep_most(instance: Instance) -> list[tuple[int, ...]]:
    """What each bin keeps if it stays open and loses as little as possible (a subset sum), required items included."""
    kept = []
    for bin_ in instance.bins:
        everything = tuple(sorted(bin_.own + bin_.required))
        if instance.room_beside(bin_, everything) is not None:
            kept.append(everything)
            continue
        room = bin_.packing_capacity if bin_.receives_required else bin_.capacity
        room -= float(instance.sizes[list(bin_.required)].sum())
        choices = [bin_.required]
        if room > 0:
            own = np.array(bin_.own, dtype=np.int64)
            sizes = instance.sizes[own]
            units = np.ceil((sizes - FIT_TOLERANCE / 10) * _UNITS).astype(np.int64)
            widest = int((room + FIT_TOLERANCE / 10) * _UNITS)
            found = best_sets(sizes, units, widest).sets_in(np.array([widest]))[0]
            choices.append((*own[list(found)].tolist(), *bin_.required))
        if not bin_.required:
            choices += [(item,) for item in bin_.own if instance.sizes[item] > max(1.0, bin_.capacity)][:1]
        kept.append(tuple(sorted(max(choices, key=lambda items: float(instance.sizes[list(items)].sum())))))
    return kept


def plan(instance: Instance, kept: list[tuple[int, ...]], closed: frozenset[int]) -> Assignment:
    """Leaves `kept` where it is but on the bins in `closed`, and places the rest by best fit, the largest first."""
    sizes, problem = instance.sizes, instance.problem
    limited = problem.max_consumers is not None
    placed: dict[int, ConsumerId] = {}
    rooms: list[tuple[float, ConsumerId]] = []
    used: set[ConsumerId] = set()
    for number, bin_ in enumerate(instance.bins):
        if number in closed or not kept[number]:
            continue
        used.add(bin_.consumer)
        for item in kept[number]:
            placed[item] = bin_.consumer
        room = instance.room_beside(bin_, kept[number])
        if room or limited:
            load = float(sizes[list(kept[number])].sum())
            insort(rooms, (room or min(0.0, bin_.packing_capacity - load), bin_.consumer))
    names = instance.free_consumers(used)
    # The largest partitions come first: with the number of consumers limited, each then goes to the least loaded.
    for item in range(len(sizes)):
        if item in placed:
            continue
        size = float(sizes[item])
        index = bisect_left(rooms, (size - FIT_TOLERANCE, -1))
        if index < len(rooms):
            room, consumer = rooms.pop(index)
        elif problem.max_consumers is not None and len(used) >= problem.max_consumers and rooms:
            room, consumer = rooms.pop()
        else:
            consumer = names.take((item,), size)
            used.add(consumer)
            room = problem.packing_capacity_of(consumer) / problem.capacity
        placed[item] = consumer
        if room - size > 0 or limited:
            insort(rooms, (room - size, consumer))
    return instance.complete(placed)
