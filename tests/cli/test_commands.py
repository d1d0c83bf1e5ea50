"""The commands as a person types them: what goes wrong is one message, the right exit code and no traceback."""

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.components import command
from cli.main import COMMANDS, LAKE, ROLLOUT, SINK, app
from tests.patience import PATIENCE_S
from tests.services import SharedBroker

SETTINGS = """
[kafka]
bootstrap_servers = "{servers}"
[monitor]
topics = ["no-such-topic"]
[consumer]
spark_remote = "sc://127.0.0.1:1"
lake_root = "/lake"
"""


def kcga(
    *arguments: str, environment: Mapping[str, str] | None = None, before: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    inherited = os.environ if before is None else _without_coverage()
    return subprocess.run(
        command(*arguments),
        env={**inherited, **(environment or {})},
        preexec_fn=before,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def _without_coverage() -> dict[str, str]:
    """For a program on which limits are set: to measure what it runs may take more than they leave."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS_")}


def assert_clear_error(done: subprocess.CompletedProcess[str], exit_code: int, *says: str) -> None:
    assert done.returncode == exit_code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for words in says:
        assert words in done.stderr


@pytest.fixture(autouse=True)
def _nothing_is_left_running(nothing_left_running: None) -> None:
    pass


LOADED = """
import sys
from cli.main import main
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def _loaded(*arguments: str) -> set[str]:
    """The modules that a command has imported by its end."""
    program = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def _commands(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("cli.commands.")}


def test_the_list_of_commands_imports_none_of_them() -> None:
    loaded = _loaded("--help")
    assert _commands(loaded) == set()
    assert loaded.isdisjoint({"app.settings", "pydantic", "solver", "confluent_kafka"})


@pytest.mark.parametrize(
    "arguments",
    [
        "schema monitor.writeSpeed",
        *(pytest.param(f"{name} --help", marks=pytest.mark.slow(2)) for name in ("solve", "lake vacuum")),
    ],
)
def test_a_command_imports_itself_alone(arguments: str) -> None:
    name, *rest = arguments.split()
    assert _commands(_loaded(name, *rest)) == {f"cli.commands.{name}"}


def test_every_command_can_be_asked_for_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for group, summaries in (((), COMMANDS), (("lake",), LAKE), (("sink",), SINK), (("rollout",), ROLLOUT)):
        for name, summary in summaries.items():
            done = CliRunner().invoke(app, [*group, name, "--help"])
            assert done.exit_code == 0
            assert summary.split("\n")[0] in done.stdout


def test_an_unknown_command_is_a_usage_error() -> None:
    assert_clear_error(kcga("fly"), 2, "fly")


@pytest.mark.slow(1)
def test_a_missing_settings_file_is_a_usage_error() -> None:
    assert_clear_error(kcga("controller", "--settings", "/no/such.toml"), 2, "/no/such.toml", "No such file")


@pytest.mark.slow(1)
def test_wrong_settings_are_a_usage_error(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[monitor]\ntopics = [3]\n")
    assert_clear_error(kcga("monitor", "--settings", str(file)), 2, "monitor.topics", "kafka")


@pytest.mark.slow
def test_without_a_broker_components_say_where_they_looked(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS.format(servers="127.0.0.1:1"))
    assert_clear_error(kcga("controller", "--settings", str(file)), 1, "no Kafka broker answers at 127.0.0.1:1")


@pytest.mark.parametrize("component", ["monitor", pytest.param("controller", marks=pytest.mark.slow(2))])
def test_a_password_that_is_not_there_is_a_usage_error(component: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS.format(servers="127.0.0.1:1"))
    sasl = {"KCGA_KAFKA__CLIENT": '{"security.protocol": "SASL_SSL", "sasl.mechanisms": "SCRAM-SHA-512"}'}
    done = kcga(component, "--settings", str(file), environment=sasl)
    assert_clear_error(done, 2, "kafka.client", "sasl.username and sasl.password must be set")


SLOWLY_LOADED = """
import sys, time
import solver
from cli.main import main
def load():
    time.sleep(3)
    print("the solver is loaded", file=sys.stderr)
solver.load = load
main()
"""


@pytest.mark.slow(5)
def test_a_controller_that_is_refused_does_not_end_while_native_code_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS.format(servers="127.0.0.1:1") + '[kafka.client]\n"security.protocol" = "SASL_SSL"\n')
    program = [sys.executable, "-c", SLOWLY_LOADED, "controller", "--settings", str(file)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S)
    assert_clear_error(done, 2, "kafka.client", "the solver is loaded")


def test_a_topic_that_does_not_exist_is_named(broker: SharedBroker, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS.format(servers=broker.bootstrap_servers))
    assert_clear_error(kcga("monitor", "--settings", str(file)), 1, "no such topic", "no-such-topic")


def test_up_without_java_says_what_to_install(tmp_path: Path) -> None:
    nowhere = {"PATH": str(tmp_path), "JAVA_HOME": ""}
    assert_clear_error(kcga("up", environment=nowhere), 1, "Java 17")


def test_up_on_a_port_that_is_taken_names_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert_clear_error(kcga("up", "--kafka-port", str(port)), 1, f"port {port}", "taken")


@pytest.mark.slow
def test_up_without_brokers_of_ones_own_says_where_it_looked() -> None:
    assert_clear_error(kcga("up", "--bootstrap-servers", "127.0.0.1:1"), 1, "no Kafka broker answers at 127.0.0.1:1")


@pytest.mark.parametrize(
    ("master", "code", "words"),
    [
        ("local[*]", 2, "names no Spark cluster"),
        pytest.param("spark://127.0.0.1:1", 1, "no Spark master answers at", marks=pytest.mark.slow(1)),
    ],
)
def test_up_without_a_cluster_of_ones_own_says_where_it_looked(master: str, code: int, words: str) -> None:
    assert_clear_error(kcga("up", "--spark-master", master), code, master, words)


@pytest.mark.slow(1)
def test_up_with_a_folder_that_holds_something_leaves_it_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("data")
    assert_clear_error(kcga("up", "--keep", str(tmp_path)), 1, "not empty")
    assert (tmp_path / "precious").read_text() == "data"


@pytest.mark.slow(1)
def test_up_with_jars_of_ones_own_that_are_not_there_says_which_setting_is_wrong() -> None:
    assert_clear_error(kcga("up", environment={"KAFKA_JARS": "/no/jars"}), 2, "KAFKA_JARS", "/no/jars")


@pytest.mark.slow
def test_up_where_jars_cannot_be_fetched_says_so(tmp_path: Path) -> None:
    offline = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1 -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=1"
    done = kcga("up", environment={"KCGA_CACHE": str(tmp_path), "JAVA_TOOL_OPTIONS": offline})
    assert_clear_error(done, 1, "check the network, or set DELTA_JARS")


@pytest.mark.slow
def test_up_on_a_disk_that_takes_no_more_ends_with_what_the_broker_said() -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    assert_clear_error(kcga("up", "--for", "10", before=small_files), 1, "the end of its log")
