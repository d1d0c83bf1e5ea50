"""The page: the regret of every policy on every load, and what is paid beside `exact@lambda`."""

import argparse
from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean

from bench.figures import interval, markdown_table, percent, run_facts
from bench.quiet import LoadBefore
from bench.regret.policies import (
    DECIDED,
    DECIDED_AHEAD,
    HORIZONS,
    LINES,
    SHARES,
    WARM_UP,
    WEIGHTS,
    Outcome,
    Span,
    ahead,
    exact,
    looks,
)
from heuristics import HEURISTICS

_WITH_SHARE = "exact@lambda'/share"


def page_of(outcomes: Sequence[Outcome], options: argparse.Namespace, seconds: float, before: LoadBefore) -> str:
    loads = {load: [o for o in outcomes if o.load == load] for load in dict.fromkeys(o.load for o in outcomes)}
    span = Span(options.windows, options.changes)
    gap = max((1 - each.bound / each.relaxed for o in outcomes for each in o.least.values()), default=None)
    proven = all(o.proven for o in outcomes)
    facts = [
        (
            "Loads",
            f"{options.partitions} partitions, {options.seeds} seeds, {span.steps} steps each after {WARM_UP} that are "
            "not counted",
        ),
        (
            "Bound",
            f"over {span.changes + 1} steps at a time"
            + ("; none asked for" if gap is None else f"; at most {100 * gap:.1f} % below the relaxation's optimum"),
        ),
        (
            "Exact answers",
            f"{'each' if proven else 'NOT each'} the optimum, and proven so: no figure depends on how fast the machine "
            "is, or on what else it does; which of several optima is found may depend on the processor",
        ),
        ("Took", f"{seconds / 60:.0f} minutes"),
    ]
    sections = [
        "# The regret of deciding each step alone",
        "A step costs its consumers, and lambda times what moves at it (the Rscore). *Regret* is what a policy pays "
        "above what anyone pays who knows the whole load beforehand, in percent of that: the mean over the seeds, and "
        "the 95 % interval of the mean by Student's t. What is taken for that is a lower bound, so the true regret is "
        "less: the bound lets who knows the load begin as they like, and of whole consumers knows only how many each "
        "step takes at least.",
        "`exact@x` decides each step with lambda x, to its optimum, whatever lambda is paid. `lambda'` is the x, and "
        "`share` the share of a consumer up to which it is given partitions, that cost least on the *other* seeds of "
        "the load: a policy that knows what kind of load it has, and no more. `known`, `line`, `day` and `week` decide "
        "with a lambda' and leave room for what all partitions together are to grow by in the next steps, both chosen "
        "in the same way: `known` knows it, and so shows what the best forecast would gain; `line` goes by the line "
        f"through the newest {' or '.join(map(str, LINES))} steps, `day` by what came at this time of the day before, "
        "`week` of the week before, and `forecast` by whichever of these three was best on the other seeds.",
        run_facts("bench.regret", before, facts),
    ]
    for load, of_load in loads.items():
        sections += [f"## {load[0].upper()}{load[1:]}", *_of_load(of_load)]
    return "\n\n".join(sections) + "\n"


def _of_load(outcomes: Sequence[Outcome]) -> list[str]:
    plain = [exact(weight) for weight in DECIDED]
    filled = [exact(*each) for each in product(DECIDED, SHARES)]
    looking = looking_ahead(outcomes[0].load)
    headings = ["lambda", *(f"{weight:g}" for weight in WEIGHTS)]

    def regrets(pick: Mapping[float, Sequence[str]]) -> list[str]:
        return [
            _interval([o.regret(name, weight) for o, name in zip(outcomes, pick[weight], strict=True)])
            for weight in WEIGHTS
        ]

    def beside(pick: Mapping[float, Sequence[str]]) -> list[str]:
        return [
            _interval(
                [o.cost(name, w) / o.cost(exact(w), w) - 1 for o, name in zip(outcomes, pick[w], strict=True)], "+"
            )
            for w in WEIGHTS
        ]

    def always(name: str) -> dict[float, list[str]]:
        return {weight: [name] * len(outcomes) for weight in WEIGHTS}

    picks = {
        "exact@lambda": {weight: [exact(weight)] * len(outcomes) for weight in WEIGHTS},
        "exact@lambda'": {weight: chosen(outcomes, weight, plain) for weight in WEIGHTS},
        _WITH_SHARE: {weight: chosen(outcomes, weight, filled) for weight in WEIGHTS},
        **{
            f"exact@lambda'/{how}": {w: chosen(outcomes, w, [*plain, *names]) for w in WEIGHTS}
            for how, names in looking.items()
        },
    }
    others = {name: picks[name] for name in list(picks)[1:]} | {name: always(name) for name in filled}
    sections = [
        "What is paid above `exact@lambda`, in percent of that, on the same seeds:",
        markdown_table(headings, ([name, *beside(pick)] for name, pick in others.items())),
        "Chosen with a share: "
        + "; ".join(f"for lambda {weight:g} {_names(picks[_WITH_SHARE][weight])}" for weight in WEIGHTS)
        + ".",
    ]
    if not all(o.least for o in outcomes):
        return sections
    bounds = [f"{fmean(o.least[weight].bound / o.steps for o in outcomes):.2f}" for weight in WEIGHTS]
    plans = {
        weight: [each.regret(each.plan.cost(weight)) for o in outcomes if (each := o.least[weight]).plan]
        for weight in WEIGHTS
    }
    rows = [
        ["bound, consumers a step", *bounds],
        *([["a plan that knows the load", *map(_interval, plans.values())]] if all(plans.values()) else []),
        *([name, *regrets(pick)] for name, pick in picks.items()),
        *([name, *regrets(always(name))] for name in HEURISTICS),
    ]
    return ["Regret, in percent of the bound:", markdown_table(headings, rows), *sections]


def looking_ahead(load: str) -> dict[str, list[str]]:
    """The policies that look ahead, by how they do."""
    by_kind: dict[str, list[str]] = {}
    for look in looks(load):
        kind, _, _ = look.partition(" ")
        by_kind.setdefault(kind, []).extend(ahead(*each) for each in product(DECIDED_AHEAD, [look], HORIZONS))
    return {**by_kind, "forecast": [name for kind, names in by_kind.items() if kind != "known" for name in names]}


def _names(policies: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(name.removeprefix("exact@") for name in policies))


def _interval(shares: Sequence[float], sign: str = "") -> str:
    """The mean of shares, in percent, and half the width of its interval."""
    mean, half = interval(shares)
    return f"{100 * mean:{sign}.1f} ± {percent(half, 1)}"


def chosen(outcomes: Sequence[Outcome], weight: float, names: Sequence[str]) -> list[str]:
    """For each outcome the policy that costs least on all the others: none is chosen by what it is then judged by."""
    return [
        min(names, key=lambda name: fmean(o.cost(name, weight) for o in outcomes if o is not held)) for held in outcomes
    ]
