"""What a take-over asks of the lake, with adapters that only answer; the real ones are in test_exactly_once."""

from typing import Any
from unittest.mock import Mock, call, create_autospec

import pytest

from consumer.decide.claims import RELEASED, Committed, claim
from consumer.decide.reached import Reached
from consumer.decide.spans import Span
from consumer.decide.takeover import MOST_LOOKS, ClaimsError, take_over
from consumer.lake import Lake
from consumer.offsets import GroupOffsets
from domain.partitions import OffsetRange, TopicPartition

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
END = 70


@pytest.fixture
def lake() -> Mock:
    lake: Mock = create_autospec(Lake, instance=True)
    lake.last_appended.return_value = {0: Reached(59), 1: Reached(59)}
    lake.last_set_aside.return_value = {}
    lake.last_offsets.return_value = {}
    return lake


def positions(lake: Mock, first: Committed, second: Committed) -> tuple[int, int]:
    """Where reading goes on after these commits."""
    offsets = create_autospec(GroupOffsets, instance=True)
    offsets.committed.return_value = {FIRST: first, SECOND: second}
    offsets.ranges.return_value = dict.fromkeys((FIRST, SECOND), OffsetRange(0, END))
    found = take_over([FIRST, SECOND], [], "3/c", offsets, lake, "group", lambda: None)
    return found[FIRST].offset, found[SECOND].offset


def test_nothing_is_asked_about_what_was_released(lake: Mock) -> None:
    assert positions(lake, Committed(50, RELEASED), Committed(END, RELEASED)) == (50, END)
    lake.last_appended.assert_not_called()
    lake.last_offsets.assert_not_called()


def test_the_log_is_asked_only_about_what_may_be_behind(lake: Mock) -> None:
    assert positions(lake, Committed(50, claim("1/a")), Committed(50, RELEASED)) == (60, 50)
    lake.last_appended.assert_called_once_with("orders", {0})
    lake.last_offsets.assert_not_called()


def test_at_its_end_the_table_tells_whether_the_log_was_cut_off_and_has_grown_to_there_again(lake: Mock) -> None:
    lake.last_appended.return_value = {0: Reached(59, 4), 1: Reached(END - 1, 3)}
    at_end = Committed(END, claim("1/a"), 3)
    assert positions(lake, at_end, at_end) == (60, END)
    lake.last_offsets.assert_not_called()


def test_the_rows_are_looked_at_where_the_log_does_not_tell(lake: Mock) -> None:
    lake.last_appended.return_value = {}
    lake.last_offsets.return_value = {0: 54}
    assert positions(lake, Committed(50, claim("1/a")), Committed(50, RELEASED)) == (55, 50)
    lake.last_offsets.assert_called_once()


def test_the_rows_are_looked_at_where_the_log_tells_of_other_partitions_alone(lake: Mock) -> None:
    """Hole 13: where the claimant has appended anything, they were not, though another may have gone on."""
    lake.last_appended.return_value = {1: Reached(59)}
    lake.last_offsets.return_value = {0: 64}
    assert positions(lake, Committed(50, claim("1/a")), Committed(50, claim("1/a"))) == (65, 60)
    lake.last_offsets.assert_called_once_with("orders", {0: Span(49, END)})


def test_what_the_log_tells_from_beyond_the_end_is_of_a_log_that_is_no_more(lake: Mock) -> None:
    lake.last_appended.return_value = {0: Reached(END + 5)}
    assert positions(lake, Committed(50, claim("1/a")), Committed(50, RELEASED)) == (50, 50)


def test_where_the_log_is_shorter_than_what_was_committed_what_was_appended_of_its_new_records_counts(
    lake: Mock,
) -> None:
    """Who claims it was told of the cut, read on from there, and died before its commit."""
    lake.last_appended.return_value = {0: Reached(42, 4), 1: Reached(END + 9, 3)}
    cut = Committed(END + 10, claim("1/a"), 3)
    assert positions(lake, cut, cut) == (43, END + 10), "the second waits for what its leader tells"
    lake.last_offsets.assert_not_called()


def steps_of_a_take_over(
    lake: Mock, told: list[str], *looks: Committed
) -> tuple[dict[TopicPartition, Reached], list[Any]]:
    """Where reading goes on, and what is asked in which order, where one look after another sees these commits."""
    steps = Mock()
    offsets = create_autospec(GroupOffsets, instance=True)
    offsets.committed.side_effect = [{FIRST: look} for look in looks]
    offsets.ranges.return_value = {FIRST: OffsetRange(0, END)}
    lake.last_appended.return_value = {0: Reached(64)}
    for name, step in (("look", offsets.committed), ("fence", offsets.fence), ("seal", lake.seal)):
        steps.attach_mock(step, name)
    steps.attach_mock(lake.last_appended, "ask")
    return take_over([FIRST], told, "3/c", offsets, lake, "group", lambda: None), steps.mock_calls


def test_former_writers_are_fenced_then_sealed_and_only_then_positions_are_looked_up(lake: Mock) -> None:
    """Until then the former reader may have gone on: here it has claimed the partition, and read, after the first
    look."""
    claimed = Committed(60, claim("1/a"))
    assert steps_of_a_take_over(lake, [], Committed(50, claim("1/a")), claimed) == (
        {FIRST: Reached(65)},
        [
            call.look([FIRST]),
            call.fence("1/a"),
            call.seal("orders", "group/1/a"),
            call.look([FIRST]),
            call.ask("orders", {0}),
        ],
    )


def test_whom_the_start_names_is_fenced_before_anybody_asks_what_is_committed(lake: Mock) -> None:
    """Hole 11: where a writer died in the middle of a commit, the brokers tell of none for a minute, or until it is
    fenced."""
    assert steps_of_a_take_over(lake, ["1/a"], Committed(60, claim("1/a"))) == (
        {FIRST: Reached(65)},
        [
            call.fence("1/a"),
            call.seal("orders", "group/1/a"),
            call.look([FIRST]),
            call.ask("orders", {0}),
        ],
    )


def test_who_claims_a_partition_while_others_are_sealed_is_sealed_too(lake: Mock) -> None:
    looks = [Committed(50, claim("1/a")), Committed(55, claim("2/b")), Committed(60, claim("2/b"))]
    _, steps = steps_of_a_take_over(lake, [], *looks)
    assert steps == [
        call.look([FIRST]),
        call.fence("1/a"),
        call.seal("orders", "group/1/a"),
        call.look([FIRST]),
        call.fence("2/b"),
        call.seal("orders", "group/2/b"),
        call.look([FIRST]),
        call.ask("orders", {0}),
    ]


def test_a_partition_that_others_claim_all_the_while_is_not_taken_over(lake: Mock) -> None:
    with pytest.raises(ClaimsError, match="2/10"):
        steps_of_a_take_over(lake, [], *(Committed(50, claim(f"2/{number}")) for number in range(1, MOST_LOOKS + 1)))


def test_a_lease_that_has_run_out_keeps_it_from_fencing_and_sealing_anybody(lake: Mock) -> None:
    offsets = create_autospec(GroupOffsets, instance=True)
    offsets.committed.return_value = {FIRST: Committed(50, claim("1/a"))}

    def require_lease() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        take_over([FIRST], [], "3/c", offsets, lake, "group", require_lease)
    offsets.fence.assert_not_called()
    lake.seal.assert_not_called()
