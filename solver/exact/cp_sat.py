"""The paper's model as it is printed (section Problem Formulation), with the migration penalty, on CP-SAT.

    minimise    sum of y_i + lambda * sum of the sizes that move
    subject to  for each consumer i: sum over j of w_j * x_ij <= y_i
                for each partition j: sum over i of x_ij = 1

New consumers of a class are alike: the k-th is used only after the one before it, and never for one of the k - 1
largest partitions; with several classes, y_i counts as the price of its own. The number of consumers is bounded by L2
from below. Good up to about 100 partitions.
"""

import math

from ortools.sat.python import cp_model

from domain.assignment import Assignment, ConsumerId
from solver.deadline import Deadline
from solver.exact.bounds import fewest_bins
from solver.exact.instance import Instance
from solver.incumbent import Found, Incumbent

NAME = "cp-sat"
_SIZE_SCALE = 10**11
"""Units to a capacity. Sizes are rounded down, and so little that the load of a hundred partitions is within tolerance:
what the model proves holds for the true problem, and what it finds fits."""
_COST_SCALE = 10**9
_WORKERS = 8
_MOST_VARIABLES = 2_000_000


def solve(instance: Instance, incumbent: Incumbent, deadline: Deadline) -> None:
    """Looks for the optimum from the incumbent's best plan on, and raises its bound."""
    best = incumbent.best
    model = _Model(instance, _most_consumers(instance, best))
    if deadline.passed or model.most_variables > _MOST_VARIABLES or not model.write(deadline):
        return
    if best is not None:
        model.hint(best.assignment)
    if deadline.passed:
        return
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.01, deadline.remaining)
    solver.parameters.random_seed = instance.problem.seed % 2**31
    solver.parameters.num_workers = _WORKERS
    solver.parameters.interleave_search = True  # the same search whatever the threads' timing
    solver.parameters.relative_gap_limit = 0.0
    status = solver.solve(model.model)
    # Costs are rounded down: a bound of the model, in whole units, is one of the true problem.
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        incumbent.raise_bound(solver.best_objective_bound / _COST_SCALE)
        incumbent.offer(instance.complete(model.placed(solver)), NAME)
        if status == cp_model.OPTIMAL:
            incumbent.raise_bound(solver.best_objective_bound / _COST_SCALE)
    elif status == cp_model.UNKNOWN and solver.best_objective_bound > 0:
        incumbent.raise_bound(min(solver.best_objective_bound / _COST_SCALE, incumbent.objective))


def _most_consumers(instance: Instance, best: Found | None) -> int:
    """No plan has more than these that is better than the best so far."""
    most = len(instance.sizes)
    if best is not None:
        most = min(most, int(best.figures.objective / float(instance.prices.min()) + 1e-6))
    limit = instance.problem.max_consumers
    return most if limit is None else min(most, limit)


