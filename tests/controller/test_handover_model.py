"""The handover is right in every world that can be reached, and in none is the group stuck."""

import pytest

from domain.partitions import TopicPartition
from tests.controller.handover_model import Faults, Guards, Model, explore, stuck

pytestmark = pytest.mark.explores

OF_ONE_TOPIC = (TopicPartition("orders", 0), TopicPartition("orders", 1))
OF_TWO_TOPICS = (TopicPartition("clicks", 0), TopicPartition("orders", 0))


@pytest.mark.parametrize(
    "faults",
    [
        Faults(plans=2),
        Faults(plans=1, losses=1, resends=1),
        Faults(plans=0, deaths=1),
        pytest.param(Faults(plans=1, deaths=1), marks=pytest.mark.slow),
        Faults(plans=1, replacements=1, losses=1),
        Faults(plans=1, replacements=1, claims=1),
        pytest.param(Faults(plans=1, suspicions=1), marks=pytest.mark.slow(60)),
        pytest.param(Faults(plans=0, suspicions=1, replacements=1), marks=pytest.mark.slow(60)),
        pytest.param(Faults(plans=0, deaths=1, replacements=1), marks=pytest.mark.slow(60)),
    ],
    ids=str,
)
def test_no_partition_has_two_readers_and_the_group_can_always_converge(faults: Faults) -> None:
    model = Model(OF_ONE_TOPIC)
    explored = explore(model, faults)
    assert explored.wrong is None
    assert stuck(model, explored) is None


def test_worlds_that_mirror_each_other_go_on_alike() -> None:
    faults = Faults(plans=1, losses=1)
    model, whole = Model(OF_ONE_TOPIC), Model(OF_ONE_TOPIC)
    mirror, whole.mirror = whole.mirror, None
    assert mirror is not None
    looked_at = explore(model, faults).worlds.keys()
    assert looked_at | set(map(mirror.image, looked_at)) == explore(whole, faults).worlds.keys()


@pytest.mark.parametrize(
    "faults",
    [Faults(plans=0, suspicions=1), pytest.param(Faults(plans=1, deaths=1), marks=pytest.mark.slow)],
    ids=str,
)
def test_so_it_is_where_the_partitions_are_of_two_topics(faults: Faults) -> None:
    model = Model(OF_TWO_TOPICS)
    explored = explore(model, faults)
    assert explored.wrong is None
    assert stuck(model, explored) is None


@pytest.mark.parametrize(
    "faults",
    [
        Faults(plans=1, replacements=1, losses=1),
        pytest.param(Faults(plans=0, suspicions=1, replacements=1), marks=pytest.mark.slow(60)),
    ],
    ids=str,
)
def test_so_it_is_where_claims_do_not_say_what_each_may_read(faults: Faults) -> None:
    """Those of version 0.1: whoever was heard of may have read anything."""
    model = Model(OF_ONE_TOPIC, Guards(claims_say_what_each_may_read=False))
    explored = explore(model, faults)
    assert explored.wrong is None
    assert stuck(model, explored) is None


@pytest.mark.parametrize(
    ("guards", "faults"),
    [
        (Guards(seals=False), Faults(plans=1, suspicions=1)),
        (Guards(has_barriers=False), Faults(plans=1, replacements=1)),
        pytest.param(
            Guards(claims_name_members=False),
            Faults(plans=0, suspicions=1, replacements=1),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Guards(claims_with_starts=False),
            Faults(plans=0, suspicions=1, replacements=1),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Guards(tells_what_it_takes_over=False),
            Faults(plans=1, suspicions=1, deaths=1),
            marks=pytest.mark.slow(80),
        ),
    ],
    ids=[
        "starts name nobody",
        "a new controller has nobody obey it first",
        "claims do not name members",
        "starts are sent without a claim",
        "who holds is taken for one who reads",
    ],
)
def test_without_one_of_its_guards_it_fails(guards: Guards, faults: Faults) -> None:
    """Each guard is needed; and the model sees what it has to see: one other plan is enough for that."""
    model = Model(OF_ONE_TOPIC, guards)
    model.plans = (model.plans[0], model.plans[-1])
    assert explore(model, faults).wrong is not None
