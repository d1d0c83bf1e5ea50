"""What a cluster's refusal means, and what would be right: wrong password, wrong certificate, missing right."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from app.errors import UsageError
from brokers.errors import in_one_line

_NOT_ALLOWED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


def reason(error: KafkaError, complaints: Iterable[KafkaError] = ()) -> str:
    """What is to be said of a request that failed.

    Args:
        error: what the request got: of brokers that a client cannot talk to, only that they do not answer.
        complaints: what the client has told meanwhile of why (`error_cb`), in the order of time.
    """
    # The newest of them tells most: a client complains again of each attempt.
    causes = [*complaints, error]
    for cause in reversed(causes):
        if cause.code() in (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED):
            return (
                f"the brokers refuse who this is ({in_one_line(cause)}): correct sasl.username, sasl.password or "
                "sasl.mechanism in kafka.client"
            )
        if cause.code() == KafkaError._SSL:
            return (
                f"there is no secure connection to the brokers ({in_one_line(cause)}): ssl.ca.location in kafka.client "
                "must name the certificate of who signed theirs, and bootstrap_servers a name that it is for"
            )
        if cause.code() in _NOT_ALLOWED:
            return f"the brokers do not allow it ({in_one_line(cause)}): kcga acls prints the rights that it takes"
    return in_one_line(error)


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
