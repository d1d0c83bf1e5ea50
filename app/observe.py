"""A controller that only observes (`mode = "observe"`): what kcga would do with a group, told and never done.

It has no fleet, no producer and none of kcga's topics: nothing by which a consumer could be created, deleted or told
anything.
"""

import threading
from collections.abc import Callable
from contextlib import ExitStack

import structlog
from prometheus_client import CollectorRegistry

from app.interrupts import stop_on_signals
from app.settings import Settings
from app.status.groups import GroupStanding, ShownGroup
from app.telemetry.exporter import Probes, served
from app.watch.advice import Advice
from app.watch.decide import words
from app.watch.decide.watcher import Moment
from app.watch.looks import look_at
from app.watch.page import make_page, page_served
from domain.group_view.picture import Role

log = structlog.get_logger(__name__)


def run_observer(settings: Settings) -> None:
    """Observes the group until the process is asked to end; serves what it sees where ports are set.

    Raises:
        UsageError: the clients refuse their settings.
        KcgaError: a port cannot be had, no broker answers, there is no such group, or a right is missing.
    """
    advice, http = _advice_of(settings), settings.http
    with stop_on_signals() as stop, ExitStack() as serving:
        if http.controller_port is not None:
            serving.enter_context(page_served(http, http.controller_port, advice))
        serving.enter_context(served(http, None, Probes(advice.alive, advice.ready)))
        look(settings, stop, advice.tell)


def look(settings: Settings, stop: threading.Event, *tell: Callable[[Moment], None]) -> None:
    """Looks at the group again and again, until `stop` is set, and tells of each moment; what is new is logged.

    Raises:
        UsageError: the clients refuse their settings.
        KcgaError: at first: no broker answers, there is no such group, or a right is missing.
    """
    import solver

    solver.load()
    advised: int | None = None
    known: frozenset[str] = frozenset()
    log.info("a group is observed: nothing is done with it", group=settings.kafka.group)
    for seen in look_at(settings, settings.monitor.topics, stop, solver.solve):
        moment = seen.moment
        for each in tell:
            each(moment)
        if moment.advised not in (None, advised):
            advised = moment.advised
            log.info("advice", consumers=moment.consumers, advised=advised, what=words.advice(moment))
        troubles = frozenset(moment.troubles)
        for trouble in sorted(troubles - known):
            log.warning("something keeps it from knowing more", reason=trouble)
        known = troubles


def shown_with_others(settings: Settings, stopping: Callable[[], bool]) -> tuple[Advice, ShownGroup]:
    """What is to be told of a group that is one of several in this process, and what shows it; `stopping`: whether open
    connections have to end."""
    advice, registry = _advice_of(settings), CollectorRegistry(auto_describe=False)
    registry.register(advice)

    def standing() -> GroupStanding:
        _, moment = advice.newest
        if moment is None:
            return GroupStanding(group=settings.kafka.group, role=Role.OBSERVER)
        return GroupStanding(
            group=moment.group,
            role=Role.OBSERVER,
            state=moment.state,
            consumers=moment.consumers,
            advised=moment.advised,
            partitions=sum(len(member.partitions) for member in moment.members) + len(moment.unread),
            unread=len(moment.unread),
            total_speed=moment.written,
            lag=moment.lag,
        )

    page = make_page(advice, registry, stopping)
    return advice, ShownGroup(page, registry, advice.alive, advice.ready, standing)


def _advice_of(settings: Settings) -> Advice:
    return Advice(settings.kafka.group, settings.controller.speeds_timeout_s)
