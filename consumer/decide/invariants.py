"""Which state of a consumer may follow which, and what holds after every turn.

Tests ask after each event of every world that they make up or explore (`broken`); `docs/states.md` says it in words.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from consumer.decide.actions import Action, Commit, Fetch, ReadFrom
from consumer.decide.machine import ConsumerMachine
from domain.messages import ConsumerState

FOLLOWS: Mapping[tuple[ConsumerState, ConsumerState], str] = MappingProxyType(
    {
        (ConsumerState.STARTING, ConsumerState.READY): "it has a place among the commands, and a Spark session",
        (ConsumerState.STARTING, ConsumerState.DEGRADED): "so it has, and something fails",
        (ConsumerState.STARTING, ConsumerState.LEAVING): "it is told to end",
        (ConsumerState.READY, ConsumerState.DEGRADED): "something is not read, not written or not committed",
        (ConsumerState.READY, ConsumerState.LEAVING): "it is told to end, and has released what it read",
        (ConsumerState.DEGRADED, ConsumerState.READY): "everything is again",
        (ConsumerState.DEGRADED, ConsumerState.LEAVING): "it is told to end, and what it read is written and released",
    }
)
"""From one reported state to another: when."""


def _reads_what_it_claims(machine: ConsumerMachine, actions: Sequence[Action]) -> bool:
    begun = {partition for action in actions if isinstance(action, ReadFrom) for partition in action.positions}
    return machine.claimed >= begun


def _writes_what_it_claims(machine: ConsumerMachine, _: Sequence[Action]) -> bool:
    return machine.claimed >= machine.unwritten


def _commits_before_it_fetches(machine: ConsumerMachine, actions: Sequence[Action]) -> bool:
    return not machine.commits or not any(isinstance(action, Fetch) for action in actions)


def _commits_once_at_a_time(_: ConsumerMachine, actions: Sequence[Action]) -> bool:
    return sum(isinstance(action, Commit) for action in actions) <= 1


def _has_let_go_when_it_leaves(machine: ConsumerMachine, _: Sequence[Action]) -> bool:
    return not machine.ended or not (machine.claimed or machine.unwritten or machine.commits)


HOLDS: Mapping[str, Callable[[ConsumerMachine, Sequence[Action]], bool]] = MappingProxyType(
    {
        "What it begins to read it has claimed by a commit.": _reads_what_it_claims,
        "What is on its way to the lake it claims.": _writes_what_it_claims,
        "Nothing is fetched while something is committed.": _commits_before_it_fetches,
        "One commit is begun at a time.": _commits_once_at_a_time,
        "One that has left claims nothing, and has nothing under way.": _has_let_go_when_it_leaves,
    }
)
"""What is true of the machine, and of what it wants done, after every turn."""


def broken(before: ConsumerState, machine: ConsumerMachine, actions: Sequence[Action]) -> Iterator[str]:
    """What should hold after a turn and does not.

    Args:
        before: what it had reported before the turn.
        machine: after it.
        actions: of the turn.
    """
    if before is not machine.state and (before, machine.state) not in FOLLOWS:
        yield f"{before} is followed by {machine.state}"
    yield from (words for words, holds in HOLDS.items() if not holds(machine, actions))
