"""What the notes of appends tell, among those of others."""

from consumer.decide.append_note import AppendNote, last_appended
from consumer.decide.reached import Reached


def note(writer: str, last_offsets: dict[int, int]) -> str:
    return AppendNote(writer=writer, last_offsets=last_offsets).model_dump_json()


def test_the_newest_append_that_has_rows_of_a_partition_counts_whoever_made_it() -> None:
    """Hole 13: only those of who claimed it were looked at. The claim may be an old one, that is left where the brokers
    have lost the newer ones."""
    log = [
        note("b", {0: 15}),
        note("a", {0: 9, 1: 2}),
        note("c", {3: 3}),
        note("a", {0: 8, 2: 7}),
        note("b", {0: 4, 5: 1}),
    ]
    assert last_appended(log, {0}) == {0: Reached(15)}
    assert last_appended(log, {0, 1, 2, 5}) == {0: Reached(15), 1: Reached(2), 2: Reached(7), 5: Reached(1)}


def test_a_partition_that_no_entry_has_rows_of_is_left_out() -> None:
    assert last_appended([note("a", {0: 9})], {0, 1}) == {0: Reached(9)}
    assert last_appended([], {0}) == {}


def test_notes_of_others_are_passed_over() -> None:
    log = [None, "", "compacted by hand", "[1]", '{"writer": "a"}', '{"writer": "a", "last_offsets": {"x": 1}}']
    assert last_appended(log, {0}) == {}
    assert last_appended([*log, note("a", {0: 9})], {0}) == {0: Reached(9)}


def test_a_note_tells_of_which_leader_the_last_record_of_a_partition_was_read() -> None:
    log = [AppendNote(writer="a", last_offsets={0: 9, 1: 7}, last_epochs={0: 3}).model_dump_json(), note("a", {0: 20})]
    assert last_appended(log, {0, 1}) == {0: Reached(9, 3), 1: Reached(7)}
