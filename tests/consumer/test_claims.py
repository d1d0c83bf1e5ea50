from consumer.decide.claims import RELEASED, Committed, claim, next_position, to_seal, where_to_look, writer
from consumer.decide.reached import Reached
from consumer.decide.spans import Span


def next_offset(last_in_lake: int | None, committed: Committed | None) -> int | None:
    """Where no leader's epoch is known."""
    position = next_position(None if last_in_lake is None else Reached(last_in_lake), committed)
    return None if position is None else position.offset


def test_whoever_claims_a_partition_is_sealed_and_so_is_whom_the_controller_names() -> None:
    committed = [
        Committed(5, claim("2/b")),
        Committed(7, RELEASED),
        Committed(7, "a note of somebody else"),
        Committed(9, claim(writer(1, "a"))),
        None,
    ]
    assert to_seal("3/c", ["2/b", "4/d"], committed) == ("1/a", "2/b", "4/d")


def test_nobody_seals_himself() -> None:
    assert to_seal("3/c", ["3/c"], [Committed(5, claim("3/c"))]) == ()


def test_what_kcga_committed_is_never_ahead_of_the_lake() -> None:
    committed = Committed(50, claim("1/a"))
    assert where_to_look(committed, end=70) == (Span(49, 70),)
    assert next_offset(60, committed) == 61
    assert next_offset(49, committed) == 50
    assert next_offset(None, committed) == 50
    assert next_offset(3, committed) == 50, "found beside the span"
    assert where_to_look(Committed(0, claim("1/a")), end=1) == (Span(0, 1),)


def test_who_releases_a_partition_has_committed_all_that_it_wrote() -> None:
    released = Committed(50, RELEASED)
    assert where_to_look(released, end=70) == ()
    assert next_offset(None, released) == 50


def test_nothing_is_looked_for_where_all_records_are_committed() -> None:
    committed = Committed(50, claim("1/a"))
    assert where_to_look(committed, end=50) == ()
    assert where_to_look(committed, end=20) == (), "a topic made anew"


def test_a_commit_of_somebody_else_counts_where_the_lake_has_no_row() -> None:
    for committed in (Committed(50, ""), Committed(50, "a note"), None):
        assert where_to_look(committed, end=70) == (Span(0, 70),)
        assert next_offset(10, committed) == 11
        assert next_offset(60, committed) == 61
    assert next_offset(None, Committed(50, "")) == 50


def test_where_nothing_is_known_reading_begins_at_the_beginning() -> None:
    assert next_offset(None, None) is None


def test_what_was_read_of_a_later_leader_counts_though_its_offsets_are_lower() -> None:
    """The log was cut off at 40, after it had been read to 50, and other records have those offsets by now."""
    before, after = Committed(50, claim("1/a"), epoch=3), Committed(45, claim("1/a"), epoch=4)
    assert next_position(Reached(42, 4), before) == Reached(43, 4)
    assert next_position(Reached(49, 3), after) == Reached(45, 4)
    assert next_position(Reached(47, 4), after) == Reached(48, 4)
    assert next_position(Reached(60, 5), after) == Reached(61, 5)


def test_a_commit_tells_of_which_leader_the_last_record_was_read() -> None:
    assert next_position(None, Committed(50, RELEASED, epoch=3)) == Reached(50, 3)
