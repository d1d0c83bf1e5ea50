"""How long to wait before what failed is tried again."""

FIRST_S = 0.2
LONGEST_S = 5.0


def pause_s(failures: int) -> float:
    """The pause after so many failures in a row (1 or more), in seconds: doubles from FIRST_S up to LONGEST_S."""
    return min(FIRST_S * 2.0 ** min(failures - 1, 16), LONGEST_S)
