"""Why a plan gives a partition to another consumer than before, in words."""

from collections.abc import Mapping, Set

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition
from solver.problem import LOAD_TOLERANCE, Problem


def reasons(
    problem: Problem,
    plan: Assignment,
    gone: Mapping[TopicPartition, ConsumerId],
    *,
    at_peak: bool,
    looks_ahead: bool = False,
) -> dict[TopicPartition, str]:
    """A reason for each partition of the problem whose consumer in `plan` does not read it now; the first that holds.

    Args:
        problem: what was asked.
        plan: what was answered.
        gone: of the partitions that nobody reads because their consumer is gone, which one that was.
        at_peak: the problem's speeds are the highest of the window, and not the present ones.
        looks_ahead: they are with what is foreseen.
    """
    current = Assignment({p: c for p, c in problem.current.items() if p in problem.speeds})
    when = " at the highest speeds of the window" if at_peak else ""
    told = _Telling(problem, current, plan, gone, f"{when} with what is foreseen" if looks_ahead else when)
    return {p: told.why(p, c) for p, c in plan.items() if current.get(p) != c}


class _Telling:
    def __init__(
        self,
        problem: Problem,
        current: Assignment,
        plan: Assignment,
        gone: Mapping[TopicPartition, ConsumerId],
        when: str,
    ) -> None:
        self._problem = problem
        self._current = current
        self._gone = gone
        self._when = when
        self._loads = current.loads(problem.speeds)
        self._held = {consumer: frozenset(partitions) for consumer, partitions in current.by_consumer.items()}
        self._planned = {consumer: frozenset(partitions) for consumer, partitions in plan.by_consumer.items()}
        self._fixed = problem.fixed
        self._biggest_arrival = self._biggest_arrivals(plan)

    def _biggest_arrivals(self, plan: Assignment) -> Mapping[ConsumerId, TopicPartition]:
        """The fastest partition that each consumer is given; the lowest among equals."""
        biggest: dict[ConsumerId, TopicPartition] = {}
        for partition in sorted(plan):
            consumer = plan[partition]
            if self._current.get(partition) != consumer:
                before = biggest.get(consumer)
                if before is None or self._problem.speeds[partition] > self._problem.speeds[before]:
                    biggest[consumer] = partition
        return biggest

    def why(self, partition: TopicPartition, target: ConsumerId) -> str:
        if self._fixed.get(partition) == target:
            return f"it is pinned to consumer {target}"
        source = self._current.get(partition)
        if source is None:
            return self._why_unread(partition)
        load, capacity = self._loads[source], self._problem.capacity_of(source)
        stays: Set[TopicPartition] = self._planned.get(source, frozenset())
        hot = self._saturated_on(source)
        if partition == hot:
            return "it is faster than a consumer, and gets one of its own"
        if self._problem.speeds[partition] > capacity * (1 + LOAD_TOLERANCE) and len(self._held[source]) == 1:
            return "it is faster than its consumer, and gets a larger one"
        if hot is not None:
            return f"{hot}, on the same consumer, is faster than a consumer, and stays alone"
        if load > capacity * (1 + LOAD_TOLERANCE):
            return f"its consumer was above its capacity{self._when}"
        if not stays:
            return "its consumer is no longer needed"
        if (arrival := self._biggest_arrival.get(source)) is not None:
            return f"makes room for {arrival}"
        if len(self._held) < self._problem.min_consumers:
            return f"there shall be {self._problem.min_consumers} consumers or more"
        if load > self._problem.packing_capacity_of(source) * (1 + LOAD_TOLERANCE):
            return f"its consumer had more than a plan gives it{self._when}"
        return f"consumer {target} has room for it, and the plan as a whole costs less"

    def _why_unread(self, partition: TopicPartition) -> str:
        before = self._gone.get(partition)
        return "nobody read it" if before is None else f"its consumer, {before}, is gone"

    def _saturated_on(self, consumer: ConsumerId) -> TopicPartition | None:
        """The fastest partition that is faster than this consumer and shares it."""
        held = self._held[consumer]
        fastest = max(sorted(held), key=self._problem.speeds.__getitem__)
        shared = len(held) > 1
        return fastest if shared and self._problem.speeds[fastest] > self._problem.capacity_of(consumer) else None
