"""Who only hears what is said on the topics comes to the controller's decisions."""

import math
from copy import deepcopy
from itertools import chain, repeat

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cli.live.decide.onlooker import Onlooker
from controller.decide.commands import Claim, Command, Publish, Send
from controller.decide.decider import BY_RULE
from controller.decide.events import ConsumerGone, ConsumerReported, Event, OperatorAsked, Solved, SpeedsMeasured
from controller.decide.history import beginning, claiming
from controller.decide.periods import Schedule
from controller.settings import ControllerSettings
from domain.consumer_class import ConsumerClass
from domain.messages import (
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    Decision,
    DecisionKind,
    MessageToController,
    Standing,
    Throughput,
    WriteSpeedReport,
)
from domain.partitions import TopicPartition
from solver import Problem, Solution
from tests.controller.exhaustive import solve_exhaustively
from tests.controller.world import World
from tests.examples import examples
from tests.frozen import Freezer
from tests.sandbox.watch_messages import decision, report, write_speeds

PARTITIONS = tuple(TopicPartition("orders", number) for number in range(5))
SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=80.0,
    interval_s=8.0,
    least_interval_s=2.0,
    heartbeat_timeout_s=15.0,
    ready_timeout_s=20.0,
    creation_retry_s=15.0,
    scale_down_window_s=12.0,
    recovery_time_s=20.0,
    rscore_tolerance=0.0,
    max_consumers=4,
)
FREEZER = Freezer()
"""Who looks on is asked as it is, and goes on as it was: much faster so than by `deepcopy`."""
NEVER_THE_SAME = {"number", "solve_s"}
"""A number is given to a question that is never answered, too."""


def auto(**changes: object) -> ControllerSettings:
    """Of consumers that are to tell their capacity."""
    given = {**SETTINGS.model_dump(exclude={"packing_capacity"}), "consumer_capacity": "auto"}
    return ControllerSettings.model_validate({**given, "capacity_floor": 100.0, "capacity_ceiling": 400.0, **changes})


class WatchedWorld(World):
    """A world in which somebody asks, before every decision, what the controller would decide now."""

    def __init__(self, settings: ControllerSettings, seed: int, chaos: float = 0.0) -> None:
        self.pairs: list[tuple[Decision, Decision | None]] = []
        """Each decision, and what was answered before it."""
        self.said: list[tuple[float, MessageToController | Decision | WriteSpeedReport]] = []
        """What somebody could hear, and when."""
        self.to_come: list[tuple[Event, ...]] = []
        super().__init__(settings, seed, chaos)

    def begin_controller(self) -> None:
        """And somebody asks who reads all that was said before it, too."""
        self.to_come.clear()
        self.onlooker = Onlooker(self.settings, self._beginning().epoch, self.now)
        for at, message in self.said:
            self.onlooker.take(at, message)
        super().begin_controller()

    def say(self, at: float, message: MessageToController | Decision | WriteSpeedReport) -> None:
        self.said.append((at, message))
        self.onlooker.take(at, message)

    def handle(self, *events: Event) -> None:
        # What comes of a command at once is heard of when all commands are carried out, the solver's answer first.
        place = 1 if isinstance(events[0], Solved) else len(self.to_come)
        self.to_come.insert(place, events)
        if len(self.to_come) == 1:
            while self.to_come:
                self.hear(*self.to_come[0])
                super().handle(*self.to_come[0])
                del self.to_come[0]

    def hear(self, *events: Event) -> None:
        """Who looks on is told of messages when the controller is."""
        for event in events:
            match event:
                case SpeedsMeasured(at=at, speeds=speeds):
                    self.say(at, WriteSpeedReport.of(speeds))
                case ConsumerReported(at=at, report=report):
                    self.say(at, report)
                case OperatorAsked(at=at, action=action):
                    self.say(at, ControlRequest(action=action, sent_at=at))
                case _:
                    pass

    def perform(self, command: Command) -> None:
        match command:
            case Claim():
                self.say(self.now, claiming(command, self.epoch, "controller", self.now, 0))
            case Publish(decision=decision):
                asked: Onlooker = FREEZER.thawed(FREEZER.frozen(self.onlooker))
                self.pairs.append((decision, asked.decide(self.now, self.asked_of)))
                self.say(self.now, decision)
            case _:
                pass
        # On a broker a command is neither lost nor overtaken; claims do not tell of each by which command it may read.
        chaos, self.chaos = self.chaos, 0.0 if isinstance(command, Send) else self.chaos
        super().perform(command)
        self.chaos = chaos

    def asked_of(self, problem: Problem, _engine: str) -> Solution:
        return self.solver(problem)

    def go_on(self, seconds: float) -> None:
        for _ in range(int(seconds / 0.5)):
            self.step()

    def require_the_same(self) -> None:
        for made, answered in self.pairs:
            assert answered is not None
            assert answered.model_dump(exclude=NEVER_THE_SAME) == made.model_dump(exclude=NEVER_THE_SAME)


