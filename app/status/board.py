"""What is known of the group, for those who ask over HTTP: told by the controller's thread, asked by others.

The controller is never held up: what it says is folded in at once, and a picture is only made when somebody asks.
"""

import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from app.status.health import Health
from controller.decide.machine import State
from controller.kafka import Received
from controller.runner import Audience
from controller.settings import ControllerSettings
from domain.group_view.clocks import Clocks, Sender
from domain.group_view.decision_log import DecisionRecord, DecisionTotals
from domain.group_view.fold import SAMPLES, GroupFold
from domain.group_view.foresight import came, due_at
from domain.group_view.picture import ControllerPicture, GroupPicture, History, Role, course, picture
from domain.group_view.view import GroupView, Sample
from domain.messages import ControllerClaim, Decision, WriteSpeedReport
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from solver.exact.bounds import fewest_bins
from solver.exact.instance import Instance
from solver.problem import Problem

HISTORY_S = 3600.0
FULL_DECISIONS = 300
"""So many decisions can be opened: the newest. A decision names every partition."""
PICTURE_S = 0.5
"""A picture so old is still good enough for whoever asks next."""
LIVE_S = 10.0
"""A leader claims the group more often; when it has not heard a claim of its own for longer, it may lead no more."""
HUNG_S = 180.0
"""Longer than anything that the controller waits for."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything at one moment, for those who make figures of it."""

    view: GroupView
    picture: GroupPicture
    counts: DecisionTotals
    """Since the process began."""
    newest: Decision | None
    lags: Mapping[TopicPartition, Lag]
    speeds_age_s: float | None
    """How long ago write speeds came last."""
    ahead_s: Mapping[Sender, float]
    """How far the clocks of those who were heard lately are ahead of the one here."""


