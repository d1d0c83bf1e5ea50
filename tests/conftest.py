"""The real services that tests run against, started once a session and only if a test asks for them.

Where they cannot be started (no Java, no network for the first fetch of the jars), the tests that need them fail and
say so; none is skipped. Tests that need a browser or Prometheus are skipped where there is none, unless CI=true.
"""

import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import psutil
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import Browser, sync_playwright

from cli.embedded.broker import Broker
from cli.embedded.jars import DELTA, KAFKA, obtain
from cli.embedded.java import Java, find_java
from cli.embedded.spark import SparkConnectServer
from tests.broker_cluster import BrokerCluster

hypothesis.settings.register_profile("patient", deadline=None)  # on a busy machine any example may take a second
hypothesis.settings.load_profile("patient")

_REAL_SERVICES = frozenset({"broker", "broker_cluster", "kubernetes_program", "spark_server"})

CreateTopic = Callable[..., str]
"""`create_topic(name, partitions=1, **settings)` returns `name` once the topic can be used."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs a real service as `integration`."""
    for item in items:
        if _REAL_SERVICES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def java() -> Java:
    return find_java()


@pytest.fixture(scope="session")
def broker(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka broker that all tests of the session share: names of topics and groups must be `unique_name`s."""
    with Broker(tmp_path_factory.mktemp("broker"), jars=obtain(KAFKA), java=java) as broker:
        yield broker


@pytest.fixture
def broker_cluster(java: Java, tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers of the test's own, which it may kill."""
    cluster = BrokerCluster(tmp_path / "kafka", java)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def spark_server(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkConnectServer]:
    """A Spark Connect server that all tests of the session share: tables must lie in `lake_root`."""
    with SparkConnectServer(tmp_path_factory.mktemp("spark"), jars=obtain(DELTA), java=java) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium of the system's."""
    chromium = _installed("Chromium", "chromium", "chromium-browser", "google-chrome")
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=as_root)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def prometheus_program() -> Path:
    """The system's `prometheus`, a server that is not started yet."""
    return _installed("Prometheus", "prometheus")


@pytest.fixture(scope="session")
def promtool() -> Path:
    """What checks and tests Prometheus' rules."""
    return _installed("promtool", "promtool", package="prometheus")


def _installed(title: str, *names: str, package: str | None = None) -> Path:
    """The first of these programs of the system's. Without one the test is skipped, and fails where CI=true."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        missing = f"there is no {title} in PATH (Debian: apt-get install {package or names[0]})"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return Path(found)


@pytest.fixture
def nothing_left_running(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test fails where a process that it started, directly or not, is still there at its end."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv("KCGA_TEST", mark)
    yield
    left = [process for process in psutil.process_iter(["cmdline"]) if _environment_has(process, "KCGA_TEST", mark)]
    assert not left, f"still running: {[process.info['cmdline'] for process in left]}"


def _environment_has(process: psutil.Process, name: str, value: str) -> bool:
    try:
        return process.environ().get(name) == value
    except (psutil.Error, OSError):
        return False


@pytest.fixture
def lake_root(tmp_path: Path) -> Path:
    """A folder for the tables of one test."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def unique_name() -> str:
    """A name that no other test uses: for topics (also as the first part of several), groups, transactional ids."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


@pytest.fixture
def create_topic(admin: AdminClient) -> CreateTopic:
    def create(name: str, partitions: int = 1, **settings: str) -> str:
        """Settings are those of the topic, with `_` for `.`: `cleanup_policy="compact"`."""
        config = {setting.replace("_", "."): value for setting, value in settings.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        admin.create_topics([topic])[name].result(timeout=30)
        deadline = time.monotonic() + 30
        while len(admin.list_topics(name, timeout=30).topics[name].partitions) < partitions:
            assert time.monotonic() < deadline, f"the broker does not know of {name}"
            time.sleep(0.05)
        return name

    return create
