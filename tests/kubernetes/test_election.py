"""One controller at a time, on a real API server that may hang or die."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from controller.kubernetes.api import NOT_FOUND
from controller.kubernetes.election import Election
from tests import patience
from tests.kubernetes.control_plane import ControlPlane

T = TypeVar("T")
LEASE_S = 20
"""A process that stands still for a while loses no Lease."""
LONGER_S = 1.2 * LEASE_S
"""Whoever could take a Lease that is renewed no more has taken it by then."""


class Candidates:
    """Candidates for one Lease, each as it would be in a process of its own."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.control_plane = control_plane
        self.namespace = namespace
        self.api = client.CoordinationV1Api(control_plane.client(insists=True))
        self.stop = threading.Event()
        self.lost: list[str] = []
        self.elections: dict[str, Election] = {}
        self.waiting: list[threading.Thread] = []

    def add(self, identity: str) -> Election:
        """One that waits for the Lease in a thread."""
        election = self.elections[identity] = Election(
            self.control_plane.client(),
            namespace=self.namespace,
            name="lake-controller",
            identity=identity,
            lease_s=LEASE_S,
            on_lost=lambda: self.lost.append(identity),
        )
        thread = threading.Thread(target=election.win, args=(self.stop,))
        self.waiting.append(thread)
        thread.start()
        return election

    def ends(self) -> dict[str, float]:
        """Up to when each may act, on the monotonic clock."""
        return {identity: election._may_act_until for identity, election in self.elections.items()}

    @property
    def acting(self) -> list[str]:
        ends = self.ends()
        now = time.monotonic()  # after all of them: who came later may act since the end of the one before
        return [identity for identity, end in ends.items() if now < end]

    @property
    def holder(self) -> str:
        """Empty where there is no Lease."""
        try:
            holder: str = self.api.read_namespaced_lease("lake-controller", self.namespace).spec.holder_identity
        except ApiException as error:
            if error.status != NOT_FOUND:
                raise
            return ""
        return holder

    def close(self) -> None:
        self.stop.set()
        for thread in self.waiting:
            thread.join()
        for election in self.elections.values():
            election.give_back()


@pytest.fixture
def candidates(control_plane: ControlPlane, namespace: str) -> Iterator[Candidates]:
    candidates = Candidates(control_plane, namespace)
    yield candidates
    candidates.close()


def wait_until(condition: Callable[[], T], candidates: Candidates) -> T:
    def has_come() -> T:
        acting = candidates.acting
        assert len(acting) <= 1, acting
        return condition()

    return patience.wait_until(has_come, every_s=0.02)


@pytest.mark.slow(45)
def test_one_acts_and_the_other_stands_by_until_the_lease_is_given_back(candidates: Candidates) -> None:
    first = candidates.add("a")
    wait_until(lambda: first.may_act, candidates)
    second = candidates.add("b")
    until = time.monotonic() + LONGER_S
    wait_until(lambda: time.monotonic() > until, candidates)
    assert wait_until(lambda: candidates.acting, candidates) == ["a"]
    first.give_back()
    wait_until(lambda: second.may_act, candidates)
    assert candidates.holder == "b"
    assert not candidates.lost


@pytest.mark.slow(35)
def test_the_standby_takes_over_from_one_that_gives_no_sign_any_more(candidates: Candidates) -> None:
    first = candidates.add("a")
    wait_until(lambda: first.may_act, candidates)
    first._end.set()  # as a process that is frozen or killed: it renews no more, and gives nothing back
    second = candidates.add("b")
    wait_until(lambda: second.may_act, candidates)
    assert not first.may_act


@pytest.mark.slow(65)
def test_who_cannot_renew_stops_acting_and_goes_on_when_the_server_is_back(candidates: Candidates) -> None:
    first = candidates.add("a")
    wait_until(lambda: first.may_act, candidates)
    candidates.add("b")
    with candidates.control_plane.hanging():
        wait_until(lambda: not first.may_act, candidates)
        until = time.monotonic() + LONGER_S
        wait_until(lambda: time.monotonic() > until, candidates)
        assert not candidates.acting
    assert wait_until(lambda: candidates.acting, candidates) == ["a"]
    assert not candidates.lost


def test_a_server_that_is_killed_changes_nothing_for_long(candidates: Candidates) -> None:
    first = candidates.add("a")
    wait_until(lambda: first.may_act, candidates)
    candidates.add("b")
    candidates.control_plane.kill_api_server()
    until = max(candidates.ends().values())
    wait_until(lambda: max(candidates.ends().values()) > until, candidates)
    assert wait_until(lambda: candidates.acting, candidates)


def test_who_finds_the_lease_in_other_hands_is_told(candidates: Candidates) -> None:
    first = candidates.add("a")
    wait_until(lambda: first.may_act, candidates)
    candidates.api.patch_namespaced_lease(
        "lake-controller", candidates.namespace, {"spec": {"holderIdentity": "somebody"}}
    )
    wait_until(lambda: candidates.lost == ["a"], candidates)
    assert first.lost
    assert not first.may_act


def test_a_lease_that_is_deleted_by_hand_is_made_again(candidates: Candidates) -> None:
    first = candidates.add("a")
    wait_until(lambda: first.may_act, candidates)
    candidates.api.delete_namespaced_lease("lake-controller", candidates.namespace)
    assert wait_until(lambda: candidates.holder, candidates) == "a"
    assert wait_until(lambda: candidates.acting, candidates) == ["a"]
