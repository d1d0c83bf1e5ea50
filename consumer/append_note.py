"""What an append says of itself in the table's log: who made it, and how far it goes.

To read the newest entries of a log costs the same however many files the table has, and however far apart the offsets
of the partitions are that these hold.
"""

from collections.abc import Collection, Iterable, Mapping

from pydantic import BaseModel, ConfigDict, ValidationError


class AppendNote(BaseModel):
    """The note of one append."""

    model_config = ConfigDict(frozen=True)

    writer: str
    last_offsets: Mapping[int, int]
    """Of each partition that the writer has appended rows of, up to this append, the highest."""


def last_appended(notes: Iterable[str | None], writers: Collection[str]) -> dict[int, int] | None:
    """The highest offset of each partition in the newest appends of these writers; none where one has none here.

    Args:
        notes: of the newest entries of the log, the newest first. Some have none, or one of somebody else's.
        writers: whose appends are looked for.
    """
    newest: dict[str, AppendNote] = {}
    for text in notes:
        note = _parsed(text)
        if note is not None and note.writer in writers:
            newest.setdefault(note.writer, note)
    if newest.keys() != set(writers):
        return None
    found: dict[int, int] = {}
    for note in newest.values():
        for partition, offset in note.last_offsets.items():
            found[partition] = max(offset, found.get(partition, offset))
    return found


def _parsed(text: str | None) -> AppendNote | None:
    if text is None:
        return None
    try:
        return AppendNote.model_validate_json(text)
    except ValidationError:
        return None
