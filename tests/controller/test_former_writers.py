"""Whom a start names, and for how long."""

from collections.abc import Iterable

from controller.decide.commands import Claim
from controller.decide.former_writers import REMEMBERED, STRANGERS, FormerWriters
from controller.decide.group import Group
from controller.decide.history import Beginning, beginning, claiming
from domain.messages import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    MessageToController,
    Order,
    PartitionRef,
)
from domain.partitions import TopicPartition

ORDERS, MORE_ORDERS = TopicPartition("orders", 0), TopicPartition("orders", 1)
CLICKS = TopicPartition("clicks", 0)


class Talk:
    """A group, and what its consumers report to it."""

    def __init__(self, *unsealed: str, begun: Beginning | None = None) -> None:
        begun = begun or Beginning(7, unsealed=dict.fromkeys(unsealed))
        self.group = Group()
        self.group.former.inherit(begun.unsealed, begun.settled, begun.of_strangers)
        self._sequence = 0
        self._reports: dict[tuple[int, str], int] = {}

    def order(self) -> Order:
        self._sequence += 1
        return Order(7, self._sequence)

    def begin(self, *consumers: int, found: bool = False) -> None:
        for consumer in consumers:
            self.group.add(consumer, 0.0, barrier=self.order() if found else None)
            if not found:
                self.report(consumer)

    def report(
        self,
        consumer: int,
        held: Iterable[TopicPartition] = (),
        *,
        incarnation: str = "a",
        applied: Order | None = None,
        taking_over: Iterable[TopicPartition] = (),
        state: ConsumerState = ConsumerState.READY,
    ) -> bool:
        sequence = self._reports.get((consumer, incarnation), 0) + 1
        self._reports[consumer, incarnation] = sequence
        epoch, number = applied or Order(7, self._sequence)
        report = ConsumerReport(
            consumer=consumer,
            incarnation=incarnation,
            sequence=sequence,
            sent_at=1.0,
            state=state,
            applied_epoch=epoch,
            applied_sequence=number,
            partitions=tuple(map(PartitionRef.of, held)),
            taking_over=tuple(map(PartitionRef.of, taking_over)),
        )
        return self.group.receive(report, 1.0)

    def send(self, action: Action, consumer: int, *partitions: TopicPartition) -> ConsumerCommand:
        command = self.group.command(consumer, action, partitions, self.order(), 1)
        self.group.sent(command, 1.0)
        return command

    def start(self, consumer: int, *partitions: TopicPartition) -> tuple[str, ...]:
        return self.send(Action.START, consumer, *partitions).seal

    def stop(self, consumer: int, *partitions: TopicPartition) -> None:
        self.send(Action.STOP, consumer, *partitions)


def test_who_let_go_and_said_so_is_not_named() -> None:
    talk = Talk()
    talk.begin(1, 2)
    talk.start(1, ORDERS)
    talk.report(1, [ORDERS])
    talk.stop(1, ORDERS)
    talk.report(1)
    assert talk.start(2, ORDERS) == ()
    talk.group.remove(1)
    assert talk.start(2, ORDERS) == ()


def test_who_is_gone_is_named_for_what_it_had_and_nothing_else() -> None:
    talk = Talk()
    talk.begin(1, 2)
    talk.start(1, ORDERS, CLICKS)
    talk.report(1, [ORDERS, CLICKS])
    talk.group.remove(1)
    assert talk.start(2, MORE_ORDERS) == ()
    assert talk.start(2, ORDERS) == ("1/a",)
    assert talk.start(2, CLICKS) == ("1/a",)


def test_a_start_that_was_never_acknowledged_counts_and_so_does_a_stop() -> None:
    talk = Talk()
    talk.begin(1, 2)
    talk.start(1, ORDERS)
    talk.start(1, CLICKS)
    talk.report(1, [ORDERS, CLICKS])
    talk.stop(1, CLICKS)
    talk.group.remove(1)
    assert talk.start(2, ORDERS) == talk.start(2, CLICKS) == ("1/a",)