class _Model:
    """Of an instance, with so many consumers at most. Consumers are numbered: those that there are, then new ones."""

    def __init__(self, instance: Instance, most: int) -> None:
        self.model = cp_model.CpModel()
        self._instance = instance
        self._count = len(instance.sizes)
        self._most = most
        self._known = len(instance.bins)
        new = [instance.kinds[kind] for kind in instance.offered for _ in range(most)]
        self._kinds = [instance.kinds[bin_.kind] for bin_ in instance.bins] + new
        self._capacities = [bin_.capacity for bin_ in instance.bins] + [kind.capacity for kind in new]
        self._packings = [bin_.packing_capacity for bin_ in instance.bins] + [kind.packing_capacity for kind in new]
        self._first = [0] * self._known + list(range(most)) * len(instance.offered)
        """The number of the largest item that each may have."""
        self._used: list[cp_model.IntVar] = []
        self._x: dict[tuple[int, int], cp_model.IntVar] = {}

    @property
    def most_variables(self) -> int:
        return len(self._capacities) * self._count

    def write(self, deadline: Deadline) -> bool:
        """Whether there was time for it."""
        model, used = self.model, self._used
        used += [model.new_bool_var("") for _ in self._capacities]
        if not self._have_each_read_once(deadline):
            return False
        for number in range(len(self._capacities)):
            self._fill(number)
        for number in range(self._known, len(self._capacities)):
            if self._first[number]:
                model.add_implication(used[number], used[number - 1])
        model.add(sum(used) >= max(fewest_bins(self._instance), min(self._instance.problem.min_consumers, self._count)))
        model.add(sum(used) <= self._most)
        model.minimize(self._cost())
        return True

    def _have_each_read_once(self, deadline: Deadline) -> bool:
        """By a consumer that may have it; whether there was time for it."""
        sizes = self._instance.sizes
        required = {item: number for number, bin_ in enumerate(self._instance.bins) for item in bin_.required}
        for item in range(self._count):
            may_have_it = list[cp_model.IntVar]()
            for number in range(len(self._capacities)):
                if self._first[number] > item or required.get(item, number) != number:
                    continue
                too_fast_for_all = sizes[item] > 1 and self._kinds[number].is_largest
                if sizes[item] > self._capacities[number] and not too_fast_for_all and required.get(item) != number:
                    continue
                self._x[item, number] = self.model.new_bool_var("")
                may_have_it.append(self._x[item, number])
            self.model.add_exactly_one(may_have_it)
            if item % 64 == 0 and deadline.passed:
                return False
        return True

    def _fill(self, number: int) -> None:
        """What that consumer may have, all together."""
        model, used, sizes, capacity = self.model, self._used[number], self._instance.sizes, self._capacities[number]
        may_have = {item: self._x[item, number] for item in range(self._count) if (item, number) in self._x}
        limit = int(capacity * _SIZE_SCALE)
        # A partition that is faster than the consumer fills it.
        weights = {item: min(limit, int(sizes[item] * _SIZE_SCALE)) for item in may_have}
        load = sum(weights[item] * has for item, has in may_have.items())
        model.add(load <= limit * used)
        for item, has in may_have.items():
            model.add_implication(has, used)
            if sizes[item] > capacity:
                for other, has_other in may_have.items():
                    if other != item:
                        model.add_implication(has, ~has_other)
        model.add(sum(may_have.values()) >= used)
        packing = int(self._packings[number] * _SIZE_SCALE)
        if packing < limit:
            receives, alone = model.new_bool_var(""), model.new_bool_var("")
            for item, has in may_have.items():
                if self._instance.home[item] != number:
                    model.add_implication(has, receives)
            model.add(sum(may_have.values()) <= 1).only_enforce_if(alone)
            model.add(load <= packing).only_enforce_if(receives, ~alone)

    def _cost(self) -> cp_model.LinearExprT:
        """Of all consumers, and of what moves: of all that has a home, less what stays there."""
        instance = self._instance
        homes = [(item, int(instance.home[item])) for item in range(self._count) if instance.home[item] >= 0]
        stays = [(item, home) for item, home in homes if (item, home) in self._x]
        return (
            sum(int(kind.price * _COST_SCALE) * used for kind, used in zip(self._kinds, self._used, strict=True))
            + int(instance.constant * _COST_SCALE)
            - sum(
                int(instance.weight * float(instance.sizes[item]) * _COST_SCALE) * self._x[item, home]
                for item, home in stays
            )
        )

    def hint(self, plan: Assignment) -> None:
        """Starts the search from a plan, its new consumers in the order of their largest partition."""
        instance = self._instance
        slots = {kind: self._known + place * self._most for place, kind in enumerate(instance.offered)}
        """The first of the new consumers of each kind that is not in the plan yet."""
        loads: dict[ConsumerId, list[float]] = {}
        for item, partition in enumerate(instance.partitions):
            loads.setdefault(plan[partition], []).append(float(instance.sizes[item]))
        numbers = {bin_.consumer: number for number, bin_ in enumerate(instance.bins)}
        consumers = []
        for item, partition in enumerate(instance.partitions):
            consumer = plan[partition]
            if consumer not in numbers:
                kind = instance.kind_for(math.fsum(loads[consumer]), len(loads[consumer]))
                numbers[consumer] = slots[kind]
                slots[kind] += 1
            number = numbers[consumer]
            consumers.append(number)
            if (item, number) not in self._x:
                return
        for (item, number), variable in self._x.items():
            self.model.add_hint(variable, consumers[item] == number)
        for number, variable in enumerate(self._used):
            self.model.add_hint(variable, number in set(consumers))

    def placed(self, solver: cp_model.CpSolver) -> dict[int, ConsumerId]:
        """Who has each item in what the solver found."""
        bins = self._instance.bins
        consumers = self._instance.free_consumers(
            bin_.consumer for number, bin_ in enumerate(bins) if solver.value(self._used[number])
        )
        placed: dict[int, ConsumerId] = {}
        for number in range(len(self._capacities)):
            group = tuple(
                item for item in range(self._count) if (item, number) in self._x and solver.value(self._x[item, number])
            )
            if group:
                size = self._instance.load_of(group)
                consumer = bins[number].consumer if number < self._known else consumers.take(group, size)
                placed.update(dict.fromkeys(group, consumer))
        return placed
