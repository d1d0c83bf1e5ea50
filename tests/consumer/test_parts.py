"""How the records that a table refuses are found in a batch."""

from collections.abc import Set

from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.parts import Part

MANY = 10_000


def written(
    rows: int, refused: Set[int], most: int = MANY, *, tells_place: bool = False
) -> tuple[list[Part], Part | None]:
    """The parts that the table or the dead letters took, in this order; and the one that the table never takes."""
    part: Part | None = Part.whole(rows)
    taken: list[Part] = []
    while part is not None:
        if not part.is_dead and (at_fault := refused & set(range(part.first, part.end))):
            following = part.refused(most, min(at_fault) - part.first if tells_place else None)
            if following is None:
                return taken, part
            part = following
        else:
            taken.append(part)
            part = part.settled()
    return taken, None


def refusals() -> st.SearchStrategy[tuple[int, Set[int]]]:
    return st.integers(1, 60).flatmap(
        lambda rows: st.tuples(st.just(rows), st.frozensets(st.integers(0, rows - 1), max_size=rows))
    )


@given(refusals(), st.booleans())
def test_each_row_is_taken_once_in_order_and_those_alone_are_set_aside_that_are_refused(
    of: tuple[int, Set[int]], tells_place: bool
) -> None:
    rows, refused = of
    taken, left = written(rows, refused, tells_place=tells_place)
    assert left is None
    assert [row for part in taken for row in range(part.first, part.end)] == list(range(rows))
    assert [part.first for part in taken if part.is_dead] == sorted(refused)
    assert all(part.end - part.first == 1 for part in taken if part.is_dead)


@given(refusals(), st.integers(0, 5), st.booleans())
def test_no_more_are_set_aside_than_allowed_and_all_before_the_next_one_is_written(
    of: tuple[int, Set[int]], most: int, tells_place: bool
) -> None:
    rows, refused = of
    taken, left = written(rows, refused, most, tells_place=tells_place)
    assert sum(part.is_dead for part in taken) == min(most, len(refused))
    assert (left is None) == (len(refused) <= most)
    if left is not None:
        assert left.first <= sorted(refused)[most]
        assert [row for part in taken for row in range(part.first, part.end)] == list(range(left.first))


def test_batches_of_which_the_table_takes_none_count_as_one() -> None:
    """Else a table that takes nothing would have them all set aside, a few at a time."""
    (alone,) = (part for part in [Part.whole(1, in_vain=1).refused(most=2)] if part is not None)
    assert alone.is_dead
    assert alone.settled() is None
    assert alone.in_vain == 2
    assert Part.whole(1, alone.in_vain).refused(most=2) is None


@given(refusals())
def test_what_a_table_took_any_of_is_not_set_aside_in_vain(of: tuple[int, Set[int]]) -> None:
    rows, refused = of
    taken, _ = written(rows, refused)
    assert taken[-1].in_vain == (rows if len(refused) == rows else 0)


def test_one_record_among_ten_thousand_is_found_with_thirty_writes() -> None:
    asked = 0
    part: Part | None = Part.whole(10_000)
    while part is not None:
        asked += 1
        is_refused = not part.is_dead and part.first <= 6_789 < part.end
        part = part.refused(most=1) if is_refused else part.settled()
    assert asked <= 30


@given(refusals())
def test_where_places_are_told_there_is_no_more_to_write_than_what_lies_between(of: tuple[int, Set[int]]) -> None:
    rows, refused = of
    taken, _ = written(rows, refused, tells_place=True)
    assert len(taken) <= 2 * len(refused) + 1


def test_a_record_is_set_aside_only_where_it_was_refused_by_itself() -> None:
    """The table may take by now what it has refused among others."""
    (half,) = (part for part in [Part.whole(2).refused(most=1)] if part is not None)
    rest = half.settled()
    assert rest is not None
    assert (rest.first, rest.end, rest.is_dead) == (1, 2, False)
    assert rest.settled() is None
