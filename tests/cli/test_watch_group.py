"""`kcga watch` beside real groups on a real broker: the advice is right, and the group notices nothing."""

import csv
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from itertools import islice
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from app.errors import KcgaError
from app.java import Java
from app.settings import Settings, checked
from app.watch.advice import Advice
from app.watch.decide.membership import Protocol
from app.watch.decide.watcher import Moment
from app.watch.looks import Look, look_at
from cli.live.keda import scaler
from cli.main import app
from sandbox.ports import LOOPBACK
from solver import solve
from tests.cli.keda_client import Keda
from tests.cli.ordinary_group import RdkafkaGroup, generation, java_group, producing, until, wait_for_group
from tests.conftest import CreateTopic
from tests.kafka_python import LEAVES_SOCKETS
from tests.patience import PATIENCE_S
from tests.services import SharedBroker

pytestmark = [pytest.mark.integration, pytest.mark.slow(20), LEAVES_SOCKETS]

SPEEDS = {0: 40_000, 1: 4_000, 2: 4_000, 3: 2_000, 4: 2_000, 5: 1_000}
PROTOCOLS = {
    "range": {"partition.assignment.strategy": "range"},
    "roundrobin": {"partition.assignment.strategy": "roundrobin"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "KIP-848": {"group.protocol": "consumer"},
}


def settings_of(servers: str, group: str, capacity: float, **client: str) -> Settings:
    """Such that plans are for the present speeds alone, as those of `kcga solve` are."""
    return checked(
        {
            "kafka": {"bootstrap_servers": servers, "group": group, "client": client},
            "monitor": {"topics": ["^"], "interval_s": 0.2, "window_s": 3, "hold_s": 3_600, "request_timeout_s": 60},
            "controller": {
                "consumer_capacity": capacity,
                "packing_capacity": capacity,
                "time_limit_s": PATIENCE_S,
                "recovery_time_s": 0,
                "least_interval_s": 0.001,
                "scale_down_window_s": 0,
                "rscore_tolerance": 0,
            },
            "consumer": {"spark_master": "local", "lake_root": "/"},
        },
        "of the test",
    )


Watching = AbstractContextManager[Iterator[Look]]


def watching(settings: Settings, *topics: str) -> Watching:
    return closing(look_at(settings, topics, threading.Event(), solve))  # type: ignore[type-var]


def settled_on(members: int) -> Callable[[Look], bool]:
    """All of them are there and read, and their advice is of speeds that have settled, too."""

    def settled(look: Look) -> bool:
        moment = look.moment
        knows = moment.decision is not None and moment.saving is not None and moment.saving.seconds > 2
        return knows and len(moment.members) == members and not moment.unread

    return settled


def solved(moment: Moment, tmp_path: Path) -> dict[str, object]:
    """What `kcga solve` says of the same moment."""
    snapshot = tmp_path / "moment.csv"
    with snapshot.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("topic", "partition", "speed", "consumer"))
        for member in moment.members:
            rows.writerows((each.topic, each.partition, each.speed, member.consumer) for each in member.partitions)
    options = ["--capacity", str(moment.capacity), "--time-limit", str(PATIENCE_S), "--output", "json"]
    done = CliRunner().invoke(app, ["solve", str(snapshot), *options])
    assert done.exit_code == 0, done.output
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def agrees(look: Look, tmp_path: Path) -> None:
    decision, answer = look.moment.decision, solved(look.moment, tmp_path)
    assert decision is not None
    assert look.moment.needed == decision.plan.consumers == answer["consumers"]
    assert decision.plan.rscore == pytest.approx(answer["rscore"], abs=1e-6)
    assert decision.plan.objective == pytest.approx(answer["objective"], abs=1e-6)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_advice_is_what_solve_says_and_the_group_notices_nothing(
    protocol: str, broker: SharedBroker, create_topic: CreateTopic, unique_name: str, tmp_path: Path
) -> None:
    servers, topic = broker.bootstrap_servers, create_topic(unique_name, len(SPEEDS))
    client = {"bootstrap.servers": servers, **PROTOCOLS[protocol]}
    with RdkafkaGroup(client, unique_name, topic) as group, producing({"bootstrap.servers": servers}, topic, SPEEDS):
        for _ in range(3):
            group.join()
        wait_for_group({"bootstrap.servers": servers}, unique_name)
        with watching(settings_of(servers, unique_name, capacity=100_000)) as looks:

            def little_to_do(look: Look) -> bool:
                """Though three share it: once what comes at once after a broker stood still is past."""
                return settled_on(3)(look) and set(group.assigned.values()) == {2} and look.moment.needed == 1

            look = until(looks, little_to_do)
            before, first = generation(client, unique_name), look.moment
            agrees(look, tmp_path)
            assert first.protocol is (Protocol.CONSUMER if protocol == "KIP-848" else Protocol.CLASSIC)
            assert (first.epoch is None) == (protocol != "KIP-848")
            *_, last = islice(looks, 15)
        with watching(settings_of(servers, unique_name, capacity=8_000)) as looks:
            # A partition is more than a consumer can read.
            busy = until(looks, lambda look: settled_on(3)(look) and bool(look.moment.overloaded))
            agrees(busy, tmp_path)
        for moment in (last.moment, busy.moment):
            assert {each.member for each in moment.members} == {each.member for each in first.members}
            assert moment.epoch == first.epoch
        assert generation(client, unique_name) == before


