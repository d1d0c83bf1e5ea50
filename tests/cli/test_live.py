"""Asking a group that runs: how it stands, what its controller would do, what was measured. On a real broker."""

import gzip
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from rich.console import Console
from typer.testing import CliRunner, Result

from app.errors import KcgaError
from app.settings import Settings, load
from app.topics import Cluster
from cli.commands.record import record_speeds
from cli.commands.status import print_status, status_json
from cli.doctor import examine
from cli.files.stream_file import read_stream
from cli.live.plan import in_words, plan_now
from cli.main import app
from domain.group_view.fold import time_of
from domain.group_view.picture import GroupPicture
from domain.messages import (
    ConsumerReport,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    CreationLimit,
    Decision,
    ParkedTopic,
    PartitionRef,
    Restraint,
    RolloutStanding,
    Standing,
    TopicsOfSource,
)
from domain.messages.codec import Message
from tests.app.test_control import SETTINGS, settings
from tests.patience import PATIENCE_S
from tests.sandbox.watch_messages import decision, report, write_speeds

__all__ = ["settings"]

CONTROLLER = """
[controller]
consumer_capacity = 100
packing_capacity = 80
scale_down_window_s = 4
recovery_time_s = 0
engine = "mbfp"
speeds_timeout_s = 3600
heartbeat_timeout_s = 3600
"""


class Group:
    """Says what a monitor, a controller and its consumers would say."""

    def __init__(self, settings: Settings) -> None:
        self._names = settings.topics
        self.ahead_s = 0.0
        """The clocks of them all."""
        self._producer = Producer({"bootstrap.servers": settings.kafka.bootstrap_servers})
        names = settings.topics.names
        cluster = Cluster(settings.kafka.bootstrap_servers)
        # Here it is told when each record came: nobody waits for what is to be old.
        counts = {names.write_speed: 1, names.metadata: 4, names.decisions: 1}
        cluster.create(counts, settings={name: {"message.timestamp.type": "CreateTime"} for name in counts})
        cluster.ensure_internal_topics(names, highest_consumer=3)

    def measure(
        self,
        speeds: dict[str, float | None],
        at: float | None = None,
        gone: tuple[PartitionRef, ...] = (),
        sources: tuple[TopicsOfSource, ...] = (),
    ) -> None:
        at = at or time.time()
        said = write_speeds(at + self.ahead_s, speeds).model_copy(update={"gone": gone, "sources": sources})
        self._produce(self._names.write_speed, said, at)
        assert self._producer.flush(PATIENCE_S) == 0

    def say(self, *messages: Decision | ConsumerReport | ControllerClaim | ControlRequest) -> None:
        for message in messages:
            topic = self._names.decisions if isinstance(message, Decision) else self._names.metadata
            at = time_of(message)
            told_at = "decided_at" if isinstance(message, Decision) else "sent_at"
            self._produce(topic, message.model_copy(update={told_at: at + self.ahead_s}), at)
        assert self._producer.flush(PATIENCE_S) == 0

    def close(self) -> None:
        self._producer.close()

    def _produce(self, topic: str, message: Message, at: float) -> None:
        self._producer.produce(topic, message.encode(), partition=0, timestamp=int(1000 * at))


@pytest.fixture
def small(settings: Settings, tmp_path: Path) -> Settings:
    file = tmp_path / "small.toml"
    group, servers = settings.kafka.group, settings.kafka.bootstrap_servers
    file.write_text(SETTINGS.format(servers=servers, name=group) + CONTROLLER)
    return load(file)


@pytest.fixture
def group(small: Settings) -> Iterator[Group]:
    group = Group(small)
    yield group
    group.close()


def running(group: Group, *, load: float) -> None:
    """Two consumers with a partition each, as the newest plan wants it."""
    now = time.time()
    plan = {"orders-0": (None, 1), "orders-1": (None, 2)}
    group.say(
        ControllerClaim(epoch=4, incarnation="a", sent_at=now - 20),
        decision(7, now - 15, plan, epoch=4),
        report(1, now, "orders-0"),
        report(2, now, "orders-1"),
    )
    for second in (5, 4, 3, 2, 1, 0):
        group.measure({"orders-0": load, "orders-1": load}, now - second)


def test_the_status_of_a_group_is_drawn_and_told_in_json(small: Settings, group: Group) -> None:
    running(group, load=50.0)
    console = Console(width=110, record=True, quiet=True, file=None)
    with console.capture():
        print_status(small, console)
    shown = GroupPicture.model_validate_json(status_json(small))
    assert [each.load for each in shown.consumers] == [50.0, 50.0]
    assert (shown.partitions, shown.fewest_consumers, shown.newest_decision) == (2, 1, "4/7")


