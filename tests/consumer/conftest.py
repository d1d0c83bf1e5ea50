"""Consumers to test, on the real broker and the real lake."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.class_data import jar_settings, jvm_options
from app.jars import DELTA, obtain
from consumer import jvm, runner
from consumer.session import open_session, release
from consumer.settings import ConsumerSettings
from tests.consumer.clock import Clock
from tests.consumer.consumer_driver import Driver, RunningConsumer, StartConsumer, StartProcess
from tests.consumer.consumer_program import ConsumerProgram
from tests.patience import PATIENCE_S
from tests.services import SharedBroker, SharedSpark


@pytest.fixture
def metadata_topic(unique_name: str, create_topic: Callable[..., str]) -> str:
    """A metadata topic for consumers 1 to 3."""
    return create_topic(f"{unique_name}.metadata", partitions=4)


@pytest.fixture
def data_topic(unique_name: str, create_topic: Callable[..., str]) -> str:
    """A topic of four partitions."""
    return create_topic(f"{unique_name}.data", partitions=4)


@pytest.fixture
def driver(broker: SharedBroker, metadata_topic: str, unique_name: str) -> Iterator[Driver]:
    driver = Driver(broker.bootstrap_servers, metadata_topic, unique_name)
    yield driver
    driver.close()


@pytest.fixture
def consumer_settings(spark_server: SharedSpark, lake_root: Path) -> dict[str, Any]:
    """Short cycles, so that a test sees many, and time for everything on a busy machine."""
    return {
        "spark_remote": spark_server.remote,
        "lake_root": str(lake_root),
        "batch_bytes": 500_000,
        "wait_time_secs": 0.3,
        "heartbeat_s": 0.3,
        "lease_s": 600.0,
        "give_up_after_s": 600.0,
        "write_limit_s": 240.0,
    }


@pytest.fixture
def schema(spark_server: SharedSpark, lake_root: Path, unique_name: str) -> Iterator[str]:
    """A schema of Spark's own catalog: its tables, by their names, lie under `lake_root`."""
    name = f"spark_catalog.{unique_name.replace('-', '_')}"
    session = open_session(spark_server.remote)
    session.sql(f"CREATE DATABASE {name} LOCATION '{lake_root}'")
    yield name
    session.sql(f"DROP DATABASE {name} CASCADE")
    release(session)


@pytest.fixture
def own_spark() -> dict[str, Any]:
    """Settings in place of the server's: a session, and a JVM, of the consumer's own."""
    jars, master = obtain(DELTA), "local[1]"
    options = jvm.of_a_consumer(*jvm.UNVERIFIED, *jvm_options(jars))
    conf = {**jar_settings(jars, (), master, {}), "spark.driver.memory": "1g", **options}
    conf |= {"spark.databricks.delta.stats.collect": "false"}
    return {"spark_remote": None, "spark_master": master, "spark_conf": conf}


@pytest.fixture
def consumer_arguments(broker: SharedBroker, metadata_topic: str, unique_name: str) -> Callable[[int], dict[str, Any]]:
    return lambda number: {
        "consumer": number,
        "group": unique_name,
        "bootstrap_servers": broker.bootstrap_servers,
        # The client's own 30 s is how long it takes a topic that has gone for one that is to come.
        "client_config": {"topic.metadata.propagation.max.ms": "1000"},
        "metadata_topic": metadata_topic,
    }


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """That of the consumers in this process."""
    clock = Clock()
    clock.serve(monkeypatch.setattr)
    return clock


@pytest.fixture
def brokers_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a consumer asks of brokers may take as long as anything."""
    for limit in ("offsets.COMMIT_LIMIT_S", "offsets.REQUEST_LIMIT_S", "fetcher.REQUEST_LIMIT_S", "fetcher.ENDING_S"):
        monkeypatch.setattr(f"consumer.{limit}", PATIENCE_S)


@pytest.fixture
def start_consumer(
    consumer_arguments: Callable[[int], dict[str, Any]],
    consumer_settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[StartConsumer]:
    monkeypatch.setattr(runner, "LAST_REPORT_LIMIT_S", PATIENCE_S)
    begun: list[RunningConsumer] = []

    def start(number: int, **settings: Any) -> RunningConsumer:
        chosen = ConsumerSettings(**consumer_settings | settings)
        begun.append(RunningConsumer(consumer_arguments(number) | {"settings": chosen}))
        return begun[-1]

    yield start
    for consumer in begun:
        consumer.stop.set()
    for consumer in begun:
        consumer.end()


@pytest.fixture
def start_process(
    consumer_arguments: Callable[[int], dict[str, Any]], consumer_settings: dict[str, Any], tmp_path: Path
) -> Iterator[StartProcess]:
    begun: list[ConsumerProgram] = []

    def start(number: int, fault: dict[str, Any] | None = None, **settings: Any) -> ConsumerProgram:
        log = tmp_path / f"consumer-{number}-{len(begun)}.log"
        begun.append(ConsumerProgram(consumer_arguments(number), consumer_settings | settings, fault, log))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
