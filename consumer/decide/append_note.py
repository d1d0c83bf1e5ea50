"""What an append says of itself in the table's log: who made it, and how far it goes.

To read the newest entries of a log costs the same however many files the table has, and however far apart the offsets
of the partitions are that these hold.
"""

from collections.abc import Collection, Iterable, Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from consumer.decide.reached import Reached


class AppendNote(BaseModel):
    """The note of one append."""

    model_config = ConfigDict(frozen=True)

    writer: str
    last_offsets: Mapping[int, int]
    """Of each partition that has rows in it, the highest."""
    last_epochs: Mapping[int, int] = {}
    """Of the leaders that took those, as far as they are known."""
    topic: str | None = None
    """Whose partitions these are, in the table of the dead letters; none in a table that has one topic."""

    @property
    def last(self) -> dict[int, Reached]:
        """The last row of each partition that has rows in it."""
        return {number: Reached(offset, self.last_epochs.get(number)) for number, offset in self.last_offsets.items()}


def last_appended(
    notes: Iterable[str | None], partitions: Collection[int], topic: str | None = None
) -> dict[int, Reached]:
    """The last row of each of the partitions, whoever appended it: in the newest append that has rows of it.

    Args:
        notes: of the newest entries of the log, the newest first. Some have none, or one of somebody else's.
        partitions: what is looked for; those of which no entry here has rows are left out.
        topic: whose they are, in the table of the dead letters.
    """
    found: dict[int, Reached] = {}
    for text in notes:
        note = _parsed(text)
        if note is not None and note.topic == topic:
            found = {number: last for number, last in note.last.items() if number in partitions} | found
    return found


def _parsed(text: str | None) -> AppendNote | None:
    if text is None:
        return None
    try:
        return AppendNote.model_validate_json(text)
    except ValidationError:
        return None
