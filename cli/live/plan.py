"""`kcga plan`: what the controller would do if it decided now. A dry run: nothing is sent, and nobody is asked.

The situation is put together from what the topics tell, with the controller's own types, and is decided by its own
rules: `pose`, the solver, `decide`. Somebody waits for the answer: what reading takes is taken from the solver's time,
up to half of it.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module

from cli.errors import KcgaError
from cli.live.recent import Recent, recent
from cli.settings import Settings
from controller.group import Group
from controller.plan import decide
from controller.question import Situation, pose
from controller.restraint import Restraints
from controller.settings import ControllerSettings
from controller.sizes import Sizes
from controller.status.decision_log import DecisionRecord
from controller.status.explanation import explain
from controller.triggers import interval_over, triggers
from domain.assignment import Assignment
from domain.messages import ConsumerState, Decision


def plan_now(settings: Settings) -> Decision:
    """The decision that the controller would make, numbered as its next one.

    Raises:
        KcgaError: the cluster does not answer, or there are no fresh write speeds.
    """
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        # Loading the solver takes as long as reading the topics.
        solver = pool.submit(import_module, "solver.construct")
        told = recent(settings, whole_window=True)
        solver.result()
    controller = settings.controller
    if not told.speeds or told.at - told.speeds[-1].measured_at > controller.speeds_timeout_s:
        raise KcgaError(
            f"there are no fresh write speeds on {settings.topics.write_speed}: the controller decides nothing without "
            "them; does kcga monitor run?"
        )
    return _decide(controller, told, began)


def in_words(decision: Decision) -> Iterator[str]:
    """A line each."""
    yield "If the controller decided now (nothing was sent, nothing is changed by asking):"
    yield from explain(decision)


def _decide(settings: ControllerSettings, told: Recent, began: float) -> Decision:
    from solver import solve

    restraints = Restraints(settings, paused=told.paused)
    sizes = Sizes(settings.recovery_time_s, settings.consumer_capacity)
    for report in told.speeds:
        sizes.measured(report.measured_at, report.speeds)
        restraints.highest.record(report.measured_at, sizes.present)
    for decision in told.decisions:
        if decision.carried_out:
            record = DecisionRecord.of(decision)
            shrank = record.consumers < record.found
            restraints.carried_out(decision.decided_at, decision.plan.rscore, fewer_consumers=shrank)
    question = pose(_situation(settings, told, sizes, restraints), settings)
    limit_s = question.problem.time_limit_s
    left_s = max(limit_s / 2, limit_s - (time.monotonic() - began))
    newest = max(((decision.epoch, decision.number) for decision in told.decisions), default=(told.epoch or 0, 0))
    return decide(
        number=newest[1] + 1,
        epoch=newest[0],
        at=told.at,
        question=question,
        solution=solve(replace(question.problem, time_limit_s=left_s), settings.engine),
        restraints=restraints,
    )


def _situation(settings: ControllerSettings, told: Recent, sizes: Sizes, restraints: Restraints) -> Situation:
    group = Group()
    for report in told.reports:
        if report.consumer not in group:
            group.add(report.consumer, report.sent_at)
        group.receive(report, report.sent_at)
        if report.state is ConsumerState.LEAVING:
            group.remove(report.consumer)
    newest = told.speeds[-1].speeds
    named = newest.unknown | newest.bytes_per_s.keys()
    for partition in sizes.present.keys() - named:
        sizes.forget(partition)
    plans = [decision for decision in told.decisions if decision.carried_out]
    wanted = {entry.key: entry.consumer for entry in plans[-1].assignment} if plans else {}
    desired = Assignment({partition: consumer for partition, consumer in wanted.items() if partition in named})
    current = group.assignment
    why = triggers(group, desired, sizes.present, settings.consumer_capacity)
    return Situation(
        triggers=why or (interval_over(settings.interval_s),),
        sizes=dict(sizes.present),
        highest=restraints.highest.over(sizes.present),
        measured_at=told.speeds[-1].measured_at,
        current=current,
        gone={p: c for p, c in desired.items() if c not in group and p not in current},
        named=named,
        missing=named - sizes.fresh,
        paused=told.paused,
    )
