"""Twenty groups that one process controls, on a real broker: what breaks one leaves what others decide as it is."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer

from app import components
from app.child import Child
from app.control import ask
from app.decisions import newest_decisions
from app.groups import GroupKeeper, Together, end
from app.settings import Settings, load
from app.topics import Cluster
from domain.messages import ControlAction, Decision, WriteSpeedReport
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from sandbox.ports import free_port
from tests import web
from tests.app.test_groups import Fleet
from tests.patience import PATIENCE_S, wait_until
from tests.services import SharedBroker

pytestmark = [pytest.mark.integration, pytest.mark.slow(40), pytest.mark.timeout(2400)]

SETTINGS = """\
[kafka]
bootstrap_servers = "{servers}"
group = "{name}"
[topics]
write_speed = "{name}.monitor.writeSpeed"
metadata = "{name}.consumer.metadata"
decisions = "{name}.controller.decisions"
[monitor]
topics = ["{name}.orders"]
[controller]
consumer_capacity = 1000
max_consumers = 4
[consumer]
spark_remote = "sc://127.0.0.1:1"
lake_root = "{folder}/lake"
[local]
folder = "{folder}/{name}"
[http]
controller_port = {port}
"""


def write(folder: Path, broker: SharedBroker, *names: str, port: int = 0) -> dict[str, Path]:
    """The settings file of each group."""
    files = {name: folder / f"{name}.toml" for name in names}
    for name, file in files.items():
        file.write_text(SETTINGS.format(servers=broker.bootstrap_servers, name=name, folder=folder, port=port))
    return files


@contextmanager
def measured(settings: list[Settings]) -> Iterator[None]:
    """A monitor for all groups: each has a partition that is written to."""
    producer = Producer({"bootstrap.servers": settings[0].kafka.bootstrap_servers, "log_level": 0})
    stop = threading.Event()

    def measure() -> None:
        while not stop.wait(1.0):
            for each in settings:
                speeds = WriteSpeeds(time.time(), {TopicPartition(each.monitor.topics[0], 0): 600.0})
                producer.produce(each.topics.write_speed, WriteSpeedReport.of(speeds).encode(), partition=0)
            producer.poll(0)

    thread = threading.Thread(target=measure)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        producer.flush(10)


@contextmanager
def in_memory(*_: object) -> Iterator[Fleet]:
    """Consumers that are never heard of."""
    yield Fleet()


def decisions(settings: Settings) -> list[Decision]:
    return newest_decisions(settings, 100)


def test_the_others_decide_as_before(
    broker: SharedBroker, unique_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "_fleet", in_memory)
    files = write(tmp_path, broker, *(f"{unique_name}-{number}" for number in range(20)))
    of_all = {name: load(file) for name, file in files.items()}
    wrong, vanishing, *others = of_all
    files[wrong].write_text("[kafka]\n")
    together = Together()
    keepers = {name: GroupKeeper(name, file, together) for name, file in files.items()}
    right = {name: settings for name, settings in of_all.items() if name != wrong}
    cluster = Cluster(broker.bootstrap_servers)
    for settings in right.values():
        cluster.ensure_internal_topics(settings.topics.names, settings.controller.highest_consumer)
    with measured(list(right.values())):
        for keeper in keepers.values():
            keeper.begin()
        try:
            wait_until(lambda: all(decisions(settings) for settings in right.values()))
            for settings in right.values():
                placed = decisions(settings)[-1]
                assert [(each.consumer, str(each.key)) for each in placed.assignment] == [
                    (1, f"{settings.monitor.topics[0]}-0")
                ]
            assert "kafka.bootstrap_servers" in (keepers[wrong].fault or "")
            cluster.delete(f"{vanishing}.")
            before = {name: decisions(of_all[name])[0] for name in others}
            for name in others:
                ask(of_all[name], ControlAction.REPLAN)
            wait_until(lambda: all(decisions(of_all[name])[0].number > before[name].number for name in others))
            assert all(decisions(of_all[name])[0].epoch == before[name].epoch for name in others)
            assert all(keepers[name].fault is None for name in others)
        finally:
            cluster.ensure_internal_topics(of_all[vanishing].topics.names, 4)
            end(list(keepers.values()), PATIENCE_S)
    assert not any(keeper.at_work for keeper in keepers.values())


def test_the_command_controls_a_folder_of_groups_until_it_is_asked_to_end(
    broker: SharedBroker, unique_name: str, tmp_path: Path
) -> None:
    folder, port = tmp_path / "groups", free_port()
    folder.mkdir()
    files = write(folder, broker, f"{unique_name}-clicks", f"{unique_name}-orders", port=port)
    clicks, orders = files
    files[clicks].write_text(files[clicks].read_text().replace("[kafka]", "[kafka]\nport = 9092"))
    command = components.command("controller", "--settings", str(folder), "--max-consumers", "3")

    def rows() -> dict[str, str | None]:
        try:
            answer = web.get(f"http://127.0.0.1:{port}/api/groups", timeout=PATIENCE_S).json()
        except httpx.TransportError:
            return {}
        return {row["name"]: row["role"] for row in answer}

    with Child("controller", command, tmp_path / "controller.log", folder=tmp_path, stop_within_s=PATIENCE_S) as child:
        wait_until(lambda: rows() == {clicks: None, orders: "leader"})
        child.stop()
        assert child.exit_code == 0
