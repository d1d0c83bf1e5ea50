"""The engine that proves: branch and price on the arc-flow model (see `master`).

The relaxation is nearly integral once the number of consumers is: the search branches on that first, and then on
whether a partition stays at home. Nodes are taken by their bound, the lowest first; ties by age.
"""

import heapq
import math
from dataclasses import dataclass, field, replace

import numpy as np

from domain.assignment import Assignment
from solver.deadline import Deadline
from solver.bounds import fewest_bins
from solver.evaluation import evaluate
from solver.instance import Instance, Packing
from solver.kept import kept_sets
from solver.knapsack import Grid
from solver.master import Master, Relaxed, Restriction
from solver.outcome import Outcome

MOST_KEPT_SETS = 60_000
WIDTH = 0.05
MIPS = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024}
_FRACTIONAL = 1e-6


@dataclass(frozen=True, slots=True, order=True)
class _Node:
    bound: float
    age: int
    restriction: Restriction = field(default_factory=Restriction, compare=False)


class Search:
    """The best assignment so far, and what is still open."""

    def __init__(self, instance: Instance, deadline: Deadline, incumbent: Assignment, tolerance: float) -> None:
        self.instance = instance
        self.deadline = deadline
        self.best = incumbent
        self.objective = evaluate(instance.problem, incumbent).objective
        self.improved = False
        self.tolerance = tolerance
        self.nodes = 0
        self.log: list[str] = []

    @property
    def cutoff(self) -> float:
        """A node whose bound is not below this one holds nothing worth finding."""
        return self.objective * (1 - self.tolerance)

    def offer(self, packing: Packing | None) -> None:
        if packing is None:
            return
        assignment = self.instance.assignment(packing)
        figures = evaluate(self.instance.problem, assignment)
        if figures.is_feasible and figures.objective < self.objective:
            self.best, self.objective, self.improved = assignment, figures.objective, True


def solve(
    instance: Instance,
    deadline: Deadline,
    incumbent: Assignment,
    tolerance: float,
    units: int = 16384,
) -> Outcome:
    """Branch and price from `incumbent` on, until the gap is within `tolerance` or time is up.

    Raises:
        TooManyError: the consumers have too many partitions for this model.
    """
    import time
    t0=time.perf_counter()
    search = Search(instance, deadline, incumbent, tolerance)
    problem = instance.problem
    kept = kept_sets(instance, MOST_KEPT_SETS)
    master = Master(instance, kept, Grid.of(instance.sizes, units))
    master.add_best_sets(instance.sizes)
    search.log.append(f'build {time.perf_counter()-t0:.2f} K {len(kept)} levels {len(master.levels)}')
    most = 10**9 if problem.max_consumers is None else problem.max_consumers
    open_nodes = [_Node(-math.inf, 0, Restriction(fewest=max(min(problem.min_consumers, len(problem.speeds)), fewest_bins(instance)), most=most))]
    age = 0
    lost = math.inf  # the lowest bound of a part that is left unfinished though nothing is left to branch on
    bound = -math.inf
    while open_nodes and not deadline.passed:
        node = open_nodes[0]
        bound = min(node.bound, lost)
        if node.bound >= search.cutoff:
            break
        master.restrict(node.restriction)
        relaxed = master.solve(deadline, search.cutoff)
        if relaxed is None or not (relaxed.complete or relaxed.bound > search.cutoff):
            if relaxed is not None and search.nodes == 0:
                bound = max(bound, relaxed.bound)
            break
        heapq.heappop(open_nodes)
        search.nodes += 1
        node_bound = max(node.bound, relaxed.bound)
        search.log.append(f'n{search.nodes} {time.perf_counter()-t0:.2f} obj {relaxed.objective:.5f} b {node_bound:.5f} bins {relaxed.bins:.3f} paths {len(master.paths)} miss {relaxed.missing:.2f}')
        if node_bound >= search.cutoff:
            continue
        if relaxed.is_integral:
            search.offer(master.rounded(relaxed))
            if node_bound >= search.cutoff: continue
        children = _children(master, relaxed, node.restriction)
        if (search.nodes in MIPS) and (search.nodes > 1 or len(children)==0 or children[0].most==node.restriction.most):
            search.offer(master.best_packing(relaxed, WIDTH, deadline))
            search.log.append(f'  mip {time.perf_counter()-t0:.2f} {search.objective:.5f}')
        if node_bound >= search.cutoff:
            continue
        if not children:
            lost = min(lost, node_bound)
            search.log.append('lost')
        for child in children:
            age += 1
            heapq.heappush(open_nodes, _Node(node_bound, age, child))
    if open_nodes: bound = max(bound, min(open_nodes[0].bound, lost))
    else: bound = min(lost, search.objective)
    bound=min(bound,search.objective) if not math.isinf(bound) else bound
    return Outcome(search.best if search.improved else None, bound, search.log)


def _children(master: Master, relaxed: Relaxed, of: Restriction) -> list[Restriction]:
    """Two parts that together hold every solution of `of`, and none of which holds `relaxed`; none if it is integral."""
    whole = round(relaxed.bins)
    if abs(relaxed.bins - whole) > _FRACTIONAL:
        return [
            replace(of, most=math.floor(relaxed.bins)),
            replace(of, fewest=math.ceil(relaxed.bins)),
        ]
    shares = master.home_shares(relaxed)
    optional = np.array(sorted(master.optional), dtype=np.int64)
    if not len(optional):
        return []
    distance = np.abs(shares[optional] - 0.5)
    # The item that is nearest to a half; ties by size, the largest first.
    item = int(optional[int(np.argmin(np.round(distance, 6)))])
    if min(shares[item], 1 - shares[item]) <= _FRACTIONAL:
        return []
    return [replace(of, staying=of.staying | {item}), replace(of, leaving=of.leaving | {item})]
