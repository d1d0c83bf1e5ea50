"""Health and metrics of the monitor and of consumers."""

import socket
import struct
import threading
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import CollectorRegistry

from app.errors import KcgaError
from app.settings import HttpSettings, Settings
from app.status import server
from app.status.health import Health
from app.status.server import StatusServer
from app.telemetry.consumer import ConsumerFigures
from app.telemetry.controller import observed as controller_observed
from app.telemetry.exporter import Probes, probes_app, served
from app.telemetry.monitor import MonitorFigures
from domain.messages import ConsumerState
from domain.partitions import TopicPartition
from monitor.measure.changes import Standing
from sandbox.ports import free_port
from tests import web
from tests.patience import PATIENCE_S
from tests.sandbox.watch_messages import BEGAN, cycle, read, report, write_speeds


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


@pytest.fixture
def figures() -> ConsumerFigures:
    return ConsumerFigures(3, Clock())


@pytest.fixture
def url(figures: ConsumerFigures) -> Iterator[str]:
    exporter = StatusServer("127.0.0.1", 0)
    with exporter.serve(probes_app(Probes(figures.alive, figures.ready, figures.registry))):
        yield exporter.url


def test_a_consumer_is_ready_once_it_says_so(url: str, figures: ConsumerFigures) -> None:
    assert web.get(f"{url}/healthz", timeout=PATIENCE_S).status_code == 200
    answer = web.get(f"{url}/readyz", timeout=PATIENCE_S)
    assert (answer.status_code, answer.json()) == (503, {"ok": False, "reason": "starting"})
    figures.tell(report(3, BEGAN))
    assert web.get(f"{url}/readyz", timeout=PATIENCE_S).status_code == 200


def test_a_consumer_tells_what_it_wrote(url: str, figures: ConsumerFigures) -> None:
    figures.tell(report(3, BEGAN, "orders-0", cycle=cycle(read("orders-0", 0, 1, records=7), size=900)))
    figures.tell(report(3, BEGAN, "orders-0", state=ConsumerState.DEGRADED, reason="Spark is away"))
    assert value(figures.registry, "kcga_consumer_written_records_total", consumer="3") == 7
    text = web.get(f"{url}/metrics", timeout=PATIENCE_S).text
    assert 'kcga_consumer_written_bytes_total{consumer="3"} 900.0' in text
    assert 'kcga_consumer_state{consumer="3",kcga_consumer_state="degraded"} 1.0' in text
    assert "kcga_build_info" in text
    assert "process_resident_memory_bytes" in text
    assert figures.ready() == Health(False, "Spark is away")


def test_a_consumer_that_reports_no_more_is_not_alive() -> None:
    clock = Clock()
    figures = ConsumerFigures(3, clock)
    clock.now = 61
    assert figures.alive() == Health(False, "the last report is 61 s ago")


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/", 404), ("POST", "/metrics", 405), ("PUT", "/x", 404)]
)
def test_what_is_not_there_is_refused_with_a_reason(url: str, method: str, path: str, status: int) -> None:
    answer = httpx.request(method, url + path, timeout=PATIENCE_S)
    assert answer.status_code == status
    assert answer.json()["reason"]


def test_what_is_no_http_is_refused(url: str) -> None:
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=PATIENCE_S) as connection:
        connection.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
        assert connection.recv(1_000).startswith(b"HTTP/1.1 400 ")
    assert web.get(f"{url}/healthz", timeout=PATIENCE_S).status_code == 200


def test_a_probe_that_does_not_wait_for_its_answer_leaves_no_trace(capfd: pytest.CaptureFixture[str]) -> None:
    asked, has_left = threading.Event(), threading.Event()

    def ready() -> Health:
        asked.set()
        has_left.wait(PATIENCE_S)
        return Health(True, "ready")

    probes = Probes(ready, ready, CollectorRegistry())
    exporter = StatusServer("127.0.0.1", 0)
    with exporter.serve(probes_app(probes)):
        with socket.create_connection(("127.0.0.1", exporter.port), timeout=PATIENCE_S) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # resets
            connection.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
            assert asked.wait(PATIENCE_S)
        has_left.set()
        assert web.get(f"{exporter.url}/readyz", timeout=PATIENCE_S).status_code == 200
    assert "Traceback" not in capfd.readouterr().err


