"""How fast a group reacts, on a real broker, with a real lake and local processes: `python -m bench.reaction`.

Two parts. In the first the monitor alone, with the paper's window, follows partitions whose load steps up and down. In
the second a whole group reads 200 partitions, and again and again one consumer's share of the load grows to more than
its capacity, so that partitions move between consumers that there are. Writes a page into a folder.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from bench.figures import markdown_table, run_facts, write_page
from bench.quiet import LoadBefore, add_busy, await_quiet
from bench.running_group import Bench
from bench.stepped_load import SteppedLoad
from bench.timings import convergence_s, creates, handover_s, is_for_an_overload, plan_s, reaction_s
from bench.transcript import Transcript
from domain.assignment import Assignment, ConsumerId
from domain.messages import Decision
from domain.partitions import TopicPartition
from sandbox.services import Services, start_services

WINDOW_S = 30
"""The paper's, of the first part."""
STEADY_S = 10.0
"""So long before a step its partition's speeds are those of before."""
LOW, HIGH = 20_000.0, 60_000.0
"""The speeds between which a partition of the first part steps, in bytes/s."""
SPREAD_S = 0.37
"""From one partition's step to the next one's, so that they come at any moment between two measurements."""

CAPACITY = 200_000.0
"""Of a consumer of the second part, in bytes/s."""
GROUP_WINDOW_S = 5
"""The monitor's window in the second part: short, so that one step is over when the next one comes."""
LOAD = 1.35
"""Of the second part, in consumers: with the usual headroom it takes two, which is what two cores can run."""
TOO_MUCH = 1.2
"""What the load of one of them grows to, in consumers."""
CALM_S = 8.0
"""Between what a step leads to and the next one."""
COMMANDS = ("explain", "plan", "status")
"""Of `kcga`, which people ask about the group."""
ASKED_WITHIN_S = 2.0


@dataclass
class Figures:
    """In seconds, one for each repetition."""

    reaction: list[float] = field(default_factory=list)
    convergence: list[float] = field(default_factory=list)
    decision: list[float] = field(default_factory=list)
    """From a step of the load to the decision."""
    plan: list[float] = field(default_factory=list)
    handover: list[float] = field(default_factory=list)
    creation: list[float] = field(default_factory=list)
    """Handovers to consumers that had to be created."""
    cycles: list[float] = field(default_factory=list)
    asked: dict[str, list[float]] = field(default_factory=dict)
    """For each of the commands."""

    @property
    def handover_bar(self) -> float:
        """One cycle, and a second."""
        return statistics.median(self.cycles or [0.0]) + 1.0


def main() -> None:
    options = parse_options()
    before = await_quiet(options.busy)
    figures = Figures()
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="kcga-reaction-") as folder, ExitStack() as stack:
        services = start_services(stack, Path(folder), console)
        with console.status(f"The monitor alone, {2 * options.steps} steps ..."):
            follow_steps(services, Path(folder), options.steps, figures)
        with console.status(f"A group of {options.partitions} partitions, {options.shifts} shifts of the load ..."):
            try:
                shift_load(services, Path(folder), options.partitions, options.shifts, figures)
            except TimeoutError as error:
                console.print(f"the second part ended early, its figures are of what was done: {error}")
    tell(figures, options, before)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.reaction", description=__doc__)
    parser.add_argument("--steps", type=int, default=8, help="partitions of the first part; each steps up and down")
    parser.add_argument("--partitions", type=int, default=200, help="of the second part")
    parser.add_argument("--shifts", type=int, default=8, help="of the load in the second part")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the page (%(default)s)")
    add_busy(parser)
    return parser.parse_args()


def follow_steps(services: Services, folder: Path, steps: int, figures: Figures) -> None:
    """The first part: each partition steps up, and when all have converged down again."""
    partitions = [TopicPartition("steps", number) for number in range(steps)]
    bench = Bench(services, folder, "steps", steps, CAPACITY, WINDOW_S)
    with (
        bench.monitored() as heard,
        SteppedLoad(services.bootstrap_servers, dict.fromkeys(partitions, LOW)) as load,
    ):
        time.sleep(WINDOW_S + STEADY_S)
        for speed in (HIGH, LOW):
            stepped_at = {}
            for partition in partitions:
                stepped_at[partition] = load.step({partition: speed})
                time.sleep(SPREAD_S)
            time.sleep(WINDOW_S + STEADY_S)
            for partition, at in stepped_at.items():
                before, after = heard.told(partition, at - STEADY_S, at), heard.told(partition, at, time.time())
                figures.reaction += measured(reaction_s(before, after, at))
                figures.convergence += measured(convergence_s(after, at))


