"""What becomes of a transaction, and of the next one, when the brokers refuse a part of it."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from brokers.errors import FatalKafkaError
from brokers.transactions import FencedError, Transactions, telling_what_is_fatal

REFUSED = KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))
FORGOTTEN = KafkaException(KafkaError(KafkaError.INVALID_PRODUCER_ID_MAPPING))
MUST_ABORT = KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE, "no more", txn_requires_abort=True))
FENCED = KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))
FATAL = KafkaException(KafkaError(KafkaError._INCONSISTENT, "broken", fatal=True))


class Producer:
    """Notes what it is asked for, and refuses each kind of request as often as it has errors for it."""

    def __init__(self, **refuses: list[KafkaException]) -> None:
        self.asked: list[str] = []
        self._refuses = refuses

    def __getattr__(self, name: str) -> Any:
        def ask(*_: object) -> None:
            self.asked.append(name)
            if self._refuses.get(name):
                raise self._refuses[name].pop(0)

        return ask


def send(transactions: Transactions, producer: Any) -> None:
    with transactions.one():
        producer.produce()


def test_what_is_sent_within_one_is_committed_when_it_is_left() -> None:
    producer: Any = Producer()
    transactions = Transactions(producer, 1.0)
    for _ in range(2):
        send(transactions, producer)
    assert producer.asked == ["begin_transaction", "produce", "commit_transaction"] * 2


@pytest.mark.parametrize(
    ("refuses", "then"),
    [
        pytest.param({"commit_transaction": [REFUSED]}, ["commit_transaction"], id="its end is asked for again"),
        pytest.param({"commit_transaction": [MUST_ABORT]}, ["abort_transaction"], id="it has to be aborted"),
        pytest.param({"produce": [REFUSED], "abort_transaction": [REFUSED]}, ["abort_transaction"], id="not aborted"),
        pytest.param({"produce": [REFUSED]}, [], id="aborted at once"),
        pytest.param({"produce": [FORGOTTEN]}, ["abort_transaction"], id="not aborted where that cannot be"),
    ],
)
def test_the_next_one_begins_once_the_one_before_has_ended(
    refuses: dict[str, list[KafkaException]], then: list[str]
) -> None:
    producer: Any = Producer(**{name: list(errors) for name, errors in refuses.items()})
    transactions = Transactions(producer, 1.0)
    with pytest.raises(KafkaException):
        send(transactions, producer)
    producer.asked.clear()
    send(transactions, producer)
    assert producer.asked == [*then, "begin_transaction", "produce", "commit_transaction"]


@pytest.mark.parametrize(
    ("error", "told"),
    [(FENCED, FencedError), (FORGOTTEN, FatalKafkaError), (FATAL, FatalKafkaError), (REFUSED, KafkaException)],
)
def test_what_no_further_attempt_can_mend_is_told_apart(error: KafkaException, told: type[Exception]) -> None:
    with pytest.raises(told) as raised, telling_what_is_fatal():
        raise error
    assert raised.type is told


TIMED_OUT = KafkaException(KafkaError(KafkaError._TIMED_OUT))
GONE = KafkaException(KafkaError(KafkaError._TRANSPORT))
SEND = "send_offsets_to_transaction"


@pytest.mark.parametrize(
    ("refuses", "asked", "then"),
    [
        pytest.param({SEND: [TIMED_OUT]}, [SEND], [SEND, "commit_transaction"], id="not answered in time"),
        pytest.param({SEND: [GONE]}, [SEND], [SEND, "commit_transaction"], id="the connection is lost"),
        pytest.param({SEND: [REFUSED]}, [SEND, "abort_transaction"], [], id="refused"),
        pytest.param(
            {SEND: [REFUSED], "abort_transaction": [TIMED_OUT]},
            [SEND, "abort_transaction"],
            ["abort_transaction"],
            id="refused, and not aborted",
        ),
        pytest.param({SEND: [MUST_ABORT]}, [SEND, "abort_transaction"], [], id="it has to be aborted"),
        pytest.param(
            {"commit_transaction": [TIMED_OUT]}, [SEND, "commit_transaction"], ["commit_transaction"], id="its end"
        ),
        pytest.param({SEND: [FORGOTTEN]}, [SEND], [SEND, "commit_transaction"], id="forgotten"),
        pytest.param({SEND: [FENCED]}, [SEND], [SEND, "commit_transaction"], id="fenced"),
    ],
)
def test_offsets_that_the_brokers_did_not_answer_to_are_sent_again_and_those_that_they_refused_are_not(
    refuses: dict[str, list[KafkaException]], asked: list[str], then: list[str]
) -> None:
    producer: Any = Producer(**{name: list(errors) for name, errors in refuses.items()})
    transactions = Transactions(producer, 1.0)
    with pytest.raises(KafkaException):
        transactions.commit_offsets([], None)
    assert producer.asked == ["begin_transaction", *asked]
    producer.asked.clear()
    transactions.commit_offsets([], None)
    assert producer.asked == [*then, "begin_transaction", SEND, "commit_transaction"]
