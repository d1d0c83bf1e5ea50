"""Which partitions are gone, and which are only not shown."""

from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from monitor.discovery import Discovery
from monitor.measure.departed import ROUNDS, Departed
from monitor.measure.interest import Interest
from tests.monitor.measured_logs import FakeLogs, topic

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def after(discovery: Discovery, rounds: int) -> Interest:
    for _ in range(rounds - 1):
        discovery.interest()
    return discovery.interest()


def a_cluster() -> FakeLogs:
    return FakeLogs(described={"a": topic("a", {0: 1, 1: 1}), "b": topic("b")})


def test_a_topic_that_the_cluster_says_is_not_there_is_gone_after_some_rounds() -> None:
    """Hole 2: and not before, and then it is said again and again."""
    cluster = a_cluster()
    discovery = Discovery(cluster, ("a", "b"), 5)
    discovery.interest()
    del cluster.described["a"]
    before = after(discovery, ROUNDS - 1)
    assert before.hidden == {A0, A1}
    assert not before.gone
    later = after(discovery, 1)
    assert not later.hidden
    assert later.gone == {A0, A1}
    assert after(discovery, 3).gone == {A0, A1}


def test_a_topic_that_may_not_be_described_any_more_is_not_gone() -> None:
    """Hole 2: a monitor that lost a right named nothing, and all were stopped."""
    cluster = a_cluster()
    discovery = Discovery(cluster, ("a", "b"), 5)
    discovery.interest()
    cluster.withheld |= {"a", "b"}
    interest = after(discovery, 4 * ROUNDS)
    assert interest.hidden == {A0, A1, B0}
    assert not interest.gone


def test_a_topic_that_an_answer_does_not_show_once_in_a_while_is_not_gone() -> None:
    """Hole 2: only answers in a row count."""
    departed = Departed(("a",), frozenset())
    departed.judge({A0}, {})
    for _ in range(3):
        for _ in range(ROUNDS - 1):
            departed.judge(set(), {"a": None})
        departed.judge(set(), {})
    assert departed.hidden(set()) == {A0}
    assert not departed.gone


def test_a_partition_that_a_topic_made_anew_does_not_have_is_gone() -> None:
    """Hole 2."""
    cluster = a_cluster()
    discovery = Discovery(cluster, ("a",), 5)
    discovery.interest()
    cluster.described["a"] = topic("a", {0: 1}, topic_id="another")
    assert after(discovery, ROUNDS).gone == {A1}
    cluster.described["a"] = topic("a", {0: 1, 1: 1}, topic_id="another")
    assert after(discovery, 1).gone == frozenset()


def test_what_the_monitor_before_named_and_the_settings_do_not_is_gone() -> None:
    """Hole 2: and what it said to be gone is said again."""
    other = TopicPartition("old", 0)
    before = WriteSpeeds(1.0, {A0: 1.0, B0: 1.0}, frozenset({A1}), gone=frozenset({other}))
    discovery = Discovery(a_cluster(), ("a",), 5, told_before=lambda: before)
    first = discovery.interest()
    assert first.hidden == {B0}
    assert first.gone == {other}
    assert after(discovery, ROUNDS).gone == {B0, other}


def test_a_topic_that_an_expression_matches_and_that_is_there_is_never_gone() -> None:
    """Hole 2: between two searches of the whole cluster it is not shown."""
    before = WriteSpeeds(1.0, {A0: 1.0})
    departed = Departed(("^a",), frozenset(), before)
    for _ in range(2 * ROUNDS):
        departed.judge(set(), {"a": topic("a")})
    assert departed.hidden(set()) == {A0}
