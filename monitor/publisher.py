"""Sends the reports to their topic, and knows whether they arrive."""

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from brokers.clients import LARGE_MESSAGES, QUIET
from brokers.errors import in_one_line, reason
from domain.messages import WriteSpeedReport
from monitor.connection import ConnectionSettingsError

_STALE_AFTER_S = 5.0
"""A report that could not be delivered within this time is given up: newer ones follow."""
_LAST_REPORT_S = 1.0


class ReportPublisher:
    """Publishes reports in order, without waiting for their delivery."""

    def __init__(self, topic: str, bootstrap_servers: str, client_config: Mapping[str, str]) -> None:
        """
        Args:
            topic: where to.
            bootstrap_servers: `host:port`, separated by commas.
            client_config: how to connect, in librdkafka's names.

        Raises:
            ConnectionSettingsError: librdkafka refuses `client_config`.
        """
        self._topic = topic
        self._fault: str | None = None
        self._complaint = ""
        config = {
            **QUIET,
            **client_config,
            "bootstrap.servers": bootstrap_servers,
            **LARGE_MESSAGES,
            "message.timeout.ms": round(_STALE_AFTER_S * 1000),
            "linger.ms": 0,
            "acks": 1,  # with all, a dead follower of the topic would hold the reports back, and double them
            "max.in.flight.requests.per.connection": 1,  # a retried report never overtakes a newer one
            "error_cb": self._heard,
        }
        try:
            self._producer = Producer(config)
        except KafkaException as error:
            raise ConnectionSettingsError(f"the Kafka client refuses its properties: {in_one_line(error)}") from error

    def publish(self, report: WriteSpeedReport) -> None:
        """Hands the report over for delivery; `fault` tells later whether it arrived."""
        try:
            self._producer.produce(self._topic, report.encode(), on_delivery=self._delivered)
        except (BufferError, KafkaException) as error:
            self._fault = in_one_line(error)
        self._producer.poll(0)

    @property
    def fault(self) -> str | None:
        """Why the newest report whose fate is known did not arrive; None where it did."""
        self._producer.poll(0)
        return self._fault

    def close(self) -> None:
        """Waits a moment for the delivery of the last report, and gives up what cannot be delivered."""
        self._producer.flush(_LAST_REPORT_S)
        self._producer.purge()
        self._producer.flush(_LAST_REPORT_S)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self._fault = None
            self._complaint = ""
        else:
            said = f"{self._topic}: {error.str()}"
            self._fault = in_one_line(f"{said} ({self._complaint})" if self._complaint else said)

    def _heard(self, error: KafkaError) -> None:
        self._complaint = reason(error)