HAPPENINGS = st.sampled_from(
    [
        "load",
        "a backlog",
        "a partition",
        "a partition is gone",
        "a speed is unknown",
        "consumers tell",
        "a death",
        "a hang",
        "a silence",
        "a restart",
        "no room",
        "room",
        "pause",
        "resume",
        "replan",
        "another revision",
        "a revision that fails",
        "pause the rollout",
        "resume the rollout",
        "no monitor",
        "monitor",
        "another controller",
    ]
)


def befall(world: WatchedWorld, what: str) -> None:
    chance = world.random
    alive = [number for number, process in sorted(world.consumers.items()) if not process.doomed]
    match what:
        case "load":
            world.speeds = {partition: chance.uniform(0, 90) for partition in sorted(world.speeds)}
        case "a backlog":
            world.lags = {partition: chance.uniform(0, 2000) for partition in sorted(world.speeds)}
        case "a partition":
            new = chance.choice(PARTITIONS)
            world.speeds[new] = chance.uniform(0, 90)
            world.gone, world.unknown = world.gone - {new}, world.unknown - {new}
        case "a partition is gone" if len(world.speeds) > 1:
            gone = chance.choice(sorted(world.speeds))
            del world.speeds[gone]
            world.gone = frozenset({gone})
        case "a speed is unknown" if len(world.speeds) > 1:
            unknown = chance.choice(sorted(world.speeds))
            del world.speeds[unknown]
            world.unknown = frozenset({unknown})
        case "consumers tell":
            for process in world.consumers.values():
                rate, cycles = chance.uniform(80, 500), chance.randrange(1, 20)
                process.throughput = Throughput(bytes_per_s=rate, variation=0.1, cycles=cycles, record_bytes=1.0)
        case "a death" if alive:
            world.kill(chance.choice(alive))
        case "a hang" if alive:
            world.consumers[chance.choice(alive)].frozen = True
        case "a silence" if alive:
            world.consumers[chance.choice(alive)].silent = True
        case "a restart" if alive:
            world.restart(chance.choice(alive))
        case "no room":
            world.room, world.refuses = chance.randrange(1, 4), chance.random() < 0.5
        case "room":
            world.room = float("inf")
        case "pause" | "resume" | "replan" | "pause the rollout" | "resume the rollout":
            world.ask(ControlAction(what))
        case "another revision" | "a revision that fails":
            world.revision = f"revision {chance.random()}"
            world.broken = {world.revision} if what == "a revision that fails" else set()
        case "no monitor":
            world.monitor_lives = False
        case "monitor":
            world.monitor_lives = True
        case "another controller":
            world.now += 0.1  # nothing that was said before comes at the moment at which it begins
            world.begin_controller()


