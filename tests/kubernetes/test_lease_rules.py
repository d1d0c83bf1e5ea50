"""Who may act: the rules of the Lease, as decisions and against every order of what can happen."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from controller.kubernetes.decide.lease import Record, Watched, holds_until

LEASE_S = 9.0


def held_by(holder: str, version: str = "1") -> Record:
    return Record(holder, version, LEASE_S)


def test_a_lease_that_nobody_has_made_or_that_was_given_back_is_taken() -> None:
    assert Watched().saw(None, 0).may_take("b", 0)
    assert Watched().saw(held_by(""), 0).may_take("b", 0)


def test_a_lease_is_taken_when_its_holder_was_silent_for_its_time() -> None:
    watched = Watched().saw(held_by("a"), 100)
    assert not watched.saw(held_by("a"), 108).may_take("b", 108)
    assert watched.saw(held_by("a"), 109).may_take("b", 109)


def test_each_renewal_begins_the_time_anew() -> None:
    watched = Watched().saw(held_by("a"), 100).saw(held_by("a", version="2"), 108)
    assert not watched.may_take("b", 116)
    assert watched.may_take("b", 117)


def test_time_in_which_the_candidate_could_not_look_does_not_count() -> None:
    """The API server was away: the holder could not renew, and is not to be replaced for that."""
    watched = Watched().saw(held_by("a"), 100).could_not_look()
    assert not watched.may_take("b", 130)
    assert not watched.saw(held_by("a"), 130).may_take("b", 131)


def test_what_a_request_of_its_own_left_there_is_taken_again() -> None:
    assert Watched().saw(held_by("b"), 100).may_take("b", 100)


TICK_S = 3.0
STEPS = 11


@dataclass(frozen=True)
class Candidate:
    watched: Watched = field(default_factory=Watched)
    sent: tuple[float, Record | None] | None = None
    """A write that the server has not carried out: when, and on the condition of what."""
    accepted: float | None = None
    """When a write was sent that the server has carried out, and whose answer has not come."""
    acts_until: float = -1.0


World = tuple[float, Record | None, tuple[Candidate, Candidate]]
"""The time, the Lease on the server, and two candidates."""


def next_worlds(world: World) -> Iterator[World]:
    """The worlds after one more step of either candidate, or after time has passed."""
    now, record, candidates = world
    yield now + TICK_S, record, candidates
    for number, candidate in enumerate(candidates):
        name = "ab"[number]
        steps: list[tuple[Record | None, Candidate]] = [
            (record, replace(candidate, watched=candidate.watched.saw(record, now)))
        ]
        if candidate.sent is None and candidate.accepted is None and candidate.watched.may_take(name, now):
            steps.append((record, replace(candidate, sent=(now, candidate.watched.record))))
        if candidate.sent is not None:
            sent_at, seen = candidate.sent
            # The server refuses a write to another version than the one that it has.
            if seen == record:
                written = held_by(name, str(int(record.version) + 1 if record else 1))
                steps.append((written, replace(candidate, sent=None, accepted=sent_at)))
            else:
                steps.append((record, replace(candidate, sent=None)))
        if candidate.accepted is not None:
            until = holds_until(candidate.accepted, LEASE_S)
            steps.append((record, replace(candidate, accepted=None, acts_until=until)))
        for after, stepped in steps:
            others = (stepped, candidates[1]) if number == 0 else (candidates[0], stepped)
            yield now, after, others


def test_two_candidates_never_act_at_the_same_time_whatever_comes_late() -> None:
    worlds: set[World] = {(0.0, None, (Candidate(), Candidate()))}
    seen: set[World] = set()
    for _ in range(STEPS):
        worlds = {after for world in worlds for after in next_worlds(world)} - seen
        seen |= worlds
        for now, _, candidates in worlds:
            assert sum(candidate.acts_until > now for candidate in candidates) <= 1, (now, candidates)
    assert any(sum(candidate.acts_until >= 0 for candidate in candidates) == 2 for _, _, candidates in seen)
