from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.actions import Fetch
from consumer.decide.backoff import LONGEST_S, pause_s
from consumer.decide.cycle import LONGEST_WAIT_S, MOST_RECORDS, FetchPhase

PHASE = FetchPhase(batch_bytes=5_000_000, wait_time_secs=2.0)


def test_the_batch_is_complete_with_batch_bytes() -> None:
    assert PHASE.next_ask(5_000_000, elapsed_s=0.0, largest_bytes=1000, writing=False) is None
    assert PHASE.next_ask(4_999_999, elapsed_s=0.0, largest_bytes=1000, writing=False) is not None


def test_the_batch_is_complete_after_wait_time_secs() -> None:
    assert PHASE.next_ask(0, elapsed_s=2.0, largest_bytes=1000, writing=False) is None
    ask = PHASE.next_ask(0, elapsed_s=1.99, largest_bytes=1000, writing=False)
    assert ask is not None
    assert ask.wait_s <= 0.011


def test_while_the_batch_before_is_written_only_its_bytes_complete_a_batch() -> None:
    ask = PHASE.next_ask(100, elapsed_s=60.0, largest_bytes=1000, writing=True)
    assert ask is not None
    assert ask.wait_s == LONGEST_WAIT_S
    assert PHASE.next_ask(5_000_000, elapsed_s=0.0, largest_bytes=1000, writing=True) is None


def test_no_more_records_are_asked_for_than_there_is_room_for() -> None:
    assert PHASE.next_ask(4_990_000, elapsed_s=0.0, largest_bytes=1000, writing=False) == Fetch(10, LONGEST_WAIT_S)
    assert PHASE.next_ask(0, elapsed_s=0.0, largest_bytes=1000, writing=False) == Fetch(MOST_RECORDS, LONGEST_WAIT_S)


def test_a_record_larger_than_a_batch_is_a_batch() -> None:
    ask = PHASE.next_ask(0, elapsed_s=0.0, largest_bytes=9_000_000, writing=False)
    assert ask is not None
    assert ask.records == 1


@given(st.lists(st.integers(1, 50_000), min_size=1), st.integers(1_000, 200_000))
def test_a_batch_exceeds_its_limit_by_less_than_one_record_of_a_size_seen_before(
    sizes: list[int], batch_bytes: int
) -> None:
    phase, gathered, largest = FetchPhase(batch_bytes, 1.0), 0, max(sizes)
    backlog = sizes * 200
    while ask := phase.next_ask(gathered, elapsed_s=0.0, largest_bytes=largest, writing=False):
        taken, backlog = backlog[: ask.records], backlog[ask.records :]
        if not taken:
            break
        gathered += sum(taken)
    assert gathered < batch_bytes + largest


def test_pauses_double_up_to_the_longest() -> None:
    pauses = [pause_s(failures) for failures in range(1, 9)]
    assert pauses[:4] == [0.2, 0.4, 0.8, 1.6]
    assert pauses == sorted(pauses)
    assert pauses[-1] == pause_s(100_000) == LONGEST_S
