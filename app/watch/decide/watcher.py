"""A group beside which kcga is not its controller: how it stands, what kcga would do, what that would save."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from app.watch.decide.adviser import Adviser
from app.watch.decide.capacity import CapacityEstimate
from app.watch.decide.membership import Membership, Protocol
from app.watch.decide.rebalances import Rebalance, Rebalances
from app.watch.decide.saving import Comparison, Saving
from controller.decide.question import Solve
from controller.settings import ControllerSettings
from domain.assignment import Assignment, ConsumerId
from domain.group_view.picture import PartitionPicture, Shown
from domain.messages import Decision
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds

IDLE_SHARE = 0.1
"""Of its capacity: who has less to read has next to nothing to do."""
STOP_ALL = frozenset({"range", "roundrobin", "sticky"})
"""The assignors of classic groups whose members stop reading when a rebalance begins; those of others read on."""


RAISED_BY = 0.05
"""An estimate that is higher by less is not worth beginning the comparison anew."""


class CapacityFrom(StrEnum):
    """Where it is known from what a consumer reads at most."""

    GIVEN = "given"
    ESTIMATE = "estimate"
    """The most that a member was seen to read while it lagged."""
    UNKNOWN = "unknown"
    """No member was seen to lag long enough."""


class MemberPicture(Shown):
    """A member of the group."""

    consumer: ConsumerId
    """What it counts as in decisions."""
    member: str
    """The id that the group has for it."""
    client: str
    """`client.id@host`"""
    load: float
    """What its partitions are written with."""
    share: float
    """Of the capacity."""
    partitions: tuple[PartitionPicture, ...]
    """What it reads; `to`: where it would be with kcga."""


class Moment(Shown):
    """A group at one moment, and what is to be said of it. What is not known is null."""

    group: str
    at: float
    protocol: Protocol | None
    state: str | None
    """As the coordinator has it; null where it does not answer."""
    settled: bool
    """Whether no rebalance is under way."""
    epoch: int | None
    capacity: float
    """Of each of its consumers: they are ordinary ones. Where it is not known, the most that one has to read."""
    capacity_from: CapacityFrom
    packing_capacity: float
    classes: tuple[str, ...]
    """Of which consumers may be in a plan beside ordinary ones."""
    consumers: int
    """That there are."""
    needed: int | None
    """That there would be by the newest decision's plan, now or once nothing holds it back."""
    advised: int | None
    """That there should be now: as many as there are where the plan is held back."""
    members: tuple[MemberPicture, ...]
    overloaded: tuple[ConsumerId, ...]
    """Who has more to read than a consumer can."""
    idle: tuple[ConsumerId, ...]
    """Who has less than a tenth of that."""
    unread: tuple[PartitionPicture, ...]
    """Partitions that nobody reads."""
    unwatched: tuple[str, ...]
    """Topics that the group reads, and that are not measured."""
    written: float | None
    lag: int | None
    lag_s: float | None
    decision: Decision | None
    """What kcga would do: its newest decision; null during a rebalance, and without fresh speeds."""
    rebalances: tuple[Rebalance, ...]
    """The newest."""
    rebalances_seen: int
    usual_commit_s: float | None
    """How long records wait for a commit while no rebalance is under way."""
    saving: Saving | None
    troubles: tuple[str, ...]
    """What keeps it from knowing more."""