@pytest.mark.slow(2)
@pytest.mark.explores
@settings(max_examples=examples(60), deadline=None)
@example(  # it was not claimed in time that a limit was lifted
    seed=51486518,
    chaos=0.2,
    learns=False,
    spares=0,
    pinned={"orders-0": 2},
    budget=None,
    happenings=["a death", "a death", "a backlog", "a silence", "no room", "a death", "room", "load"],
)
@example(  # a consumer was replaced at the moment at which another ceased to read what it was to get
    seed=11327,
    chaos=0.0,
    learns=True,
    spares=2,
    pinned={"orders-3": 1},
    budget=None,
    happenings=["load", "load", "room", "a restart"],
)
@example(  # who died was not known to have read anything, as the controller had decided nothing yet
    seed=0,
    chaos=0.0,
    learns=False,
    spares=0,
    pinned={},
    budget=None,
    happenings=["another controller", "a death"],
)
@example(  # the controller before had been asked for a plan
    seed=0, chaos=0.0, learns=False, spares=0, pinned={}, budget=None, happenings=["replan", "another controller"]
)
@example(  # a consumer that hangs had told its rate to the controller before
    seed=0,
    chaos=0.0,
    learns=True,
    spares=0,
    pinned={},
    budget=None,
    happenings=["load", "consumers tell", "a hang", "another controller"],
)
@example(  # a report came late, of a process that the controller before had seen replaced
    seed=11390,
    chaos=0.2,
    learns=False,
    spares=0,
    pinned={},
    budget=None,
    happenings=["a restart", "another controller", "a restart", "another controller"],
)
@given(
    seed=st.integers(0, 2**32),
    chaos=st.sampled_from([0.0, 0.0, 0.2]),
    learns=st.booleans(),
    spares=st.integers(0, 2),
    pinned=st.dictionaries(st.sampled_from(["orders-0", "orders-3"]), st.integers(1, 4)),
    budget=st.sampled_from([None, None, 0.5]),
    happenings=st.lists(HAPPENINGS, max_size=12),
)
def test_who_looks_on_comes_to_every_decision_of_the_controller(
    seed: int,
    chaos: float,
    learns: bool,
    spares: int,
    pinned: dict[str, int],
    budget: float | None,
    happenings: list[str],
) -> None:
    schedules = (Schedule(cron="17 0 * * *", duration_s=20, min_consumers=3),)  # from 1,020 s on, soon after it begins
    changes = {"spare_consumers": spares, "pinned": pinned, "migration_budget": budget, "schedules": schedules}
    world = WatchedWorld(auto(**changes) if learns else SETTINGS.model_copy(update=changes), seed, chaos)
    world.speeds = dict.fromkeys(PARTITIONS[:3], 30.0)
    for what in ["wait", *happenings]:
        befall(world, what)
        world.go_on(world.random.randrange(1, 30))
    assert world.pairs
    world.require_the_same()


@pytest.mark.explores
@settings(max_examples=examples(30), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    chaos=st.sampled_from([0.0, 0.0, 0.2]),
    idle_s=st.sampled_from([0.0, 3.0, 12.0]),
    happenings=st.lists(st.one_of(HAPPENINGS, st.just("quiet")), max_size=12),
)
def test_who_looks_on_knows_when_nobody_has_to_read(
    seed: int, chaos: float, idle_s: float, happenings: list[str]
) -> None:
    world = WatchedWorld(SETTINGS.model_copy(update={"min_consumers": 0, "idle_time_s": idle_s}), seed, chaos)
    world.speeds = dict.fromkeys(PARTITIONS[:3], 30.0)
    for what in ["wait", "quiet", *happenings]:
        if what == "quiet":
            world.speeds, world.lags = dict.fromkeys(world.speeds, 0.0), {}
        else:
            befall(world, what)
        world.go_on(world.random.randrange(1, 40))
    assert world.pairs
    world.require_the_same()


