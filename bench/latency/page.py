"""The page: what was compared and how, the figures, and an account of where kcga is better and where it is not."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from bench.figures import change, interval, markdown_table, run_facts
from bench.latency.autoscalers import HPA_STABILISATION_S, HPA_SYNC_S, HPA_TOLERANCE, FlinkSettings
from bench.latency.contenders import (
    CAPACITY,
    FLINK_RESTART_S,
    FLINK_TUNED,
    TICK_S,
    UNEVENNESS,
    WARM_UP_S,
    Outcome,
)
from bench.latency.kafka_group import HEARTBEAT_S
from bench.latency.kcga_group import ANSWERS_AFTER_S, MESSAGE_S, MONITOR, RECORD_BYTES, UNCOMMITTED_S
from bench.latency.shapes import PARTITIONS, STEP_S
from bench.latency.times import Times
from bench.quiet import LoadBefore

REFERENCE = "kcga exact@0.5"
"""kcga as it is unless something is set."""
WINDOW = f"{REFERENCE} window"
"""Without `follow_changes`: speeds are means over the whole window, as the paper's."""
AHEAD = f"{REFERENCE} ahead"
"""With `forecast`."""
EACH = "a consumer for each"
"""Partition, from the beginning: no assignment makes records wait for less."""
TIMES_LOWER = 10
_HEADINGS = (
    "contender",
    "consumer-hours",
    "mean consumers",
    "p50 [s]",
    "p99 [s]",
    "p99.9 [s]",
    "partition-seconds unread",
    "migrations",
    "highest lag [1,000 records]",
    "forecasts that held",
)


def proven(outcomes: Sequence[Outcome]) -> str:
    unproven = sum(outcome.unproven for outcome in outcomes)
    if unproven:
        return (
            f"{unproven:,} were cut short by the time limit, which users have, too: what comes of them depends on how "
            "fast the machine is"
        )
    return "each proven: no figure depends on how fast the machine is, or on what else it does"


def page_of(
    outcomes: Sequence[Outcome], seeds: Sequence[int], minutes: float, times: Times, before: LoadBefore, plot: str
) -> str:
    shapes = list(dict.fromkeys(outcome.shape for outcome in outcomes))
    first = shown(outcomes, seeds[0])
    facts = [
        ("Seed", f"{seeds[0]}; of what settings gain {seeds[0]} to {seeds[-1]}"),
        ("Loads", f"{PARTITIONS} partitions, {minutes:g} minutes of which the first {WARM_UP_S / 60:g} do not count"),
        ("Measured times", f"{times.words}; {times.source}"),
        ("Exact answers", proven(outcomes)),
    ]
    sections = [
        "# From produce to read: kcga beside what users have today",
        "How long records wait until somebody reads them, and how many consumers that takes. A simulation: its queues "
        "are exact, the windows of kcga's monitor, its controller and its solver are the real ones, and what handovers "
        "take was measured.",
        run_facts("bench.latency", before, facts),
        f"![Consumer-hours against p99]({plot})",
        "## In short",
        "\n".join(f"- {sentence}" for sentence in _in_short(first, shapes)),
        "## What settings gain",
        f"Over {len(seeds)} seeds: the mean, and the 95 % interval of the mean by Student's t, each beside "
        f"`{WINDOW}` on the same load, which has neither `monitor.follow_changes` nor `controller.forecast`: its "
        "speeds are means over the whole window, as the paper's. With a consumer for each partition, and nothing that "
        "ever moves, records wait for nothing but their own partition: no plan does better.",
        settings_table(outcomes, shapes),
        "## Where kcga loses",
        "\n".join(f"- {sentence}" for sentence in _losses(first, shapes)),
        "## Figures",
    ]
    for shape in shapes:
        sections += [f"### {shape}", table([outcome for outcome in first if outcome.shape == shape])]
    sections += ["## The model", _model()]
    return "\n\n".join(sections) + "\n"


def shown(outcomes: Sequence[Outcome], seed: int) -> list[Outcome]:
    """Those that are in the tables of the loads, and in the plot."""
    return [outcome for outcome in outcomes if outcome.seed == seed and outcome.contender != EACH]


