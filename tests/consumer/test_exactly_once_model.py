"""Each record is in the lake once in every world that the consumer can get into, and not without one of its guards."""

import pytest

from tests.consumer.exactly_once_model import Given, Protocol, violation

pytestmark = pytest.mark.explores


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_nothing_is_lost_or_doubled_whatever_dies_or_wakes_up_when(processes: int) -> None:
    assert violation(Protocol(processes=processes)) is None


def test_where_processes_are_dead_the_claims_alone_are_enough() -> None:
    """A controller that has forgotten who read the partition names nobody."""
    assert violation(Protocol(zombies=False, given=Given.FORGOTTEN)) is None


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(loses_commits=True, processes=2),
        pytest.param(Protocol(loses_commits=True, zombies=False), marks=pytest.mark.slow),
        pytest.param(Protocol(loses_commits=True), marks=pytest.mark.slow(20)),
    ],
    ids=["of two", "of three that die", "of three"],
)
def test_claims_that_the_brokers_lose_cost_nothing(protocol: Protocol) -> None:
    """Hole 13."""
    assert violation(protocol) is None


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(expires=True, processes=2),
        pytest.param(Protocol(expires=True, zombies=False, given=Given.FORGOTTEN), marks=pytest.mark.slow),
        Protocol(forgets=True, processes=2),
        Protocol(refuses=True, processes=2),
        pytest.param(Protocol(leaves=True, processes=2), marks=pytest.mark.slow),
        pytest.param(Protocol(partitions=2, records=1, processes=2, zombies=False), marks=pytest.mark.slow(20)),
    ],
    ids=[
        "commits expire",
        "commits expire and nobody is named",
        "transactional ids expire",
        "the lake refuses take-overs",
        "processes are told to leave",
        "two partitions that move one by one",
    ],
)
def test_so_it_is_whatever_else_happens(protocol: Protocol) -> None:
    assert violation(protocol) is None


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(refused=(0, 0), processes=2),
        Protocol(refused=(0, 0), at_once=2, processes=2),
        pytest.param(Protocol(refused=(0, 1), at_once=2, records=3, processes=2), marks=pytest.mark.slow(2)),
        pytest.param(Protocol(refused=(0, 1), at_once=2, zombies=False), marks=pytest.mark.slow),
        Protocol(refused=(0, 1), at_once=2, loses_commits=True, processes=2),
        pytest.param(Protocol(refused=(0, 1), at_once=2, leaves=True, processes=2), marks=pytest.mark.slow),
        Protocol(refused=(0, 0), at_once=2, mends=True, processes=1),
    ],
    ids=[
        "by itself",
        "the first of a batch",
        "the last of a batch",
        "of three that die",
        "claims are lost",
        "processes are told to leave",
        "that the table takes later",
    ],
)
def test_a_record_that_the_table_refuses_is_in_the_dead_letters_once_and_all_others_in_the_table(
    protocol: Protocol,
) -> None:
    assert violation(protocol) is None


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(takes_nothing=True, mends=True, processes=2),
        Protocol(takes_nothing=True, mends=True, at_once=2, zombies=False, given=Given.FORGOTTEN, processes=2),
        pytest.param(Protocol(takes_nothing=True, mends=True, zombies=False), marks=pytest.mark.slow),
    ],
    ids=["of two", "nobody is named", "of three that die"],
)
def test_a_table_that_takes_nothing_is_let_go_and_has_each_record_once_when_it_is_mended(protocol: Protocol) -> None:
    assert violation(protocol) is None


@pytest.mark.parametrize(
    ("protocol", "fault"),
    [
        (Protocol(seals=False, processes=2), "doubled"),
        (Protocol(fences=False), "committed what is not in the lake"),
        (Protocol(looks_into_lake=False, processes=2), "doubled"),
        (Protocol(claims=False, zombies=False, given=Given.FORGOTTEN), "doubled"),
        (Protocol(given=Given.FORGOTTEN, processes=2), "doubled"),
        pytest.param(
            Protocol(loses_commits=True, looks_at_all_appends=False, zombies=False),
            "doubled",
            marks=pytest.mark.slow(2),
        ),
        (Protocol(claims_what_is_unsettled=False, zombies=False), "doubled"),
        (Protocol(expires=True, renews=False, zombies=False, given=Given.FORGOTTEN), "doubled"),
        (Protocol(forgets=True, ends_when_forgotten=False, processes=2), "committed what is not in the lake"),
        (Protocol(gives_up_what_is_stopped=False, zombies=False), "the rightful reader is out of action"),
        (Protocol(refused=(0, 0), names_dead_letters_by_record=False, processes=2), "doubled"),
        (Protocol(refused=(0, 1), at_once=2, mends=True, takes_refused_names=False, processes=1), "doubled"),
        (Protocol(takes_nothing=True, mends=True, gives_up_what_is_certain=False, processes=2), "doubled"),
    ],
    ids=[
        "no seal",
        "no fence",
        "positions from the commits",
        "no claims",
        "zombies that nobody names",
        "claimants' appends alone",
        "unsettled and released",
        "claims that are not renewed",
        "a forgotten id initialised anew",
        "take-overs of what is stopped",
        "dead letters by their writers",
        "names of what was refused",
        "refusals that are taken for the end of it",
    ],
)
def test_without_one_of_its_guards_it_fails(protocol: Protocol, fault: str) -> None:
    """Each guard is needed; and the model sees what it has to see."""
    found = violation(protocol)
    assert found is not None
    assert found[0] == fault


def test_a_record_may_be_in_both_where_its_table_is_mended_while_the_reader_is_replaced() -> None:
    """The dead letter of the former reader may be on its way until its successor has appended the record."""
    found = violation(Protocol(refused=(0, 0), mends=True, processes=2))
    assert found is not None
    assert found[0] == "doubled"


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(loses_commits=True, loses_claims_of_the_living=True, zombies=False),
        Protocol(loses_commits=True, loses_what_followed_a_release=True, zombies=False),
    ],
    ids=["claims of the living", "what followed a release"],
)
def test_claims_that_the_brokers_lose_may_double_rows_where_nothing_else_tells_of_them(protocol: Protocol) -> None:
    """A partition that was let go while the lake refused its rows is known by its claim alone; and who finds a release
    does not look into the lake."""
    found = violation(protocol)
    assert found is not None
    assert found[0] == "doubled"