def test_who_has_left_in_good_order_is_not_named_even_if_it_is_heard_after_its_end() -> None:
    talk = Talk()
    talk.begin(1, 2)
    talk.start(1, ORDERS)
    talk.report(1, [ORDERS])
    talk.group.remove(1)
    talk.report(1, state=ConsumerState.LEAVING)
    assert talk.start(2, ORDERS) == ()


def test_a_process_is_named_when_another_comes_in_its_place() -> None:
    talk = Talk()
    talk.begin(1)
    talk.start(1, ORDERS)
    talk.report(1, [ORDERS])
    talk.report(1, incarnation="b")
    assert talk.start(1, ORDERS) == ("1/a",)
    assert not talk.report(1, [ORDERS]), "the old one is not listened to any more"


def test_a_condemned_process_is_named_while_it_still_exists() -> None:
    talk = Talk()
    talk.begin(1, 2)
    talk.start(1, ORDERS)
    talk.group.condemn(1)
    assert talk.start(2, ORDERS) == ("1/a",)


def test_it_is_forgotten_when_its_successor_reads_and_not_when_it_only_holds() -> None:
    talk = Talk()
    talk.begin(1, 2, 3)
    talk.start(1, ORDERS, MORE_ORDERS)
    talk.group.remove(1)
    talk.start(2, ORDERS)
    talk.report(2, [ORDERS], taking_over=[ORDERS])
    assert list(talk.group.former.unsealed) == ["1/a"]
    talk.group.remove(2)
    assert talk.start(3, ORDERS) == ("1/a", "2/a")
    talk.report(3, [ORDERS])
    assert not talk.group.former.unsealed
    assert talk.group.former.settled == ("1/a", "2/a")
    assert talk.start(3, MORE_ORDERS) == (), "it was sealed on the whole table"


def test_a_seal_on_one_topic_is_none_on_another() -> None:
    talk = Talk()
    talk.begin(1, 2)
    talk.start(1, ORDERS, CLICKS)
    talk.group.remove(1)
    talk.start(2, ORDERS)
    talk.report(2, [ORDERS])
    assert talk.start(2, CLICKS) == ("1/a",)


def test_of_two_starts_only_what_both_named_is_taken_for_sealed() -> None:
    talk = Talk()
    talk.begin(1, 2, 3)
    talk.start(1, ORDERS)
    talk.group.remove(1)
    talk.start(2, ORDERS)
    talk.start(3, ORDERS)
    talk.group.remove(3)
    assert talk.start(2, ORDERS) == ("1/a", "3/a")
    talk.report(2, [ORDERS])
    assert list(talk.group.former.unsealed) == ["3/a"]


def test_what_was_heard_of_before_the_controller_began_may_have_read_anything() -> None:
    talk = Talk("4/z")
    talk.begin(1)
    assert talk.start(1, ORDERS) == ("4/z",)
    talk.report(1, [ORDERS])
    assert talk.start(1, MORE_ORDERS) == ()
    assert talk.start(1, CLICKS) == ("4/z",)
    talk.report(1, [ORDERS, CLICKS])
    talk.group.former.settle_everywhere_sealed({"orders", "clicks"})
    assert talk.group.former.settled == ("4/z",)


def test_a_found_consumer_is_no_former_one_once_it_has_reported() -> None:
    talk = Talk("1/a")
    talk.begin(1, found=True)
    talk.begin(2)
    assert talk.report(1, [ORDERS], applied=Order(6, 9))
    assert talk.start(2, CLICKS) == ()
    talk.group.remove(1)
    assert talk.start(2, MORE_ORDERS) == ("1/a",), "it had not obeyed this controller yet: it may have read anything"


def test_of_two_processes_under_one_number_the_first_to_report_counts() -> None:
    talk = Talk("1/a", "1/b")
    talk.begin(1, found=True)
    assert talk.report(1, incarnation="b")
    assert not talk.report(1, [ORDERS], incarnation="a")
    assert talk.start(1, ORDERS) == ("1/a",)


