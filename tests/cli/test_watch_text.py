"""Figures, courses over time and bars: the parts of the picture."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import figures
from cli.terminal.bars import Scale, axis, bar
from cli.terminal.glyphs import ASCII, UNICODE, TopicPalette
from cli.terminal.sparkline import resample, sparkline
from domain.group_view.view import HeldPartition, Sample
from tests.sandbox.watch_messages import partition


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (None, "-"),
        (0.0, "0 B"),
        (999.4, "999 B"),
        (999.6, "1.00 kB"),
        (9_994.0, "9.99 kB"),
        (9_996.0, "10.0 kB"),
        (2_412_000.0, "2.41 MB"),
        (99_960_000.0, "100 MB"),
        (3e15, "3000 TB"),
    ],
)
def test_bytes_have_three_digits_and_a_unit(amount: float | None, shown: str) -> None:
    assert figures.data(amount) == shown


def test_a_speed_that_is_not_known_is_a_dash() -> None:
    assert (figures.speed(None), figures.speed(1500.0)) == ("-", "1.50 kB/s")


@pytest.mark.parametrize(("seconds", "shown"), [(-1, "00:00"), (83.9, "01:23"), (3723, "1:02:03")])
def test_a_duration_reads_as_on_a_clock(seconds: float, shown: str) -> None:
    assert figures.clock(seconds) == shown


def test_a_noun_is_in_the_plural_unless_there_is_one() -> None:
    assert [figures.plural(number, "record") for number in (0, 1, 12_345)] == [
        "0 records",
        "1 record",
        "12,345 records",
    ]


def test_a_lag_is_in_records_and_in_seconds_where_those_are_known() -> None:
    shown = [figures.lag(records, seconds) for records, seconds in ((None, None), (12_345, None), (12_345, 3.4))]
    assert shown == ["-", "12,345", "12,345 (3 s)"]


def test_each_part_of_a_course_shows_the_highest_value_in_it() -> None:
    samples = [Sample(1, 5), Sample(2.5, 9), Sample(2.6, 1), Sample(4, 3)]
    assert resample(samples, 0, 6, 6) == [None, 5, 9, 1, 3, 3]


def test_a_sample_at_the_very_end_is_shown() -> None:
    assert resample([Sample(0, 1), Sample(6, 8)], 0, 6, 3) == [1, 1, 8]


def test_a_course_without_duration_shows_what_holds() -> None:
    assert resample([Sample(5, 4)], 5, 5, 3)[-1] == 4


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), unique_by=lambda pair: pair[0], max_size=20),
    st.integers(1, 12),
)
def test_a_course_is_what_looking_at_every_moment_finds(changes: list[tuple[int, int]], width: int) -> None:
    samples = [Sample(float(at), float(value)) for at, value in sorted(changes)]
    step = 60 / width

    def at(moment: float) -> float | None:
        return next((sample.value for sample in reversed(samples) if sample.at <= moment), None)

    moments = [sample.at for sample in samples]
    expected = []
    for part in range(width):
        looked = [part * step, *(moment for moment in moments if part * step <= moment < (part + 1) * step)]
        expected.append(max((value for moment in looked if (value := at(moment)) is not None), default=None))
    assert resample(samples, 0.0, 60.0, width) == expected


def test_only_nothing_has_the_lowest_level_and_the_highest_value_the_highest() -> None:
    assert sparkline([None, 0, 0.01, 5, 10], UNICODE.levels) == " ▁▂▅█"
    assert sparkline([0, None], UNICODE.levels) == "▁ "
    assert sparkline([], ASCII.levels) == ""


def held(**speeds: float | None) -> list[HeldPartition]:
    return [HeldPartition(partition(name.replace("_", "-")), speed) for name, speed in speeds.items()]


def drawn(partitions: list[HeldPartition], scale: Scale, colours: bool = False) -> str:
    return bar(partitions, scale, TopicPalette(), ASCII, colours).plain


SCALE = Scale(capacity=30.0, packing=20.0, end=40.0, width=40)


def test_a_partition_is_as_wide_as_its_speed_and_named_where_there_is_room() -> None:
    assert drawn(held(orders_0=10.0, orders_1=3.0, pay_2=1.0), SCALE) == " orders-0| 1||      :         |         "


def test_topics_differ_in_their_fill_where_there_are_no_colours() -> None:
    assert drawn(held(a_0=8.0, b_0=8.0), SCALE).startswith(" a-0===| b-0+++|")


def test_topics_differ_in_colour_and_no_ground_is_set() -> None:
    text = bar(held(a_0=8.0, b_0=8.0), SCALE, TopicPalette(), UNICODE, True)
    styles = [span.style for span in text.spans if not isinstance(span.style, str) and span.style.reverse]
    assert len({style.color for style in styles}) == 2
    assert all(style.bgcolor is None for style in styles)


def test_a_partition_without_a_known_speed_has_no_width() -> None:
    assert drawn(held(a_0=None, b_0=0.0), SCALE) == drawn([], SCALE)


def test_what_lies_beyond_the_capacity_is_overload_whichever_partition_it_is() -> None:
    assert drawn(held(a_0=10.0, b_0=25.0), SCALE)[30:] == "|####     "


def test_a_bar_that_is_longer_than_the_scale_says_so() -> None:
    assert drawn(held(a_0=90.0), SCALE).endswith("###>")


def test_no_mark_hides_a_letter() -> None:
    narrow = Scale(capacity=30.0, packing=3.0, end=40.0, width=40)
    assert drawn(held(orders_0=12.0), narrow).startswith(" orders-0==|")


@given(
    st.lists(st.floats(0, 50) | st.none(), max_size=8),
    st.integers(10, 120),
    st.booleans(),
    st.sampled_from([ASCII, UNICODE]),
)
def test_a_bar_is_as_wide_as_its_scale(speeds: list[float | None], width: int, colours: bool, glyphs: object) -> None:
    assert glyphs in (ASCII, UNICODE)
    partitions = [HeldPartition(partition(f"orders-{number}"), speed) for number, speed in enumerate(speeds)]
    load = math.fsum(speed or 0.0 for speed in speeds)
    scale = Scale.over([load], 30.0, 20.0, width)
    text = bar(partitions, scale, TopicPalette(), UNICODE if glyphs is UNICODE else ASCII, colours)
    assert len(text.plain) == width
    assert scale.end >= min(load, 60.0) - 1e-9


def test_the_scale_ends_beyond_the_capacity_and_at_twice_of_it_at_most() -> None:
    assert [Scale.over([load], 100.0, 75.0, 50).end for load in (0, 120, 121, 190, 900)] == pytest.approx(
        [120, 120, 150, 200, 200]
    )


def test_the_marks_are_labelled_where_there_is_room() -> None:
    assert axis(SCALE, ASCII, "20 B/s", "30 B/s", 10).plain == f"{'packing 20 B/s ':>20}:         | capacity 30 B/s   "
    narrow = Scale(capacity=30.0, packing=25.0, end=40.0, width=12)
    assert axis(narrow, ASCII, "25 B/s", "30 B/s", 6).plain == " 25 B/s :| 30 B/s "
