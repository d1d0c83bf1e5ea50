"""A consumer that reads nothing: its machine is the real one, and what that asks for takes as long as a bench says."""

import math
from collections.abc import Callable

from consumer.decide import actions, events
from consumer.decide.actions import Action, Ask
from consumer.decide.commands import Holding
from consumer.decide.machine import ConsumerMachine
from consumer.decide.reached import Reached
from consumer.settings import ConsumerSettings
from domain.assignment import ConsumerId
from domain.messages import ConsumerCommand
from domain.partitions import TopicPartition

LOOK_WITHIN_S = 1800.0
"""Its lease would run out if it never looked around for twice as long."""
_PATIENT_S = 86_400.0
SETTINGS = ConsumerSettings(
    spark_remote="sc://nowhere",
    lake_root="/nowhere",
    lease_s=2 * LOOK_WITHIN_S,
    write_limit_s=_PATIENT_S,
    give_up_after_s=_PATIENT_S,
)


class MachineAlone:
    """One incarnation of a consumer of which nothing fails. Every report of it counts as arrived.

    Args:
        consumer: its number.
        incarnation: a name that no other process has.
        group: named in its reports.
        now: the moment at which it begins; later ones are on the same clock, in seconds.
        takes_s: how long what it asks for takes.
    """

    def __init__(
        self,
        consumer: ConsumerId,
        incarnation: str,
        group: str,
        now: float,
        takes_s: Callable[[Ask], float] = lambda _: 0.0,
    ) -> None:
        commands = TopicPartition("consumer.metadata", consumer)
        self._machine = ConsumerMachine(Holding(consumer, incarnation), group, commands, SETTINGS, now)
        self._takes_s = takes_s
        self._asked: dict[int, tuple[float, Ask]] = {}
        """With when each is answered."""
        self.held: tuple[TopicPartition, ...] = ()
        """By its newest report."""

    @property
    def next_answer_at(self) -> float:
        return min((at for at, _ in self._asked.values()), default=math.inf)

    def look(self, now: float, *commands: ConsumerCommand) -> list[Action]:
        """What it does until it has to wait."""
        done: list[Action] = []
        while True:
            due = [ask for at, ask in self._asked.values() if at <= now]
            found = tuple(sorted(self._machine.to_place)) if self._machine.ready else ()
            looked = events.Looked(now, arrived=now, commands=commands, found=found)
            wanted = self._machine.handle(*(self._answer(ask, now) for ask in due), looked)
            for action in wanted:
                self._take_in(action, now)
            done += wanted
            commands = ()
            if not due and self.next_answer_at > now:
                return done

    def _answer(self, ask: Ask, now: float) -> events.Done:
        """The logs of what it takes over are empty."""
        del self._asked[ask.ask]
        positions = dict.fromkeys(ask.partitions, Reached(0)) if isinstance(ask, actions.TakeOver) else None
        return events.Done(now, ask.ask, positions)

    def _take_in(self, action: Action, now: float) -> None:
        if isinstance(action, actions.Send):
            self.held = tuple(partition.key for partition in action.report.partitions)
        elif isinstance(action, Ask):
            self._asked[action.ask] = now + self._takes_s(action), action