@pytest.mark.explores
@settings(max_examples=examples(30), deadline=None)
@example(  # a controller that began deleted the consumer that was to replace another, and then had one made
    seed=0, chaos=0.0, spares=0, pinned={}, happenings=["another revision", "another revision", "another controller"]
)
@given(
    seed=st.integers(0, 2**32),
    chaos=st.sampled_from([0.0, 0.0, 0.2]),
    spares=st.integers(0, 1),
    pinned=st.dictionaries(st.sampled_from(["orders-0", "orders-3"]), st.integers(1, 4)),
    happenings=st.lists(HAPPENINGS, max_size=12),
)
def test_who_looks_on_knows_of_which_class_each_consumer_is(
    seed: int, chaos: float, spares: int, pinned: dict[str, int], happenings: list[str]
) -> None:
    changes = {"spare_consumers": spares, "pinned": pinned}
    classes = (ConsumerClass("large", 400.0, 2.5), ConsumerClass("small", 50.0, 0.55))
    world = WatchedWorld(SETTINGS.model_copy(update=changes).with_classes(classes), seed, chaos)
    world.speeds = {PARTITIONS[0]: 150.0, PARTITIONS[1]: 30.0, PARTITIONS[2]: 30.0}
    for what in ["wait", *happenings]:
        befall(world, what)
        world.go_on(world.random.randrange(1, 30))
    assert world.pairs
    world.require_the_same()


@pytest.mark.slow(15)
@pytest.mark.explores
@settings(max_examples=examples(30), deadline=None)
@example(  # the last of a plan was carried out just as a decision was due, and a consumer to be replaced
    seed=8001,
    chaos=0.0,
    count=3,
    least_interval_s=2.0,
    climbs=[(36, [0.0, 0.0, 0.0]), (165, [0.0, 0.0, 0.0])],
    happenings=["a backlog", "a revision that fails", "load", "load"],
)
@given(
    seed=st.integers(0, 2**32),
    chaos=st.sampled_from([0.0, 0.0, 0.2]),
    count=st.sampled_from([3, 5]),
    least_interval_s=st.sampled_from([2.0, 5.0]),
    climbs=st.lists(st.tuples(st.integers(1, 200), st.lists(st.floats(-0.3, 0.3), min_size=3, max_size=3)), max_size=4),
    happenings=st.lists(st.one_of(HAPPENINGS, st.just("a surge")), min_size=4, max_size=4),
)
def test_who_looks_on_foresees_what_the_controller_does(
    seed: int,
    chaos: float,
    count: int,
    least_interval_s: float,
    climbs: list[tuple[int, list[float]]],
    happenings: list[str],
) -> None:
    changes = {"forecast": True, "least_interval_s": least_interval_s}
    world = WatchedWorld(SETTINGS.model_copy(update=changes), seed, chaos)
    world.speeds = dict.fromkeys(PARTITIONS[:count], 60.0 / count)
    for (seconds, slopes), what in zip([(200, [0.1, 0.2, 0.0]), *climbs], ["wait", *happenings], strict=False):
        befall(world, what)
        surges = [world.random.uniform(1.0, 1.7) for _ in range(5)] if what == "a surge" else []
        for _, surge in zip(range(seconds), chain(surges, repeat(1.0)), strict=False):
            growth = dict(zip(PARTITIONS, slopes, strict=False))
            world.speeds = {p: max(0.0, speed * surge + growth.get(p, 0.0)) for p, speed in world.speeds.items()}
            world.step(1.0)
    assert any(made.foresight is not None and made.foresight.due for made, _ in world.pairs)
    world.require_the_same()


def test_who_looks_on_knows_of_which_class_each_consumer_is_as_soon_as_a_controller_begins() -> None:
    """Until its second claim `kcga plan` took every consumer for an ordinary one, and left the large one out."""
    settings = SETTINGS.with_classes((ConsumerClass("large", 400.0, 2.5),))
    stood = Standing(began_at=1000.0, counted_on=(3,), classes={"large": (3,)})
    newest = ControllerClaim(epoch=1, incarnation="before", sequence=7, sent_at=1000.0, standing=stood, heard_to=0)
    begun = beginning([], newest)
    onlooker = Onlooker(settings, begun.epoch, 2000.0)
    onlooker.take(2000.0, claiming(begun.claim(2000.0), begun.epoch, "next", 2000.0, 0))
    onlooker.take(2000.0, report(3, 2000.0, "orders-0"))
    onlooker.take(2001.0, write_speeds(2001.0, {"orders-0": 150.0}))
    made = onlooker.decide(2001.0, lambda problem, _: solve_exhaustively(problem))
    assert made is not None
    assert made.classes == {"large": (3,)}