def shift_load(services: Services, folder: Path, partitions: int, shifts: int, figures: Figures) -> None:
    """The second part."""
    shares = {TopicPartition("shifts", n): 0.5 + (n * 0.618) % 1 for n in range(partitions)}
    everywhere = scaled(shares, list(shares), LOAD * CAPACITY)
    bench = Bench(services, folder, "shifts", partitions, CAPACITY, GROUP_WINDOW_S)
    with (
        bench.monitored() as heard,
        SteppedLoad(services.bootstrap_servers, everywhere) as load,
        bench.controlled(heard),
    ):
        time.sleep(CALM_S)
        began = time.time()
        try:
            for number in range(shifts):
                readers = planned(heard.decisions)
                victim = sorted(readers.consumers)[number % len(readers.consumers)]
                stepped_at = load.step(shifted(shares, readers, victim))
                await_calm(heard, stepped_at)
                figures.decision.append(next(of_shift(heard, stepped_at)).decided_at - stepped_at)
                for name in COMMANDS:
                    figures.asked.setdefault(name, []).append(bench.asked(name))
        finally:
            for decision in of_shift(heard, began):
                figures.plan += measured(plan_s(decision))
                times = figures.creation if creates(decision) else figures.handover
                times += measured(handover(heard, decision))
            figures.cycles += [cycle.fetch_s + cycle.write_s for cycle in heard.cycles()]


def await_handovers(heard: Transcript, since: float) -> None:
    """Until there is a decision, and what it asks for is done."""
    heard.wait_until(lambda: any(of_shift(heard, since)), "a decision")
    heard.wait_until(
        lambda: all(handover(heard, decision) is not None for decision in of_shift(heard, since)), "the last start"
    )


def await_calm(heard: Transcript, since: float) -> None:
    """The same, until nothing more is decided: while a window fills with a step, it may lead to two decisions."""
    while True:
        await_handovers(heard, since)
        time.sleep(CALM_S)
        if heard.decisions[-1].decided_at < time.time() - CALM_S:
            return


def planned(decisions: Sequence[Decision]) -> Assignment:
    """What the last plan that was carried out wants."""
    last = next(decision for decision in reversed(decisions) if decision.carried_out)
    return Assignment({entry.key: entry.consumer for entry in last.assignment})


def scaled(
    shares: dict[TopicPartition, float], partitions: Sequence[TopicPartition], total: float
) -> dict[TopicPartition, float]:
    """Speeds of these partitions in proportion to their shares, which come to `total`."""
    whole = sum(shares[partition] for partition in partitions)
    return {partition: total * shares[partition] / whole for partition in partitions}


def shifted(
    shares: dict[TopicPartition, float], readers: Assignment, victim: ConsumerId, capacity: float = CAPACITY
) -> dict[TopicPartition, float]:
    """The same load as ever, but so that one consumer has too much of it."""
    others = [partition for partition, consumer in readers.items() if consumer != victim]
    return {
        **scaled(shares, readers.by_consumer[victim], TOO_MUCH * capacity),
        **scaled(shares, others, (LOAD - TOO_MUCH) * capacity),
    }


def of_shift(heard: Transcript, since: float) -> Iterator[Decision]:
    return (each for each in list(heard.decisions) if each.decided_at >= since and is_for_an_overload(each))


def handover(heard: Transcript, decision: Decision) -> float | None:
    return handover_s(decision, list(heard.commands), list(heard.reports))


def measured(figure: float | None) -> list[float]:
    return [] if figure is None else [figure]


def tell(figures: Figures, options: argparse.Namespace, before: LoadBefore) -> None:
    """Writes the page.

    Raises:
        SystemExit: a bar is missed.
    """
    rows = [
        ("load step to the monitor's reaction", figures.reaction, 1.0),
        ("load step to convergence", figures.convergence, 30.0),
        (f"trigger to plan, {options.partitions} partitions", figures.plan, 1.5),
        ("decision to the last acknowledged start", figures.handover, figures.handover_bar),
        ("the same, with a consumer to be created", figures.creation, None),
        ("load step to decision", figures.decision, None),
        ("a consumer's cycle", figures.cycles, None),
        *((f"`kcga {name}`", seconds, ASKED_WITHIN_S) for name, seconds in figures.asked.items()),
    ]
    headings = ["what, in seconds", "bar", "median", "shortest", "longest", "times"]
    table = markdown_table(
        headings,
        [
            (
                what,
                "" if bar is None else f"{bar:.2f}",
                *(f"{of(values):.2f}" for of in (statistics.median, min, max)),
                len(values),
            )
            for what, values, bar in rows
            if values
        ],
    )
    page = PAGE.format(facts=run_facts("bench.reaction", before), table=table)
    write_page(options.folder / "reaction.md", page)
    missed = [
        what for what, values, bar in rows if bar is not None and not (values and statistics.median(values) <= bar)
    ]
    if missed:
        sys.exit(f"the median is above its bar: {'; '.join(missed)}")


PAGE = """\
# How fast a group reacts

{facts}

{table}

The bars are for the medians.

- *Reaction*: until a report arrives whose speed is more than 1 % away from all that the partition had in the 10 s
  before. *Convergence*: until the speed stays within 5 % of the new one. Partitions step from 20 to 60 kB/s and back;
  the monitor measures every second over the paper's window of 30 s.
- *Trigger to plan*: from the report that shows a consumer above its capacity, by the monitor's clock, to the decision.
- *Decision to the last acknowledged start*: stopped by one consumer, released, started by another, for all partitions
  of the plan. The bar is one cycle of a consumer (fetch for 5 s, write to the lake) and a second; a command ends the
  fetch.
- *Load step to decision*: the load of one consumer of two grows to 1.2 of its capacity; the window, of 5 s here, has
  to fill.
- *`kcga explain`* and the others: the whole command, from its start to its end, in a session of its own as at a
  terminal, beside the group and its load.
"""


if __name__ == "__main__":
    main()
