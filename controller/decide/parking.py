"""Topics whose tables take nothing are parked: nobody reads them for a while, and nothing is planned for them.

A topic is parked once a consumer that reads it has told for `park_after_s` that its table refuses. After a pause it is
given out again, on trial: it weighs nothing, so that the group does not grow for it, until a consumer has written of
it. Refused on trial, it is parked again at once, for twice as long. Why: `docs/decisions/0022-parked-topics.md`.
"""

from collections.abc import Iterable

from domain.messages import ConsumerReport, ParkedTopic

LONGEST_S = 3600.0
"""Of the pauses, unless the first is longer."""


class Parking:
    """Times are in seconds since the epoch.

    Args:
        park_after_s: how long a table refuses before its topic is parked; the first pause is twice as long.
    """

    def __init__(self, park_after_s: float) -> None:
        self._park_after_s = park_after_s
        self._known: dict[str, ParkedTopic] = {}
        self.parked: frozenset[str] = frozenset()
        """Topics that nobody is to read now."""
        self.on_trial: frozenset[str] = frozenset()
        """Those that were parked, and of which nothing has been written since."""

    @property
    def standing(self) -> tuple[ParkedTopic, ...]:
        """All that is known of both, for whoever asks, and for the next controller."""
        return tuple(self._known[topic] for topic in sorted(self._known))

    def inherit(self, topics: Iterable[ParkedTopic], later_s: float) -> None:
        """What the controller before knew, told by a clock that is so far behind the one here."""
        self._known = {each.topic: told_later(each, later_s) for each in topics}

    def pass_time(self, at: float) -> None:
        self.parked = frozenset(topic for topic, each in self._known.items() if at < each.until)
        self.on_trial = frozenset(self._known.keys() - self.parked)

    def heard(self, at: float, report: ConsumerReport) -> None:
        """What a consumer tells of the topics that it reads, which what it has let go of is none of."""
        if not (report.refusing or self._known):
            return
        read = {partition.topic for partition in report.partitions}
        written = {each.topic for each in report.cycle.reads} if report.cycle else set()
        for topic in written & self._known.keys():
            if self._known[topic].until <= at:
                del self._known[topic]
        for refusing in report.refusing:
            known, since = self._known.get(refusing.topic), at - refusing.for_s
            if refusing.topic not in read or (known is not None and at < known.until):
                continue
            on_trial = known is not None and since >= known.until
            began = since if known is None else max(since, known.until)
            if on_trial or at - began >= self._park_after_s:
                self._known[refusing.topic] = self._again(at, refusing.topic, refusing.reason, known)
        self.pass_time(at)

    def _again(self, at: float, topic: str, reason: str, known: ParkedTopic | None) -> ParkedTopic:
        times = known.times + 1 if known else 1
        longest_s = max(LONGEST_S, 2 * self._park_after_s)
        until = at + min(longest_s, self._park_after_s * 2.0 ** min(times, 32))
        return ParkedTopic(topic=topic, reason=reason, since=known.since if known else at, until=until, times=times)

    def unpark(self, at: float, topic: str | None) -> None:
        """An operator has mended the table: it is tried at once, and the pauses begin anew."""
        if topic is not None and (known := self._known.get(topic)) is not None:
            self._known[topic] = tried_at_once(known, at)
            self.pass_time(at)

    def forget(self, topics: Iterable[str]) -> None:
        """They are of no interest any more."""
        for topic in topics:
            self._known.pop(topic, None)


def told_later(parked: ParkedTopic, seconds: float) -> ParkedTopic:
    """The same by a clock that is so far ahead of the one that it was told by."""
    return parked.model_copy(update={"until": parked.until + seconds})


def tried_at_once(parked: ParkedTopic, at: float) -> ParkedTopic:
    """The same, asked for by an operator then."""
    return parked.model_copy(update={"until": at, "times": 0})
