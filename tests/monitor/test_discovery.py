from monitor.discovery import Discovery
from tests.monitor.measured_logs import FakeLogs, topic


class Clock:
    """Stands still until it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_named_topics_are_described_alone() -> None:
    cluster = FakeLogs(described={"a": topic("a"), "b": topic("b")})
    assert list(Discovery(cluster, ("a",), 5, clock=Clock()).interest().topics) == ["a"]
    assert cluster.asked_topics == [frozenset({"a"})]


def test_a_named_topic_that_is_created_later_is_found_at_once() -> None:
    cluster = FakeLogs()
    discovery = Discovery(cluster, ("a",), 5, clock=Clock())
    assert discovery.interest().missing == {"a"}
    cluster.described["a"] = topic("a")
    assert list(discovery.interest().topics) == ["a"]


def test_the_whole_cluster_is_searched_once_in_a_while_and_known_topics_are_described_in_between() -> None:
    clock = Clock()
    cluster = FakeLogs(described={"in-a": topic("in-a"), "b": topic("b")})
    discovery = Discovery(cluster, ("^in-",), 5, clock=clock)
    discovery.interest()
    cluster.described["in-b"] = topic("in-b")
    cluster.described["in-a"] = topic("in-a", {0: 1, 1: 1})
    clock.now += 4
    assert [(name, len(found.leaders)) for name, found in discovery.interest().topics.items()] == [("in-a", 2)]
    clock.now += 1
    assert list(discovery.interest().topics) == ["in-a", "in-b"]
    assert cluster.asked_topics == [None, frozenset({"in-a"}), None]


def test_nobody_is_asked_in_between_where_no_topic_matches() -> None:
    cluster = FakeLogs()
    discovery = Discovery(cluster, ("^in-",), 5, clock=Clock())
    discovery.interest()
    assert discovery.interest().missing == {"^in-"}
    assert cluster.asked_topics == [None]


def test_a_deleted_topic_is_of_interest_no_more() -> None:
    cluster = FakeLogs(described={"in-a": topic("in-a")})
    discovery = Discovery(cluster, ("^in-",), 5, clock=Clock())
    discovery.interest()
    del cluster.described["in-a"]
    assert not discovery.interest().topics


def test_cleanup_policies_are_asked_for_new_topics_and_refreshed_after_a_minute() -> None:
    clock = Clock()
    cluster = FakeLogs(described={"a": topic("a"), "b": topic("b")}, compacted_topics={"b"})
    discovery = Discovery(cluster, ("a", "b"), 5, clock=clock)
    first = discovery.interest().topics
    assert (first["a"].compacted, first["b"].compacted) == (False, True)
    cluster.compacted_topics.add("a")
    assert not discovery.interest().topics["a"].compacted
    cluster.described["b"] = topic("b", topic_id="another")
    discovery.interest()
    clock.now += 60
    assert discovery.interest().topics["a"].compacted
    assert cluster.asked_policies == [frozenset("ab"), frozenset("b"), frozenset("ab")]
