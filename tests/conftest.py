"""The real services that tests run against, started once a run and only if a test asks for them; and in which order
tests begin.

Where services cannot be started (no Java, no network for the first fetch of the jars), the tests that need them fail
and say so; none is skipped. Tests that need a program of the system's (`tests.tools`) are skipped where there is none,
unless CI=true; how many, and why, is said at the end.
"""

import gc
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import pytest
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from coverage import Coverage
from hypothesis import is_hypothesis_test
from playwright.sync_api import Browser, expect, sync_playwright

from app.java import Java, find_java
from tests import go_program
from tests.broker_cluster import BrokerCluster
from tests.examples import register_profiles
from tests.patience import PATIENCE_S, wait_until
from tests.processor_time import ProcessorTime
from tests.running_up import leaves_no_process
from tests.services import OwnServices, Services, SharedBroker, SharedSpark, services_of
from tests.side_by_side import Scheduler
from tests.sink_examples import POSTGRES_MODULE, Example, Postgres, PostgresExample, SQLiteExample
from tests.tools import CHROMIUM, GO, INSTALL, NOT_TESTED, POSTGRES, PROMETHEUS, PROMTOOL, Tool

register_profiles()

_REAL_SERVICES = frozenset({"broker", "broker_cluster", "browser", "kubernetes_program", "spark_server"})

CreateTopic = Callable[..., str]
"""`create_topic(name, partitions=1, **settings)` returns `name` once the topic can be used."""


_SERVICES = pytest.StashKey[Services]()
_MEASURED_EXAMPLES = 10
_NO_TIME_S, _SOME_TIME_S, _LONG_S = 0.0, 2.0, 10.0


def pytest_configure(config: pytest.Config) -> None:
    """The process that the run began with has the services, and those that it began ask it for them."""
    # Explorations keep what they have seen: looking through it for cycles as often as by default takes a seventh more.
    gc.set_threshold(100_000, 20, 50)
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is not None:
        config.stash[_SERVICES] = services_of(worker["services"], bytes.fromhex(worker["services_key"]))
        return
    config.add_cleanup(ProcessorTime().tell)
    own = OwnServices()
    config.add_cleanup(own.close)
    config.stash[_SERVICES] = own


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a process where the services are."""
    own = node.config.stash[_SERVICES]
    if _SERVED not in node.config.stash:
        node.config.stash[_SERVED] = own.serve()
    address, key = node.config.stash[_SERVED]
    node.workerinput |= {"services": address, "services_key": key.hex()}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler | None:
    """None where pytest is told of another one."""
    return Scheduler(config, log) if config.getoption("dist") == "load" else None


_SERVED = pytest.StashKey[tuple[str, bytes]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs a real service as `integration`. What takes longest begins first: most of it waits, and what
    needs the processors fills the time."""
    for item in items:
        if _REAL_SERVICES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.integration)
    items.sort(key=_takes_s, reverse=True)


def pytest_collection_finish() -> None:
    """What was imported stays, and holds no cycle that anybody waits for."""
    gc.freeze()


def _takes_s(item: pytest.Item) -> float:
    slow = item.get_closest_marker("slow")
    if slow is not None:
        return float(slow.args[0]) if slow.args else _LONG_S
    return _SOME_TIME_S if item.get_closest_marker("integration") else _NO_TIME_S


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Where coverage is measured, it is not of a test that explores, and of a property's first examples alone: each
    line that is followed takes three times as long, and the others run the same lines."""
    measuring = Coverage.current()
    if measuring is None:
        return (yield)
    with ExitStack() as measured_again:
        if item.get_closest_marker("explores"):
            measuring.stop()
            measured_again.callback(measuring.start)
        elif isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
            measured_again.enter_context(_first_examples_measured(item.obj.hypothesis, measuring))
        return (yield)


@contextmanager
def _first_examples_measured(property_: Any, measuring: Coverage) -> Iterator[None]:
    """`property_`: hypothesis' handle of the test, of which each example is a call of `inner_test`."""
    example, tried = property_.inner_test, 0

    @wraps(example)
    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal tried
        tried += 1
        if tried == _MEASURED_EXAMPLES + 1:
            measuring.stop()
        return example(*args, **kwargs)

    property_.inner_test = counted
    try:
        yield
    finally:
        property_.inner_test = example
        if tried > _MEASURED_EXAMPLES:
            measuring.start()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many tests this machine could not run, and why."""
    skipped = (report.longrepr for report in terminalreporter.stats.get("skipped", ()))
    reasons = Counter(str(where[2]).removeprefix("Skipped: ") for where in skipped if isinstance(where, tuple))
    lacking = {reason: count for reason, count in reasons.items() if reason.startswith(NOT_TESTED)}
    if lacking:
        terminalreporter.section("not tested on this machine")
        for reason, count in sorted(lacking.items()):
            terminalreporter.line(f"{count} x {reason}")
        terminalreporter.line(f"{sum(lacking.values())} not tested; `{INSTALL}` installs what is missing")


@pytest.fixture(scope="session")
def java() -> Java:
    return find_java()


@pytest.fixture(scope="session")
def broker(pytestconfig: pytest.Config) -> SharedBroker:
    """A Kafka broker that all tests of the run share: names of topics and groups must be `unique_name`s."""
    return pytestconfig.stash[_SERVICES].broker()


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
def spark_server(pytestconfig: pytest.Config) -> SharedSpark:
    """A Spark Connect server that all tests of the run share: tables must lie in `lake_root`."""
    return pytestconfig.stash[_SERVICES].spark()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium of the system's, of whose pages is waited for as long as for anything else."""
    expect.set_options(timeout=PATIENCE_S * 1_000)
    chromium = installed(CHROMIUM)
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=as_root)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def prometheus_program() -> Path:
    """The system's `prometheus`, a server that is not started yet."""
    return installed(PROMETHEUS)


