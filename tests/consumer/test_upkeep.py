"""When tables are taken care of, and by whom."""

from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.upkeep import Rounds, Turn
from domain.moments import Moments
from domain.partitions import TopicPartition

MINUTE = 60.0
EVERY_SECOND_MINUTE = Moments(cron="*/2 * * * *")
ORDERS, OTHER, BILLS = (TopicPartition(*each) for each in (("orders", 0), ("orders", 1), ("bills", 0)))


def test_at_each_moment_it_is_the_turn_of_tables_whose_partition_0_is_read() -> None:
    rounds = Rounds(EVERY_SECOND_MINUTE, MINUTE)
    assert rounds.turn(1.9 * MINUTE, {ORDERS, OTHER, BILLS}) is None
    assert rounds.turn(2 * MINUTE, {ORDERS, OTHER, BILLS}) == Turn(("bills", "orders"))
    assert rounds.turn(3.9 * MINUTE, {ORDERS}) is None, "once a moment"
    assert rounds.turn(4.1 * MINUTE, {OTHER}) is None
    assert rounds.turn(4.2 * MINUTE, {OTHER, ORDERS}) is None, "a moment at which nobody read partition 0 passes"
    assert rounds.turn(9 * MINUTE, {ORDERS}) == Turn(("orders",)), "moments that have passed together count as one"
    assert rounds.turn(9.1 * MINUTE, {ORDERS}) is None


def test_moments_before_the_beginning_do_not_count_nor_do_those_that_a_clock_shows_again() -> None:
    rounds = Rounds(EVERY_SECOND_MINUTE, 2 * MINUTE)
    assert rounds.turn(2.1 * MINUTE, {ORDERS}) is None
    assert rounds.turn(4 * MINUTE, {ORDERS}) == Turn(("orders",))
    assert rounds.turn(3 * MINUTE, {ORDERS}) is None
    assert rounds.turn(4.5 * MINUTE, {ORDERS}) is None


def test_care_that_is_still_under_way_is_told_and_not_begun_again() -> None:
    rounds = Rounds(EVERY_SECOND_MINUTE, MINUTE)
    turn = rounds.turn(2 * MINUTE, {ORDERS}, under_way=True)
    assert turn is not None
    assert (turn.topics, turn.reason) == ((), "the care before is still under way")
    assert rounds.turn(4 * MINUTE, {OTHER}, under_way=True) is None, "nothing is missed"
    assert rounds.turn(6 * MINUTE, {ORDERS}) == Turn(("orders",))


@given(st.lists(st.tuples(st.sampled_from(["look", "other looks", "goes on"]), st.floats(0, 90))))
def test_no_table_has_two_that_take_care_of_it_at_one_moment_however_its_partition_moves(
    steps: list[tuple[str, float]],
) -> None:
    """As consumers do it: one stops, and says so; the next says that it takes over, and then reads."""
    at, reader, other = 0.0, Rounds(EVERY_SECOND_MINUTE, 0.0), Rounds(EVERY_SECOND_MINUTE, 0.0)
    reads = True
    cared_for: list[float | None] = []

    def look(who: Rounds) -> None:
        partitions = {ORDERS} if who is reader and reads else set[TopicPartition]()
        if who.turn(at, partitions) is not None:
            cared_for.append(EVERY_SECOND_MINUTE.last(at))

    for step, seconds in steps:
        at += seconds
        match step, reads:
            case "goes on", True:
                reads = False
                look(reader)
                reader, other = other, reader
                look(reader)
            case "goes on", False:
                reads = True
                look(reader)
            case _:
                look(reader if step == "look" else other)
    assert len(set(cared_for)) == len(cared_for)