def test_a_process_that_nobody_knows_may_have_read_anything() -> None:
    talk = Talk()
    talk.begin(1)
    talk.report(9, [CLICKS], incarnation="z")
    assert talk.start(1, ORDERS) == ("9/z",)


def test_processes_that_somebody_invents_are_not_named_without_limit() -> None:
    """Hole 22: each report of an invented process made every claim, and every start, longer for ever."""
    talk = Talk("4/known")
    talk.begin(1, 2)
    talk.start(1, ORDERS)
    talk.group.remove(1)
    for number in range(10 * STRANGERS):
        talk.report(1_000 + number, incarnation="invented")
    named = talk.start(2, ORDERS)
    assert len(named) == STRANGERS
    assert {"1/a", "4/known"} <= set(named), "who may have been given something is never left out for them"


def test_a_process_that_no_claim_names_was_given_nothing_where_a_claim_goes_with_each_start() -> None:
    """Hole 12."""
    talk = Talk(begun=Beginning(7, of_strangers=frozenset()))
    talk.begin(1)
    talk.begin(2, found=True)
    talk.report(9, [CLICKS], incarnation="z")
    talk.report(2)
    talk.group.remove(2)
    assert talk.start(1, ORDERS) == ()


def test_only_the_newest_settled_processes_are_remembered() -> None:
    former = FormerWriters()
    for number in range(1, REMEMBERED + 3):
        former.add(f"{number}/a", frozenset())
    assert former.settled[0] == "3/a"
    assert len(former.settled) == REMEMBERED


def a_report(consumer: int, incarnation: str, state: ConsumerState = ConsumerState.READY) -> ConsumerReport:
    return ConsumerReport(
        consumer=consumer, incarnation=incarnation, sequence=1, sent_at=1.0, state=state, applied_epoch=4
    )


def test_a_controller_begins_with_all_who_were_heard_of_and_are_not_accounted_for() -> None:
    history: list[MessageToController] = [
        a_report(1, "old"),
        ControllerClaim(epoch=3, incarnation="c", sent_at=1.0, unsealed=("5/e", "6/f"), settled=("1/old",)),
        ControlRequest(action=ControlAction.PAUSE, sent_at=2.0),
        a_report(2, "left"),
        a_report(2, "left", ConsumerState.LEAVING),
        a_report(3, "here"),
        ControllerClaim(
            epoch=3, incarnation="c", sent_at=3.0, paused=True, unsealed=("6/f",), settled=("1/old", "5/e")
        ),
        a_report(1, "old"),
    ]
    heard_of = dict.fromkeys(("3/here", "6/f"))
    assert beginning(history) == Beginning(epoch=5, paused=True, unsealed=heard_of, settled=("1/old", "5/e"))
    assert beginning([]) == Beginning(epoch=1)


def test_processes_that_somebody_invents_before_a_controller_begins_are_not_named_without_limit() -> None:
    """Hole 22: each report of an invented process made the first claim of the next controller longer."""
    invented = [a_report(1_000 + number, "invented") for number in range(10 * STRANGERS)]
    said = ControllerClaim(epoch=3, incarnation="c", sent_at=1.0, unsealed=("5/e",), members=("6/f",))
    for claim in (None, said, said.model_copy(update={"may_read": {"6/f": {"orders": (0,)}}})):
        left = [a_report(1, "old"), a_report(1, "old", ConsumerState.LEAVING)]
        begun = beginning([*left, said, *invented], claim)
        assert len(begun.unsealed) <= STRANGERS + 2
        assert {"5/e", "6/f"} <= begun.unsealed.keys(), "who may have been given something is never left out for them"
        assert "1/old" not in begun.unsealed


