"""The most readers of a partition at one time."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from domain.messages import ConsumerReport, Order, Read
from sandbox.readers import Interval, MostReaders, ReadLog, Stint, most_readers
from tests.sandbox.watch_messages import BEGAN, cycle, partition, read, report


def most(*reports: ConsumerReport) -> MostReaders:
    return most_readers(ReadLog(reports).stints)


def told(consumer: int, *reads: Read, sequence: int = 1, incarnation: str = "a") -> ConsumerReport:
    return report(consumer, BEGAN, sequence=sequence, incarnation=incarnation, cycle=cycle(*reads))


def test_nothing_read_has_no_reader() -> None:
    assert most() == MostReaders()
    assert most(report(1, BEGAN, "orders-0"), told(2), told(3, read("orders-0", 1, 2, records=0))).count == 0


def test_a_partition_that_is_handed_over_has_one_reader_at_a_time() -> None:
    assert most(told(1, read("orders-0", 1, 5)), told(2, read("orders-0", 6, 9))).count == 1


def test_the_cycles_of_a_stint_are_one_interval_and_hide_no_reader_between_them() -> None:
    found = most(
        told(1, read("orders-0", 1, 2)),
        told(1, read("orders-0", 8, 9), sequence=2),
        told(2, read("orders-0", 4, 5)),
    )
    assert found.count == 2
    assert found.at == 4
    assert [stint.consumer for stint in found.readers] == [1, 2]


def test_a_consumer_that_got_the_partition_back_has_another_stint() -> None:
    found = most(
        told(1, read("orders-0", 1, 2, stint=1)),
        told(2, read("orders-0", 4, 5, stint=1)),
        told(1, read("orders-0", 8, 9, stint=7), sequence=2),
    )
    assert found.count == 1


def test_a_restarted_consumer_is_another_reader() -> None:
    first, second = told(1, read("orders-0", 1, 5)), told(1, read("orders-0", 4, 9), incarnation="b")
    assert most(first, second).count == 2


def test_partitions_are_counted_apart() -> None:
    assert most(told(1, read("orders-0", 1, 5)), told(2, read("orders-1", 1, 5), read("clicks-0", 1, 5))).count == 1


def test_reads_that_share_a_single_moment_overlap() -> None:
    assert most(told(1, read("orders-0", 1, 5)), told(2, read("orders-0", 5, 5))).count == 2


def test_a_clock_that_was_set_back_within_a_read_hides_nothing() -> None:
    assert most(told(1, read("orders-0", 9, 1)), told(2, read("orders-0", 5, 5))).count == 2


def test_reports_twice_and_in_any_order_prove_the_same() -> None:
    reports = [
        told(1, read("orders-0", 1, 2), read("orders-1", 1, 2)),
        told(1, read("orders-0", 3, 4), sequence=2),
        told(2, read("orders-0", 5, 6), read("orders-1", 2, 3)),
        told(1, read("orders-1", 8, 9, stint=4), sequence=3),
    ]
    expected = most(*reports)
    assert expected.count == 2
    for order in permutations(reports):
        assert most(*order, *order[:2]) == expected


moments = st.integers(0, 12).map(float)
intervals = st.tuples(moments, moments).map(lambda pair: Interval(min(pair), max(pair)))
stints = st.builds(
    Stint,
    partition=st.sampled_from([partition("orders-0"), partition("orders-1")]),
    consumer=st.integers(1, 3),
    incarnation=st.sampled_from("ab"),
    start=st.builds(Order, st.just(1), st.integers(1, 3)),
)


@given(st.dictionaries(stints, intervals, max_size=12))
def test_the_most_readers_are_those_that_looking_at_every_moment_finds(recorded: dict[Stint, Interval]) -> None:
    # An interval begins at the moment at which most overlap, so half-integers need not be looked at; they are anyway.
    at_once = [
        {stint for stint, seen in recorded.items() if stint.partition == each and seen.first <= half / 2 <= seen.last}
        for each in {stint.partition for stint in recorded}
        for half in range(25)
    ]
    found = most_readers(recorded)
    assert found.count == max(map(len, at_once), default=0)
    if found.at is not None:
        assert set(found.readers) in at_once
        assert len({stint.partition for stint in found.readers}) == 1
        assert all(recorded[stint].first <= found.at <= recorded[stint].last for stint in found.readers)


reads = st.builds(
    read,
    st.sampled_from(["orders-0", "orders-1"]),
    moments,
    moments,
    stint=st.integers(1, 2),
    records=st.integers(0, 2),
)
reports = st.builds(
    told, st.integers(1, 3), reads, reads, sequence=st.integers(1, 4), incarnation=st.sampled_from("ab")
)


@given(st.data())
def test_what_the_reports_prove_does_not_depend_on_their_order_or_number(data: st.DataObject) -> None:
    sent = data.draw(st.lists(reports, max_size=6))
    arrived = data.draw(st.permutations(sent)) + data.draw(
        st.lists(st.sampled_from(sent), max_size=4) if sent else st.just([])
    )
    assert ReadLog(arrived).stints == ReadLog(sent).stints
    assert most(*arrived) == most(*sent)