def test_a_port_that_is_taken_is_one_clear_line(url: str, figures: ConsumerFigures) -> None:
    port = int(url.rpartition(":")[2])
    probes = Probes(figures.alive, figures.ready, figures.registry)
    with (
        pytest.raises(KcgaError, match=f"127.0.0.1:{port} cannot be listened on"),
        served(HttpSettings(), port, probes),
    ):
        pass


def test_probes_are_answered_though_nobody_else_gets_through(
    figures: ConsumerFigures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hole 27: what else was asked had the same server."""
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(server, "REQUEST_WITHIN_S", PATIENCE_S)
    port, probe_port = free_port(), free_port()
    with served(HttpSettings(probe_port=probe_port), port, Probes(figures.alive, figures.ready, figures.registry)):
        crowd = [socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) for _ in range(10)]
        with pytest.raises(httpx.TransportError):
            web.get(f"http://127.0.0.1:{port}/healthz")
        assert web.get(f"http://127.0.0.1:{probe_port}/healthz", timeout=PATIENCE_S).status_code == 200
        assert web.get(f"http://127.0.0.1:{probe_port}/metrics", timeout=PATIENCE_S).status_code == 404
        for connection in crowd:
            connection.close()


@pytest.mark.parametrize("page_port", [None, 0])
def test_the_controllers_probes_have_a_server_of_their_own(
    page_port: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hole 27: the page's server was the probes', too."""
    monkeypatch.setattr("app.telemetry.controller._recall", lambda *_: None)
    probe_port = free_port()
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "127.0.0.1:1"},
            "monitor": {"topics": ["orders"]},
            "consumer": {"spark_remote": "sc://127.0.0.1:1", "lake_root": "/lake"},
            "http": {"controller_port": page_port, "probe_port": probe_port},
        }
    )
    with controller_observed(settings) as audience:
        assert web.get(f"http://127.0.0.1:{probe_port}/healthz", timeout=PATIENCE_S).json() == {
            "ok": True,
            "reason": "alive",
        }
        assert web.get(f"http://127.0.0.1:{probe_port}/readyz", timeout=PATIENCE_S).status_code == 503
        audience.stands_by()
        assert web.get(f"http://127.0.0.1:{probe_port}/readyz", timeout=PATIENCE_S).status_code == 200
        assert web.get(f"http://127.0.0.1:{probe_port}/api/state", timeout=PATIENCE_S).status_code == 404


def test_a_monitor_is_ready_while_it_publishes() -> None:
    clock = Clock()
    figures = MonitorFigures(freshness_s=30, clock=clock)
    figures.tell(None, Standing(cluster_away="no broker answers"))
    assert figures.ready() == Health(False, "nothing was published yet: no broker answers")
    orders = frozenset({TopicPartition("orders", 0), TopicPartition("orders", 1)})
    figures.tell(
        write_speeds(BEGAN, {"orders-0": 5.0, "orders-1": None}),
        Standing(
            partitions=orders,
            unknown=frozenset({TopicPartition("orders", 1)}),
            by_offsets={"orders": "denied", "clicks": "denied"},
            unreadable=frozenset({"clicks"}),
        ),
    )
    assert figures.ready().ok
    assert value(figures.registry, "kcga_monitor_write_speed_bytes_per_second") == 5
    assert value(figures.registry, "kcga_monitor_partitions_unknown") == 1
    assert value(figures.registry, "kcga_monitor_topics_by_offsets") == 2
    assert value(figures.registry, "kcga_monitor_topics_unreadable") == 1
    clock.now = 31
    figures.tell(write_speeds(BEGAN, {}), Standing(publishing_fails="timed out"))
    assert not figures.ready().ok
    assert figures.alive().ok
    clock.now = 400
    assert not figures.alive().ok