def test_an_epoch_that_no_controller_can_have_had_is_not_believed() -> None:
    """Hole 22: after one report with the highest epoch that a message can name, no controller could begin."""
    invented = a_report(9, "invented").model_copy(update={"applied_epoch": 2**63 - 1})
    said = ControllerClaim(epoch=3, incarnation="c", sent_at=1.0)
    for claim in (None, said):
        begun = beginning([said, invented, a_report(1, "here")], claim)
        assert begun.epoch == 5
        claiming(begun.claim(1.0), begun.epoch, "next", 1.0, 0)


def test_where_everyone_dies_the_next_controller_has_each_writer_sealed_only_where_it_may_have_read() -> None:
    """Hole 12: each start named everyone; with 60 consumers, 3,600 names a topic."""

    def names(consumers: int) -> int:
        partitions = [TopicPartition("orders", number) for number in range(2 * consumers)]
        before, numbers = Talk(), range(1, consumers + 1)
        before.begin(*numbers)
        for number in numbers:
            before.start(number, *partitions[number - 1 :: consumers])
        said = claiming(Claim(1, False, {}, (), before.group.counted_on), 7, "before", 1.0, 0).encode()
        after = Talk(begun=beginning([], ControllerClaim.decode(said)))
        for number in numbers:
            after.report(number, incarnation="b")
        after.begin(*(100 + number for number in numbers))
        return sum(len(after.start(100 + number, *partitions[number - 1 :: consumers])) for number in numbers)

    assert [names(consumers) for consumers in (15, 30, 60)] == [15, 30, 60]


def test_what_a_member_may_read_by_the_claim_it_may_until_it_obeys() -> None:
    """Hole 12: a start of the controller before may still reach it."""
    talk = Talk(begun=Beginning(7, unsealed={"1/a": frozenset({ORDERS, CLICKS})}, of_strangers=frozenset()))
    talk.begin(1, found=True)
    talk.begin(2)
    talk.report(1, [ORDERS], applied=Order(6, 9))
    assert talk.group.counted_on["1/a"] == frozenset({ORDERS, CLICKS})
    assert CLICKS in talk.group[1].known_to_read
    talk.report(1, [ORDERS])
    assert CLICKS not in talk.group[1].known_to_read
    talk.group.remove(1)
    assert (talk.start(2, ORDERS), talk.start(2, CLICKS)) == (("1/a",), ())


def test_who_dies_before_it_obeys_is_named_for_what_the_claim_says() -> None:
    """Hole 12."""
    talk = Talk(begun=Beginning(7, unsealed={"1/a": frozenset({ORDERS}), "3/c": frozenset({CLICKS})}))
    talk.begin(1, 3, found=True)
    talk.begin(2)
    talk.report(1, applied=Order(6, 9))
    talk.group.remove(1)
    talk.group.remove(3)
    assert (talk.start(2, ORDERS), talk.start(2, CLICKS)) == (("1/a",), ("3/c",))
    assert talk.start(2, MORE_ORDERS) == ()


def test_who_may_write_nothing_is_settled_and_a_topic_where_one_is_sealed_is_not_claimed_for_it() -> None:
    """Hole 12: claims do not grow."""
    former = FormerWriters()
    former.inherit({"1/a": frozenset(), "2/a": frozenset({ORDERS, CLICKS})}, (), frozenset())
    former.settle_everywhere_sealed({"orders"})
    former.sealed(["2/a"], "orders")
    assert former.settled == ("1/a",)
    assert former.unsealed == {"2/a": frozenset({CLICKS})}
    assert not former.can_be_recalled("2/a")


def test_a_claim_names_who_is_counted_on_and_neither_who_has_left_nor_who_is_condemned() -> None:
    """Hole 1: the next controller reads no report from before the claim."""
    talk = Talk()
    talk.begin(1, 2, 3, 4)
    talk.group.add(5, 0.0)  # and has not been heard of
    talk.report(2, state=ConsumerState.LEAVING)
    talk.group.condemn(3)
    assert list(talk.group.counted_on) == ["1/a", "4/a"]