def test_what_is_measured_by_offsets_is_told_by_status(small: Settings, group: Group) -> None:
    running(group, load=50.0)
    group.measure({"orders-0": 1.0}, sources=(TopicsOfSource(source="offsets", topics=("orders",), because="denied"),))
    console = Console(width=110)
    with console.capture() as captured:
        print_status(small, console)
    said = "write speeds are measured of orders by offsets, since denied"
    assert said in captured.get()
    assert GroupPicture.model_validate_json(status_json(small)).sources == said


def test_a_group_that_nobody_controls_says_what_to_start(small: Settings, group: Group) -> None:
    assert group
    console = Console(width=110)
    with console.capture() as captured:
        print_status(small, console)
    assert "does kcga monitor run?" in captured.get()
    assert "no controller has claimed the group" in captured.get()
    with pytest.raises(KcgaError, match="there are no fresh write speeds"):
        plan_now(small)


def test_a_rollout_that_has_stopped_is_told_by_status_and_says_what_to_do(
    small: Settings, group: Group, tmp_path: Path
) -> None:
    running(group, load=50.0)
    now = time.time()
    rollout = RolloutStanding(revision="5f", outdated=(1, 2), failed=3)
    standing = Standing(began_at=now - 20, counted_on=(1, 2), rollout=rollout)
    group.say(ControllerClaim(epoch=4, incarnation="a", sequence=1, sent_at=now, standing=standing))
    console = Console(width=110)
    with console.capture() as captured:
        print_status(small, console)
    said = "the rollout has stopped, as consumer 3 did not become ready: 2 consumers began with another image"
    assert said in captured.get()
    picture = GroupPicture.model_validate_json(status_json(small))
    assert (picture.rollout.outdated, picture.rollout.stopped) == ((1, 2), True)
    asked = CliRunner().invoke(app, ["rollout", "status", "--settings", str(tmp_path / "small.toml")])
    assert "Consumers begin with revision 5f." in asked.stdout
    assert "To be replaced: 1, 2." in asked.stdout
    assert "kcga rollout undo" in asked.stdout


def test_what_is_parked_is_told_by_status_and_can_be_asked_for(small: Settings, group: Group, tmp_path: Path) -> None:
    running(group, load=50.0)
    file = str(tmp_path / "small.toml")

    def asked(topic: str) -> Result:
        return CliRunner().invoke(app, ["unpark", topic, "--settings", file])

    assert "orders is not parked: no topic is" in str(asked("orders").exception)
    now = time.time()
    parked = ParkedTopic(topic="orders", reason="/lake/orders: another type", since=now - 90, until=now + 3600, times=1)
    standing = Standing(began_at=now - 200, counted_on=(1, 2), parked=(parked,))
    group.say(ControllerClaim(epoch=4, incarnation="a", sequence=1, sent_at=now, standing=standing))
    console = Console(width=110)
    with console.capture() as captured:
        print_status(small, console)
    said = "orders is parked for 90 s, and tried again in 3,600 s: /lake/orders: another type; kcga unpark orders"
    assert said in captured.get()
    assert [each.topic for each in GroupPicture.model_validate_json(status_json(small)).parked] == ["orders"]
    assert plan_now(small).parked == {"orders": "/lake/orders: another type"}
    assert "clicks is not parked: it must be one of orders" in str(asked("clicks").exception)
    assert "was asked to unpark orders" in asked("orders").stdout
    assert plan_now(small).parked == {}
    on_trial = standing.model_copy(update={"parked": (parked.model_copy(update={"until": now - 1}),)})
    group.say(ControllerClaim(epoch=4, incarnation="a", sequence=2, sent_at=now, standing=on_trial))
    assert "was asked to unpark orders" in asked("orders").stdout


def test_who_asks_for_a_rollout_of_which_nobody_speaks_is_told_so(
    small: Settings, group: Group, tmp_path: Path
) -> None:
    assert small
    running(group, load=50.0)
    asked = CliRunner().invoke(app, ["rollout", "status", "--settings", str(tmp_path / "small.toml")])
    assert isinstance(asked.exception, KcgaError)
    assert "no controller has said" in str(asked.exception)


@pytest.mark.parametrize("ahead_s", [0.0, -3600.0, 3600.0])
def test_a_plan_is_what_the_controller_would_do_now(ahead_s: float, small: Settings, group: Group) -> None:
    """Issue 18: whatever the clocks of the others say, which all had it say that the speeds are old, or in vain."""
    group.ahead_s = ahead_s
    running(group, load=30.0)
    made = plan_now(small)
    assert (made.epoch, made.number, made.carried_out) == (4, 8, True)
    assert made.plan.consumers == 1
    assert len({entry.consumer for entry in made.assignment}) == 1
    words = "\n".join(in_words(made))
    assert "nothing was sent" in words
    assert "scaled down from 2 to 1 consumer" in words