def settings_table(outcomes: Sequence[Outcome], shapes: Sequence[str]) -> str:
    """What the settings make of each load, over all seeds."""
    rows = []
    for shape in shapes:
        plain, floor = _all_of(outcomes, shape, WINDOW), _all_of(outcomes, shape, EACH)
        for setting, name in (("follow_changes", REFERENCE), ("and forecast", AHEAD)):
            given = _all_of(outcomes, shape, name)
            due, held = sum(o.forecasts for o in given), sum(o.forecasts_held for o in given)
            rows.append(
                (
                    shape,
                    setting,
                    change([o.consumer_hours / p.consumer_hours - 1 for o, p in zip(given, plain, strict=True)]),
                    f"{fmean(o.p99_s for o in plain):.1f} to {fmean(o.p99_s for o in given):.1f}",
                    f"{fmean(o.p999_s for o in plain):.1f} to {fmean(o.p999_s for o in given):.1f}",
                    _seconds([o.p999_s - p.p999_s for o, p in zip(given, plain, strict=True)]),
                    f"{fmean(o.p999_s for o in floor):.1f}",
                    f"{fmean(o.migrations for o in plain):.0f} to {fmean(o.migrations for o in given):.0f}",
                    f"{held / due:.0%} of {due:,}" if due else "",
                )
            )
    headings = (
        "load", "setting", "consumer-hours", "p99 [s]", "p99.9 [s]", "change of p99.9 [s]",
        f"with {EACH} [s]", "migrations", "forecasts that held",
    )  # fmt: skip
    return markdown_table(headings, rows)


def _seconds(values: Sequence[float]) -> str:
    mean, half = interval(values)
    return f"{mean:+.1f} ± {half:.1f}"


def table(outcomes: Sequence[Outcome]) -> str:
    return markdown_table(
        _HEADINGS,
        (
            (
                o.contender,
                f"{o.consumer_hours:.1f}",
                f"{o.mean_consumers:.1f}",
                f"{o.p50_s:.1f}",
                f"{o.p99_s:.1f}",
                f"{o.p999_s:.1f}",
                f"{o.unread_s:,.0f}",
                f"{o.migrations:,}",
                f"{o.highest_lag / 1000:,.0f}",
                f"{o.forecasts_held / o.forecasts:.0%}" if o.forecasts else "",
            )
            for o in outcomes
        ),
    )


def _in_short(outcomes: Sequence[Outcome], shapes: Sequence[str]) -> Iterator[str]:
    """The claims, each worked out from the figures."""
    for shape in shapes:
        ours = reference(outcomes, shape)
        as_many = [o for o in outcomes if o.shape == shape and o.kind == "fixed" and "+" not in o.contender]
        best = min(as_many, key=lambda o: o.p99_s)
        verdict = "at least" if best.p99_s >= TIMES_LOWER * ours.p99_s else "not"
        yield (
            f"{shape}: p99 {ours.p99_s:.1f} s, against {best.p99_s:.1f} s of Kafka's group with as many consumers "
            f"({best.contender}): {verdict} {TIMES_LOWER} times lower."
        )
    for name in dict.fromkeys(o.contender for o in outcomes if o.kind == "lag"):
        pairs = [(reference(outcomes, shape), _of(outcomes, shape, name)) for shape in shapes]
        better = sum(_is_better(ours, other) for ours, other in pairs)
        hours = [other.consumer_hours / ours.consumer_hours for ours, other in pairs]
        yield (
            f"Against the lag-based autoscaler with a threshold of {name.removeprefix('lag ')} a consumer: fewer "
            f"consumer-hours and a lower p99 on {better} of {len(shapes)} loads; it takes {min(hours):.2f} to "
            f"{max(hours):.2f} times the consumer-hours."
        )


def _losses(outcomes: Sequence[Outcome], shapes: Sequence[str]) -> Iterator[str]:
    """Whatever has fewer consumer-hours, or a lower p99 or p99.9, than kcga as it is unless something is set."""
    found = False
    for shape in shapes:
        ours = reference(outcomes, shape)
        for other in (o for o in outcomes if o.shape == shape and o.kind != "kcga"):
            advantages = []
            if other.consumer_hours < ours.consumer_hours:
                advantages.append(f"{1 - other.consumer_hours / ours.consumer_hours:.0%} fewer consumer-hours")
            for name, theirs, mine in (("p99", other.p99_s, ours.p99_s), ("p99.9", other.p999_s, ours.p999_s)):
                if theirs < mine - TICK_S:
                    advantages.append(f"{name} {theirs:.1f} s against {mine:.1f} s")
            if advantages:
                found = True
                price = (
                    f"{other.consumer_hours / ours.consumer_hours - 1:.0%} more consumer-hours"
                    if other.consumer_hours > ours.consumer_hours
                    else f"p99 {other.p99_s:.1f} s against {ours.p99_s:.1f} s"
                )
                yield f"{shape}, {other.contender}: {', '.join(advantages)}, for {price}: {_why(other, ours)}."
    if not found:
        yield "Nowhere in these figures."


