"""The settings file: every fault is named, at once."""

import json
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from app.errors import UsageError
from app.settings import Settings, load
from domain.secrecy import is_secret
from domain.topics import TopicNames
from tests.bounds import unbounded

GOOD = """
[kafka]
bootstrap_servers = "127.0.0.1:9092"
[monitor]
topics = ["orders", "^clicks"]
[consumer]
spark_remote = "sc://127.0.0.1:15002"
lake_root = "/lake"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings.toml"


def test_what_is_not_set_has_the_papers_defaults(file: Path) -> None:
    file.write_text(GOOD)
    settings = load(file)
    assert settings.monitor.window_s == 30
    assert settings.controller.packing == 0.75 * settings.controller.consumer_capacity
    assert settings.topics.write_speed == "monitor.writeSpeed"


def test_topics_that_are_not_set_carry_the_group(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(GOOD + "[topics]\ndecisions = 'told'\n")
    monkeypatch.setenv("KCGA_KAFKA__GROUP", "billing")
    assert load(file).topics.names == TopicNames("monitor.writeSpeed.billing", "consumer.metadata.billing", "told")
    monkeypatch.setenv("KCGA_TOPICS__METADATA", "consumer.metadata")
    assert load(file).topics.names == TopicNames("monitor.writeSpeed.billing", "consumer.metadata", "told")


@pytest.mark.parametrize(
    ("group", "topics", "complaint"),
    [
        (
            "late orders",
            "",
            "topics: write_speed is 'monitor.writeSpeed.late orders' for the group 'late orders', and no",
        ),
        ("ä", "metadata = 'm'\ndecisions = 'd'", "write_speed is 'monitor.writeSpeed.ä'"),
        ("b", "metadata = 'controller.decisions.b'", "three topics: 'controller.decisions.b' is named twice"),
        ("late orders", "write_speed = 's'\nmetadata = 'm'\ndecisions = 'd'", None),
        ("b", "metadata = 'controller.decisions'", None),
    ],
)
def test_a_group_after_which_no_topic_can_be_called_needs_them_set(
    file: Path, monkeypatch: pytest.MonkeyPatch, group: str, topics: str, complaint: str | None
) -> None:
    file.write_text(f"{GOOD}[topics]\n{topics}\n")
    monkeypatch.setenv("KCGA_KAFKA__GROUP", group)
    with pytest.raises(UsageError, match=complaint) if complaint else nullcontext():
        load(file)


def test_the_environment_goes_before_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(GOOD)
    monkeypatch.setenv("KCGA_KAFKA__GROUP", "billing")
    monkeypatch.setenv("KCGA_CONTROLLER__CONSUMER_CAPACITY", "1000")
    settings = load(file)
    assert settings.kafka.group == "billing"
    assert settings.kafka.bootstrap_servers == "127.0.0.1:9092"
    assert settings.controller.consumer_capacity == 1000


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            "[controller]\nconsumer_capacity = 0",
            r"controller.consumer_capacity: .*or equal to 1.*\(it is 0\)",
        ),
        ("[controller]\nconsumer_capacity = nan", "controller.consumer_capacity"),
        ("[controller]\npacking_capacity = 9e9", "packing_capacity .* is above consumer_capacity"),
        ("[controller]\nmigration_weight = -1", "controller.migration_weight"),
        ("[controller]\ncolour = 'blue'", "controller.colour: extra inputs are not permitted"),
        ("[topics]\nmetadata = 'a b'", "topics.metadata"),
        ("[controller]\nheartbeat_timeout_s = 30", r"consumer: lease_s \(30\) must be less than heartbeat_timeout_s"),
        ("rate_limit = 2_000_000", r"consumer: rate_limit \(2e\+06\) must not be less than consumer_capacity"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(file: Path, change: str, complaint: str) -> None:
    file.write_text(GOOD + change)
    with pytest.raises(UsageError, match=complaint):
        load(file)


def test_all_faults_are_named_at_once(file: Path) -> None:
    file.write_text("[kafka]\n[monitor]\ntopics = []\n[controller]\nmax_consumers = 0\n")
    with pytest.raises(UsageError) as error:
        load(file)
    for setting in ("kafka.bootstrap_servers", "monitor.topics", "controller.max_consumers", "consumer"):
        assert setting in str(error.value)


@pytest.mark.parametrize(("content", "complaint"), [(b"[kafka", "no valid TOML"), (b"\xff\xfe", "no valid TOML")])
def test_a_file_that_is_no_toml_is_said_to_be_none(file: Path, content: bytes, complaint: str) -> None:
    file.write_bytes(content)
    with pytest.raises(UsageError, match=complaint):
        load(file)


def test_a_file_that_does_not_exist_is_said_not_to(file: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load(file)


def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(file: Path) -> None:
    for token in ("tooshort", "with a space in it, long", "überlang-und-nicht-ascii"):
        file.write_text(f'{GOOD}[http]\ntoken = "{token}"\n')
        with pytest.raises(UsageError, match=r"http.token: a token must have 16 characters") as raised:
            load(file)
        assert token not in str(raised.value)
    file.write_text(f'{GOOD}[http]\ntoken = "0123456789abcdef"\n')
    assert "0123456789abcdef" not in repr(load(file))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("[topics]\nmetadata = 'orders'", r"monitor: 'orders' is a topic to read, and is topics\.metadata, too"),
        ("[topics]\nmetadata = 'm'\ndecisions = 'm'", "topics: .* must be three topics: 'm' is named twice"),
        ("[topics]\ndecisions = '..'", r"topics\.decisions: a topic's name must be"),
        ("[controller]\nconsumer_capacity = 1e-300", r"controller\.consumer_capacity: .*greater than or equal to 1 "),
        ("[controller]\ninterval_s = 1e-300", r"controller\.interval_s: .*greater than or equal to 0\.001 "),
        ("[controller]\nmigration_window_s = 1e300", r"controller\.migration_window_s: .*less than or equal to "),
        ("[controller]\nmigration_weight = 1e300", r"controller\.migration_weight: .*less than or equal to 10000 "),
        ("wait_time_secs = 1e-300", r"consumer\.wait_time_secs: .*greater than or equal to 0\.001 "),
    ],
)
def test_what_no_group_can_run_with_is_refused(file: Path, change: str, complaint: str) -> None:
    """Hole 21: these were called right."""
    file.write_text(GOOD + change)
    with pytest.raises(UsageError, match=complaint):
        load(file)


def test_every_number_that_can_be_set_has_bounds() -> None:
    """Hole 21: a number without bounds can be so small or so large that nothing works with it."""
    assert list(unbounded(Settings.model_json_schema())) == []


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("KCGA_KAFKA__CLIENT", "security.protocol=SSL", "kafka.client: must be a table or a list, and .* JSON"),
        ("KCGA_KAFKA", "{", "kafka: must be a table or a list, and in the environment JSON"),
        ("KCGA_MONITOR__TOPICS", "orders", "monitor.topics: must be a table or a list, and in the environment JSON"),
        ("KCGA_CONSUMER__SCHEMAS", "[" * 50_000, "consumer.schemas: must be a table or a list, and .* JSON"),
    ],
)
def test_a_variable_that_is_no_json_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, complaint: str
) -> None:
    """Hole 24: it ended in a traceback."""
    file.write_text(GOOD)
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match=complaint):
        load(file)


@pytest.mark.parametrize(
    "wrong",
    [
        '[http]\ntokens = "geheim-0123456789"',
        "[http]\ntoken = { geheim = 1 }",
        "[http.token]\nvalue = 'geheim'",
        '[kafka]\npassword = "geheim"',
        '[kafka]\npasswort = "geheim"',
        '[kafka]\nclient = "sasl.password=geheim"',
        "[kafka.client]\n'sasl.password' = ['geheim']",
        "[kafka.client]\n'ssl.key.password' = 1.25",
        "[consumer]\nspark_remote = 'sc:/spark:15002/;token=geheim'",
        "[consumer]\nspark_remote = 'https://me:geheim@spark:15002'",
        "[consumer.spark_conf]\n'spark.hadoop.fs.s3a.secret.key' = ['geheim']",
    ],
)
def test_no_secret_is_in_what_is_said_of_wrong_settings(file: Path, wrong: str) -> None:
    """Hole 18: all but http.token were printed whole."""
    sections = tomllib.loads(GOOD)
    for section, values in tomllib.loads(wrong).items():
        sections.setdefault(section, {}).update(values)
    file.write_text("\n".join(as_toml(sections)))
    with pytest.raises(UsageError) as raised:
        load(file)
    assert "geheim" not in str(raised.value)
    assert "1.25" not in str(raised.value)


def as_toml(sections: dict[str, dict[str, Any]]) -> Iterator[str]:
    """JSON is TOML, but for tables."""
    for section, values in sections.items():
        yield f"[{section}]"
        for name, value in values.items():
            if isinstance(value, dict):
                inline = ", ".join(f"{json.dumps(each)} = {json.dumps(inner)}" for each, inner in value.items())
                yield f"{name} = {{ {inline} }}"
            else:
                yield f"{name} = {json.dumps(value)}"


def test_no_secret_in_a_variable_is_printed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hole 18: neither in a variable with a typo nor in one that is no JSON."""
    file.write_text(GOOD)
    monkeypatch.setenv("KCGA_KAFKA__CLEINT", '{"sasl.password": "geheim"}')
    monkeypatch.setenv("KCGA_CONSUMER__SPARK_CONF", '{"my.password": geheim}')
    with pytest.raises(UsageError) as raised:
        load(file)
    assert "kafka.cleint" in str(raised.value)
    assert "geheim" not in str(raised.value)


def test_settings_are_shown_without_their_secrets(file: Path) -> None:
    """Hole 18: what is free in its form was shown."""
    client = "client = { 'sasl.password' = 'geheim' }"
    file.write_text(GOOD.replace("15002", "15002/;token=geheim").replace("[monitor]", f"{client}\n[monitor]"))
    assert "geheim" not in repr(load(file))


def test_every_setting_that_is_secret_by_its_type_is_so_by_its_name() -> None:
    """Hole 18: one place knows what is secret, whatever the type says."""
    secret = [
        name
        for section in Settings.model_fields.values()
        for name, field in getattr(section.annotation, "model_fields", {}).items()
        if "SecretStr" in str(field.annotation)
    ]
    assert "token" in secret
    assert all(map(is_secret, secret))
