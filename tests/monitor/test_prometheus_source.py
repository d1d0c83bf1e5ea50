"""Write speeds by a Prometheus: a real one, which scrapes what a real broker's logs hold."""

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from structlog.testing import capture_logs

from domain.messages import WriteSpeedReport
from domain.partitions import TopicPartition
from domain.speeds import Source
from monitor.cluster_logs import ClusterLogs
from monitor.prometheus import Prometheus, PrometheusAwayError
from monitor.runner import Monitor
from monitor.settings import MonitorSettings
from sandbox.ports import LOOPBACK
from tests import prometheus as server
from tests.conftest import CreateTopic
from tests.monitor.running_monitor import Reports, running
from tests.patience import PATIENCE_S, wait_until
from tests.services import SharedBroker

QUERY = "kafka_log_log_size"
TOKEN = "of-a-scraper"  # noqa: S105 (a test's own)


def settings(url: str, topic: str = "orders", **more: object) -> MonitorSettings:
    asked = {"prometheus_url": url, "prometheus_query": QUERY, "request_timeout_s": 120}
    return MonitorSettings.model_validate({"topics": [topic], "source": "prometheus", **asked, **more})


class Exporter(Collector):
    """Tells what the broker's logs hold, as JMX exporters do; of partition 2 it tells NaN, of 3 nothing."""

    def __init__(self, broker: SharedBroker, topic: str) -> None:
        self._logs, self._topic = ClusterLogs(broker.bootstrap_servers, {}, PATIENCE_S), topic
        registry = CollectorRegistry()
        registry.register(self)
        self._server, self._thread = start_http_server(0, LOOPBACK, registry)
        self.address = f"{LOOPBACK}:{self._server.server_port}"

    def sizes(self) -> dict[TopicPartition, int]:
        return self._logs.sizes(1, [TopicPartition(self._topic, partition) for partition in range(2)])

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(QUERY, "bytes", labels=["topic", "partition"])
        for partition, size in self.sizes().items():
            family.add_metric([partition.topic, str(partition.partition)], size)
        family.add_metric([self._topic, "2"], math.nan)
        yield family

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._logs.close()