class Watcher:
    """Follows a group, moment by moment.

    Args:
        group: its name.
        settings: of the controller whose advice is asked.
        solve: answers the controller's questions.
    """

    def __init__(self, group: str, settings: ControllerSettings, solve: Solve) -> None:
        self._group = group
        self._settings = settings
        self._solve = solve
        self._adviser = Adviser(settings)
        self._rebalances = Rebalances()
        self._comparison = Comparison(settings, solve)
        self._estimate = CapacityEstimate() if settings.learns_capacity else None
        self._capacity_from = CapacityFrom.GIVEN if self._estimate is None else CapacityFrom.UNKNOWN
        self._membership: Membership | None = None
        self._assignor: str | None = None
        self._readers = Assignment()
        self._speeds: WriteSpeeds | None = None

    def look(
        self,
        at: float,
        membership: Membership | None,
        speeds: WriteSpeeds | None,
        committed: Mapping[TopicPartition, int | None] | None,
        troubles: Sequence[str] = (),
    ) -> Moment:
        """What there is to say at `at`, in seconds since the epoch, which must not go back.

        Args:
            at: now.
            membership: who is in the group; None where its coordinator does not answer.
            speeds: as measured just now; None where nothing was.
            committed: how far the group has committed, None where it has nothing; as a whole None where nobody tells.
            troubles: what keeps all that from being known.
        """
        if speeds is not None:
            self._speeds = speeds
            self._adviser.measured(at, speeds)
            self._rebalances.forget(speeds.gone)
        if membership is not None:
            self._found(at, membership)
        if speeds is not None:
            self._rebalances.commits(at, committed or {}, speeds.lags)
            if self._estimate is not None:
                self._estimate.look(at, self._readers, committed or {}, speeds, self._rebalances.usual_s)
                self._learn(self._estimate.bytes_per_s)
        if membership is None or speeds is None or not self._knows_capacity:
            return self._moment(at, membership, None, troubles)
        self._comparison.measured(at, speeds, len(membership.members), self._readers)
        decision = self._adviser.decide(at, self._solve) if membership.settled else None
        return self._moment(at, membership, decision, troubles)

    @property
    def _knows_capacity(self) -> bool:
        return self._capacity_from is not CapacityFrom.UNKNOWN

    def _learn(self, estimate: float | None) -> None:
        """A higher estimate: what is decided and compared from now on rests on it."""
        settings = self._settings
        if estimate is None:
            return
        learned = min(max(estimate, settings.capacity_floor), settings.capacity_ceiling)
        if not self._knows_capacity or learned > (1 + RAISED_BY) * settings.consumer_capacity:
            self._settings = settings.model_copy(update={"consumer_capacity": learned})
            self._adviser.learned(self._settings)
            self._comparison = Comparison(self._settings, self._solve)
            self._capacity_from = CapacityFrom.ESTIMATE

    def _found(self, at: float, membership: Membership) -> None:
        told = self._adviser.found(at, membership.members)
        if membership.protocol is Protocol.CLASSIC and not membership.settled:
            # The coordinator does not tell who reads what. Who reads on is a matter of the assignor.
            present = frozenset(self._adviser.numbers.values())
            stopped = self._assignor in STOP_ALL
            told = Assignment({p: c for p, c in self._readers.items() if c in present and not stopped})
        else:
            self._assignor = membership.assignor
        self._readers = told
        self._rebalances.look(at, told, settled=membership.settled)
        self._membership = membership

    def _moment(
        self, at: float, membership: Membership | None, decision: Decision | None, troubles: Sequence[str]
    ) -> Moment:
        known, speeds = self._membership, self._speeds
        bytes_per_s = speeds.bytes_per_s if speeds else {}
        lags = speeds.lags if speeds else {}
        of_interest = (speeds.bytes_per_s.keys() | speeds.unknown) if speeds else frozenset()
        loads = self._readers.loads(bytes_per_s)
        capacity = self._settings.consumer_capacity if self._knows_capacity else max(1.0, *loads.values())
        shown = self._pictures(decision)
        members = tuple(
            MemberPicture(
                consumer=number,
                member=member.name,
                client=member.client,
                load=loads.get(number, 0.0),
                share=loads.get(number, 0.0) / capacity,
                partitions=tuple(map(shown, self._readers.by_consumer.get(number, ()))),
            )
            for number, member in sorted((self._adviser.numbers[m.name], m) for m in (known.members if known else ()))
        )
        topics = {partition.topic for partition in of_interest}
        return Moment(
            group=self._group,
            at=at,
            protocol=known.protocol if known else None,
            state=membership.state if membership else None,
            settled=membership.settled if membership else False,
            epoch=known.epoch if known else None,
            capacity=capacity,
            capacity_from=self._capacity_from,
            packing_capacity=self._settings.packing if self._knows_capacity else capacity,
            classes=tuple(each.name for each in self._settings.classes),
            consumers=len(members),
            needed=decision.plan.consumers if decision else None,
            advised=_advised(decision) if decision else None,
            members=members,
            overloaded=tuple(member.consumer for member in members if member.share > 1),
            idle=tuple(member.consumer for member in members if member.share < IDLE_SHARE)
            if bytes_per_s and self._knows_capacity
            else (),
            unread=tuple(shown(partition) for partition in sorted(of_interest - self._readers.keys())),
            unwatched=tuple(sorted((known.topics if known else frozenset()) - topics)) if topics else (),
            written=speeds.total if speeds else None,
            lag=sum(lag.records for lag in lags.values()) if lags else None,
            lag_s=max((lag.seconds for lag in lags.values() if lag.records and lag.seconds is not None), default=None),
            decision=decision,
            rebalances=self._rebalances.seen,
            rebalances_seen=self._rebalances.count,
            usual_commit_s=self._rebalances.usual_s,
            saving=self._comparison.saving,
            troubles=tuple(troubles),
        )

    def _pictures(self, decision: Decision | None) -> Callable[[TopicPartition], PartitionPicture]:
        """What is shown of a partition, beside this decision."""
        speeds = self._speeds
        planned = {entry.key: entry.consumer for entry in decision.assignment} if decision else {}

        def shown(partition: TopicPartition) -> PartitionPicture:
            speed = speeds.bytes_per_s.get(partition) if speeds else None
            lag = speeds.lags.get(partition) if speeds else None
            to, reader = planned.get(partition), self._readers.get(partition)
            return PartitionPicture(
                topic=partition.topic,
                partition=partition.partition,
                speed=speed,
                lag=None if lag is None else lag.records,
                oversized=self._knows_capacity and speed is not None and speed > self._settings.largest,
                to=to if to != reader else None,
            )

        return shown


def _advised(decision: Decision) -> int:
    return decision.plan.consumers if decision.carried_out else decision.found
