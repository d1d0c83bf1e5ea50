"""What the errors of Kafka's clients say, and what would be right: wrong password, wrong certificate, missing right."""

import re
import time
from collections.abc import Iterable

import structlog
from confluent_kafka import KafkaError, KafkaException

log = structlog.get_logger(__name__)

_NOT_ALLOWED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


_NO_TOKEN, _TOKEN_REFUSED = "OAUTHBEARER token", "invalid_token"
"""What librdkafka says where the identity provider gives none, and brokers where they do not take it."""
_ENDED = KafkaError(KafkaError._TRANSPORT).str()
"""What librdkafka says where a connection ends, also in the midst of authentication."""
_LAST = re.compile(r" \(after \d+ms in state [^()]*(\(s\) suppressed)?\)")
"""How long an attempt took, and how many before it were not told of, is another each time."""
_TOLD_AGAIN_S = 60.0
_MOST_TOLD = 100
_told: dict[str, float] = {}
"""When each error was logged last."""


class FatalKafkaError(RuntimeError):
    """The client can do nothing more: only a new process can go on."""


def in_one_line(error: object) -> str:
    """The text of an error without its line breaks, or its type where it has no text."""
    said = error.args[0] if isinstance(error, KafkaException) else error
    text = said.str() if isinstance(said, KafkaError) else str(error)
    return " ".join(text.split()) or type(error).__name__


def log_error(error: KafkaError) -> None:
    """For `error_cb`: what a client tells outside of requests; the same of each further attempt, once a minute."""
    said, now = reason(error), time.monotonic()
    if _told.get(key := _LAST.sub("", said), -_TOLD_AGAIN_S) <= now - _TOLD_AGAIN_S:
        if len(_told) >= _MOST_TOLD:
            _told.clear()
        _told[key] = now
        log.warning("a kafka client reports an error", error=said, code=error.name())


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
            said = in_one_line(cause)
            if _NO_TOKEN in said:
                return (
                    f"the identity provider gives no access token ({said}): correct token.endpoint.url, client.id or "
                    "client.secret of sasl.oauthbearer in kafka.client, or https.ca.location, which must name the "
                    "certificate of who signed the provider's"
                )
            if _TOKEN_REFUSED in said:
                return (
                    f"the brokers refuse the access token ({said}): sasl.oauthbearer.token.endpoint.url in "
                    "kafka.client must be of the identity provider that they trust, and it must give tokens for them; "
                    "with kafka.auth the role or account must be one that may connect"
                )
            if _ENDED in said:
                return (
                    f"the brokers ended the connection before they said whether they know who this is ({said}): "
                    "another attempt follows; if none succeeds, correct security.protocol in kafka.client, or the "
                    "listener in bootstrap_servers"
                )
            return (
                f"the brokers refuse who this is ({said}): correct sasl.username, sasl.password or "
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