class Board(Audience):
    """The newest of everything.

    Args:
        group: its name.
        settings: of the controller.
        clock: seconds since the epoch.
    """

    def __init__(self, group: str, settings: ControllerSettings, clock: Callable[[], float] = time.time) -> None:
        self._group = group
        self._settings = settings
        self._clock = clock
        self._changed = threading.Lock()
        """Guards everything that follows."""
        self._fold = GroupFold(silent_after_s=settings.heartbeat_timeout_s)
        self._clocks = Clocks()
        self._role = Role.STARTING
        self._epoch: int | None = None
        self._state: State | None = None
        self._paused = False
        self._turned_at = self._claimed_at = clock()
        self._measured_at: float | None = None
        """By the monitor's clock: it is shown."""
        self._speeds_at: float | None = None
        """When speeds came last, by the clock here."""
        self._fewest: int | None = None
        self._fewest_over_time: deque[Sample] = deque(maxlen=SAMPLES)
        self._claim: ControllerClaim | None = None
        """The newest of this controller's own."""
        self._lags: Mapping[TopicPartition, Lag] = {}
        self._records: dict[tuple[int, int], bytes] = {}
        """The newest decisions as they were published, compressed."""
        self._awaited: list[Decision] = []
        """Of what they foresaw it is not known yet how it comes out."""
        self._came: dict[tuple[int, int], float] = {}
        """How it came out, in bytes/s."""
        self._newest: Decision | None = None
        self._counts = DecisionTotals()
        self._version = 0
        self._drawn: tuple[float, GroupView, GroupPicture] | None = None

    # What it is told

    def stands_by(self) -> None:
        """Another controller leads; this one waits."""
        with self._changed:
            self._role = Role.STANDBY
            self._turned_at = self._clock()
            self._version += 1

    def leads(self, epoch: int) -> None:
        with self._changed:
            self._role, self._epoch = Role.LEADER, epoch
            self._turned_at = self._claimed_at = self._clock()
            self._version += 1

    def heard(self, message: Received) -> None:
        with self._changed:
            if not isinstance(message, ControllerClaim):  # this controller's own
                self._clocks.heard(message, self._clock())
        self._take(message)

    def _take(self, message: Received, came_at: float | None = None) -> None:
        fewest = self._bound(message.speeds) if isinstance(message, WriteSpeedReport) else None
        with self._changed:
            at = self._clock() if came_at is None else came_at
            match message:
                case ControllerClaim() if message.epoch == self._epoch:
                    self._claimed_at, self._claim = at, message
                case WriteSpeedReport():
                    self._measured(message, fewest, at)
            self._fold.receive(message, at)
            self._version += 1

    def _measured(self, report: WriteSpeedReport, fewest: int | None, at: float) -> None:
        self._speeds_at, self._measured_at = at, report.measured_at
        self._fewest, self._lags = fewest, report.speeds.lags
        for decision in self._awaited:
            if (speed := came(decision, report)) is not None:
                self._came[decision.epoch, decision.number] = speed
        self._awaited = [each for each in self._awaited if report.measured_at < (due_at(each) or 0.0)]
        if fewest is not None:
            self._fewest_over_time.append(Sample(at, fewest))

    def decided(self, decision: Decision) -> None:
        with self._changed:
            self._remember(decision)
            self._awaited += [decision] if due_at(decision) is not None else []
            self._counts += DecisionTotals.of(decision)

    def turned(self, at: float, state: State, *, paused: bool) -> None:  # noqa: ARG002  # by the clock of those who ask
        with self._changed:
            self._turned_at = self._clock()
            if (state, paused) != (self._state, self._paused):
                self._state, self._paused = state, paused
                self._version += 1

    def recall(self, decisions: Iterable[Decision]) -> None:
        """Decisions from before: they are shown, and not counted."""
        with self._changed:
            for decision in decisions:
                self._remember(decision)

    def heard_before(self, at: float, message: Received) -> None:
        """What came then, by the clock here, and was not listened to: it says nothing of its sender's clock."""
        self._take(message, at)

    def _remember(self, decision: Decision) -> None:
        self._fold.receive(decision, self._clock())
        self._records[decision.epoch, decision.number] = zlib.compress(decision.encode(), 1)
        while len(self._records) > FULL_DECISIONS:
            oldest = min(self._records)
            del self._records[oldest]
            self._came.pop(oldest, None)
        if self._newest is None or (decision.epoch, decision.number) > (self._newest.epoch, self._newest.number):
            self._newest = decision
        self._version += 1

    def _bound(self, speeds: WriteSpeeds) -> int | None:
        claim = self._claim
        parked = {each.topic for each in claim.parked} if claim is not None else frozenset()
        counted = {p: speed for p, speed in speeds.bytes_per_s.items() if p.topic not in parked}
        if not counted:
            return None
        settings = self._settings.as_decided(self._newest)
        problem = Problem(counted, settings.consumer_capacity, classes=settings.classes)
        return fewest_bins(Instance.of(problem))

    # What it is asked

    def picture(self) -> GroupPicture:
        """The group now, or a moment ago."""
        with self._changed:
            return self._draw()[1]

    def reading(self) -> Reading:
        with self._changed:
            view, shown = self._draw()
            now = self._clock()
            age_s = None if self._speeds_at is None else now - self._speeds_at
            ahead_s = self._clocks.ahead_s(now)
            return Reading(view, shown, self._counts, self._newest, self._lags, age_s, ahead_s)

    def history(self) -> History:
        with self._changed:
            view, _ = self._draw()
            fewest = tuple(self._fewest_over_time)
        since = self._clock() - HISTORY_S
        rscores = [Sample(each.decided_at, each.rscore) for each in view.decisions if each.carried_out]
        return History(
            consumers=course(view.consumers_over_time, since),
            fewest_consumers=course(fewest, since),
            speed=course(view.speed_over_time, since),
            lag=course(view.lag_over_time, since),
            rscore=tuple((sample.at, sample.value) for sample in rscores if sample.at >= since),
        )

    def decisions(self, before: tuple[int, int] | None, limit: int) -> list[DecisionRecord]:
        """The newest decisions, the newest first; those before (epoch, number) where that is given."""
        with self._changed:
            records = self._draw()[0].decisions
        older = [record for record in records if before is None or (record.epoch, record.number) < before]
        return older[: -limit - 1 : -1]

    def decision(self, epoch: int, number: int) -> Decision | None:
        """The whole record, as long as it is kept."""
        with self._changed:
            record = self._records.get((epoch, number))
        return None if record is None else Decision.decode(zlib.decompress(record))

    def parked_or_on_trial(self) -> list[str]:
        """The topics of which nothing has been written since their tables took nothing, as the leader says."""
        with self._changed:
            claim = self._claim
        return [each.topic for each in claim.parked_or_on_trial] if claim is not None else []

    def came(self, epoch: int, number: int) -> float | None:
        """How fast the partitions that the decision had grow were written in the end, in bytes/s, if that is known."""
        with self._changed:
            return self._came.get((epoch, number))

    def alive(self) -> Health:
        """Whether the controller's thread turns round at all."""
        silent_s = self._clock() - self._turned_at
        if silent_s > HUNG_S:
            return Health(False, f"the controller has done nothing for {silent_s:.0f} s")
        return Health(True, "alive")

    def ready(self) -> Health:
        """Whether the controller decides on fresh measurements, as the leader; or waits to become it."""
        with self._changed:
            role, claimed_at, speeds_at = self._role, self._claimed_at, self._speeds_at
        now = self._clock()
        if role is Role.STARTING:
            return Health(False, "it is not known yet which controller leads")
        if role is Role.STANDBY:
            return Health(True, "stands by")
        if now - claimed_at > LIVE_S:
            return Health(False, f"no claim of this controller has come back for {now - claimed_at:.0f} s")
        if speeds_at is None:
            return Health(False, "there are no write speeds yet: does the monitor run?")
        if now - speeds_at > self._settings.speeds_timeout_s:
            return Health(False, f"the newest write speeds are {now - speeds_at:.0f} s old: does the monitor run?")
        return Health(True, "leads, on fresh write speeds")

    def _draw(self) -> tuple[GroupView, GroupPicture]:
        now = time.monotonic()
        if self._drawn is not None:
            drawn_at, view, shown = self._drawn
            if shown.version == self._version or now - drawn_at < PICTURE_S:
                return view, shown
        view = self._fold.view()
        state = self._state.value if self._state is not None else None
        settings = self._settings.as_decided(self._newest)
        shown = picture(
            view,
            version=self._version,
            group=self._group,
            controller=ControllerPicture(role=self._role, epoch=self._epoch, state=state, paused=self._paused),
            classes=settings.every_class,
            packing_capacity=settings.packing,
            migration_weight=settings.weight,
            measured_at=self._measured_at,
            speeds_at=self._speeds_at,
            ahead_s=self._clocks.ahead_s(self._clock()),
            fewest_consumers=self._fewest,
            lags=self._lags,
        )
        self._drawn = now, view, shown
        return view, shown