def test_an_autoscaler_that_follows_the_advice_comes_to_as_many_members_as_are_needed(
    broker: SharedBroker, create_topic: CreateTopic, unique_name: str
) -> None:
    """KEDA's part is played by its client and this test."""
    servers, topic = broker.bootstrap_servers, create_topic(unique_name, len(SPEEDS))
    client = {"bootstrap.servers": servers}
    advice = Advice(unique_name, holds_s=PATIENCE_S)
    with (
        RdkafkaGroup({**client, **PROTOCOLS["cooperative"]}, unique_name, topic) as group,
        producing(client, topic, dict.fromkeys(SPEEDS, 10_000)),
        scaler(advice, LOOPBACK) as address,
        Keda(address) as keda,
    ):
        for _ in range(3):
            group.join()
        wait_for_group(client, unique_name)
        with watching(settings_of(servers, unique_name, capacity=45_000)) as looks:
            for members in (3, 2):
                look = until(looks, settled_on(members))
                advice.tell(look.moment)
                (value,) = keda.ask("GetMetrics", group=unique_name).metricValues
                assert value.metricValueFloat == look.moment.needed == 2
                if members > value.metricValueFloat:
                    group.leave()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_beside_members_of_java(
    protocol: str, java: Java, broker: SharedBroker, create_topic: CreateTopic, unique_name: str, tmp_path: Path
) -> None:
    servers, topic = broker.bootstrap_servers, create_topic(unique_name, len(SPEEDS))
    with (
        producing({"bootstrap.servers": servers}, topic, SPEEDS),
        java_group(java, servers, unique_name, topic, protocol, 3, tmp_path),
    ):
        wait_for_group({"bootstrap.servers": servers}, unique_name)
        with watching(settings_of(servers, unique_name, capacity=100_000)) as looks:
            first = until(looks, settled_on(3))
            agrees(first, tmp_path)
            *_, last = islice(looks, 10)
        assert {each.member for each in last.moment.members} == {each.member for each in first.moment.members}
        assert (last.moment.epoch, last.moment.rebalances_seen) == (first.moment.epoch, first.moment.rebalances_seen)


def test_a_rebalance_is_seen_with_what_it_moved(
    broker: SharedBroker, create_topic: CreateTopic, unique_name: str
) -> None:
    servers, topic = broker.bootstrap_servers, create_topic(unique_name, len(SPEEDS))
    client = {"bootstrap.servers": servers}
    with RdkafkaGroup(client, unique_name, topic) as group, producing(client, topic, SPEEDS):
        for _ in range(3):
            group.join()
        wait_for_group({"bootstrap.servers": servers}, unique_name)
        with watching(settings_of(servers, unique_name, capacity=100_000)) as looks:
            before = until(looks, settled_on(3)).moment
            generation_before = generation(client, unique_name)
            group.leave()

            def over(look: Look) -> bool:
                moment = look.moment
                told = moment.rebalances_seen > before.rebalances_seen and moment.rebalances[-1].ended_at is not None
                return told and settled_on(2)(look) and not moment.rebalances[-1].commits_awaited

            after = until(looks, over).moment
        assert generation(client, unique_name) > generation_before
        assert after.rebalances[-1].moved >= 1
        assert after.rebalances[-1].unassigned_s >= 0
        assert {each.member for each in after.members} < {each.member for each in before.members}


