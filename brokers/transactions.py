"""Transactions: what a producer sends takes effect all together, or not at all, and of whom they are.

Whoever initialises a producer of the same transactional id fences the one before: of what that one sends afterwards,
nothing takes effect, and it learns that it was fenced.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Position

from brokers.errors import FatalKafkaError

LONG_TRANSACTIONS = {"transaction.timeout.ms": 300_000}
"""Brokers take whoever exceeds it for gone, and fence it, even if it was they who did not answer. That can take longer
than the default of a minute; so can, on slow ones, a plan for a thousand consumers, each with a partition of its own.
Nobody waits for it but a successor whom nobody tells whom to fence."""

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
_FORGOTTEN = (KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError.UNKNOWN_PRODUCER_ID)
"""The transactional id was not used for so long that the brokers know it no more. It must not be initialised again:
nobody could tell any more whether it was fenced before."""
_UNANSWERED = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
"""Nobody knows what became of the request."""


class FencedError(FatalKafkaError):
    """Another process has taken over: this one must end."""


class Transactions:
    """The transactions of one producer, one after the other.

    Args:
        producer: with a transactional id; for one thread at a time.
        limit_s: how long the end of a transaction may take.
    """

    def __init__(self, producer: Producer, limit_s: float) -> None:
        self._producer = producer
        self._limit_s = limit_s
        self._left: list[Callable[[float], object]] = []
        """Of the transaction that was begun, in order: the client takes no new one before all of it is done."""

    @contextmanager
    def one(self) -> Iterator[None]:
        """What is sent within it takes effect when it is left: the brokers have it then.

        Raises:
            KafkaException: they are not known to have it; all of it takes effect later, or nothing does.
        """
        self._finish()
        self._producer.begin_transaction()
        self._left = [self._producer.abort_transaction]
        try:
            yield
        except KafkaException as error:
            if _can_be_aborted(error.args[0]):
                self._finish()
            raise
        self._left = [self._producer.commit_transaction]
        self._finish()

    def commit_offsets(self, offsets: Sequence[Position], group: object) -> None:
        """One transaction of nothing but these offsets; returns when the brokers have them.

        Where they do not answer, the same is asked for again, never its end: that could overtake what it ends, which
        the client takes for fatal.

        Args:
            offsets: each with its note.
            group: as the client describes it (`consumer_group_metadata`).

        Raises:
            KafkaException: they are not known to have them; all of them take effect later, or none does.
        """
        self._finish()
        self._producer.begin_transaction()
        send = partial(self._producer.send_offsets_to_transaction, list(offsets), group)
        self._left = [send, self._producer.commit_transaction]
        self._finish()

    def _finish(self) -> None:
        """Does what is left of the transaction that was begun."""
        while self._left:
            try:
                self._left[0](self._limit_s)
            except KafkaException as exception:
                error, is_end = exception.args[0], len(self._left) == 1
                refused = not is_end and error.code() not in _UNANSWERED and _can_be_aborted(error)
                if refused or error.txn_requires_abort():
                    self._left = [self._producer.abort_transaction]
                if refused:
                    self._finish()
                raise
            del self._left[0]


def _can_be_aborted(error: KafkaError) -> bool:
    """Whether the client still takes the end of a transaction after this."""
    return not error.fatal() and error.code() not in _FORGOTTEN


def is_fenced(error: KafkaException) -> bool:
    """Whether another process has the same transactional id by now, or the brokers gave this one up."""
    return error.args[0].code() in _FENCED


@contextmanager
def telling_what_is_fatal() -> Iterator[None]:
    """Within it a producer with a transactional id is asked for something.

    Raises:
        FencedError: another process has the same transactional id by now.
        FatalKafkaError: the client can do nothing more.
    """
    try:
        yield
    except KafkaException as exception:
        error = exception.args[0]
        if is_fenced(exception):
            raise FencedError(f"another process has taken over from this one: {error.str()}") from exception
        if error.code() in _FORGOTTEN:
            raise FatalKafkaError(f"the brokers have forgotten its transactional id: {error.str()}") from exception
        if error.fatal():
            raise FatalKafkaError(error.str()) from exception
        raise
