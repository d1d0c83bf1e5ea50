"""What a controller that begins learns from partition 0 of `consumer.metadata`.

The newest claim there says what all that was heard before it amounts to, and up to where its controller had heard: the
next one reads on from there. So what a beginning takes does not grow with the time that the group has run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from controller.decide.commands import Claim
from controller.decide.former_writers import STRANGERS, Reach
from controller.decide.parking import told_later, tried_at_once
from domain.messages import (
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    Foresight,
    MessageToController,
    ParkedTopic,
    RolloutStanding,
    Standing,
)
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds

MOST_MISSED = 2**32
"""Each controller's epoch is one more than that of the one before it: one that is so far beyond all before is invented.
The highest that a message can name would leave none for the next controller."""
_HIGHEST_EPOCH = 2**63 - 1
"""That a message can name."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a controller begins with."""

    epoch: int
    """Higher than that of every controller before it."""
    paused: bool = False
    """An operator has paused the group, and not resumed it."""
    unsealed: Mapping[str, Reach] = field(default_factory=dict)
    """The processes that were heard of, and neither left in good order nor are settled, and what each may read; in
    ascending order. Members of the group are among them."""
    settled: tuple[str, ...] = ()
    """See `ControllerClaim`."""
    of_strangers: Reach = None
    """What a process may read that was never heard of: nothing where the newest claim says what each may."""
    speeds: WriteSpeeds | None = None
    """The newest that were told before: last known ones, of any age."""
    rollout: RolloutStanding | None = None
    """How far consumers were replaced, if the newest claim says it."""
    parked: tuple[ParkedTopic, ...] = ()
    """See `Standing`."""
    parked_told_at: float = 0.0
    """When that was said, by the clock of the controller that said it."""
    standing: Standing | None = None
    """How the group stood with the controller before, if the newest claim says it."""

    @property
    def foresight(self) -> Foresight | None:
        return self.standing.foresight if self.standing is not None else None

    def claim(self, at: float) -> Claim:
        """The first claim of the controller that begins at that moment.

        It says again how the group stood: until the next claim, it is all that who looks on knows of that, and all that
        the next controller knows if this one ends at once.
        """
        standing = self.standing
        if standing is not None:
            parked = tuple(told_later(each, at - self.parked_told_at) for each in self.parked)
            anew = {"began_at": at, "synchronized": False, "rollout": self.rollout, "parked": parked}
            standing = standing.model_copy(update=anew)
        return Claim(0, self.paused, self.unsealed, self.settled, standing=standing)


def beginning(messages: Iterable[MessageToController], claim: ControllerClaim | None = None) -> Beginning:
    """What the messages, each looked at once and not kept, amount to.

    Args:
        messages: of the partition in their order: all from the claim's `heard_to` on, or all that it holds.
        claim: the newest of them, if it says up to where its controller had heard. Where it does not, or there is none,
            every claim counts for what it says. A process that none names, and that has been silent for longer than
            the topic keeps anything, is then forgotten.
    """
    heard = _Heard(claim)
    for message in messages:
        heard.take_in(message)
    return heard.beginning


