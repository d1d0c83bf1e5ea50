"""What a controller serves, or does not, while it controls; and the figures that every component has."""

import re
import socket
import threading
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
import structlog

from app.errors import KcgaError
from app.settings import Settings
from app.status.board import Board
from app.status.server import StatusServer
from app.telemetry import controller as telemetry
from app.telemetry import exporter
from app.telemetry.controller import RECALLED, observed
from app.telemetry.process import process_registry
from domain.messages import ControlAction, Decision
from tests import web
from tests.app.any_settings import settings
from tests.app.receiver import Receive
from tests.patience import PATIENCE_S, wait_until
from tests.sandbox.watch_messages import decision

TOKEN = "0123456789abcdef"  # noqa: S105
AT = 1_700_000_000.0


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[structlog.typing.EventDict]]:
    with structlog.testing.capture_logs() as lines:
        yield lines


def serving(port: int | None = 0) -> Settings:
    return settings(http={"controller_port": port, "token": TOKEN})


@pytest.fixture
def urls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where status pages are served."""
    made: list[str] = []

    class Noted(StatusServer):
        def __init__(self, host: str, port: int, **others: Any) -> None:
            super().__init__(host, port, **others)
            made.append(self.url)

    monkeypatch.setattr(exporter, "StatusServer", Noted)
    return made


def test_nothing_is_served_where_no_port_is_set(urls: list[str]) -> None:
    with observed(serving(None)) as audience:
        audience.decided(decision(1, AT, {"orders-0": (1, 2)}))
    assert urls == []


def test_a_port_that_is_taken_is_a_warning_and_the_group_is_controlled_all_the_same(
    logged: list[structlog.typing.EventDict],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, observed(serving(taken.getsockname()[1])) as audience:
        audience.decided(decision(1, AT, {"orders-0": (1, 2)}))
    assert [(line["event"], line["log_level"]) for line in logged] == [("the status page is not served", "warning")]


def test_past_decisions_are_told_to_the_board_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def newest(_settings: Settings, most: int) -> list[Decision]:
        assert most == RECALLED
        return [decision(number, AT + number, {"orders-0": (1, 1)}) for number in (3, 2, 1)]

    recalled: list[int] = []
    monkeypatch.setattr(telemetry, "newest_decisions", newest)
    monkeypatch.setattr(Board, "recall", lambda _, past: recalled.extend(each.number for each in past))
    telemetry._recall(serving(), Board("billing", serving().controller))
    assert recalled == [1, 2, 3]


def test_a_page_without_past_decisions_is_a_page(
    monkeypatch: pytest.MonkeyPatch, urls: list[str], logged: list[structlog.typing.EventDict]
) -> None:
    def unknown(_settings: Settings, _most: int) -> list[Decision]:
        raise KcgaError("the cluster does not answer")

    monkeypatch.setattr(telemetry, "newest_decisions", unknown)
    with observed(serving()):
        metrics = web.get(f"{urls[0]}/metrics", timeout=PATIENCE_S).text
        for thread in threading.enumerate():
            if thread.name == "recall":
                thread.join(PATIENCE_S)
    assert f'kcga_build_info{{version="{version("kcga")}"}} 1.0' in metrics
    assert [line["reason"] for line in logged if line["log_level"] == "warning"] == ["the cluster does not answer"]


def test_what_is_asked_over_http_is_passed_on_and_what_comes_of_it_is_told(
    monkeypatch: pytest.MonkeyPatch, urls: list[str]
) -> None:
    asked: list[ControlAction] = []

    def ask(_settings: Settings, action: ControlAction, _topic: str | None) -> None:
        asked.append(action)
        if action is ControlAction.REPLAN:
            raise KcgaError("the brokers take no request")

    monkeypatch.setattr(telemetry, "ask", ask)
    monkeypatch.setattr(telemetry, "newest_decisions", lambda *_: [])
    with observed(serving()), web.client(base_url=urls[0], timeout=PATIENCE_S) as client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        fine = client.post("/api/control", json={"action": "pause"}, headers=headers)
        failed = client.post("/api/control", json={"action": "replan"}, headers=headers)
        refused = client.post("/api/control", json={"action": "resume"})
    assert fine.is_success
    assert "the brokers take no request" in failed.text
    assert (failed.is_success, refused.is_success) == (False, False)
    assert asked == [ControlAction.PAUSE, ControlAction.REPLAN]


def test_a_webhook_is_told_and_what_became_of_it_is_a_metric(
    monkeypatch: pytest.MonkeyPatch, urls: list[str], receive: Receive
) -> None:
    monkeypatch.setattr(telemetry, "newest_decisions", lambda *_: [])
    receiver = receive(204)
    with observed(settings(http={"controller_port": 0}, hooks={"url": receiver.url, "timeout_s": 300})) as audience:
        audience.decided(decision(1, AT, {"orders-0": (1, 2)}))
        receiver.wait(1)
        metric = re.compile(r'kcga_hook_events_total{group="\w+",outcome="delivered"} 1.0')
        metrics_say(urls[0], metric)
    assert receiver.ids == ["decision-1-1"]


def metrics_say(url: str, metric: re.Pattern[str]) -> None:
    def said() -> str:
        return web.get(f"{url}/metrics", timeout=PATIENCE_S).text

    wait_until(lambda: metric.search(said()), said)


def test_every_component_tells_its_version_and_of_its_process() -> None:
    registry = process_registry()
    assert registry.get_sample_value("kcga_build_info", {"version": version("kcga")}) == 1.0
    assert (registry.get_sample_value("process_resident_memory_bytes") or 0) > 0