def told(settings: ControllerSettings, speeds: dict[str, float], *reports: ConsumerReport) -> Decision:
    """What is decided once consumers have reported that they read these partitions, which are so fast since."""
    onlooker = Onlooker(settings, 1)
    for each in reports:
        onlooker.take(1000.0, each)
    plan = {str(partition.key): (None, each.consumer) for each in reports for partition in each.partitions}
    onlooker.take(1000.0, decision(1, 1000.0, plan, epoch=1))
    onlooker.take(1001.0, write_speeds(1001.0, dict(speeds)))
    made = onlooker.decide(1001.0, lambda problem, _: solve_exhaustively(problem))
    assert made is not None
    return made


def test_what_consumers_tell_of_their_capacity_counts() -> None:
    """With a floor of 100 and consumers that told 200, `kcga plan` answered a third consumer."""
    rate = Throughput(bytes_per_s=200.0, variation=0.0, cycles=30, record_bytes=1.0)
    reports = [
        report(consumer, 1000.0, *names).model_copy(update={"throughput": rate})
        for consumer, names in ((1, ("orders-0", "orders-1")), (2, ("orders-2",)))
    ]
    made = told(auto(recovery_time_s=0.0), dict.fromkeys(("orders-0", "orders-1", "orders-2"), 70.0), *reports)
    assert (made.capacity, made.plan.consumers) == (200.0, 2)


def test_a_plan_takes_the_spare_that_there_is() -> None:
    """With a spare 7, `kcga plan` answered a consumer 2 that was not there."""
    settings = SETTINGS.model_copy(update={"spare_consumers": 1, "max_consumers": 8, "recovery_time_s": 0.0})
    reports = report(1, 1000.0, "orders-0", "orders-1"), report(7, 1000.0)
    made = told(settings, {"orders-0": 70.0, "orders-1": 70.0}, *reports)
    assert {entry.consumer for entry in made.assignment} == {1, 7}


def test_a_consumer_that_is_replaced_under_its_number_before_anybody_hears_of_it_is_lost_once() -> None:
    """`kcga plan` answered that it was gone until the next decision: its successor's first report told it so again."""
    onlooker = Onlooker(SETTINGS, 1)
    counted_on = Standing(began_at=1000.0, counted_on=(1,))
    onlooker.take(1000.0, ControllerClaim(epoch=1, incarnation="c", sent_at=1000.0, standing=counted_on))
    onlooker.take(1000.0, report(1, 1000.0, "orders-0"))
    onlooker.take(1000.0, decision(1, 1000.0, {"orders-0": (None, 1)}, epoch=1))
    onlooker.take(1001.0, write_speeds(1001.0, {"orders-0": 10.0}))
    again = decision(2, 1002.0, {"orders-0": (None, 1)}, epoch=1).model_copy(update={"lost": (1,)})
    onlooker.take(1002.0, again.model_copy(update={"engine": BY_RULE}))
    onlooker.take(1002.0, again.model_copy(update={"number": 3}))
    for at, names in ((1003.0, ()), (1004.0, ("orders-0",))):
        onlooker.take(at, report(1, at, *names, incarnation="b", sequence=int(at)))
    onlooker.take(1004.0, ControllerClaim(epoch=1, incarnation="c", sequence=1, sent_at=1004.0, standing=counted_on))
    onlooker.take(1011.0, write_speeds(1011.0, {"orders-0": 10.0}))
    made = onlooker.decide(1011.0, lambda problem, _: solve_exhaustively(problem))
    assert made is not None
    assert (made.lost, made.grounds) == ((), DecisionKind.VOLUNTARY)


