"""`kcga simulate --policy controller`: the decisions of a run, from its write speeds alone."""

import csv
import json
from pathlib import Path

import pytest

from app.watch.decide.simulated_group import SimulatedGroup
from cli.files.stream_file import Measurement
from cli.packing.controller_replay import ControllerReplay
from controller.settings import ControllerSettings
from domain.consumer_class import ConsumerClass
from domain.messages import Decision
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from tests.cli.packing_command import Kcga, kcga_command
from tests.controller.exhaustive import solve_exhaustively
from tests.controller.world import World
from tests.examples import examples

kcga = pytest.fixture(kcga_command)

PARTITIONS = [TopicPartition("orders", number) for number in range(4)]
SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=80.0,
    interval_s=10.0,
    scale_down_window_s=20.0,
    recovery_time_s=0.0,
    rscore_tolerance=0.0,
    max_consumers=5,
)


class RecordedWorld(World):
    def write_speeds(self) -> WriteSpeeds:
        speeds = super().write_speeds()
        self.recorded.append((self.now, speeds))
        return speeds

    def __init__(self, settings: ControllerSettings, seed: int) -> None:
        self.recorded: list[tuple[float, WriteSpeeds]] = []
        super().__init__(settings, seed)


def changes(decisions: list[Decision]) -> list[tuple[float, dict[TopicPartition, int]]]:
    """What was carried out and is another assignment than before; when, after the first of all decisions."""
    found: list[tuple[float, dict[TopicPartition, int]]] = []
    for each in decisions:
        assignment = {entry.key: entry.consumer for entry in each.assignment}
        if each.carried_out and (not found or found[-1][1] != assignment):
            found.append((each.decided_at - decisions[0].decided_at, assignment))
    return found


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        SETTINGS.model_copy(update={"spare_consumers": 1, "pinned": {"orders-0": 3}}),
        SETTINGS.model_copy(update={"migration_budget": 0.0}),
        SETTINGS.with_classes([ConsumerClass("large", 400.0, 2.5), ConsumerClass("small", 50.0, 0.55)]),
    ],
    ids=["plain", "a spare and a pin", "no budget", "classes"],
)
@pytest.mark.parametrize("seed", range(examples(4)))
def test_a_replay_of_a_run_gives_its_decisions(seed: int, settings: ControllerSettings) -> None:
    world = RecordedWorld(settings, seed)
    for _ in range(20):  # a spare and whom a pin names are there before the first speeds
        world.step(monitor=False)
    for _ in range(5):
        world.speeds = {partition: world.random.choice([5.0, 25.0, 45.0, 65.0]) for partition in PARTITIONS}
        for _ in range(60):
            world.step()
    group = SimulatedGroup(settings, lambda problem, _: solve_exhaustively(problem))
    began = world.recorded[0][0] - 0.5
    for at, speeds in world.recorded:
        group.measured(at - began, speeds)
    assert len(changes(world.decisions)) > 1
    assert changes(group.decisions) == changes(world.decisions)


def test_a_partition_that_is_left_out_for_a_while_keeps_its_reader_and_one_that_never_comes_back_does_not() -> None:
    first, second = PARTITIONS[:2]
    speeds = [{first: 10.0, second: 10.0}, {first: 10.0}, {first: 10.0, second: 10.0}, {second: 10.0}]
    replay = ControllerReplay(SETTINGS, interval_s=1.0)
    measured = [Measurement(place, each) for place, each in enumerate(speeds)]
    read = [set(assignment) for _, assignment in replay.replay(measured)]
    assert read == [{first, second}, {first, second}, {first, second}, {second}]
    assert replay.decisions


def test_a_controller_that_looks_ahead_is_replayed_as_one() -> None:
    def grows_at(*, forecast: bool) -> int:
        settings = SETTINGS.model_copy(update={"forecast": forecast, "packing_capacity": None})
        climb = [Measurement(second, dict.fromkeys(PARTITIONS[:2], 5 + 0.15 * second)) for second in range(320)]
        replay = ControllerReplay(settings, interval_s=1.0).replay(climb)
        return next(answer.iteration for answer, _ in replay if answer.consumers > 1)

    assert grows_at(forecast=False) > 300
    assert 250 < grows_at(forecast=True) < 295


