"""Which rows of a batch are appended next, where a table refuses a record among them.

The rows before a record are appended before it, and those behind it after it is settled: at every moment what the table
and the dead letters have of a partition ends at one offset, at which whoever takes over goes on. A part is half of one
that was refused; only a record that was refused by itself is one to be set aside.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Part:
    """The rows from `first` on, before `end`; all before `first` are settled."""

    first: int
    end: int
    rows: int
    """Of the batch."""
    suspected_to: int = 0
    """The table has refused a part that ended here: a record before it is at fault."""
    set_aside: int = 0
    """Records of the batch that are no rows of the table, and of those before it of which the table took none."""
    is_taken: bool = False
    """Whether the table took any of the batch."""
    is_dead: bool = False
    """Whether it is a record to be set aside."""

    @classmethod
    def whole(cls, rows: int, in_vain: int = 0) -> "Part":
        """All of a batch, after so many records were set aside of batches of which the table took none."""
        return cls(0, rows, rows, set_aside=in_vain)

    @property
    def is_whole(self) -> bool:
        return self.end - self.first == self.rows and not self.is_dead

    @property
    def in_vain(self) -> int:
        """Records that were set aside since the table last took any, once this part of the batch is settled."""
        return self.set_aside + 1 if self.is_dead and not self.is_taken else 0

    @property
    def in_vain_so_far(self) -> int:
        """The same, before it is settled."""
        return 0 if self.is_taken else self.set_aside

    def refused(self, most: int, place: int | None = None) -> "Part | None":
        """What is to be done next, where a record of this one is refused; none if `most` are set aside already.

        Args:
            most: records of a batch that are set aside.
            place: of the record in this part, where that is known.
        """
        if self.is_dead or self.set_aside >= most:
            return None
        if self.end - self.first == 1:
            return replace(self, is_dead=True)
        if place is not None:
            return replace(self, end=self.first + max(place, 1), suspected_to=self.first + place + 1)
        return replace(self, suspected_to=self.end)._half()

    def settled(self) -> "Part | None":
        """What is to be done next, where the table, or the dead letters, took this one; none if that is all."""
        if self.end == self.rows:
            return None
        set_aside, is_taken = self.set_aside + self.is_dead, self.is_taken or not self.is_dead
        rest = Part(self.end, self.rows, self.rows, self.suspected_to, set_aside, is_taken)
        return rest._half() if self.suspected_to > self.end else rest

    def _half(self) -> "Part":
        """Of what is suspected."""
        return replace(self, end=self.first + (self.suspected_to - self.first + 1) // 2)
