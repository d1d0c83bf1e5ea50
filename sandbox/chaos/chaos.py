"""Breaks one component of a run after the other: killed (SIGKILL), or frozen for a while."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import product

import psutil

from sandbox.chaos.freezer import Freezer
from sandbox.chaos.schedule import Fault, faults

FROZEN_AT_MOST = 2 / 3
"""Of the time to the next fault: so they come one after the other."""


class Harm(StrEnum):
    KILL = "is killed"
    FREEZE = "is frozen"


Blow = tuple[str, Harm]
"""Whom it befalls (a component's name), and how."""
Target = Callable[[], Mapping[str, psutil.Process]]
"""Of a component, the processes of which one is broken, by what each is called; none where none runs."""


class Chaos:
    """What is broken in one run.

    Args:
        targets: the components by their names.
        seed: of the order and of how long a freeze lasts.
        every_s: from one fault to the next; nothing is broken where there is none.
        tell: is told each fault.
    """

    def __init__(
        self,
        targets: Mapping[str, Target],
        seed: int,
        every_s: float | None,
        tell: Callable[[str], None],
    ) -> None:
        self._targets = targets
        self._tell = tell
        self._freezer = Freezer()
        self._coming: Iterator[Fault[Blow]] = iter(())
        if every_s is not None:
            blows = list(product(sorted(targets), Harm))
            longest_s = {blow: FROZEN_AT_MOST * every_s for blow in blows if blow[1] is Harm.FREEZE}
            self._coming = faults(seed, blows, longest_s, (every_s, every_s))
        self._next = next(self._coming, None)
        self.done = 0
        """How many faults there were."""

    def look_after(self, elapsed_s: float) -> None:
        """Does what is due so long after the load began, and ends what is over. Called often."""
        self._freezer.look_after()
        if self._next is not None and self._next.at_s <= elapsed_s:
            self._do(self._next)
            self._next = next(self._coming, None)

    def end(self) -> None:
        """Everything that is frozen goes on."""
        self._freezer.end_all()

    def _do(self, fault: Fault[Blow]) -> None:
        component, harm = fault.kind
        processes = list(self._targets[component]().items())
        if not processes:
            self._tell(f"chaos: {component} is away already")
            return
        name, process = processes[int(fault.choice * len(processes))]
        self.done += 1
        if harm is Harm.KILL:
            self._tell(f"chaos: {name} {harm}")
            with suppress(psutil.NoSuchProcess):
                process.kill()
        else:
            self._tell(f"chaos: {name} {harm} for {fault.lasts_s:.1f} s")
            self._freezer.freeze(process, fault.lasts_s)