def _why(other: Outcome, ours: Outcome) -> str:
    """Why another one is better in something."""
    if other.consumer_hours <= ours.consumer_hours:
        return "it lets records wait before it adds a consumer"
    if other.kind == "lag":
        return "its threshold is so low that it has a consumer for nearly every partition, needed or not"
    return "its consumers have room for whatever comes, and nothing moves"


def _is_better(ours: Outcome, other: Outcome) -> bool:
    return ours.consumer_hours < other.consumer_hours and ours.p99_s < other.p99_s


def reference(outcomes: Sequence[Outcome], shape: str) -> Outcome:
    """Of kcga as it is unless something is set."""
    return _of(outcomes, shape, REFERENCE)


def _of(outcomes: Sequence[Outcome], shape: str, name: str) -> Outcome:
    return _all_of(outcomes, shape, name)[0]


def _all_of(outcomes: Sequence[Outcome], shape: str, name: str) -> list[Outcome]:
    """In the order of the seeds."""
    return [o for o in outcomes if o.shape == shape and o.contender == name]


def _model() -> str:
    flink = FlinkSettings()
    return "\n".join(
        f"- {sentence}"
        for sentence in (
            f"A record is read when its consumer, which reads {CAPACITY / 1e6:g} MB/s, comes to it. A consumer shares "
            "its capacity fairly among its partitions. The gathering of a batch and its way into the lake are not in "
            "these figures: they are the same for everyone, and come on top.",
            f"Speeds change every {STEP_S:g} s. Time goes in ticks of {TICK_S:g} s; what is written in one varies by "
            f"{UNEVENNESS:.0%} (standard deviation of a gamma distribution), as producers send batches, and within it "
            "the curves of what is written and read are straight. The quantiles over all bytes follow from the curves. "
            "What is not read at the end counts with its age then.",
            f"Records of {RECORD_BYTES:,} bytes. A partition without a reader counts as unread, whether or not "
            "anything is written to it.",
            f"kcga: the real controller with its default settings (`exact@0.5` is what it does unless something is "
            f"set; `window` is without `follow_changes`, `ahead` with `forecast`), except that the solver answers "
            f"after {ANSWERS_AFTER_S:g} s, whatever it takes here. The monitor's speeds are means over "
            f"{MONITOR.window_s:g} s, or since the newest rise or fall (not with `window`), so kcga learns of a change "
            f"late; a message takes {MESSAGE_S:g} s. The time of "
            "each stop, start and creation is drawn from those measured. Consumers count from creation to end. mbfp "
            "and mwf are told 0.75 of the capacity, as by the paper's authors; where their plan breaks a rule of the "
            "controller, the plan by rule is taken.",
            "Kafka's group (`kafka-range`, `kafka-sticky`): the classic protocol and assignors, checked against "
            "Kafka 4.3.1. A fixed group never moves anything. Range divides each topic by itself: of topics with ten "
            "partitions, no more than ten consumers get any. As many consumers: kcga's mean, rounded up; +60 %: as "
            "many as it takes, after the paper's successor.",
            f"The lag-based autoscaler (`lag`): KEDA's Kafka scaler and the Horizontal Pod Autoscaler, by their "
            f"published rules: a sync each {HPA_SYNC_S:g} s with a fresh lag, tolerance {HPA_TOLERANCE:g}, growth to "
            f"the double or by 4, {HPA_STABILISATION_S:g} s of stabilisation before shrinking, as many consumers as "
            "partitions at most; in front of a cooperative-sticky group. 10 records is the default threshold; the "
            "others are so many seconds of a consumer's reading. The lag is that of the commits, which are "
            f"{UNCOMMITTED_S:g} s behind the reading.",
            f"A member learns of a rebalance with its next heartbeat ({HEARTBEAT_S:g} s, evenly), and takes part after "
            "a time drawn from the measured stops: the same writer, with the same batch in hand.",
            f"Flink (`flink`): its autoscaler's published rule and defaults: target utilisation {flink.utilisation:g} "
            f"within {flink.boundary:g}, a window of {flink.window_s:g} s, {flink.stabilisation_s:g} s of "
            f"stabilisation, catch-up in {flink.catch_up_s:g} s, a restart expected to take {flink.restart_s:g} s, a "
            f"parallelism that divides the partitions. `tuned`: {FLINK_TUNED.window_s:g}, "
            f"{FLINK_TUNED.stabilisation_s:g}, {FLINK_TUNED.catch_up_s:g} and {FLINK_TUNED.restart_s:g} s. That a "
            f"restart does take {FLINK_RESTART_S:g} s is assumed, not measured. Readers do not help each other: one "
            "that has too many partitions falls behind while the mean utilisation is fine.",
        )
    )
