"""Settings of the Kafka client that it does not take are one clear line, whatever is asked for. No broker is needed."""

import gc
import sys
from pathlib import Path

import pytest

from app.access import _tokens, client_config
from app.settings import KafkaSettings
from monitor.connection import kafka_python_arguments
from tests.cli.packing_command import Kcga, kcga_command

kcga = pytest.fixture(kcga_command)

SETTINGS = """
[kafka]
bootstrap_servers = "127.0.0.1:1"
client = {{ "{name}" = "x" }}
[monitor]
topics = ["orders"]
[consumer]
spark_remote = "sc://127.0.0.1:1"
lake_root = "/lake"
"""


@pytest.mark.parametrize("name", ["no.such.property", "error_cb"])
@pytest.mark.parametrize("command", ["explain", "status", "plan", "record", "pause"])
def test_what_the_client_does_not_take_is_one_line_and_exit_code_2(
    kcga: Kcga, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, name: str
) -> None:
    """Hole 24: some commands ended in a traceback."""
    monkeypatch.setattr(gc, "disable", lambda: None)
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS.format(name=name))
    more = [tmp_path / "speeds.csv"] if command == "record" else []
    ended = kcga(command, "--settings", file, *more)
    assert (ended.exit_code, ended.stdout, len(ended.stderr.splitlines())) == (2, "", 1)
    assert "kcga: kafka.client is not right" in ended.stderr
    assert name in ended.stderr


def of_auth(auth: str, client: str = "") -> str:
    return SETTINGS.replace('client = {{ "{name}" = "x" }}', f'auth = "{auth}"\nclient = {{ {client} }}')


@pytest.mark.parametrize(
    ("auth", "missing", "said"),
    [("msk-iam", "botocore.session", "pip install 'kcga[aws]'"), ("google", "google.auth", "pip install 'kcga[gcp]'")],
)
@pytest.mark.parametrize("command", ["status", "pause"])
def test_what_access_tokens_take_and_is_not_installed_is_one_line_and_exit_code_2(
    kcga: Kcga, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, auth: str, missing: str, said: str, command: str
) -> None:
    for name in [name for name in sys.modules if name.startswith(missing)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)  # as where there is none
    _tokens.cache_clear()
    file = tmp_path / "settings.toml"
    file.write_text(of_auth(auth))
    ended = kcga(command, "--settings", file)
    assert (ended.exit_code, ended.stdout, len(ended.stderr.splitlines())) == (2, "", 1)
    assert f"kafka.auth: {auth} takes" in ended.stderr
    assert said in ended.stderr


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ('"sasl.mechanism" = "PLAIN"', "which client need not have: it has PLAIN and SASL_SSL"),
        ('"security.protocol" = "plaintext"', "it has OAUTHBEARER and plaintext"),
        ('"sasl.oauthbearer.method" = "oidc"', "client must not have sasl.oauthbearer.method besides"),
    ],
)
def test_who_one_is_is_said_once(kcga: Kcga, tmp_path: Path, client: str, said: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(of_auth("google", client))
    ended = kcga("status", "--settings", file)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert said in ended.stderr


def test_all_clients_of_a_process_show_the_same_tokens_over_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    _tokens.cache_clear()
    kafka = KafkaSettings(
        bootstrap_servers="b-1.x.kafka.eu-west-1.amazonaws.com:9098", auth="msk-iam", client={"client.id": "one"}
    )
    config = client_config(kafka)
    assert {name: value for name, value in config.items() if name != "oauth_cb"} == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "client.id": "one",
    }
    assert config["oauth_cb"] is client_config(kafka)["oauth_cb"]
    arguments = kafka_python_arguments(kafka.bootstrap_servers, config)
    assert arguments["sasl_oauth_token_provider"] is config["oauth_cb"]
    assert (arguments["security_protocol"], arguments["sasl_mechanism"]) == ("SASL_SSL", "OAUTHBEARER")
