"""The handover is right in every world that can be reached, and in none is the group stuck."""

import pytest

from controller.settings import ControllerSettings
from domain.partitions import TopicPartition
from tests.controller.handover_model import SETTINGS, Faults, Guards, Model, World, explore, stuck

pytestmark = pytest.mark.explores

OF_ONE_TOPIC = (TopicPartition("orders", 0), TopicPartition("orders", 1))
OF_TWO_TOPICS = (TopicPartition("clicks", 0), TopicPartition("orders", 0))


class FewNumbers(ControllerSettings):
    """Consumers that hang leave no numbers for others."""

    @property
    def highest_consumer(self) -> int:
        return self.max_consumers


def require_right(model: Model, first: World) -> None:
    explored = explore(model, first)
    assert explored.wrong is None
    assert stuck(model, explored) is None


@pytest.mark.parametrize(
    "faults",
    [
        Faults(plans=2),
        Faults(plans=1, losses=1, resends=1),
        Faults(plans=1, replacements=1, losses=1),
        Faults(plans=1, replacements=1, claims=1),
        Faults(deaths=1),
        Faults(suspicions=1),
        pytest.param(Faults(deaths=1, refusals=1), marks=pytest.mark.slow(2)),
        Faults(defiances=1, replacements=1),
        pytest.param(Faults(hangs=1, replacements=1), marks=pytest.mark.slow),
        pytest.param(Faults(deaths=1, replacements=1), marks=pytest.mark.slow(15)),
        pytest.param(Faults(escapes=1, replacements=1), marks=pytest.mark.slow(15)),
        pytest.param(Faults(restarts=1), marks=pytest.mark.slow),
        pytest.param(Faults(plans=1, hangs=1), marks=pytest.mark.slow),
        pytest.param(Faults(plans=1, defiances=1), marks=pytest.mark.slow),
        pytest.param(Faults(plans=1, escapes=1), marks=pytest.mark.slow),
        pytest.param(Faults(plans=1, deaths=1), marks=pytest.mark.slow(20)),
    ],
    ids=str,
)
def test_no_partition_has_two_readers_and_the_group_can_always_converge(faults: Faults) -> None:
    model = Model(OF_ONE_TOPIC)
    require_right(model, model.quiet(faults))


@pytest.mark.parametrize(
    "faults",
    [
        Faults(resends=1, losses=1),
        Faults(replacements=1),
        Faults(hangs=1),
        Faults(escapes=1),
        pytest.param(Faults(defiances=1), marks=pytest.mark.slow),
        pytest.param(Faults(suspicions=1), marks=pytest.mark.slow),
        pytest.param(Faults(deaths=1), marks=pytest.mark.slow),
        pytest.param(Faults(restarts=1), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_so_it_is_while_a_group_begins(faults: Faults) -> None:
    model = Model(OF_ONE_TOPIC)
    require_right(model, model.beginning(faults))


@pytest.mark.parametrize("faults", [Faults(deaths=1), pytest.param(Faults(escapes=1), marks=pytest.mark.slow)], ids=str)
def test_so_it_is_where_the_partitions_are_of_two_topics(faults: Faults) -> None:
    model = Model(OF_TWO_TOPICS)
    require_right(model, model.quiet(faults))


@pytest.mark.parametrize(
    "faults",
    [
        Faults(hangs=1),
        pytest.param(Faults(deaths=1, hangs=1), marks=pytest.mark.slow(2)),
        pytest.param(Faults(plans=1, hangs=1), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_so_it_is_where_numbers_run_out(faults: Faults) -> None:
    model = Model(OF_ONE_TOPIC, settings=FewNumbers.model_validate(SETTINGS.model_dump()))
    require_right(model, model.quiet(faults))


@pytest.mark.parametrize("faults", [Faults(plans=1, replacements=1, losses=1)], ids=str)
def test_so_it_is_where_claims_do_not_say_what_each_may_read(faults: Faults) -> None:
    """Those of version 0.1: whoever was heard of may have read anything."""
    model = Model(OF_ONE_TOPIC, Guards(claims_say_what_each_may_read=False))
    require_right(model, model.quiet(faults))


@pytest.mark.parametrize(
    ("guards", "faults"),
    [
        (Guards(seals=False), Faults(escapes=1)),
        (Guards(has_barriers=False), Faults(replacements=1)),
        pytest.param(Guards(claims_name_members=False), Faults(escapes=1, replacements=1), marks=pytest.mark.slow(5)),
        pytest.param(Guards(claims_with_starts=False), Faults(escapes=1, replacements=1), marks=pytest.mark.slow(5)),
        pytest.param(Guards(tells_what_it_takes_over=False), Faults(escapes=1, deaths=1), marks=pytest.mark.slow(15)),
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
    """Each guard is needed; and the model sees what it has to see: a group that begins is enough for that."""
    model = Model(OF_ONE_TOPIC, guards)
    assert explore(model, model.beginning(faults)).wrong is not None
