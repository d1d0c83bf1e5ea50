"""What is said of `kafka.client` where clients do not take it."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaException

from app.errors import UsageError
from brokers.errors import in_one_line


@contextmanager
def of_settings() -> Iterator[None]:
    """Within it clients are made.

    Raises:
        UsageError: they do not take `kafka.client`.
    """
    try:
        yield
    except KafkaException as error:
        why = in_one_line(error)
        raise UsageError(f"kafka.client is not right, or not all of it is there: {why}") from error
    except (TypeError, ValueError) as error:  # of what is no setting in a file: functions that are called back
        raise UsageError(f"kafka.client is not right: {error}") from error
