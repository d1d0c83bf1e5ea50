"""The course of the group as lines of text, for a standard error that is not a terminal."""

from collections import Counter
from collections.abc import Iterator, Sequence

from app import figures
from cli.terminal.screen import decision_words
from domain.consumer_class import ORDINARY
from domain.group_view.view import GroupView
from sandbox.incident import Incident

QUIET_S = 10.0
"""So long at most without a line."""


class PlainLines:
    """Says what is new since the last view: an incident, a decision, more or fewer consumers, or that time goes on."""

    def __init__(self) -> None:
        self._said_at: float | None = None
        self._consumers: str | None = None
        self._incidents = 0
        """So many were told."""
        self._decisions: set[tuple[int, int]] = set()
        self._phase: str | None = None

    def lines(self, view: GroupView, phase: str | None, incidents: Sequence[Incident] = ()) -> Iterator[str]:
        """What there is to say, in the order in which it is to be said; often nothing."""
        for incident in incidents[self._incidents :]:
            yield f"{figures.clock(incident.at - view.began)}  {incident.what}"
        self._incidents = len(incidents)
        for decision in view.decisions:
            place = (decision.epoch, decision.number)
            if place in self._decisions:
                continue
            self._decisions.add(place)
            why = "; ".join((*decision.triggers, decision.reason))
            yield f"{figures.clock(decision.decided_at - view.began)}  decided: {decision_words(decision)} ({why})"
        quiet = self._said_at is None or view.now - self._said_at >= QUIET_S
        consumers = _consumers(view)
        if quiet or consumers != self._consumers or phase != self._phase:
            self._said_at, self._consumers, self._phase = view.now, consumers, phase
            yield f"{figures.clock(view.elapsed_s)}  {_state(view, phase)}"


def _state(view: GroupView, phase: str | None) -> str:
    facts = [
        _consumers(view),
        f"{figures.speed(view.total_speed)} written",
        f"lag {figures.lag(view.lag, view.lag_s)}",
        f"Rscore {view.totals.rscore:.2f}",
    ]
    if unread := view.unread:
        facts.append(f"{figures.plural(len(unread), 'partition')} without a reader")
    if view.rests:
        facts.append("nothing to read")
    if phase:
        facts.append(phase)
    return ", ".join(facts)


def _consumers(view: GroupView) -> str:
    """How many there are, and how many of them are not ordinary."""
    of_class = Counter(consumer.class_name for consumer in view.consumers if not consumer.silent)
    others = [f"{count:,} {name}" for name, count in sorted(of_class.items()) if name != ORDINARY]
    return figures.plural(view.alive, "consumer") + (f" ({', '.join(others)})" if others else "")