class _Heard:
    """What the messages so far amount to."""

    def __init__(self, claim: ControllerClaim | None) -> None:
        self._goes_by_one_claim = claim is not None
        self._epoch = 0 if claim is None else claim.epoch
        self._paused = False
        self._unsealed: dict[str, Reach] = {}
        self._settled: tuple[str, ...] = ()
        self._of_strangers: Reach = None
        self._rollout: RolloutStanding | None = None
        self._parked: tuple[ParkedTopic, ...] = ()
        self._parked_told_at = 0.0
        self._standing: Standing | None = None
        if claim is not None:
            self._adopt(claim)
            self._of_strangers = None if claim.may_read is None else frozenset()
            self._unsealed |= {writer: named(read) for writer, read in (claim.may_read or {}).items()}
        self._strangers = {writer for writer, reach in self._unsealed.items() if reach == self._of_strangers}

    @property
    def beginning(self) -> Beginning:
        return Beginning(
            self._epoch + 1,
            self._paused,
            {writer: self._unsealed[writer] for writer in sorted(self._unsealed.keys() - set(self._settled))},
            self._settled,
            self._of_strangers,
            rollout=self._rollout,
            parked=self._parked,
            parked_told_at=self._parked_told_at,
            standing=self._standing,
        )

    def take_in(self, message: MessageToController) -> None:
        match message:
            case ControllerClaim():
                self._epoch = _higher(self._epoch, message.epoch)
                if not self._goes_by_one_claim:  # else it is that one, or one before, which it has said again
                    self._adopt(message)
            case ConsumerReport():
                self._epoch = _higher(self._epoch, message.applied_epoch)
                self._hear_of(message.writer, leaves=message.state is ConsumerState.LEAVING)
            case ControlRequest():
                self._obey(message)

    def _adopt(self, claim: ControllerClaim) -> None:
        """All that it says, but for what each may read."""
        self._paused, self._settled = claim.paused, claim.settled
        self._rollout, self._standing = claim.rollout, claim.standing
        self._parked = claim.parked_or_on_trial
        self._parked_told_at = claim.sent_at if self._parked else 0.0
        self._unsealed |= dict.fromkeys((*claim.unsealed, *claim.members))

    def _hear_of(self, writer: str, *, leaves: bool) -> None:
        if leaves:
            self._unsealed.pop(writer, None)
            self._strangers.discard(writer)
        elif writer not in self._unsealed and len(self._strangers) < STRANGERS:
            self._unsealed[writer] = self._of_strangers
            self._strangers.add(writer)

    def _obey(self, request: ControlRequest) -> None:
        match request.action:
            case ControlAction.PAUSE | ControlAction.RESUME as action:
                self._paused = action is ControlAction.PAUSE
            case ControlAction.PAUSE_ROLLOUT:
                self._rollout = (self._rollout or RolloutStanding()).model_copy(update={"paused": True})
            case ControlAction.RESUME_ROLLOUT:
                self._rollout = None
            case ControlAction.UNPARK:
                told_at = self._parked_told_at
                self._parked = tuple(
                    tried_at_once(each, told_at) if each.topic == request.topic else each for each in self._parked
                )
            case _:
                pass


def can_be_followed(claim: ControllerClaim) -> bool:
    """Whether its epoch leaves room for those of the controllers to come; else it is invented."""
    return claim.epoch <= _HIGHEST_EPOCH - MOST_MISSED


def named(read: Mapping[str, Iterable[int]]) -> frozenset[TopicPartition]:
    """The partitions that a claim names by topic."""
    return frozenset(TopicPartition(topic, number) for topic in read for number in read[topic])


def _higher(epoch: int, named: int) -> int:
    return named if epoch < named <= epoch + MOST_MISSED else epoch


def claiming(
    claim: Claim, epoch: int, incarnation: str, sent_at: float, heard_to: int, speeds_heard_to: int | None = None
) -> ControllerClaim:
    """The claim as a message, from which `beginning` makes the same again."""
    known = {writer: reach for writer, reach in {**claim.unsealed, **claim.members}.items() if reach is not None}
    return ControllerClaim(
        epoch=epoch,
        incarnation=incarnation,
        sequence=claim.sequence,
        sent_at=sent_at,
        paused=claim.paused,
        unsealed=tuple(claim.unsealed),
        settled=claim.settled,
        members=tuple(claim.members),
        may_read={
            writer: {
                topic: tuple(partition.partition for partition in partitions)
                for topic, partitions in groupby(sorted(reach), key=attrgetter("topic"))
            }
            for writer, reach in known.items()
        },
        heard_to=heard_to,
        speeds_heard_to=speeds_heard_to,
        decisions=claim.decisions,
        creation_limit=claim.creation_limit,
        standing=claim.standing,
    )
