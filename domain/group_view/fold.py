"""Folds the messages on kcga's topics into a view of the group.

Pure: time is when messages were heard, or what they say where that is not told. Messages may come late, twice or in any
order: of each source the newest counts (a consumer's by its sequence, processes and the monitor's by when they were
heard, decisions by epoch and number), and sums count each once.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY, class_names
from domain.group_view.decision_log import DecisionLog
from domain.group_view.view import ConsumerView, GroupView, HeldPartition, Sample, Transit
from domain.messages import (
    ConsumerReport,
    ConsumerState,
    ControllerClaim,
    ControlRequest,
    Decision,
    WriteSpeedReport,
)
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds

GroupMessage = WriteSpeedReport | ConsumerReport | ControllerClaim | ControlRequest | Decision

SAMPLES = 3600
"""How many samples of a figure are kept: an hour of one that changes every second."""
COUNTED_EVERY_S = 1.0
"""The consumers are counted so often, besides when one comes, goes or changes its state."""
PROCESSES = 4
"""So many of a consumer's processes are remembered, the newest."""
CYCLES = 1_000
"""So many of a process's cycles are remembered, so that one whose report comes twice counts once."""


@dataclass(slots=True)
class _Process:
    """One incarnation of a consumer."""

    newest: ConsumerReport
    heard_at: float
    """When the newest report came."""
    began: float
    """When the first of its reports came."""
    cycles: set[int] = field(default_factory=set)
    """The sequences of the reports whose cycle has been counted, of the newest at least."""
    counted_to: int = -1
    """What has this sequence or a lower one has been counted."""

    def is_new(self, sequence: int) -> bool:
        """Whether the cycle of the report with this sequence is to be counted; it then has been."""
        if sequence <= self.counted_to or sequence in self.cycles:
            return False
        self.cycles.add(sequence)
        if len(self.cycles) > CYCLES:
            self.counted_to = min(self.cycles)
            self.cycles.remove(self.counted_to)
        return True


