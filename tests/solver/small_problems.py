"""Problems that are small enough to try every plan."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from hypothesis import strategies as st

from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ORDINARY, ConsumerClass
from domain.partitions import TopicPartition
from solver import Problem
from solver.deadline import Deadline
from solver.evaluation import Evaluation, evaluate
from tests.solver.partitions import partition

CAPACITY = 100.0
LIMIT_S = 3600.0
"""Longer than any test takes: whatever is proven in time is proven in the end."""


def problem(*sizes: float, current: dict[int, int] | None = None, **rules: object) -> Problem:
    """Partitions of these speeds, in order, on consumers of capacity 100; `current` is by number of partition."""
    owners = Assignment({partition(number): consumer for number, consumer in (current or {}).items()})
    speeds = {partition(number): size for number, size in enumerate(sizes)}
    return Problem(speeds, CAPACITY, owners, time_limit_s=LIMIT_S, **rules)  # type: ignore[arg-type]


whole = st.integers(1, 105).map(float)
speeds = st.one_of(whole, whole, st.floats(0.5, 60.0), st.just(0.0))
owners = st.one_of(st.none(), st.integers(1, 3))


@st.composite
def plain_problems(draw: st.DrawFn, most: int = 6) -> Problem:
    """Problems without rules."""
    sizes = draw(st.lists(speeds, min_size=1, max_size=most))
    current = {number: draw(owners) for number in range(len(sizes))}
    weight = draw(st.sampled_from([0.0, 0.3, 1.0, 3.0]))
    homes = {number: owner for number, owner in current.items() if owner is not None}
    return problem(*sizes, current=homes, migration_weight=weight)


@st.composite
def ruled_problems(draw: st.DrawFn, most: int = 5) -> Problem:
    """Problems with room for growth, a smaller consumer, pinned or immovable partitions, or a limit on consumers."""
    plain = draw(plain_problems(most))
    partitions = sorted(plain.speeds)
    pinned = draw(st.dictionaries(st.sampled_from(partitions), st.integers(1, 4), max_size=2))
    immovable = draw(st.sets(st.sampled_from(partitions), max_size=2)) - pinned.keys()
    smaller = st.dictionaries(
        st.sampled_from(sorted(plain.current.consumers)), st.sampled_from([10.0, 55.0]), max_size=1
    )
    return replace(
        plain,
        capacities=draw(smaller) if plain.current.consumers else {},
        packing_capacity=draw(st.sampled_from([None, 80.0, 95.0])),
        pinned=pinned,
        immovable=frozenset(immovable),
        max_consumers=draw(st.sampled_from([None, None, 2, 3])),
    )


@st.composite
def classed_problems(draw: st.DrawFn, most: int = 5) -> Problem:
    """The same with consumers of other classes, some of which are there."""
    given = draw(plain_problems(most) | ruled_problems(most))
    capacities, prices = st.sampled_from([40.0, 60.0, 100.0, 150.0, 220.0]), st.sampled_from([0.3, 0.45, 1.0, 1.4, 2.5])
    classes = tuple(
        ConsumerClass(name, draw(capacities), draw(prices)) for name in draw(st.sampled_from(["a", "ab", "abc"]))
    )
    names = st.sampled_from([ORDINARY, *(each.name for each in classes)])
    return replace(
        given,
        capacities={consumer: min(10.0, capacity) for consumer, capacity in given.capacities.items()},
        classes=classes,
        class_names=draw(st.dictionaries(st.integers(1, 4), names, max_size=3)),
    )


def every_plan(given: Problem) -> Iterator[tuple[Assignment, Evaluation]]:
    """All feasible plans, but for the names of new consumers."""
    order = sorted(given.speeds)
    named = sorted({*given.current.consumers, *given.pinned.values(), *given.class_names})
    unnamed = [number for number in range(1, len(order) + len(named) + 1) if number not in named]

    def place(placed: dict[TopicPartition, ConsumerId]) -> Iterator[Assignment]:
        if len(placed) == len(order):
            yield Assignment(placed)
            return
        opened = sum(1 for consumer in unnamed if consumer in placed.values())
        for consumer in [*named, *unnamed[: opened + 1]]:
            yield from place({**placed, order[len(placed)]: consumer})

    for plan in place({}):
        figures = evaluate(given, plan)
        if figures.is_feasible:
            yield plan, figures


def lowest(given: Problem, allowed: Callable[[Assignment, Evaluation], bool]) -> float | None:
    """The lowest objective of the feasible plans that are allowed; None where there is none."""
    return min((figures.objective for plan, figures in every_plan(given) if allowed(plan, figures)), default=None)


def in_time() -> Deadline:
    return Deadline.after(LIMIT_S)


def too_late() -> Deadline:
    return Deadline(at=0.0, clock=lambda: 1.0)


def after_looks(looks: int) -> Deadline:
    """A deadline that passes when it has been looked at so many times."""
    left = iter(range(looks))
    return Deadline(at=float(looks), clock=lambda: float(next(left, looks)))
