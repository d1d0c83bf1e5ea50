"""`kcga plan`: what the controller would do if it decided now. A dry run: nothing is sent, and nobody is asked.

What the topics tell (`cli.live.decide.onlooker`) is decided by the controller's rules (`controller.decide.decider`).
Somebody waits for the answer: what passes before the solver begins is taken from its time.
"""

import heapq
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import attrgetter

import solver
from app.errors import KcgaError
from app.settings import Settings
from cli.live.decide.onlooker import Onlooker
from cli.live.recent import recent
from controller.decide.forecast import MEMORY_S, STEP_S
from controller.decide.highest_sizes import BUCKETS
from domain.group_view.explanation import explain
from domain.messages import Decision
from solver.problem import Problem
from solver.solution import Solution

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

    def in_time(problem: Problem, engine: str) -> Solution:
        limit_s = problem.time_limit_s
        left_s = max(LEAST_SHARE * limit_s, limit_s - (time.monotonic() - asked_at))
        return solver.solve(replace(problem, time_limit_s=left_s), engine)

    window_s = settings.controller.scale_down_window_s * (1 + 1 / BUCKETS)
    if settings.controller.min_consumers == 0:
        window_s = max(window_s, settings.controller.idle_time_s)
    if settings.controller.forecast:
        window_s = max(window_s, MEMORY_S + STEP_S)
    with ThreadPoolExecutor(1) as pool:
        # Loading the solver takes as long as reading the topics.
        loaded = pool.submit(solver.load)
        with recent(settings, window_s=window_s) as (told, speeds):
            onlooker = Onlooker(settings.of_controller, told.epoch or 0, told.began_at)
            came = (told.decisions, told.statements, told.reports, speeds)
            for at, message in heapq.merge(*came, key=attrgetter("at")):
                onlooker.take(at, message)
        loaded.result()
    decision = onlooker.decide(told.at, in_time)
    if decision is None:
        raise KcgaError(
            f"there are no fresh write speeds on {settings.topics.write_speed}: the controller decides nothing without "
            "them; does kcga monitor run?"
        )
    return decision


def in_words(decision: Decision) -> Iterator[str]:
    """A line each."""
    yield "If the controller decided now (nothing was sent, nothing is changed by asking):"
    yield from explain(decision)
