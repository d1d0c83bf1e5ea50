"""What a controller that begins learns from partition 0 of `consumer.metadata`.

The newest claim there says what all that was heard before it amounts to, and up to where its controller had heard: the
next one reads on from there. So what a beginning takes does not grow with the time that the group has run.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from domain.messages import (
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    MessageToController,
)
from domain.speeds import WriteSpeeds


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a controller begins with."""

    epoch: int
    """Higher than that of every controller before it."""
    paused: bool = False
    """An operator has paused the group, and not resumed it."""
    unsealed: tuple[str, ...] = ()
    """The processes that were heard of, and neither left in good order nor are settled; in ascending order. Members of
    the group are among them."""
    settled: tuple[str, ...] = ()
    """See `ControllerClaim`."""
    speeds: WriteSpeeds | None = None
    """The newest that were told before: last known ones, of any age."""


def beginning(messages: Iterable[MessageToController], claim: ControllerClaim | None = None) -> Beginning:
    """What the messages, each looked at once and not kept, amount to.

    Args:
        messages: of the partition in their order: all from the claim's `heard_to` on, or all that it holds.
        claim: the newest of them, if it says up to where its controller had heard. Where it does not, or there is none,
            every claim counts for what it says. A process that none names, and that has been silent for longer than
            the topic keeps anything, is then forgotten.
    """
    epoch, paused = 0, False
    unsealed: set[str] = set()
    settled: tuple[str, ...] = ()
    left: set[str] = set()
    if claim is not None:
        epoch, paused, settled = claim.epoch, claim.paused, claim.settled
        unsealed.update(claim.unsealed, claim.members)
    for message in messages:
        match message:
            case ControllerClaim() if claim is not None:  # the same one, or one before: it has said it again
                epoch = max(epoch, message.epoch)
            case ControllerClaim():
                epoch, paused, settled = max(epoch, message.epoch), message.paused, message.settled
                unsealed.update(message.unsealed, message.members)
            case ConsumerReport():
                epoch = max(epoch, message.applied_epoch)
                (left if message.state is ConsumerState.LEAVING else unsealed).add(message.writer)
            case ControlRequest(action=ControlAction.PAUSE | ControlAction.RESUME as action):
                paused = action is ControlAction.PAUSE
            case ControlRequest():
                pass
    return Beginning(epoch + 1, paused, tuple(sorted(unsealed - left - set(settled))), settled)
