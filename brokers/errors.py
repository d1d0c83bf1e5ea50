"""What the errors of Kafka's clients say."""

import structlog
from confluent_kafka import KafkaError, KafkaException

log = structlog.get_logger(__name__)


class FatalKafkaError(RuntimeError):
    """The client can do nothing more: only a new process can go on."""


def in_one_line(error: object) -> str:
    """The text of an error without its line breaks, or its type where it has no text."""
    said = error.args[0] if isinstance(error, KafkaException) else error
    text = said.str() if isinstance(said, KafkaError) else str(error)
    return " ".join(text.split()) or type(error).__name__


def log_error(error: KafkaError) -> None:
    """For `error_cb`: what a client tells outside of requests."""
    log.warning("a kafka client reports an error", error=error.str(), code=error.name())
