"""Whether what consumers say reaches the controller: silence counts only while it listens.

It hears its own claims, behind all that was said before them. Where they do not come back it may have been frozen, or
cut off, and silence is counted anew.
"""

import math

CLAIM_EVERY_S = 2.0
"""A controller says so often, and with every start, who acts and what the next one must know."""
LONGEST_GAP_S = 4 * CLAIM_EVERY_S
"""Where less of its own claims comes back, it could hear nothing: it takes consumers a moment to be heard again."""


class Hearing:
    """Times are in seconds since the epoch."""

    def __init__(self) -> None:
        self._on_their_way: dict[int, float] = {}
        """When each claim was sent that has not come back."""
        self._heard_until = -math.inf
        """Whatever was reported before this moment has been taken in."""
        self._listens_since = -math.inf
        """From this moment to that one claims have come back without a gap."""

    def begin(self, now: float) -> None:
        """From now on it listens."""
        self._heard_until = self._listens_since = now

    def sent(self, claim: int, now: float) -> None:
        """The claim of this number is on its way."""
        self._on_their_way[claim] = now

    def heard(self, claim: int) -> None:
        """It has come back, and with it all that was said before it was sent."""
        sent_at = self._on_their_way.get(claim)
        if sent_at is None:
            return
        self._on_their_way = {number: at for number, at in self._on_their_way.items() if number > claim}
        if sent_at - self._heard_until > LONGEST_GAP_S:
            self._listens_since = sent_at
        self._heard_until = sent_at

    def hears(self, now: float) -> bool:
        """Whether what was said until just now has been taken in: who was frozen knows only what was before."""
        return now - self._heard_until <= LONGEST_GAP_S

    def silence_s(self, since: float) -> float:
        """How long it has been listened since then."""
        return self._heard_until - max(since, self._listens_since)
