"""What holds a voluntary plan back, however good it is.

A pause, a quiet period, missing data, the scale-down window, the migration budget. Forced plans are never held back.
Why the rules are as they are: `docs/decisions/0005-restraint.md`.
"""

import math
from collections import deque
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from controller.decide.highest_sizes import HighestSizes
from controller.decide.periods import over_at
from controller.settings import ControllerSettings
from domain.messages import Decision, HeldBack, Restraint
from domain.partitions import TopicPartition


class MigrationBudget:
    """How much may be migrated within a while: a limit on the Rscore of all plans carried out within any window.

    Args:
        limit: in consumers; infinite for no limit.
        window_s: what was spent longer ago does not count any more.
    """

    def __init__(self, limit: float, window_s: float) -> None:
        self.limit = limit
        self._window_s = window_s
        self._spent: deque[tuple[float, float]] = deque()

    def spend(self, at: float, rscore: float) -> None:
        """A plan was carried out. Those that had to be count too, and may leave less than nothing."""
        if rscore > 0 and math.isfinite(self.limit):
            self._forget(at)
            self._spent.append((at, rscore))

    def left(self, at: float) -> float:
        """What a plan may cost now, in consumers; 0 or more."""
        self._forget(at)
        return max(0.0, self.limit - math.fsum(rscore for _, rscore in self._spent))

    def _forget(self, at: float) -> None:
        while self._spent and self._spent[0][0] <= at - self._window_s:
            self._spent.popleft()


@dataclass(slots=True)
class Restraints:
    """What they need to remember; `at` is in seconds since the epoch and never goes back."""

    settings: ControllerSettings
    paused: bool = False
    highest: HighestSizes = field(init=False)
    _budget: MigrationBudget = field(init=False)
    _shrunk_at: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        settings = self.settings
        self.highest = HighestSizes(settings.scale_down_window_s, settings.speeds_timeout_s)
        self._budget = MigrationBudget(settings.budget, settings.migration_window_s)

    def carried_out(self, at: float, decision: Decision) -> None:
        """Its plan is being carried out, on whatever grounds."""
        self._budget.spend(at, decision.plan.rscore)
        if decision.shrinks:
            self._shrunk_at = at

    def was_decided(self, at: float, decision: Decision) -> None:
        """A controller before this one decided it, and what it carried out has been paid for."""
        if decision.carried_out:
            self._budget.spend(at, decision.plan.rscore)

    def on_voluntary(
        self, at: float, rscore: float, missing: Set[TopicPartition], falling: float
    ) -> tuple[HeldBack, ...]:
        """Everything that holds back a plan whose consumers cost less where nothing forces one.

        Args:
            at: now.
            rscore: what the plan costs, in consumers.
            missing: the partitions of interest that were not measured when speeds came last.
            falling: the share of the load that is gone by the time a plan is carried out.
        """
        return (
            *self._pause(),
            *self._quiet_period(at),
            *self.on_missing_data(missing),
            *self._window(at, falling),
            *self._over_budget(at, rscore),
        )

    def on_rest(self, at: float) -> tuple[HeldBack, ...]:
        """Everything that holds back that nobody reads where there is nothing to read."""
        return (*self._pause(), *self._quiet_period(at))

    def on_replacement(self, at: float, rscore: float) -> tuple[HeldBack, ...]:
        """Everything that holds back that a consumer is replaced which reads as it should; the same arguments."""
        return (*self._pause(), *self._quiet_period(at), *self._over_budget(at, rscore))

    def on_missing_data(self, missing: Set[TopicPartition]) -> tuple[HeldBack, ...]:
        """What holds back any plan whose consumers cost less, also one that an operator asked for."""
        if not missing:
            return ()
        first = min(missing)
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        what = "the speed or the lag" if self.settings.recovery_time_s > 0 else "the speed"
        return (
            HeldBack(
                by=Restraint.MISSING_DATA,
                why=f"{what} of {first}{more} is not known just now: no consumer is given up on missing data",
            ),
        )

    def _pause(self) -> Iterator[HeldBack]:
        if self.paused:
            yield HeldBack(by=Restraint.PAUSED, why="the controller is paused: kcga resume ends it")

    def _quiet_period(self, at: float) -> Iterator[HeldBack]:
        end = over_at(self.settings.quiet_periods, at)
        if end is not None:
            yield HeldBack(by=Restraint.QUIET, why=f"a quiet period holds for {end - at:,.0f} s more")

    def _window(self, at: float, falling: float) -> Iterator[HeldBack]:
        window_s = self.settings.scale_down_window_s
        since = self.highest.known_since
        if since is None or at - since < window_s:
            known = 0.0 if since is None else at - since
            why = f"speeds are known for {known:,.0f} s without a gap, and the scale-down window is {window_s:g} s"
            yield HeldBack(by=Restraint.WINDOW, why=why)
        if self._shrunk_at is not None and at - self._shrunk_at < window_s:
            ago = at - self._shrunk_at
            fewer = "cheaper" if self.settings.classes else "fewer"
            why = (
                f"the last plan with {fewer} consumers is {ago:,.0f} s old, and the scale-down window is {window_s:g} s"
            )
            yield HeldBack(by=Restraint.WINDOW, why=why)
        if falling > 0:
            why = (
                f"the load is falling, by {falling:.0%} more until a plan is carried out, which would be too large then"
            )
            yield HeldBack(by=Restraint.WINDOW, why=why)

    def _over_budget(self, at: float, rscore: float) -> Iterator[HeldBack]:
        left = self._budget.left(at)
        if rscore > left:
            whole = self._budget.limit
            why = f"the plan costs an Rscore of {rscore:.2f}; {left:.2f} is left of the migration budget of {whole:.2f}"
            if rscore > whole:
                why += ", which is too small for it at any time"
            yield HeldBack(by=Restraint.BUDGET, why=why)
