"""Keeps the components of `kcga up` running: what ends without being asked to is begun anew, and that is told."""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import psutil
import structlog

from app import figures
from app.child import Child
from sandbox.decide.back_off import MOST_FAILURES, BackOff

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Component:
    child: Child
    began: float
    begin_again: Callable[[], Child] | None
    """None where the supervisor began it, and ends it."""
    back_off: BackOff = field(default_factory=BackOff)
    begins_at: float | None = None
    """Set while it is waited for."""
    restarts: int = 0
    asked: bool = False
    """To end."""


class Supervisor:
    """Watches components from entering the context to leaving it; then those that it began are ended, the newest first.

    Args:
        tell: is told each end that nobody asked for, and what comes of it.
        clock: seconds, from any beginning.
    """

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._components: dict[str, _Component] = {}

    def begin(self, child: Child) -> None:
        """Starts a component, and watches it."""
        child.start()
        self._components[child.name] = _Component(child, self._clock(), None)

    def watch(self, child: Child, begin_again: Callable[[], Child]) -> None:
        """Watches a component that somebody else began, and ends."""
        self._components[child.name] = _Component(child, self._clock(), begin_again)

    def look_after(self) -> None:
        """Begins anew what has ended, when it is time. Called often.

        Raises:
            KcgaError: a component keeps ending, with the end of its log; or it cannot be started.
        """
        for component in self._components.values():
            if component.asked:
                continue
            if component.begins_at is None and not component.child.running:
                self._decide(component)
            if component.begins_at is not None and component.begins_at <= self._clock():
                self._begin_again(component)

    def processes(self, name: str) -> dict[str, psutil.Process]:
        """The process of a component under its name; none where it does not run."""
        child = self._components[name].child
        with suppress(psutil.NoSuchProcess):
            return {name: psutil.Process(child.pid)} if child.running else {}
        return {}

    def runs_s(self, name: str) -> float:
        """How long ago the newest process of a component began."""
        return self._clock() - self._components[name].began

    @property
    def restarts(self) -> dict[str, int]:
        """How many times each component was begun anew; those that never were are left out."""
        return {name: component.restarts for name, component in self._components.items() if component.restarts}

    def end(self, name: str) -> Child:
        """Asks a component to end, and does not begin it anew."""
        component = self._components[name]
        component.asked = True
        component.child.terminate()
        return component.child

    def _decide(self, component: _Component) -> None:
        child, ran_s = component.child, self._clock() - component.began
        wait_s = component.back_off.wait_s(ran_s)
        if wait_s is None:
            raise child.error(
                f"{child.name} {child.ending}, by itself, as {MOST_FAILURES} times in a row soon after it began"
            )
        component.restarts += 1
        component.begins_at = self._clock() + wait_s
        when = f" in {wait_s:g} s" if wait_s else ""
        what = f"{child.name} {child.ending} after {figures.clock(ran_s)}, and begins anew{when}: "
        what += figures.plural(component.restarts, "restart")
        log.warning(what)
        self._tell(what)

    def _begin_again(self, component: _Component) -> None:
        if component.begin_again is None:
            component.child.stop()  # whatever it left
            component.child = component.child.again()
            component.child.start()
        else:
            component.child = component.begin_again()
        component.began, component.begins_at = self._clock(), None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as ends:
            for component in self._components.values():
                if component.begin_again is None:
                    ends.callback(component.child.stop)
