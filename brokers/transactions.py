"""Transactions: what a producer sends takes effect all together, or not at all, and of whom they are.

Whoever initialises a producer of the same transactional id fences the one before: of what that one sends afterwards,
nothing takes effect, and it learns that it was fenced.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException, Producer

from brokers.errors import FatalKafkaError

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
_FORGOTTEN = (KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError.UNKNOWN_PRODUCER_ID)
"""The transactional id was not used for so long that the brokers know it no more. It must not be initialised again:
nobody could tell any more whether it was fenced before."""


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
        self._unfinished: Callable[[float], None] | None = None
        """The end of a transaction that was begun: the client takes no new one before it has an answer to it."""

    @contextmanager
    def one(self) -> Iterator[None]:
        """What is sent within it takes effect when it is left: the brokers have it then.

        Raises:
            KafkaException: they are not known to have it; all of it takes effect later, or nothing does.
        """
        self._finish()
        self._producer.begin_transaction()
        self._unfinished = self._producer.abort_transaction
        try:
            yield
        except KafkaException as error:
            if not error.args[0].fatal() and error.args[0].code() not in _FORGOTTEN:
                self._finish()
            raise
        self._unfinished = self._producer.commit_transaction
        self._finish()

    def _finish(self) -> None:
        """Ends the transaction that was begun, if there is one."""
        if self._unfinished is None:
            return
        try:
            self._unfinished(self._limit_s)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                self._unfinished = self._producer.abort_transaction
            raise
        self._unfinished = None


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
