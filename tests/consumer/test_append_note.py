"""What the notes of appends tell, among those of others."""

from consumer.append_note import AppendNote, last_appended


def note(writer: str, last_offsets: dict[int, int]) -> str:
    return AppendNote(writer=writer, last_offsets=last_offsets).model_dump_json()


def test_the_newest_append_of_each_writer_counts() -> None:
    log = [
        note("b", {0: 5}),
        note("a", {0: 9, 1: 2}),
        note("c", {3: 3}),
        note("a", {0: 8, 2: 7}),
        note("b", {0: 4, 5: 1}),
    ]
    assert last_appended(log, {"a"}) == {0: 9, 1: 2}
    assert last_appended(log, {"a", "b"}) == {0: 9, 1: 2}
    assert last_appended(log, {"b", "c"}) == {0: 5, 3: 3}


def test_it_is_not_told_where_a_writer_is_not_among_them() -> None:
    assert last_appended([note("a", {0: 9})], {"a", "b"}) is None
    assert last_appended([], {"a"}) is None


def test_notes_of_others_are_passed_over() -> None:
    log = [None, "", "compacted by hand", "[1]", '{"writer": "a"}', '{"writer": "a", "last_offsets": {"x": 1}}']
    assert last_appended(log, {"a"}) is None
    assert last_appended([*log, note("a", {0: 9})], {"a"}) == {0: 9}