@pytest.fixture(scope="session")
def promtool() -> Path:
    """What checks and tests Prometheus' rules."""
    return installed(PROMTOOL)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A Postgres that the tests of the process share, each with databases of its own."""
    with Postgres(installed(POSTGRES).resolve().parent) as server:
        yield server


@pytest.fixture
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Example:
    """A program that records can go to: "Postgres" as a parameter, or SQLite."""
    if getattr(request, "param", "SQLite") == "SQLite":
        return SQLiteExample(tmp_path / "records.db")
    return PostgresExample(of_go(POSTGRES_MODULE), request.getfixturevalue("postgres"))


def of_go(module: Path) -> Path:
    """A program of Go's, which `tests.prepare` builds ahead of the tests."""
    program = go_program.program(module)
    return program if program.exists() else go_program.build(installed(GO), module)


def installed(tool: Tool) -> Path:
    """A program of the system's; the test cannot be done without it."""
    found = tool.find()
    if found is None:
        cannot(f"there is no {tool.title}")
    return found


def cannot(reason: str) -> NoReturn:
    """The test cannot be done on this machine: it is skipped, and fails where CI=true."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{NOT_TESTED}: {reason}")
    pytest.skip(f"{NOT_TESTED}: {reason}")


@pytest.fixture
def nothing_left_running(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test fails where a process that it started, directly or not, is still there at its end."""
    with leaves_no_process(monkeypatch):
        yield


@pytest.fixture
def lake_root(tmp_path: Path) -> Path:
    """A folder for the tables of one test."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _brokers_may_take_their_time(request: pytest.FixtureRequest) -> None:
    """What asks the brokers of all tests waits for them: one that stands still for a while is no fault."""
    if "broker" in request.fixturenames:
        monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        for module in ("app.tail", "app.topics", "app.control"):
            monkeypatch.setattr(f"{module}.REQUEST_TIMEOUT_S", PATIENCE_S)
        monkeypatch.setattr("controller.kafka.SEND_TIMEOUT_S", PATIENCE_S)


@pytest.fixture
def unique_name() -> str:
    """A name that no other test uses: for topics (also as the first part of several), groups, transactional ids."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def admin(broker: SharedBroker) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        yield admin


@pytest.fixture
def create_topic(admin: AdminClient) -> CreateTopic:
    def create(name: str, partitions: int = 1, **settings: str) -> str:
        """Settings are those of the topic, with `_` for `.`: `cleanup_policy="compact"`."""
        config = {setting.replace("_", "."): value for setting, value in settings.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        admin.create_topics([topic])[name].result(timeout=PATIENCE_S)
        logs = {Position(name, number): OffsetSpec.latest() for number in range(partitions)}  # type: ignore[no-untyped-call]

        def are_there() -> bool:
            """A broker tells of a topic before its logs are there; the client remembers who led them, also nobody."""
            admin.list_topics(name, timeout=PATIENCE_S)
            return not any(told.exception(PATIENCE_S) for told in admin.list_offsets(logs).values())

        wait_until(are_there)
        return name

    return create
