"""What an examination finds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from app.settings import Settings


class Grade(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Not needed by every use of kcga."""
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    grade: Grade = Grade.OK
    remedy: str = ""
    """What to do; empty where nothing is to be done."""

    @classmethod
    def fault(cls, what: str, remedy: str) -> "Finding":
        return cls(what, Grade.FAULT, remedy)

    @classmethod
    def note(cls, what: str, remedy: str) -> "Finding":
        return cls(what, Grade.NOTE, remedy)


Check = Callable[[Settings], Iterator[Finding]]
"""Raises nothing that a person could do something about."""
