"""What the engines are tuned by, in one place, each with where its value comes from.

None of it changes what is true of a plan or a bound: only how soon they are found. Pages that are named are those of
`docs/benchmarks`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    """Shares of time are of what is left when the work begins. "By trial" is a value that was found so; what half and
    double of each are worth is in `parameters.md`."""

    winding_up: float = 0.04
    """Of the time limit: engines stop so long before it, for what then holds the interpreter delays the answer.

    In `scaling.md` that is up to 0.34 s of 20."""
    whole_s: float = 1.5
    """Seconds that it takes to prove a plan for 1,000 partitions at once. With less, a problem is divided.

    In `engines.md` that is 1.2 s in the median, and 3.2 s at most."""
    whole_classes: float = 20.0
    """So many times as long it takes with consumers of several classes: by trial."""
    whole_power: float = 1.7
    """The power of the number of partitions by which that grows.

    In `engines.md` it is 1.5 from 200 to 1,000 partitions, by the longest times."""
    fine_partitions: int = 2000
    """Up to so many partitions patterns of the whole are searched in `fine_units`: by trial."""
    fine_units: int = 16_384
    units: int = 4_096
    """To a capacity, in the search for patterns: the finer, the fewer rounding hides, and the longer it takes."""
    kept_sets: int = 2_000
    """So many kept sets are listed whatever the number of partitions: by trial."""
    kept_sets_each: int = 6
    """So many kept sets are listed for each partition: two partitions a consumer have two."""
    nearly_all: float = 0.02
    """Of the consumers: where the kept sets of no more than this are not all listed, the others decide: by trial."""
    small_part: int = 500
    """Partitions of a part that is to have a plan early: half the size takes a third of the time (`whole_power`)."""
    large_part: int = 1000
    """Partitions of a part that comes second and loses less: 0.01 % of 1,000 partitions (`engines.md`)."""
    large_part_s: float = 1.0
    """Seconds for a large part, at least: what proves half of them whole (`engines.md`)."""
    first_pass: float = 0.7
    """Share of the time for small parts: by trial."""
    passes: int = 100
    """Over all large parts; more than there is ever time for."""
    part_tolerance: float = 3e-4
    """Parts are proven no further: dividing 10,000 partitions costs ten times as much, 0.4 % (`engines.md`)."""
    part_nodes: int = 12
    """Nodes of the search of a part."""
    neighbourhood: int = 8
    """Consumers that CP-SAT improves together: by trial."""
    neighbourhood_s: float = 0.5
    """Seconds for each neighbourhood: by trial."""
    cp_sat_partitions: int = 200
    """The most that CP-SAT is given: of 200 it proves nothing within a second (`engines.md`)."""
    width: float = 0.05
    """In consumers: columns with a reduced cost up to this are what an integral solution is made of."""
    integers: float = 0.6
    """Share of the time for SCIP to look for an integral solution: it looks at the clock now and then only."""
    relaxing: float = 0.7
    """Share of the time for the first relaxation, coarse or not, and for a dive: the rest is for a plan."""
    dive_close: float = 3e-4
    """How far relaxations are from their optimum, as a share of it, where a plan is wanted soon: that of parts."""
    dive_share: float = 0.025
    """Of the undecided kept sets: so many are fixed at a time in a dive."""
    most_patterns: int = 20_000
    """Partial patterns that are looked at to exhaust a gap: where there are more, the search branches: by trial."""
    missed_patterns: int = 200_000
    """Partial patterns that are looked at for those that rounding hides: by trial."""
    few_patterns: int = 20
    """Where the levels bring fewer new patterns, others are looked for item by item."""
    most_units: int = 1600
    """To the largest capacity, in a coarse relaxation, which has a row for each: by trial."""
    coarse_close: float = 1e-4
    """Share of its value that a coarse relaxation may be above its bound and be done: by trial."""
    coarse_slow: float = 2e-5
    """Share of its value that an iteration of a coarse relaxation gains, with its bound, else it is slow: by trial."""
    coarse_patience: int = 3
    """Slow iterations in a row after which a coarse relaxation is done: by trial."""
    roundings: int = 40
    """Of a coarse relaxation, as plans: by trial."""
    rule_plans: int = 6
    """Numbers of consumers that plans by rule are made for, of those that promise most: by trial."""
    clearing_tries: int = 20
    """Consumers that are tried to be cleared for an item: by trial."""
    clearing_failures: int = 30
    """Items for which no consumer could be cleared: after so many there is no room to be made.

    Without clearing, plans by rule for 1,000 partitions of `zipf-10` cost 0.9 % more."""


TUNED = Parameters()
