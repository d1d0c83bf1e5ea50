"""The transitions that the machines name are those that there are.

Whether they are kept, and all else that holds after every turn, is asked wherever tests run a machine: see
`tests.checked_machines`.
"""

from random import Random

import pytest

from consumer.decide import events
from consumer.decide import invariants as of_consumer
from consumer.decide.actions import Action as Wanted
from consumer.decide.actions import Commit, ReadFrom
from consumer.decide.reached import Reached
from controller.decide import invariants as of_controller
from controller.decide.commands import DeleteConsumer, Send
from controller.decide.events import Started
from controller.decide.history import Beginning
from controller.decide.machine import Controller, State
from domain.messages import Action, ConsumerCommand, ConsumerState, PartitionRef
from tests.checked_machines import SEEN, checked, checked_consumer
from tests.consumer.test_consumer_machine import PARTITIONS, Play
from tests.controller.test_controller_faults import SETTINGS, a_world, befall, go_on

FAULTS = ("load", "topic", "kill a consumer", "give a node up", "replace the controller", "wait")


@pytest.fixture(autouse=True)
def nothing_is_seen_yet() -> None:
    SEEN.clear()


def seen_of(states: type[State] | type[ConsumerState]) -> set[object]:
    return {(before, after) for before, after in SEEN if isinstance(before, states) and before is not after}


def test_each_transition_of_the_controller_happens_and_no_other() -> None:
    for seed in range(12):
        world = a_world(seed, 0.1)
        chance = Random(seed)
        for _ in range(8):
            befall(world, chance.choice(FAULTS))
            go_on(world, chance.randrange(1, 20))
    world = a_world(0, 0.0)
    go_on(world, 60)
    befall(world, "kill the monitor")
    go_on(world, int(SETTINGS.speeds_timeout_s / 0.5) + 2)
    befall(world, "kill a consumer")
    go_on(world, 60)
    befall(world, "freeze a consumer")
    befall(world, "replace the controller")
    go_on(world, 60)
    assert seen_of(State) == of_controller.FOLLOWS.keys()


def test_each_transition_of_a_consumer_happens_and_no_other() -> None:
    for seed in range(10):
        play = Play(seed)
        for _ in range(seed):
            play.step()
        checked_consumer(play.machine, events.Looked(play.now, fault="a log is cut off"))
        play.handle()
        for _ in range(60):
            play.step()
        play.settle()
        play.stop = True
        play.settle()
    play = Play()
    while not play.machine.ready or play.asked:
        play.answer(min(play.asked)) if play.asked else play.handle()
    for stop in (False, True):
        checked_consumer(play.machine, events.Looked(play.now, stop, fault="a log is cut off"))
    assert seen_of(ConsumerState) == of_consumer.FOLLOWS.keys()


def test_what_does_not_hold_is_named() -> None:
    controller = Controller(SETTINGS, 1)
    checked(controller, Started(0.0, frozenset({1}), Beginning(epoch=1)))
    start = ConsumerCommand(
        consumer=1, incarnation="a", epoch=1, plan=1, sequence=1, action=Action.START, partitions=()
    )
    assert list(of_controller.broken(State.MANAGE, controller, [Send(start), DeleteConsumer(1, 1)])) == [
        "manage is followed by synchronize",
        "Nobody is told to read before all consumers that were found obey.",
        "Who is told to read is named by a claim of the same turn.",
        "Who is to be ended is not counted on any more.",
    ]
    world = a_world(0, 0.0)
    go_on(world, 60)
    reader, other = 1, 2
    read = PartitionRef.of(min(world.controller.group[reader].held))
    stolen = start.model_copy(update={"consumer": other, "partitions": (read,)})
    assert "Nobody is told to read what another may read who is counted on." in of_controller.broken(
        world.controller.state, world.controller, [Send(stolen)]
    )
    begins = Play().machine
    wanted: list[Wanted] = [ReadFrom({PARTITIONS[0]: Reached(0)}), Commit(1, {}), Commit(2, {})]
    assert list(of_consumer.broken(begins.state, begins, wanted)) == [
        "What it begins to read it has claimed by a commit.",
        "One commit is begun at a time.",
    ]
    play = Play()
    play.settle()
    play.handle(commands=(play.command(Action.START, *PARTITIONS),))
    play.settle()
    play.machine.ended = True
    assert list(of_consumer.broken(ConsumerState.LEAVING, play.machine, [])) == [
        "leaving is followed by ready",
        "One that has left claims nothing, and has nothing under way.",
    ]
