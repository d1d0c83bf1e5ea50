"""What kcga would do with a group that is not its own: the controller's rules, asked at every moment, never obeyed."""

from collections.abc import Iterable
from itertools import count

from app.watch.decide.membership import GroupMember
from controller.decide.decider import Decider
from controller.decide.group import Group
from controller.decide.question import Solve
from controller.decide.triggers import interval_over
from controller.settings import ControllerSettings
from domain.assignment import Assignment, ConsumerId
from domain.messages import ConsumerReport, ConsumerState, Decision, PartitionRef
from domain.speeds import WriteSpeeds


class Adviser:
    """Each decision is that of a controller which takes the group over as it is at that moment: what was decided before
    has changed nothing. Of the past only the write speeds count.

    Args:
        settings: of the controller that it speaks for.
    """

    def __init__(self, settings: ControllerSettings) -> None:
        self._decider = Decider(settings, epoch=1)
        self._speeds_at: float | None = None
        self._newest: Decision | None = None
        self._of = Assignment()
        """What the newest decision found."""
        self.numbers: dict[str, ConsumerId] = {}
        """What each member counts as, by its name: it keeps that while it is in the group."""

    def measured(self, at: float, speeds: WriteSpeeds) -> None:
        """Speeds came, at `at`, in seconds since the epoch, which must not go back."""
        self._decider.measured(at, speeds)
        self._speeds_at = at

    def learned(self, settings: ControllerSettings) -> None:
        """The capacity is another."""
        self._decider.learned(settings)

    def found(self, at: float, members: Iterable[GroupMember]) -> Assignment:
        """These are in the group: who reads what."""
        held = {member.name: member.held for member in members}
        staying = {name: number for name, number in self.numbers.items() if name in held}
        taken = frozenset(staying.values())
        free = (number for number in count(1) if number not in taken)
        self.numbers = {**staying, **{name: next(free) for name in sorted(held.keys() - staying.keys())}}
        group = Group()
        for name, number in self.numbers.items():
            group.add(number, at)
            group.receive(
                ConsumerReport(
                    consumer=number,
                    incarnation="found",
                    sequence=0,
                    sent_at=at,
                    state=ConsumerState.READY,
                    partitions=tuple(map(PartitionRef.of, sorted(held[name]))),
                ),
                at,
            )
        self._decider.group = group
        self._decider.take_as_found()
        self._decider.catch_up(at)
        return group.assignment

    def decide(self, at: float, solve: Solve) -> Decision | None:
        """What the controller would do; None while nothing is known, or nothing fresh.

        As the controller's own, decisions are `least_interval_s` apart, unless the load has outgrown the newest one, or
        somebody else reads something.
        """
        decider, settings, newest = self._decider, self._decider.settings, self._newest
        stale = self._speeds_at is None or at - self._speeds_at > settings.speeds_timeout_s
        if stale or not decider.sizes:
            return None
        too_early = newest is not None and at - newest.decided_at < settings.least_interval_s
        if too_early and not decider.jumped(at) and decider.desired == self._of:
            return newest
        question = decider.ask(at, decider.why(at) or (interval_over(settings.interval_s),))
        number = newest.number + 1 if newest is not None else 1
        self._newest = decider.judged(at, number, question, solve(question.problem, settings.engine))
        self._of = decider.desired
        decider.decided(at, self._newest.model_copy(update={"carried_out": False}))  # nobody does
        return self._newest
