"""Asking the controller, and asking why, on a real broker."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from app.control import ask
from app.decisions import find_decision, how_it_came
from app.errors import KcgaError
from app.settings import Settings, load
from app.tail import CHUNK
from app.topics import Cluster
from cli.commands.validate import verdict
from controller.kafka import KafkaLink
from domain.messages import ControlAction, Foresight
from tests.sandbox.watch_messages import BEGAN, decision, write_speeds
from tests.services import SharedBroker

SETTINGS = """
[kafka]
bootstrap_servers = "{servers}"
group = "{name}"
[topics]
write_speed = "{name}.speed"
metadata = "{name}.metadata"
decisions = "{name}.decisions"
[monitor]
topics = ["orders"]
[consumer]
spark_remote = "sc://127.0.0.1:1"
lake_root = "/lake"
"""


def settings_of(broker: str, name: str, tmp_path: Path) -> Settings:
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS.format(servers=broker, name=name))
    return load(file)


@pytest.fixture
def settings(broker: SharedBroker, unique_name: str, tmp_path: Path) -> Settings:
    return settings_of(broker.bootstrap_servers, unique_name, tmp_path)


def create_topics(settings: Settings) -> None:
    Cluster(settings.kafka.bootstrap_servers).ensure_internal_topics(settings.topics.names, highest_consumer=2)


def a_link(settings: Settings) -> KafkaLink:
    return KafkaLink(settings.kafka.bootstrap_servers, settings.kafka.group, {}, settings.topics.names)


def test_what_an_operator_asks_reaches_the_next_controller(settings: Settings) -> None:
    create_topics(settings)
    assert "asked to pause" in ask(settings, ControlAction.PAUSE)
    link = a_link(settings)
    try:
        assert link.begin().paused
    finally:
        link.close()


def test_a_pause_of_rollouts_reaches_the_next_controller(settings: Settings) -> None:
    create_topics(settings)
    assert "asked to pause the rollout" in ask(settings, ControlAction.PAUSE_ROLLOUT)
    link = a_link(settings)
    try:
        beginning = link.begin()
    finally:
        link.close()
    assert not beginning.paused
    assert beginning.rollout is not None
    assert beginning.rollout.paused


def test_without_a_controller_there_is_nobody_to_ask_and_nothing_to_explain(settings: Settings) -> None:
    with pytest.raises(KcgaError, match="no controller has run"):
        ask(settings, ControlAction.REPLAN)
    with pytest.raises(KcgaError, match="there is no decision on"):
        find_decision(settings)


def test_decisions_are_found_from_the_newest_back(settings: Settings) -> None:
    create_topics(settings)
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap_servers})
    producer.produce(settings.topics.decisions, decision(1, BEGAN, {"orders-0": (None, 1)}).encode(), partition=0)
    producer.produce(settings.topics.decisions, b"nonsense", partition=0)
    producer.flush()
    link = a_link(settings)
    try:
        link.begin()
        for number in range(2, 2 * CHUNK):
            link.send([decision(number, BEGAN + number, {"orders-0": (1, 1)}, carried_out=False)])
    finally:
        link.close()
    assert find_decision(settings).number == 2 * CHUNK - 1
    assert find_decision(settings, number=1).assignment[0].previous is None
    with pytest.raises(KcgaError, match=r"there is no decision 7 of epoch 4 on"):
        find_decision(settings, number=7, epoch=4)


def test_how_what_was_foreseen_came_out_is_found_where_the_monitor_told_it(settings: Settings) -> None:
    create_topics(settings)
    foresight = Foresight(horizon_s=25.0, quantile=0.9, partitions=1, due=0, held=0)
    made = decision(1, time.time() - 60, {"orders-0": (1, 1)})
    growing = made.assignment[0].model_copy(update={"speed": 60.0, "foreseen": 20.0})
    changes = {"assignment": (growing,), "foresight": foresight, "measured_at": BEGAN}
    made = made.model_copy(update=changes)
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap_servers})
    producer.produce(settings.topics.write_speed, b"not a report", partition=0)
    for at, speed in ((24.0, 50.0), (25.0, 58.0)):
        assert how_it_came(settings, made) is None
        told = write_speeds(BEGAN + at, {"orders-0": speed})
        producer.produce(settings.topics.write_speed, told.encode(), partition=0)
        producer.flush()
    assert how_it_came(settings, made) == 58.0
    assert how_it_came(settings, made.model_copy(update={"foresight": None})) is None


def test_settings_that_are_right_are_summed_up_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    words = verdict(file, settings_of("127.0.0.1:1", "kcga", tmp_path))
    assert "1,725,000 of 2,300,000 bytes/s, lambda is 0.5, 1 to 100 consumers" in words
    assert "\n" not in words