def test_who_looks_on_knows_who_is_gone_when_the_answer_comes() -> None:
    """The controller saw it together with the answer and said it after deciding: `kcga plan` left its number out."""
    world = WatchedWorld(SETTINGS, seed=1)
    world.speeds = dict.fromkeys(PARTITIONS, 25.0)
    world.go_on(20)
    world.speeds = dict.fromkeys(PARTITIONS, 5.0)
    while not (doomed := [each for each in world.consumers.values() if each.doomed]):
        world.step()
    (leaving,) = doomed
    leaving.frozen, world.solver_s = True, math.inf
    world.speeds = dict.fromkeys(PARTITIONS, 25.0)
    while not world.questions:
        world.step()
    ((_, question),) = world.questions
    answer = Solved(world.now, question.plan, world.solver(question.problem))
    del world.consumers[leaving.consumer]
    world.handle(ConsumerGone(world.now, leaving.consumer), answer)
    made, answered = world.pairs[-1]
    assert answered is not None
    assert leaving.consumer in {entry.consumer for entry in made.assignment}
    assert answered.assignment == made.assignment


def test_who_looks_on_knows_what_has_jumped_and_does_not_climb_on() -> None:
    """`kcga plan` took it for a climb: it foresaw what the controller did not."""
    settings = SETTINGS.model_copy(update={"forecast": True, "least_interval_s": 5.0})
    world = WatchedWorld(settings, seed=1)
    world.speeds = dict.fromkeys(PARTITIONS, 26.0)
    world.go_on(10)
    before = len(world.pairs)
    for speed in (36.0, 42.0, 46.0, 49.0, 52.0):
        world.speeds = dict.fromkeys(PARTITIONS, speed)
        world.step(1.0)
    first, jumped = (made for made, _ in world.pairs[before:])
    assert jumped.decided_at - first.decided_at < settings.least_interval_s
    world.require_the_same()


def test_a_claim_that_comes_again_late_says_what_was() -> None:
    """`kcga plan` answered that a consumer was gone which was not there yet when the claim was made."""
    onlooker = Onlooker(SETTINGS, 1)
    early, newest = (
        ControllerClaim(
            epoch=1,
            incarnation="c",
            sequence=sequence,
            sent_at=at,
            standing=Standing(began_at=1000.0, counted_on=counted_on),
        )
        for sequence, at, counted_on in ((0, 1000.0, ()), (1, 1001.0, (1,)))
    )
    onlooker.take(1000.0, early)
    onlooker.take(1000.0, report(1, 1000.0, "orders-0"))
    onlooker.take(1000.0, decision(1, 1000.0, {"orders-0": (None, 1)}, epoch=1))
    onlooker.take(1001.0, newest)
    onlooker.take(1010.0, early)
    onlooker.take(1011.0, write_speeds(1011.0, {"orders-0": 10.0}))
    made = onlooker.decide(1011.0, lambda problem, _: solve_exhaustively(problem))
    assert made is not None
    assert made.lost == ()


def test_without_fresh_speeds_nothing_is_decided_but_what_gives_partitions_a_reader() -> None:
    onlooker = Onlooker(SETTINGS, 1)
    onlooker.take(1000.0, write_speeds(1000.0, {"orders-0": 10.0}))
    onlooker.take(1000.0, report(1, 1000.0, "orders-0"))
    onlooker.take(1000.0, decision(1, 1000.0, {"orders-0": (None, 1)}, epoch=1))
    assert deepcopy(onlooker).decide(1100.0, never) is None
    onlooker.take(1100.0, report(1, 1100.0, sequence=2, state=ConsumerState.LEAVING))
    made = onlooker.decide(1100.0, never)
    assert made is not None
    assert made.lost == (1,)


def never(_problem: Problem, _engine: str) -> Solution:
    raise AssertionError("the solver is asked")
