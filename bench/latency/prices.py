"""What a group pays that is told only prices: `python -m bench.latency.prices`.

Lambda follows from what a consumer costs for as long as a plan stands. Beside each other are a plan that stands until
the assignment is considered anew, and one that stands for the scale-down window; and plans that fill consumers further.
Loads and groups are those of `bench.latency`. Writes a page into a folder.
"""

import math
from collections.abc import Sequence
from itertools import product
from statistics import fmean

from bench.figures import change, markdown_table, run_facts, write_page
from bench.latency.contenders import WARM_UP_S, Contender, Job, Outcome, perform
from bench.latency.options import loads_options
from bench.latency.page import proven
from bench.latency.shapes import PARTITIONS, STEP_S
from bench.latency.times import load
from bench.performed import performed
from bench.quiet import await_quiet
from controller.settings import AUTHORS_HEADROOM, ControllerSettings

UNSET = ControllerSettings()
INTERVAL_S, WINDOW_S = UNSET.interval_s, UNSET.scale_down_window_s
PAID = (0.5, 1.0, 2.0, 4.0)
"""Each lambda for a plan that stands until the assignment is considered anew."""
LEAST = 0.02
"""A lambda beside the others: hardly anything is paid for what moves."""
SHARES = (0.85, 0.95)
"""Up to these, too, plans fill consumers."""


def decided(paid: float) -> float:
    """Lambda of the same prices, for a plan that stands for the scale-down window."""
    return paid * INTERVAL_S / WINDOW_S


def handover_s(outcomes: Sequence[Outcome]) -> float:
    """How long a partition that moves has no reader, in the mean.

    Raises:
        SystemExit: none has moved.
    """
    migrations = sum(o.migrations for o in outcomes)
    if not migrations:
        raise SystemExit(
            "no partition moved, so nobody knows what that costs: it takes other --shapes, or more --minutes"
        )
    return math.fsum(o.unread_s for o in outcomes) / migrations


def cost(outcome: Outcome, paid: float, handed_over_s: float) -> float:
    """What is paid, in consumer-hours, by prices from which that lambda follows for an interval."""
    per_fill_s = paid * INTERVAL_S / 3600 / handed_over_s
    return outcome.consumer_hours + per_fill_s * outcome.unread_fill_s


def contender(weight: float, share: float | None = None) -> Contender:
    """Decides with that lambda."""
    return Contender(f"{weight:g}" if share is None else f"{weight:g}/{share:g}", "kcga", weight, "auto", share=share)


CONTENDERS = (
    *map(contender, sorted({LEAST, *PAID, *map(decided, PAID)})),
    *(contender(decided(paid), share) for paid, share in product(PAID, SHARES)),
)


def page_of(outcomes: Sequence[Outcome], facts: str) -> str:
    shapes = list(dict.fromkeys(outcome.shape for outcome in outcomes))
    handed_over_s = handover_s(outcomes)

    def of(shape: str, name: str) -> list[Outcome]:
        return [o for o in outcomes if o.shape == shape and o.contender == name]

    def beside(after: Sequence[Outcome], before: Sequence[Outcome], paid: float) -> str:
        costs = ([cost(o, paid, handed_over_s) for o in each] for each in (after, before))
        return change([now / was - 1 for now, was in zip(*costs, strict=True)])

    lambdas, fills = [], []
    for shape, paid in product(shapes, PAID):
        before, after = (of(shape, contender(weight).name) for weight in (paid, decided(paid)))
        lambdas.append(
            (
                *(shape, f"{paid:g}", f"{decided(paid):g}"),
                beside(after, before, paid),
                beside(of(shape, contender(LEAST).name), before, paid),
                *_beside(after, before),
            )
        )
        for share in SHARES:
            further = of(shape, contender(decided(paid), share).name)
            fills.append(
                (shape, f"{decided(paid):g}", f"{share:g}", beside(further, after, paid), *_beside(further, after))
            )
    compared = ("consumer-hours", "migrations", "p99.9 [s]")
    sections = [
        "# What a group pays that is told only prices",
        "Lambda is what it costs to move a consumer's fill, over what a consumer costs while the plan stands. *For an "
        f"interval* it stands until the assignment is considered anew ({INTERVAL_S:g} s), *for the window* for as long "
        f"as a consumer that is saved stays saved at least ({WINDOW_S:g} s, `scale_down_window_s`), which is what kcga "
        "goes by. *Paid* is what all consumers and all partitions without a reader cost by the same prices: the mean "
        "over the seeds, and the 95 % interval of the mean by Student's t. A partition that moves has no reader for "
        f"{handed_over_s:.2f} s in the mean.",
        facts,
        "## For how long a plan stands",
        "With the lambda for the window, in place of the one for an interval; and what is paid with a lambda of "
        f"{LEAST:g}, which moves nearly whatever saves a consumer.",
        markdown_table(
            ("load", "for an interval", "for the window", "paid", f"paid with {LEAST:g}", *compared), lambdas
        ),
        "## How far plans fill consumers",
        f"Up to a share of their capacity (`packing_capacity`) in place of {AUTHORS_HEADROOM:g}, with the same lambda. "
        "Prices know nothing of how long records wait at a consumer above its capacity: p99.9 tells.",
        markdown_table(("load", "lambda", "share", "paid", *compared), fills),
    ]
    return "\n\n".join(sections) + "\n"


def _beside(after: Sequence[Outcome], before: Sequence[Outcome]) -> tuple[str, str, str]:
    return (
        change([new.consumer_hours / old.consumer_hours - 1 for new, old in zip(after, before, strict=True)]),
        f"{fmean(o.migrations for o in before):.0f} to {fmean(o.migrations for o in after):.0f}",
        f"{fmean(o.p999_s for o in before):.1f} to {fmean(o.p999_s for o in after):.1f}",
    )


def main() -> None:
    options = loads_options("bench.latency.prices", __doc__)
    before = await_quiet(options.busy)
    steps, times = round(options.minutes * 60 / STEP_S), load()
    seeds = range(options.seed, options.seed + options.seeds)
    jobs = [Job(*each, times) for each in product(CONTENDERS, options.shapes, [steps], seeds)]
    outcomes = performed(
        perform, jobs, options.processes, lambda each: f"{each.shape}, lambda {each.contender}, seed {each.seed}"
    )
    facts = [
        ("Seeds", f"{seeds[0]} to {seeds[-1]}"),
        (
            "Loads",
            f"{PARTITIONS} partitions, {options.minutes:g} minutes of which the first {WARM_UP_S / 60:g} do not count",
        ),
        ("Measured times", f"{times.words}; {times.source}"),
        ("Exact answers", proven(outcomes)),
    ]
    write_page(options.folder / "prices.md", page_of(outcomes, run_facts("bench.latency.prices", before, facts)))


if __name__ == "__main__":
    main()
