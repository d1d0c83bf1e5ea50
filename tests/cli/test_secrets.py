"""No secret is in what kcga prints, logs, reports or deploys."""

import io
import json
from pathlib import Path

import pytest
import structlog
from rich.console import Console

from app import logs
from app.errors import KcgaError, UsageError
from app.settings import Settings
from cli.commands import deploy
from cli.doctor import examination
from cli.doctor.finding import Finding
from domain.messages import ConsumerReport
from tests.sandbox.watch_messages import BEGAN, report

REMOTE = "sc://spark:15002/;token=geheim"
SETTINGS = """
[kafka]
bootstrap_servers = "kafka:9092"
group = "lake-writers"
client = { "sasl.username" = "kcga", "ssl.key.location" = "/etc/kcga/key.pem" }
[monitor]
topics = ["orders"]
[consumer]
spark_remote = "sc://spark:15002"
lake_root = "abfss://lake@account.dfs.core.windows.net/kafka"
schemas.orders = { session_token = "string" }
tables = { tokens = "tokens" }
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_no_secret_is_in_a_log(stream: io.StringIO) -> None:
    """Hole 18: a token in spark_remote was logged."""
    before = structlog.get_config()
    try:
        logs.configure("consumer 1", stream)
        known = {"spark": REMOTE, "client": {"sasl.password": "geheim"}, "token": "geheim"}
        log = structlog.get_logger("secrets").bind(**known)
        try:
            raise RuntimeError(f"no session on {known['spark']}, password=geheim")
        except RuntimeError as error:
            log.exception("no session", reason=error)
    finally:
        structlog.configure(**before)
    assert "no session" in stream.getvalue()
    assert "spark:15002" in stream.getvalue()
    assert "geheim" not in stream.getvalue()


def test_no_secret_is_in_an_error_or_a_report() -> None:
    """Hole 18: a token in spark_remote was in the consumer's reports, and so on the page."""
    assert str(KcgaError(f"no session on {REMOTE}")) == "no session on sc://spark:15002/;token=***"
    told = report(1, BEGAN, reason=f"no session on {REMOTE}")
    assert b"geheim" not in told.encode()
    by_another_version = json.dumps(json.loads(told.encode()) | {"reason": REMOTE}).encode()
    assert b"geheim" not in ConsumerReport.decode(by_another_version).encode()


def test_the_doctor_tells_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hole 18: it named Spark's whole address."""
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "127.0.0.1:1"},
            "monitor": {"topics": ["orders"]},
            "consumer": {"spark_remote": REMOTE, "lake_root": "/lake"},
        }
    )
    found = Finding.fault(f"{settings.consumer.spark} does not answer", f"correct {REMOTE}")
    monkeypatch.setattr(examination, "CHECKS", (lambda _: iter([found]),))
    console = Console(file=io.StringIO(), width=200)
    assert not examination.examine(settings, console)
    assert isinstance(console.file, io.StringIO)
    assert "geheim" not in console.file.getvalue()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"kcga"', '"kcga", "sasl.password" = "geheim"', "kafka.client.sasl.password (as KCGA_KAFKA__CLIENT)"),
        ("15002", "15002/;token=geheim", "consumer.spark_remote (as KCGA_CONSUMER__SPARK_REMOTE)"),
        ("abfss://lake@", "s3a://key:geheim@", "consumer.lake_root (as KCGA_CONSUMER__LAKE_ROOT)"),
        ("[consumer]", '[http]\ntoken = "geheim-0123456789"\n[consumer]', "http.token (as KCGA_HTTP__TOKEN)"),
        ("[consumer]", '# token = "geheim"\n[consumer]', "a comment in line 8"),
    ],
)
def test_what_would_bring_a_secret_into_a_config_map_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, says: str
) -> None:
    """Hole 18: the settings file went into a ConfigMap, with the secrets in it."""
    monkeypatch.setattr(deploy, "_kubectl", lambda *_, **__: pytest.fail("nothing may be made of it"))
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS.replace(old, new))
    with pytest.raises(UsageError) as raised:
        deploy.render(file, "local", None)
    assert says in str(raised.value)
    assert "kcga-kafka" in str(raised.value)
    assert "geheim" not in str(raised.value)


def test_settings_that_only_look_like_secrets_are_deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = (deploy.OVERLAYS.parent / "base" / "consumer.yaml").read_text()
    made = {"kind": "ConfigMap", "metadata": {"name": "kcga-settings"}, "data": {"consumer.yaml": template}}
    monkeypatch.setattr(deploy, "_kubectl", lambda *_, **__: json.dumps(made))
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS)
    assert "session_token" in deploy.render(file, "local", None)