def produce(broker: SharedBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for partition in range(4):
        producer.produce(topic, b"x" * 1_000, partition=partition)
    assert producer.flush(60) == 0


@pytest.mark.slow(20)
def test_speeds_are_what_prometheus_scrapes_and_what_it_does_not_know_is_unknown(
    broker: SharedBroker,
    create_topic: CreateTopic,
    unique_name: str,
    prometheus_program: Path,
    tmp_path: Path,
) -> None:
    topic, speeds = create_topic(unique_name, 4), create_topic(f"{unique_name}-speeds")
    produce(broker, topic)
    exporter = Exporter(broker, topic)
    known = {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    with server.Prometheus(tmp_path / "prometheus", prometheus_program) as prometheus, capture_logs() as logged:
        prometheus.scrape([exporter.address])
        of_monitor = settings(f"http://{prometheus.address}/", topic, window_s=6, hold_s=3, interval_s=0.5)
        wait_until(lambda: len(prometheus.query(QUERY)) == 3)
        asked, held = Prometheus(of_monitor), exporter.sizes()

        def tells_what_is_held() -> bool:
            """As long as it scrapes: what did not answer in time is unknown until it does again."""
            with suppress(PrometheusAwayError):
                return {partition: scraped.bytes for partition, scraped in asked.sizes().items()} == held
            return False

        wait_until(tells_what_is_held, every_s=0.5)

        monitor = Monitor(of_monitor, broker.bootstrap_servers, {}, speeds)
        reports = Reports(broker.bootstrap_servers, speeds)
        with running(monitor):

            def all_known(report: WriteSpeedReport) -> bool:
                produce(broker, topic)
                return report.speeds.bytes_per_s.keys() == known and min(report.speeds.bytes_per_s.values()) > 0

            last = reports.until(all_known)[-1].speeds
            assert [(by.source, by.topics) for by in last.sources] == [(Source.PROMETHEUS, (topic,))]
            assert last.unknown == {TopicPartition(topic, 2), TopicPartition(topic, 3)}
            prometheus.child.stop()
            reports.until(lambda report: not report.speeds.bytes_per_s)
            prometheus.begin_again()
            reports.until(all_known)
        reports.close()
    exporter.close()
    events = [entry["event"] for entry in logged if entry["log_level"] == "warning"]
    assert events.count("Prometheus tells no sizes, retrying") == 1, events
    unknown = [entry["partitions"] for entry in logged if entry["event"] == "Prometheus knows nothing of partitions"]
    assert sum(partitions.endswith("3") for partitions in unknown) == 1, unknown  # which is never told, whatever else
    (away,) = [entry["reason"] for entry in logged if entry["event"] == "Prometheus tells no sizes, retrying"]
    assert f"Prometheus at http://{prometheus.address}/ does not answer" in away
    assert "monitor.prometheus_url" in away


def test_a_query_that_it_refuses_or_that_yields_no_partitions_is_one_line(
    prometheus_program: Path, tmp_path: Path
) -> None:
    with server.Prometheus(tmp_path / "prometheus", prometheus_program) as prometheus:
        url = f"http://{prometheus.address}"
        for query, said in (
            ("sum(", r"answers 400 \(.*parse error.*\); is monitor.prometheus_query right"),
            ("1", "answers with a scalar; monitor.prometheus_query must yield an instant vector"),
            ("vector(1)", "tells 1 series, none of them a number with the labels topic and partition"),
        ):
            with pytest.raises(PrometheusAwayError, match=said):
                Prometheus(settings(url, prometheus_query=query)).sizes()
        assert Prometheus(settings(url)).sizes() == {}
        with pytest.raises(PrometheusAwayError, match=r"answers 404 .*must be a Prometheus"):
            Prometheus(settings(f"{url}/elsewhere")).sizes()


Answer = tuple[int, bytes]


@contextmanager
def answering(answer: Callable[[Mapping[str, str]], Answer]) -> Iterator[tuple[str, list[str | None]]]:
    """A server that answers each query so, and what it was authorized by."""
    sent: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(self.headers.get("authorization"))
            status, body = answer({name: each[0] for name, each in parse_qs(urlsplit(self.path).query).items()})
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://{LOOPBACK}:{http.server_port}", sent
        http.shutdown()


def vector(*series: tuple[dict[str, str], float, str]) -> Answer:
    result = [{"metric": labels, "value": [at, value]} for labels, at, value in series]
    return 200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def labels(partition: int | str, **more: str) -> dict[str, str]:
    return {"topic": "orders", "partition": str(partition), **more}


def test_a_size_is_of_when_it_was_scraped_and_of_replicas_the_largest_counts() -> None:
    def answer(asked: Mapping[str, str]) -> Answer:
        if asked["query"].startswith("timestamp("):
            assert asked["time"] == "1000.000"
            return vector((labels(0, pod="a"), 1000, "990"), (labels(0, pod="b"), 1000, "985"))
        named = {"__name__": QUERY}
        return vector(
            (labels(0, pod="a") | named, 1000, "700"),
            (labels(0, pod="b") | named, 1000, "900"),
            (labels("all") | named, 1000, "5"),
            (labels("9" * 5_000) | named, 1000, "5"),
            (labels(3) | named, 1000, "1e300"),
            (labels(1) | named, 1000, "-1"),
            (labels(2) | named, 1000, "+Inf"),
        )

    now = 50.0
    with answering(answer) as (url, sent):
        asked = Prometheus(settings(url, prometheus_token=TOKEN), clock=lambda: now)
        (scraped,) = asked.sizes().values()
        assert (scraped.bytes, scraped.at) == (900, 35.0)
        asked.sizes()
        assert sent == [f"Bearer {TOKEN}"] * 2, "whoever asks within an interval is told the same"
        now = 51.0
        assert asked.sizes() == {TopicPartition("orders", 0): scraped}, "it is of the same moment"


@pytest.mark.parametrize(
    "answer", [(200, b"<html>"), (401, b'{"token": "of-a-scraper"}'), (200, b"[]"), (200, b'{"status": "success"}')]
)
def test_what_is_no_answer_of_prometheus_is_one_line_without_secrets(answer: Answer) -> None:
    with answering(lambda _: answer) as (url, _), pytest.raises(PrometheusAwayError) as raised:
        Prometheus(settings(url, prometheus_token=TOKEN)).sizes()
    assert f"Prometheus at {url} answers {answer[0]}" in str(raised.value)
    assert TOKEN not in str(raised.value)


def test_an_authority_that_cannot_be_read_is_named() -> None:
    with pytest.raises(PrometheusAwayError, match=r"monitor\.prometheus_ca"):
        Prometheus(settings("https://127.0.0.1:1", prometheus_ca="/no/such/file")).sizes()


@pytest.mark.parametrize("lacking", ["prometheus_url", "prometheus_query"])
def test_a_source_without_whom_to_ask_is_refused(lacking: str) -> None:
    given: dict[str, Any] = settings("http://prometheus:9090").model_dump()
    with pytest.raises(ValueError, match="prometheus_url and prometheus_query must say whom to ask"):
        MonitorSettings.model_validate({**given, lacking: None})
