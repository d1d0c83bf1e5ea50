"""`kcga plan`: what the controller would do if it decided now. A dry run: nothing is sent, and nobody is asked.

The situation is put together from what the topics tell, with the controller's own types, and is decided by its own
rules: `pose`, the solver, `decide`. Somebody waits for the answer: what passes before the solver begins is taken from
its time.
"""

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module

from app.errors import KcgaError
from app.settings import Settings
from cli.live.recent import Recent, recent
from controller.decide.group import Group
from controller.decide.interest import Interest
from controller.decide.plan import decide
from controller.decide.question import Situation, pose
from controller.decide.restraint import Restraints
from controller.decide.sizes import Sizes
from controller.decide.triggers import interval_over, triggers
from controller.settings import ControllerSettings
from domain.assignment import Assignment
from domain.group_view.explanation import explain
from domain.messages import ConsumerState, Decision, WriteSpeedReport
from domain.speeds import WriteSpeeds

LEAST_SHARE = 0.25
"""Of its time limit that the solver has, however long it took to begin."""


def plan_now(settings: Settings, asked_at: float | None = None) -> Decision:
    """The decision that the controller would make, numbered as its next one.

    Args:
        settings: of the group.
        asked_at: since when somebody waits for it, by `time.monotonic`; None for now.

    Raises:
        KcgaError: the cluster does not answer, or there are no fresh write speeds.
    """
    asked_at = time.monotonic() if asked_at is None else asked_at
    controller = settings.controller
    measured = _Measured(controller)
    with ThreadPoolExecutor(1) as pool:
        # Loading the solver takes as long as reading the topics.
        solver = pool.submit(import_module, "solver.search.construct")
        told = recent(settings, measured.take, window_s=controller.scale_down_window_s)
        solver.result()
    if told.at - measured.newest_at > controller.speeds_timeout_s:
        raise KcgaError(
            f"there are no fresh write speeds on {settings.topics.write_speed}: the controller decides nothing without "
            "them; does kcga monitor run?"
        )
    return _decide(controller, measured, told, asked_at)


def in_words(decision: Decision) -> Iterator[str]:
    """A line each."""
    yield "If the controller decided now (nothing was sent, nothing is changed by asking):"
    yield from explain(decision)


class _Measured:
    """What the measurements of the window come to."""

    def __init__(self, settings: ControllerSettings) -> None:
        self.sizes = Sizes(settings.recovery_time_s, settings.consumer_capacity)
        self.restraints = Restraints(settings)
        self.interest = Interest()
        self.newest = WriteSpeeds(measured_at=-math.inf, bytes_per_s={})
        self.newest_at = -math.inf
        """When they came."""

    def take(self, at: float, report: WriteSpeedReport) -> None:
        self.newest, self.newest_at = report.speeds, max(self.newest_at, at)
        self.interest.hear(self.newest)
        self.sizes.measured(self.newest_at, self.newest)
        self.restraints.highest.record(self.newest_at, self.sizes.present)


def _decide(settings: ControllerSettings, measured: _Measured, told: Recent, asked_at: float) -> Decision:
    from solver import solve

    restraints = measured.restraints
    restraints.paused = told.paused
    for at, decision in told.decisions:
        if decision.carried_out:
            restraints.carried_out(at, decision)
    question = pose(_situation(settings, measured, told), settings)
    limit_s = question.problem.time_limit_s
    left_s = max(LEAST_SHARE * limit_s, limit_s - (time.monotonic() - asked_at))
    newest = max(((decision.epoch, decision.number) for _, decision in told.decisions), default=(told.epoch or 0, 0))
    return decide(
        number=newest[1] + 1,
        epoch=newest[0],
        at=told.at,
        question=question,
        solution=solve(replace(question.problem, time_limit_s=left_s), settings.engine),
        restraints=restraints,
    )


def _situation(settings: ControllerSettings, measured: _Measured, told: Recent) -> Situation:
    group = Group()
    for at, report in told.reports:
        if report.consumer not in group:
            group.add(report.consumer, at)
        group.receive(report, at)
        if report.state is ConsumerState.LEAVING:
            group.remove(report.consumer)
    sizes, interest = measured.sizes, measured.interest
    plans = [decision for _, decision in told.decisions if decision.carried_out]
    wanted = {entry.key: entry.consumer for entry in plans[-1].assignment} if plans else {}
    interest.add_read(group.assignment.keys())
    named = interest.named
    for partition in interest.gone & sizes.present.keys():
        sizes.forget(partition)
    desired, current = (
        Assignment({partition: consumer for partition, consumer in each.items() if partition in named})
        for each in (wanted, group.assignment)
    )
    unread = named & sizes.present.keys() - current.keys()
    lost = {consumer for consumer in desired.consumers if consumer not in group}
    why = triggers(current, sizes.present, settings.consumer_capacity, unread, lost=lost)
    return Situation(
        triggers=why or (interval_over(settings.interval_s),),
        sizes=dict(sizes.present),
        highest=measured.restraints.highest.over(sizes.present),
        measured_at=measured.newest.measured_at,
        current=current,
        gone={p: c for p, c in desired.items() if c not in group and p not in current},
        named=named,
        missing=named - sizes.fresh,
        paused=told.paused,
        limit=told.creation_limit,
    )
