from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.spans import FIRST_LOOK_BACK, Span, Term, look_backs, terms

OFFSETS = st.integers(0, 10**9)
SPANS = st.dictionaries(
    st.integers(0, 200), st.tuples(OFFSETS, OFFSETS).map(lambda ends: Span(min(ends), max(ends))), max_size=40
)


@given(SPANS, st.integers(1, 9))
def test_every_partition_is_asked_for_once_within_no_less_than_its_span(spans: dict[int, Span], most: int) -> None:
    asked = terms(spans, most)
    assert len(asked) <= most
    assert sorted(number for term in asked for number in term.partitions) == sorted(spans)
    for term in asked:
        assert term.span.low == min(spans[number].low for number in term.partitions)
        assert term.span.high == max(spans[number].high for number in term.partitions)
    assert list(asked) == sorted(asked)


def test_one_that_is_far_behind_does_not_widen_the_span_of_the_others() -> None:
    spans = {0: Span(990, 1000), 1: Span(1000, 1010), 2: Span(5, 9), 3: Span(995, 999)}
    assert terms(spans, most=2) == (Term(Span(5, 9), (2,)), Term(Span(990, 1010), (0, 1, 3)))


def test_nothing_is_asked_for_nothing() -> None:
    assert terms({}) == ()


@given(OFFSETS)
def test_what_is_near_the_end_is_looked_for_first_and_everything_at_last(end: int) -> None:
    looks = look_backs(end)
    assert looks[0].low == max(end - FIRST_LOOK_BACK, 0)
    assert looks[-1] == Span(0, end)
    assert {span.high for span in looks} == {end}
    assert list(looks) == sorted(set(looks), reverse=True)
    assert len(looks) <= 4
