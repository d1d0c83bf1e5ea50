"""Who is fenced, by which name; that real brokers do it is in test_group_offsets."""

import pytest

from brokers.errors import FatalKafkaError
from brokers.transactions import FencedError
from consumer import offsets as offsets_module
from consumer.decide.claims import Committed
from consumer.offsets import GroupOffsets
from domain.partitions import TopicPartition
from tests.transactional_brokers import Brokers

ORDERS = TopicPartition("orders", 0)


def test_who_is_fenced_by_its_name_commits_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers()
    monkeypatch.setattr(offsets_module, "Producer", brokers.producer)
    monkeypatch.setattr(offsets_module, "Consumer", brokers.consumer)
    former, successor = (GroupOffsets({}, {}, "group", writer) for writer in ("1/a", "1/b"))
    for each in (former, successor):
        each.open()
    former.commit({ORDERS: Committed(7)})
    successor.fence("1/a")
    with pytest.raises(FencedError, match="taken over"):
        former.commit({ORDERS: Committed(8)})
    assert successor.committed([ORDERS]) == {ORDERS: Committed(7)}
    successor.commit({ORDERS: Committed(9)})
    assert successor.committed([ORDERS]) == {ORDERS: Committed(9)}


def test_who_is_forgotten_by_the_brokers_has_to_end_and_takes_no_new_name_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hole 3: it tried for ever. But with its id initialised anew it might commit though it was fenced before."""
    brokers = Brokers()
    monkeypatch.setattr(offsets_module, "Producer", brokers.producer)
    monkeypatch.setattr(offsets_module, "Consumer", brokers.consumer)
    idle = GroupOffsets({}, {}, "group", "1/a")
    idle.open()
    brokers.forgotten.add("group/1/a")
    for _ in range(2):
        with pytest.raises(FatalKafkaError, match="forgotten"):
            idle.commit({ORDERS: Committed(7)})
    assert brokers.epochs["group/1/a"] == 1
    assert brokers.committed == {}
