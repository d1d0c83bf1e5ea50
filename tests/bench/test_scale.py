"""How long partitions are without a reader, where consumers die: what `bench.scale` counts."""

from collections import Counter

from bench.scale.deaths import LONGEST_S, Deaths
from bench.scale.gaps import Gap, Gaps
from domain.partitions import TopicPartition

FIRST, SECOND, THIRD = (TopicPartition("t", number) for number in range(3))


def test_a_gap_lasts_until_somebody_reads_again_and_a_first_reader_ends_none() -> None:
    gaps = Gaps()
    gaps.end([FIRST, SECOND], 1.0)
    gaps.begin([FIRST, SECOND], 2.0, died=True)
    gaps.end([FIRST, THIRD], 5.0)
    assert gaps.over == [Gap(3.0, died=True)]
    assert gaps.open == 1


def test_who_was_to_read_it_next_dying_makes_a_gap_no_shorter() -> None:
    gaps = Gaps()
    gaps.begin([FIRST], 2.0)
    gaps.begin([FIRST], 4.0, died=True)
    gaps.end([FIRST], 5.0)
    assert gaps.over == [Gap(3.0, died=False)]


def test_the_bar_is_missed_by_one_long_gap_and_by_one_that_never_ends() -> None:
    def came(*gaps: Gap, unread: int = 0) -> list[str]:
        lost = sum(gap.died for gap in gaps) + unread
        return list(Deaths(1, lost, gaps, 66.0, unread, Counter(), 0.5).misses())

    assert came(Gap(LONGEST_S, died=True), Gap(1.0, died=False)) == []
    assert came(Gap(6.0, died=True)) == ["1 times a partition had no reader for longer than 5 s, 6.0 s at most"]
    assert came(Gap(6.0, died=False)) == ["1 times a partition had no reader for longer than 5 s, 6.0 s at most"]
    assert came(Gap(1.0, died=True), unread=2) == ["2 partitions had no reader 66 s after the last death"]