def test_a_group_that_nobody_is_in_and_topics_that_vanish(
    broker: SharedBroker, create_topic: CreateTopic, unique_name: str, admin: AdminClient
) -> None:
    servers, topic = broker.bootstrap_servers, create_topic(unique_name, 2)
    client = {"bootstrap.servers": servers}
    committed_by_nobody(servers, unique_name, topic)
    with producing(client, topic, {0: 1_000, 1: 1_000}), watching(settings_of(servers, unique_name, 100_000)) as looks:
        moment = until(looks, lambda look: look.moment.decision is not None).moment
        assert (moment.state, moment.consumers, moment.needed) == ("Empty", 0, 1)
        assert {each.partition for each in moment.unread} == {0, 1}
    with watching(settings_of(servers, unique_name, 100_000)) as looks:
        until(looks, lambda look: bool(look.moment.unread))
        admin.delete_topics([topic])[topic].result(PATIENCE_S)

        def troubled(look: Look) -> bool:
            return look.moment.state is not None and any(topic in trouble for trouble in look.moment.troubles)

        assert until(looks, troubled).moment.state in ("Empty", "Dead")


def test_a_group_that_does_not_exist_is_named(broker: SharedBroker, unique_name: str) -> None:
    settings = settings_of(broker.bootstrap_servers, unique_name, 100_000)
    with watching(settings) as looks, pytest.raises(KcgaError, match=f"there is no group {unique_name}"):
        next(looks)


def test_topics_that_do_not_exist_are_named(broker: SharedBroker, create_topic: CreateTopic, unique_name: str) -> None:
    servers, topic = broker.bootstrap_servers, create_topic(unique_name)
    committed_by_nobody(servers, unique_name, topic)
    settings, missing = settings_of(servers, unique_name, 100_000), f"{unique_name}-2"
    with watching(settings, missing) as looks, pytest.raises(KcgaError, match=f"no such topic.*{missing}"):
        next(looks)


def test_the_command_prints_a_line_each_moment_and_records_what_simulate_replays(
    broker: SharedBroker, create_topic: CreateTopic, unique_name: str, tmp_path: Path
) -> None:
    servers, topic = broker.bootstrap_servers, create_topic(unique_name, len(SPEEDS))
    client, record = {"bootstrap.servers": servers}, tmp_path / "speeds.csv.gz"
    settings = tmp_path / "settings.toml"
    settings.write_text("[monitor]\ninterval_s = 0.2\nwindow_s = 3\nrequest_timeout_s = 60\ntopics = []\n")
    with RdkafkaGroup(client, unique_name, topic) as group, producing(client, topic, SPEEDS):
        group.join()
        wait_for_group({"bootstrap.servers": servers}, unique_name)
        options = ["--group", unique_name, "--bootstrap-servers", servers, "--capacity", "100000", "--topic", topic]
        options += ["--settings", str(settings), "--record", str(record), "--for", "8"]
        done = CliRunner().invoke(app, ["watch", *options, "--output", "json"])
        assert done.exit_code == 0, done.output
        moments = [Moment.model_validate_json(line) for line in done.stdout.splitlines()]
        assert {moment.group for moment in moments} == {unique_name}
        assert any(moment.decision is not None for moment in moments)
        said = CliRunner().invoke(app, ["watch", *options])
        assert f"{unique_name}: 1 consumer" in said.stdout
    replayed = CliRunner().invoke(app, ["simulate", str(record), "--policy", "controller", "--capacity", "100000"])
    assert replayed.exit_code == 0, replayed.output


def committed_by_nobody(servers: str, group: str, topic: str) -> None:
    """The group exists, and nobody is in it."""
    reader = Consumer({"bootstrap.servers": servers, "group.id": group})
    reader.commit(offsets=[Position(topic, 0, 0)], asynchronous=False)
    reader.close()
