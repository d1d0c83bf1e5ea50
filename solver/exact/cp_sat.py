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
from solver.incumbent import Incumbent

NAME = "cp-sat"
_SIZE_SCALE = 10**11
"""Units to a capacity. Sizes are rounded down, and so little that the load of a hundred partitions is within tolerance:
what the model proves holds for the true problem, and what it finds fits."""
_COST_SCALE = 10**9
_WORKERS = 8


def solve(instance: Instance, incumbent: Incumbent, deadline: Deadline) -> None:
    """Looks for the optimum from the incumbent's best plan on, and raises its bound."""
    problem = instance.problem
    sizes = instance.sizes
    count = len(sizes)
    best = incumbent.best
    cheapest = float(instance.prices.min())
    most = count if best is None else min(count, int(best.figures.objective / cheapest + 1e-6))
    if problem.max_consumers is not None:
        most = min(most, problem.max_consumers)
    fewest = max(fewest_bins(instance), min(problem.min_consumers, count))
    new = [instance.kinds[kind] for kind in instance.offered for _ in range(most)]
    kinds = [instance.kinds[bin_.kind] for bin_ in instance.bins] + new
    capacities = [bin_.capacity for bin_ in instance.bins] + [kind.capacity for kind in new]
    packings = [bin_.packing_capacity for bin_ in instance.bins] + [kind.packing_capacity for kind in new]
    known = len(instance.bins)
    # The number of the largest item that each may have.
    first = [0] * known + list(range(most)) * len(instance.offered)
    if deadline.passed or len(capacities) * count > 2_000_000:
        return

    model = cp_model.CpModel()
    used = [model.new_bool_var("") for _ in capacities]
    at_home = instance.home
    required = {item: number for number, bin_ in enumerate(instance.bins) for item in bin_.required}
    x: dict[tuple[int, int], cp_model.IntVar] = {}
    for item in range(count):
        for number in range(len(capacities)):
            if first[number] > item or required.get(item, number) != number:
                continue
            too_fast_for_all = sizes[item] > 1 and kinds[number].is_largest
            if sizes[item] > capacities[number] and not too_fast_for_all and required.get(item) != number:
                continue
            x[item, number] = model.new_bool_var("")
        model.add_exactly_one(x[item, number] for number in range(len(capacities)) if (item, number) in x)
        if item % 64 == 0 and deadline.passed:
            return
    for number, capacity in enumerate(capacities):
        items = [item for item in range(count) if (item, number) in x]
        limit = int(capacity * _SIZE_SCALE)
        # A partition that is faster than the consumer fills it.
        weights = {item: min(limit, int(sizes[item] * _SIZE_SCALE)) for item in items}
        load = sum(weights[item] * x[item, number] for item in items)
        model.add(load <= limit * used[number])
        for item in items:
            model.add_implication(x[item, number], used[number])
            if sizes[item] > capacity:
                for other in items:
                    if other != item:
                        model.add_implication(x[item, number], ~x[other, number])
        model.add(sum(x[item, number] for item in items) >= used[number])
        packing = int(packings[number] * _SIZE_SCALE)
        if packing < limit:
            receives, alone = model.new_bool_var(""), model.new_bool_var("")
            for item in items:
                if at_home[item] != number:
                    model.add_implication(x[item, number], receives)
            model.add(sum(x[item, number] for item in items) <= 1).only_enforce_if(alone)
            model.add(load <= packing).only_enforce_if(receives, ~alone)
    for number in range(known, len(capacities)):
        if first[number]:
            model.add_implication(used[number], used[number - 1])
    model.add(sum(used) >= fewest)
    model.add(sum(used) <= most)
    cost = {
        item: int(instance.weight * float(sizes[item]) * _COST_SCALE) for item in range(count) if at_home[item] >= 0
    }
    homes = [(item, int(at_home[item])) for item in cost if (item, int(at_home[item])) in x]
    model.minimize(
        sum(int(kind.price * _COST_SCALE) * each for kind, each in zip(kinds, used, strict=True))
        + int(instance.constant * _COST_SCALE)
        - sum(cost[item] * x[item, home] for item, home in homes)
    )
    if best is not None:
        slots = {kind: known + place * most for place, kind in enumerate(instance.offered)}
        _hint(model, instance, best.assignment, x, used, slots)
    if deadline.passed:
        return

    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.01, deadline.remaining)
    solver.parameters.random_seed = problem.seed % 2**31
    solver.parameters.num_workers = _WORKERS
    solver.parameters.interleave_search = True  # the same search whatever the threads' timing
    solver.parameters.relative_gap_limit = 0.0
    status = solver.solve(model)
    # Costs are rounded down: a bound of the model, in whole units, is one of the true problem.
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        incumbent.raise_bound(solver.best_objective_bound / _COST_SCALE)
        consumers = instance.free_consumers(
            bin_.consumer for number, bin_ in enumerate(instance.bins) if solver.value(used[number])
        )
        placed: dict[int, int] = {}
        for number in range(len(capacities)):
            group = tuple(item for item in range(count) if (item, number) in x and solver.value(x[item, number]))
            if group:
                size = instance.load_of(group)
                consumer = instance.bins[number].consumer if number < known else consumers.take(group, size)
                placed.update(dict.fromkeys(group, consumer))
        incumbent.offer(instance.complete(placed), NAME)
        if status == cp_model.OPTIMAL:
            incumbent.raise_bound(solver.best_objective_bound / _COST_SCALE)
    elif status == cp_model.UNKNOWN and solver.best_objective_bound > 0:
        incumbent.raise_bound(min(solver.best_objective_bound / _COST_SCALE, incumbent.objective))


def _hint(
    model: cp_model.CpModel,
    instance: Instance,
    plan: Assignment,
    x: dict[tuple[int, int], cp_model.IntVar],
    used: list[cp_model.IntVar],
    slots: dict[int, int],
) -> None:
    """Starts the search from `plan`, its new consumers in the order of their largest partition.

    `slots` is the first of the new consumers of each kind.
    """
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
        if (item, number) not in x:
            return
    for (item, number), variable in x.items():
        model.add_hint(variable, consumers[item] == number)
    for number, variable in enumerate(used):
        model.add_hint(variable, number in set(consumers))