def test_a_dry_run_stops_what_is_gone_and_nothing_that_is_only_not_named(small: Settings, group: Group) -> None:
    """Issue 18: what the monitor did not name was forgotten, and what it says is gone was not heard."""
    running(group, load=30.0)
    group.measure({"orders-0": 30.0})
    assert {str(entry.key) for entry in plan_now(small).assignment} == {"orders-0", "orders-1"}
    group.measure({"orders-0": 30.0}, gone=(PartitionRef(topic="orders", partition=1),))
    assert {str(entry.key) for entry in plan_now(small).assignment} == {"orders-0"}


def test_a_dry_run_is_held_back_by_what_holds_the_controller_back(small: Settings, group: Group) -> None:
    running(group, load=30.0)
    group.say(ControlRequest(action=ControlAction.PAUSE, sent_at=time.time()))
    made = plan_now(small)
    assert not made.carried_out
    assert [each.by for each in made.held_back] == [Restraint.PAUSED]
    group.say(ControlRequest(action=ControlAction.RESUME, sent_at=time.time()))
    group.measure({"orders-0": 30.0, "orders-1": None})
    assert [each.by for each in plan_now(small).held_back] == [Restraint.MISSING_DATA]


def test_a_dry_run_asks_for_no_consumer_that_could_not_be_created(small: Settings, group: Group) -> None:
    running(group, load=70.0)
    now = time.time()
    limit = CreationLimit(most=2, failed_at=now - 30, consumer=3, until=now + 90)
    group.say(ControllerClaim(epoch=4, incarnation="a", sequence=1, sent_at=now, creation_limit=limit))
    group.measure({"orders-0": 70.0, "orders-1": 120.0, "orders-2": 70.0})
    made = plan_now(small)
    words, told_by = "\n".join(in_words(made)), time.time()
    assert made.plan.consumers == 2
    (ago_s,) = re.findall(r"consumer 3 could not be created (\d+) s ago", words)
    assert 30 <= int(ago_s) <= told_by - limit.failed_at + 1
    console = Console(width=110)
    with console.capture() as captured:
        print_status(small, console)
    assert "! consumer 3 could not be created" in captured.get()
    gone = limit.model_copy(update={"until": now - 1})
    group.say(ControllerClaim(epoch=4, incarnation="a", sequence=2, sent_at=now, creation_limit=gone))
    assert plan_now(small).plan.consumers == 3


def test_a_dry_run_grows_a_group_that_is_overloaded(small: Settings, group: Group) -> None:
    running(group, load=30.0)
    now = time.time()
    group.say(
        decision(8, now, {"orders-0": (1, 1), "orders-1": (2, 1)}, epoch=4),
        report(1, now, "orders-0", "orders-1", sequence=2),
        report(2, now, sequence=2),
    )
    group.measure({"orders-0": 70.0, "orders-1": 70.0})
    made = plan_now(small)
    assert made.carried_out
    assert "consumer 1 has 140 bytes/s to read" in made.triggers[0]
    assert made.plan.consumers == 2


def test_what_is_recorded_can_be_simulated(small: Settings, group: Group, tmp_path: Path) -> None:
    now = time.time()
    for second in (3, 2, 2, 1):
        group.measure({"orders-0": 10.0 * second, "orders-1": None}, now - second)
    file = tmp_path / "stream.csv.gz"
    assert record_speeds(small, file, threading.Event(), past_s=60, seconds=0) == 3
    assert [list(each.speeds.values()) for each in read_stream(file)] == [[30.0], [20.0], [10.0]]
    assert gzip.decompress(file.read_bytes()).startswith(b"iteration,topic,partition,speed")


def test_a_recording_goes_on_until_it_is_stopped(small: Settings, group: Group, tmp_path: Path) -> None:
    stop = threading.Event()
    file, written = tmp_path / "stream.csv", list[int]()
    recorder = threading.Thread(target=lambda: written.append(record_speeds(small, file, stop)))
    recorder.start()
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not stop.wait(0.2):
            group.measure({"orders-0": 1.0})
            if file.exists() and time.monotonic() > deadline - 27:
                stop.set()
    finally:
        stop.set()
        recorder.join()
    assert written[0] >= 1
    assert len(read_stream(file)) == written[0]


def test_the_doctor_names_what_is_missing_and_what_to_do(small: Settings, group: Group) -> None:
    assert group
    console = Console(width=200)
    with console.capture() as captured:
        sound = examine(small, console)
    said = captured.get()
    assert not sound
    assert "Kafka answers at" in said
    assert "no topic answers to 'orders' in monitor.topics" in said
    assert "metadata has 4 partitions, and max_consumers needs " in said
    assert "no session on sc://127.0.0.1:1" in said
    assert "correct where Spark is, and consumer.lake_root" in said
