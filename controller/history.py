"""What a controller that begins learns from the history of partition 0 of `consumer.metadata`."""

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


def beginning(history: Iterable[MessageToController]) -> Beginning:
    """What all messages that the partition holds, in their order, amount to.

    The topic keeps them for a while only. What is older has been said again by a claim; of what the claims do not say,
    a process that has been silent for longer than the topic keeps anything is forgotten.
    """
    epoch, paused = 0, False
    unsealed: set[str] = set()
    settled: tuple[str, ...] = ()
    left: set[str] = set()
    for message in history:
        match message:
            case ControllerClaim():
                epoch, paused, settled = max(epoch, message.epoch), message.paused, message.settled
                unsealed.update(message.unsealed)
            case ConsumerReport():
                epoch = max(epoch, message.applied_epoch)
                (left if message.state is ConsumerState.LEAVING else unsealed).add(message.writer)
            case ControlRequest(action=ControlAction.PAUSE | ControlAction.RESUME as action):
                paused = action is ControlAction.PAUSE
            case ControlRequest():
                pass
    return Beginning(epoch + 1, paused, tuple(sorted(unsealed - left - set(settled))), settled)
