"""How results are printed."""

from enum import StrEnum


class PlanFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class FiguresFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
