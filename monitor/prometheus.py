"""Asks Prometheus how many bytes there are in each log, by a query that the settings name."""

import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import urllib3
from urllib3.exceptions import HTTPError

from brokers.errors import in_one_line
from domain.partitions import TopicPartition
from domain.secrecy import masked
from monitor.cluster_logs import BrokerAwayError
from monitor.settings import MonitorSettings

_LARGEST = 1e17
"""In bytes: no log is larger, and none grows faster than a speed can be."""
_LABEL = re.compile(r"[0-9]{1,9}")
_SHOWN = 300
"""Of what a server says, in characters."""


class PrometheusAwayError(BrokerAwayError):
    """It did not answer, or nothing that is of use; says why in one line."""


class Scraped(NamedTuple):
    """What Prometheus knows of a log."""

    at: float
    """When it learned that; s on the asker's clock, which never goes back."""
    bytes: int
    told_at: float
    """The same by Prometheus' clock, in s since the epoch."""


class Prometheus:
    """The sizes of all logs, asked for once an interval, whoever wants to know. From any thread.

    Args:
        settings: where it is, and what is asked.
        clock: seconds; never goes back.
    """

    def __init__(self, settings: MonitorSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._asks = threading.Lock()
        self._asked_at = -math.inf
        self._told: Mapping[TopicPartition, Scraped] | PrometheusAwayError = {}
        self._scraped: Mapping[TopicPartition, Scraped] = {}
        """The newest of each."""
        self._pool: urllib3.PoolManager | None = None

    def sizes(self) -> Mapping[TopicPartition, Scraped]:
        """Of each partition that has a number; of several series of one partition, such as of its replicas, the
        largest.

        Raises:
            PrometheusAwayError: it tells nothing.
        """
        with self._asks:
            if self._clock() - self._asked_at > self._settings.interval_s / 2:
                try:
                    self._told = self._ask()
                except PrometheusAwayError as error:
                    self._told = error
                self._asked_at = self._clock()
            if isinstance(self._told, PrometheusAwayError):
                raise self._told
            return self._told

    def _ask(self) -> Mapping[TopicPartition, Scraped]:
        query, began_at = self._settings.prometheus_query or "", self._clock()
        values = self._query(query)
        # What a query yields has the time of the question; of what was scraped, this yields the time of that.
        asked_at = max((at for at, _ in values.values()), default=0.0)
        scraped = self._query(f"timestamp(\n{query}\n)", time=f"{asked_at:.3f}") if values else {}
        now = (began_at + self._clock()) / 2
        found: dict[TopicPartition, Scraped] = {}
        for labels, (_, value) in values.items():
            partition = self._partition_of(dict(labels))
            if partition is None or not 0 <= value <= _LARGEST:  # which NaN is not
                continue
            told_at = scraped[labels][1] if labels in scraped else asked_at
            if partition not in found or value > found[partition].bytes:
                found[partition] = Scraped(now - (asked_at - told_at), int(value), told_at)
        if values and not found:
            topic, partition_label = self._settings.prometheus_labels
            raise self._away(
                f"tells {len(values)} series, none of them a number with the labels {topic} and {partition_label}",
                "monitor.prometheus_query must yield the bytes of each partition, and monitor.prometheus_labels name "
                "the labels of topic and partition",
            )
        # Two questions about one scrape tell the same, and no other moment by what the question took.
        before = self._scraped
        self._scraped = {
            each: before[each] if each in before and before[each][1:] == new[1:] else new for each, new in found.items()
        }
        return self._scraped

    def _partition_of(self, labels: Mapping[str, str]) -> TopicPartition | None:
        topic, partition = (labels.get(name, "") for name in self._settings.prometheus_labels)
        return TopicPartition(topic, int(partition)) if topic and _LABEL.fullmatch(partition) else None

    def _query(self, query: str, **more: str) -> dict[frozenset[tuple[str, str]], tuple[float, float]]:
        """The time and the value of each series, by its labels without its name.

        Raises:
            PrometheusAwayError: there is none.
        """
        url = f"{(self._settings.prometheus_url or '').rstrip('/')}/api/v1/query"
        headers = {"accept": "application/json"}
        if (token := self._settings.prometheus_token) is not None:
            headers["authorization"] = f"Bearer {token.get_secret_value()}"
        try:
            if self._pool is None:
                ca = self._settings.prometheus_ca
                timeout = self._settings.request_timeout_s
                self._pool = urllib3.PoolManager(
                    timeout=timeout, retries=False, ca_certs=None if ca is None else str(ca)
                )
            answer = self._pool.request("GET", url, fields={"query": query, **more}, headers=headers)
        except (HTTPError, OSError) as error:
            remedy = "is monitor.prometheus_url right, and monitor.prometheus_ca the certificate of who signed its own?"
            raise self._away(f"does not answer ({masked(in_one_line(error))})", remedy) from error
        try:
            body = json.loads(answer.data)
            if answer.status != 200 or body["status"] != "success":
                raise self._away(f"answers {answer.status} ({_beginning(body['error'])})", _WRONG_QUERY)
            kind = body["data"]["resultType"]
            if kind != "vector":
                raise self._away(f"answers with a {kind}", "monitor.prometheus_query must yield an instant vector")
            return dict(map(_sample, body["data"]["result"]))
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            said = _beginning(answer.data.decode(errors="replace"))
            remedy = "monitor.prometheus_url must be a Prometheus, and monitor.prometheus_token what it asks for"
            raise self._away(f"answers {answer.status} ({said or answer.reason})", remedy) from error

    def _away(self, what: str, remedy: str) -> PrometheusAwayError:
        return PrometheusAwayError(f"Prometheus at {masked(self._settings.prometheus_url or '')} {what}; {remedy}")


_WRONG_QUERY = "is monitor.prometheus_query right?"


def _sample(series: Mapping[str, Any]) -> tuple[frozenset[tuple[str, str]], tuple[float, float]]:
    labels = {str(name): str(value) for name, value in series["metric"].items() if name != "__name__"}
    at, value = series["value"]
    return frozenset(labels.items()), (float(at), float(value))


def _beginning(text: object) -> str:
    """In one line, without secrets."""
    return masked(" ".join(str(text).split())[:_SHOWN])