def test_the_controller_is_replayed_as_the_engines_are(kcga: Kcga, tmp_path: Path) -> None:
    stream, assignments, metrics = (tmp_path / name for name in ("stream.csv", "assignments.csv", "metrics.csv"))
    assert kcga("generate", stream, "--partitions", 6, "--iterations", 4, "--start", "half").exit_code == 0
    ended = kcga(
        *("simulate", stream, "--policy", "controller", "--output", "json"),
        *("--assignments", assignments, "--metrics", metrics),
    )
    assert ended.exit_code == 0, ended.stderr
    (engine,) = json.loads(ended.stdout)["engines"]
    assert (engine["algorithm"], engine["iterations"], engine["proven"]) == ("controller", 4, None)
    rows = list(csv.DictReader(assignments.read_text().splitlines()))
    assert len(rows) == 4 * 6
    told = [len({row["consumer"] for row in rows if row["iteration"] == str(n)}) for n in range(1, 5)]
    assert [int(row["consumers"]) for row in csv.DictReader(metrics.read_text().splitlines())] == told


def test_without_settings_there_are_as_many_consumers_as_it_takes(kcga: Kcga, tmp_path: Path) -> None:
    stream = tmp_path / "stream.csv"
    rows = [f"0,orders,{number},90\n" for number in range(120)]
    stream.write_text("iteration,topic,partition,speed\n" + "".join(rows))
    ended = kcga("simulate", stream, "--policy", "controller", "--output", "json")
    assert ended.exit_code == 0, ended.stderr
    assert json.loads(ended.stdout)["engines"][0]["mean_consumers"] == 120


def test_the_controllers_settings_hold(kcga: Kcga, tmp_path: Path) -> None:
    stream, file = tmp_path / "stream.csv", tmp_path / "kcga.toml"
    stream.write_text("iteration,topic,partition,speed\n0,orders,0,70\n0,orders,1,70\n")
    refused = kcga("simulate", stream, "--settings", file)
    assert refused.exit_code == 2
    assert "--policy controller" in refused.stderr
    file.write_text(
        '[kafka]\nbootstrap_servers = "127.0.0.1:1"\n[monitor]\ntopics = ["orders"]\n'
        '[consumer]\nspark_remote = "sc://127.0.0.1:1"\nlake_root = "/lake"\n'
        "[controller]\nconsumer_capacity = 200\nmax_consumers = 1\n"
    )
    ended = kcga("simulate", stream, "--policy", "controller", "--settings", file, "--output", "json")
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["capacity"], found["engines"][0]["mean_consumers"]) == (200.0, 1.0)


def test_with_classes_in_the_settings_the_price_is_told(kcga: Kcga, tmp_path: Path) -> None:
    stream, settings, metrics = (tmp_path / name for name in ("stream.csv", "settings.toml", "metrics.csv"))
    stream.write_text("iteration,topic,partition,speed\n0,orders,0,1500\n0,orders,1,700\n")
    settings.write_text(
        '[kafka]\nbootstrap_servers = "kafka:1"\n[monitor]\ntopics = ["orders"]\n'
        "[controller]\nconsumer_capacity = 1000\n"
        '[consumer]\nspark_remote = "sc://spark:1"\nlake_root = "/lake"\n'
        '[[consumer.classes]]\nname = "large"\ncapacity = 2000\nprice = 1.75\n'
    )
    ended = kcga("simulate", stream, "--policy", "controller", "--settings", settings, "--metrics", metrics)
    assert ended.exit_code == 0, ended.stderr
    assert "price" in ended.stdout
    assert [row["price"] for row in csv.DictReader(metrics.read_text().splitlines())] == ["2.75"]


def test_a_replay_of_an_idle_time_has_no_consumer_in_it() -> None:
    settings = SETTINGS.model_copy(update={"min_consumers": 0, "idle_time_s": 20.0})
    replay = ControllerReplay(settings, interval_s=5.0)
    totals = [50.0, *[0.0] * 8, 50.0]
    stream = [Measurement(place, {PARTITIONS[0]: total}) for place, total in enumerate(totals)]
    assert [answer.consumers for answer, _ in replay.replay(stream)] == [1, 1, 1, 1, 1, 0, 0, 0, 0, 1]
