"""How far the brokers' clock is ahead of this machine's, by a record that they have just taken in."""


def ahead_s(appended_at: float, since: float, until: float) -> float:
    """Negative where it is behind, and 0 where the two may agree: how long one has waited is no difference of clocks.

    Args:
        appended_at: when the record came, by the brokers' clock, in seconds since the epoch.
        since: when it had not come yet, by this machine's.
        until: when it was known to have come, by this machine's.
    """
    return appended_at - min(max(appended_at, since), until)
