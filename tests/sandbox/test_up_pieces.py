"""The pieces of `kcga up` that need no services: its folder, its errors, the load in a word, and how the load ends."""

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from rich.console import Console

from app.child import Child
from app.errors import KcgaError
from app.interrupts import Interrupts
from app.settings import KafkaSettings, load
from cli.commands import up as command
from cli.commands.up import demonstrate
from cli.terminal.live_view import LiveView
from domain.partitions import TopicPartition
from sandbox import demonstration
from sandbox.demonstration import Demonstration, Story
from sandbox.load_profile import Course, LoadProfile, demo_profile
from sandbox.ports import free_port, listens
from sandbox.services import Services
from sandbox.settings_file import CONSUMER_CAPACITY, settings_text
from sandbox.summary import Summary
from tests.conftest import CreateTopic
from tests.services import SharedBroker

SERVICES = Services("127.0.0.1:1", "sc://127.0.0.1:1", "kcga-up-1.")
STORY = Story(seconds=5.0, seed=3, chaos_every_s=20.0)


class FakeDemonstration:
    folders: list[Path]
    ends: Exception | None = None

    def __init__(self, folder: Path, services: Services, *others: object) -> None:
        assert (services, others[-1]) == (SERVICES, STORY)
        self.folders.append(folder)
        (folder / "something").write_text("")

    def run(self) -> str:
        if self.ends is not None:
            raise self.ends
        return "the summary"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> type[FakeDemonstration]:
    class Fake(FakeDemonstration):
        folders: list[Path] = []  # noqa: RUF012

    def start(_stack: ExitStack, _folder: Path, _console: Console, **_: object) -> Services:
        return SERVICES

    monkeypatch.setattr(command, "start_services", start)
    monkeypatch.setattr(command, "Demonstration", Fake)
    monkeypatch.setattr(command.logs, "configure", lambda *_: None)  # type: ignore[attr-defined]
    return Fake


def run(keep: Path | None = None) -> Summary:
    return demonstrate(Console(file=io.StringIO()), Interrupts(), STORY, keep=keep)


def test_nothing_of_a_run_is_left_unless_it_is_to_be_kept(runs: type[FakeDemonstration], tmp_path: Path) -> None:
    assert str(run()) == "the summary"
    run(tmp_path / "kept" / "here")
    assert [folder.exists() for folder in runs.folders] == [False, True]
    assert runs.folders[1] == (tmp_path / "kept" / "here").resolve()


def test_nothing_is_left_of_a_run_that_fails_and_what_the_system_refuses_is_one_line(
    runs: type[FakeDemonstration],
) -> None:
    runs.ends = OSError(28, "No space left on device")
    with pytest.raises(KcgaError, match=r"kcga up cannot go on: .*No space left"):
        run()
    runs.ends = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        run()
    assert not any(folder.exists() for folder in runs.folders)


def test_a_folder_with_something_in_it_is_not_written_to(runs: type[FakeDemonstration], tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(KcgaError, match=f"{tmp_path} is not empty"):
        run(tmp_path)
    assert runs.folders == []
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


@contextmanager
def demonstration_in(folder: Path) -> Iterator[Demonstration]:
    """One that is not run."""
    console = Console(file=io.StringIO())
    demo = Demonstration(folder, SERVICES, console, Interrupts(), partial(LiveView, console), Story())
    with demo._page or nullcontext():
        yield demo


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Demonstration]:
    profile = LoadProfile({TopicPartition("orders", 0): Course(((0, 100), (20, 100), (40, 300), (60, 100)))})
    with demonstration_in(tmp_path) as demo:
        monkeypatch.setattr(demo, "_profile", profile)
        yield demo


def test_the_load_is_called_what_it_does(made: Demonstration) -> None:
    moments = {0.0: "steady load", 10.0: "steady load", 30.0: "the load rises", 50.0: "the load falls"}
    assert {at: made._phase(at) for at in moments} == moments


def test_the_settings_of_a_run_can_be_read_again(made: Demonstration, tmp_path: Path) -> None:
    settings = load(tmp_path / "settings.toml")
    assert settings == made._settings
    assert settings.kafka.group == "kcga-up-1.kcga"
    assert settings.consumer.spark == "sc://127.0.0.1:1"
    assert settings.http.token is not None


def test_of_two_runs_that_begin_at_once_each_has_a_page_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = free_port()
    monkeypatch.setattr(demonstration, "STATUS_PORT", usual)
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    with demonstration_in(folders[0]), demonstration_in(folders[1]):
        ports = [load(folder / "settings.toml").http.controller_port for folder in folders]
        assert ports[0] == usual
        assert ports[1] not in (usual, 0)
        assert all(map(listens, filter(None, ports)))


def test_where_the_environment_says_where_the_page_is_its_controller_alone_listens_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = free_port()
    monkeypatch.setenv("KCGA_HTTP__CONTROLLER_PORT", str(elsewhere))
    with demonstration_in(tmp_path) as demo:
        assert demo._settings.http.controller_port == elsewhere
        assert not listens(elsewhere)


def test_an_oversized_partition_has_a_class_that_reads_it_and_no_other_partition_needs_one(tmp_path: Path) -> None:
    profile = demo_profile(CONSUMER_CAPACITY, oversized=True)
    file = tmp_path / "settings.toml"
    file.write_text(settings_text(SERVICES, profile, tmp_path, oversized=True))
    controller = load(file).of_controller
    (large,) = controller.classes
    fastest = max(course.speed(at) for course in profile.courses.values() for at in range(150))
    share = controller.packing / controller.consumer_capacity
    assert controller.consumer_capacity < fastest <= share * large.capacity
    assert large.capacity / large.price < controller.consumer_capacity, "else it would take the place of ordinary ones"


@pytest.fixture
def generator(tmp_path: Path) -> Child:
    return Child("the load generator", ["true"], tmp_path / "load.log")


def test_the_load_says_what_it_produced(generator: Child, tmp_path: Path) -> None:
    (tmp_path / "load.json").write_text(json.dumps({"produced": 1234, "undelivered": 0, "problem": None}))
    assert demonstration._delivered(generator) == 1234


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ("", "the load generator did not say what it produced"),
        ('{"produced": 5, "undelivered": 2, "problem": "timed out"}', "2 records could not be delivered.*timed out"),
    ],
)
def test_a_load_that_was_not_all_delivered_is_no_proof(
    report: str, reason: str, generator: Child, tmp_path: Path
) -> None:
    (tmp_path / "load.json").write_text(report)
    with pytest.raises(KcgaError, match=reason):
        demonstration._delivered(generator)


def test_what_a_load_that_was_killed_produced_is_counted_in_kafka(
    broker: SharedBroker, create_topic: CreateTopic, unique_name: str
) -> None:
    topic = create_topic(unique_name, partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(5):
        producer.produce(topic, b"value", partition=number % 2)
    assert producer.flush(30) == 0
    partitions = [TopicPartition(topic, number) for number in range(2)]
    assert demonstration._in_kafka(KafkaSettings(bootstrap_servers=broker.bootstrap_servers), partitions) == 5


def test_brokers_that_do_not_tell_are_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstration, "REQUEST_TIMEOUT_S", 0.5)
    with pytest.raises(KcgaError, match="Kafka does not tell how many records it holds"):
        demonstration._in_kafka(KafkaSettings(bootstrap_servers="127.0.0.1:1"), [TopicPartition("orders", 0)])
