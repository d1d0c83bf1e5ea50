"""Figures as a person reads them: three digits and a unit, never more."""

_UNITS = ("B", "kB", "MB", "GB", "TB")


def data(amount: float | None) -> str:
    """Bytes with a decimal unit: 2,412,000 becomes `2.41 MB`; a dash where it is not known."""
    if amount is None:
        return "-"
    unit = 0
    # 999.5 would be shown as 1000 of a unit.
    while amount >= 999.5 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    digits = 0 if unit == 0 or amount >= 99.95 else 1 if amount >= 9.995 else 2
    return f"{amount:.{digits}f} {_UNITS[unit]}"


def speed(bytes_per_s: float | None) -> str:
    """A speed in bytes/s with a decimal unit; a dash where it is not known."""
    return "-" if bytes_per_s is None else f"{data(bytes_per_s)}/s"


def count(number: int | None) -> str:
    """With thousands separators; a dash where it is not known."""
    return "-" if number is None else f"{number:,}"


def lag(records: int | None, seconds: float | None) -> str:
    """In records, and in whole seconds where those are known; a dash where neither is."""
    if seconds is None:
        return count(records)
    return f"{count(records)} ({seconds:,.0f} s)"


def plural(number: int, noun: str) -> str:
    """`1 consumer`, `2 consumers`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def clock(seconds: float) -> str:
    """A duration: `01:23`, `1:02:03`."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