class GroupFold:
    """Takes messages in and gives the view of all of them.

    Args:
        since: messages from before, in seconds since the epoch, are left aside; None to take all.
        silent_after_s: a consumer that has not been heard of for longer is taken for dead.
    """

    def __init__(self, since: float | None = None, silent_after_s: float = 15.0) -> None:
        self._since = since
        self._silent_after_s = silent_after_s
        self._began = math.inf if since is None else since
        self._now = since or 0.0
        self._epoch: int | None = None
        self._claim: ControllerClaim | None = None
        """The newest."""
        self._processes: dict[ConsumerId, dict[str, _Process]] = {}
        self._decisions = DecisionLog()
        self._speeds: WriteSpeeds | None = None
        self._speeds_at = -math.inf
        self._highest_lag: int | None = None
        self._bytes = 0
        self._records = 0
        self._dead_letters = 0
        self._invalid = 0
        self._counted_at = -math.inf
        self._consumers_over_time: deque[Sample] = deque(maxlen=SAMPLES)
        self._speed_over_time: deque[Sample] = deque(maxlen=SAMPLES)
        self._lag_over_time: deque[Sample] = deque(maxlen=SAMPLES)

    def receive(self, message: GroupMessage, heard_at: float | None = None) -> bool:
        """Takes a message in; False where it is from before the time that is of interest.

        Args:
            message: what was said.
            heard_at: when it came, by one clock for all senders: theirs may differ, and nobody is silent for that. Else
                when it was sent.
        """
        sent_at = time_of(message)
        if self._since is not None and sent_at < self._since:
            return False
        at = sent_at if heard_at is None else heard_at
        self._began = min(self._began, at)
        self._now = max(self._now, at)
        changed = False
        match message:
            case WriteSpeedReport():
                self._measured(message, at)
            case ConsumerReport():
                changed = self._reported(message, at)
            case ControllerClaim():
                self._led_by(message.epoch)
                if self._claim is None or _order(message) > _order(self._claim):
                    self._claim = message
            case Decision():
                self._led_by(message.epoch)
                self._decisions.add(message)
                changed = True
            case ControlRequest():
                pass  # what comes of it is in the decisions
        # Of a thousand consumers, each report would have all of them counted: only silence comes without a change.
        if changed or self._now >= self._counted_at + COUNTED_EVERY_S:
            self._count_consumers()
        return True

    def pass_time(self, until: float) -> None:
        """It is so late at least, in seconds since the epoch, though nobody has said anything since."""
        self._began = min(self._began, until)
        self._now = max(self._now, until)
        self._count_consumers()

    def reject(self) -> None:
        """Counts a message that could not be understood."""
        self._invalid += 1

    def _measured(self, report: WriteSpeedReport, at: float) -> None:
        speeds, lag = report.speeds, _lag_of_all(report.speeds)
        if at >= self._speeds_at:
            self._speeds, self._speeds_at = speeds, at
            self._speed_over_time.append(Sample(at, speeds.total))
            if lag is not None:
                self._lag_over_time.append(Sample(at, lag))
        if lag is not None:
            self._highest_lag = max(lag, self._highest_lag or 0)

    def _led_by(self, epoch: int) -> None:
        self._epoch = epoch if self._epoch is None else max(epoch, self._epoch)

    def _reported(self, report: ConsumerReport, at: float) -> bool:
        """Whether it may change how many consumers there are."""
        processes = self._processes.setdefault(report.consumer, {})
        changed = report.incarnation not in processes
        if changed:
            self._dead_letters += report.dead_letters
        process = processes.setdefault(report.incarnation, _Process(report, at, at))
        process.began = min(process.began, at)
        if report.sequence > process.newest.sequence:
            changed |= report.state is not process.newest.state or self._is_silent(process)
            self._dead_letters += max(0, report.dead_letters - process.newest.dead_letters)
            process.newest, process.heard_at = report, at
        if len(processes) > PROCESSES:
            del processes[min(processes, key=lambda incarnation: (processes[incarnation].began, incarnation))]
        if report.cycle is not None and process.is_new(report.sequence):
            self._bytes += report.cycle.bytes
            self._records += report.cycle.records
        return changed

    def _count_consumers(self) -> None:
        self._counted_at = self._now
        if not self._consumers_over_time:
            self._consumers_over_time.append(Sample(self._began, 0))
        alive = sum(not self._is_silent(process) for process in self._present())
        if alive != self._consumers_over_time[-1].value:
            self._consumers_over_time.append(Sample(self._now, alive))

    def _present(self) -> list[_Process]:
        """The newest process of each consumer, in ascending order, without those that have left.

        A process that has fallen silent is gone as soon as the plan gives it nothing any more.
        """
        planned = self._decisions.planned_consumers
        newest = [
            max(self._processes[consumer].values(), key=lambda process: (process.began, process.newest.incarnation))
            for consumer in sorted(self._processes)
        ]
        return [
            process
            for process in newest
            if process.newest.state is not ConsumerState.LEAVING
            and (process.newest.consumer in planned or not self._is_silent(process))
        ]

    def _is_silent(self, process: _Process) -> bool:
        return self._now - process.heard_at > self._silent_after_s

    def view(self) -> GroupView:
        """What all messages so far amount to."""
        speeds: Mapping[TopicPartition, float] = self._speeds.bytes_per_s if self._speeds else {}
        unmeasured = self._speeds.unknown if self._speeds else frozenset()
        standing = self._claim.standing if self._claim else None
        named = class_names(standing.classes) if standing else {}
        consumers = tuple(
            ConsumerView(
                consumer=report.consumer,
                state=report.state,
                reason=report.reason,
                partitions=tuple(
                    HeldPartition(partition, speeds.get(partition))
                    for partition in sorted(
                        {held.key for held in report.partitions} - {held.key for held in report.taking_over}
                    )
                ),
                silent=self._is_silent(process),
                class_name=named.get(report.consumer, ORDINARY),
            )
            for process in self._present()
            for report in (process.newest,)
        )
        return GroupView(
            began=min(self._began, self._now),
            now=self._now,
            controller_epoch=self._epoch,
            rollout=self._claim.rollout if self._claim else None,
            rests=standing is not None and standing.rests,
            parked=self._claim.parked if self._claim else (),
            foresight=self._claim.foresight if self._claim else None,
            dead_letters=self._dead_letters,
            consumers=consumers,
            transits=self._transits(consumers, speeds, unmeasured),
            speeds=speeds,
            unmeasured=unmeasured,
            sources=self._speeds.sources if self._speeds else (),
            total_speed=self._speeds.total if self._speeds else None,
            lag=_lag_of_all(self._speeds) if self._speeds else None,
            lag_s=self._longest_lag_s(),
            highest_lag=self._highest_lag,
            decisions=self._decisions.records,
            totals=self._decisions.totals,
            bytes_written=self._bytes,
            records_written=self._records,
            invalid_messages=self._invalid,
            consumers_over_time=tuple(self._consumers_over_time),
            speed_over_time=tuple(self._speed_over_time),
            lag_over_time=tuple(self._lag_over_time),
        )

    def _longest_lag_s(self) -> float | None:
        lags = self._speeds.lags.values() if self._speeds else ()
        # Of what is not written to any more it is not known, and others that are read to their end do not speak for it.
        return max((lag.seconds for lag in lags if lag.records and lag.seconds is not None), default=None)

    def _transits(
        self,
        consumers: tuple[ConsumerView, ...],
        speeds: Mapping[TopicPartition, float],
        unmeasured: frozenset[TopicPartition],
    ) -> tuple[Transit, ...]:
        """The partitions of interest that are not read by whom the newest plan names, or by nobody."""
        plan = self._decisions.plan
        parked = {each.topic for each in self._claim.parked} if self._claim else set()
        readers: dict[TopicPartition, set[ConsumerId]] = {}
        for consumer in consumers:
            if not consumer.silent:
                for held in consumer.partitions:
                    readers.setdefault(held.partition, set()).add(consumer.consumer)
        transits = []
        for partition in sorted(speeds.keys() | unmeasured if self._speeds else plan.keys()):
            planned = plan.get(partition)
            read_by = readers.get(partition, set())
            if partition.topic in parked:
                continue
            target = planned.consumer if planned else None
            if read_by and (target is None or read_by == {target} or self._is_given_up(target)):
                continue
            transits.append(
                Transit(
                    partition=partition,
                    speed=speeds.get(partition),
                    reader=min(read_by - {target}, default=None),
                    source=planned.previous if planned else None,
                    target=target,
                )
            )
        return tuple(transits)

    def _is_given_up(self, consumer: ConsumerId) -> bool:
        """What a plan wanted to move there stays with who reads it."""
        standing = self._claim.standing if self._claim else None
        return standing is not None and consumer not in standing.counted_on


def _order(claim: ControllerClaim) -> tuple[int, int]:
    return claim.epoch, claim.sequence


def _lag_of_all(speeds: WriteSpeeds) -> int | None:
    """In records; None where no partition's is known."""
    return sum(lag.records for lag in speeds.lags.values()) if speeds.lags else None


def time_of(message: GroupMessage) -> float:
    """When it was sent, in seconds since the epoch."""
    match message:
        case WriteSpeedReport():
            return message.measured_at
        case Decision():
            return message.decided_at
        case ConsumerReport() | ControllerClaim() | ControlRequest():
            return message.sent_at
