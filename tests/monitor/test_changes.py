from domain.partitions import TopicPartition
from monitor.measure.changes import Standing, changes

A = [TopicPartition("a", number) for number in range(6)]
B = TopicPartition("b", 0)


def told(before: Standing, after: Standing) -> list[tuple[str, dict[str, object]]]:
    return [(change.event, dict(change.details)) for change in changes(before, after)]


def test_nothing_is_told_of_what_stayed_the_same() -> None:
    standing = Standing(
        partitions=frozenset(A),
        unknown=frozenset(A[:2]),
        leaderless=frozenset(A[:1]),
        missing=frozenset({"c"}),
        brokers_away={3: "time-out"},
        cluster_away="nobody answers",
        publishing_fails="no such topic",
    )
    assert told(standing, standing) == []


def test_a_reason_that_changes_while_a_broker_is_away_is_not_told_again() -> None:
    assert told(Standing(brokers_away={3: "time-out"}), Standing(brokers_away={3: "refused"})) == []


def test_partitions_are_told_by_topic_in_runs() -> None:
    after = Standing(partitions=frozenset([*A[:3], A[5], B]), unknown=frozenset([*A[:3], A[5], B]))
    assert told(Standing(), after) == [
        ("partitions appeared", {"topic": "a", "partitions": "0-2, 5"}),
        ("partitions appeared", {"topic": "b", "partitions": "0"}),
    ]
    assert told(after, Standing()) == [
        ("partitions vanished", {"topic": "a", "partitions": "0-2, 5"}),
        ("partitions vanished", {"topic": "b", "partitions": "0"}),
    ]


def test_a_speed_that_becomes_unknown_is_trouble_and_its_return_is_told() -> None:
    known = Standing(partitions=frozenset({B}))
    unknown = Standing(partitions=frozenset({B}), unknown=frozenset({B}))
    (lost,) = changes(known, unknown)
    assert lost.event == "write speeds became unknown"
    assert lost.is_trouble
    assert told(unknown, known) == [("write speeds are known", {"topic": "b", "partitions": "0"})]


def test_a_broker_that_goes_and_returns_is_told_once_each() -> None:
    away = Standing(brokers_away={3: "time-out", 2: "refused"})
    (second, third) = changes(Standing(), away)
    assert (second.details, third.details) == ({"broker": 2, "reason": "refused"}, {"broker": 3, "reason": "time-out"})
    assert second.is_trouble
    assert told(away, Standing(brokers_away={2: "refused"}, leaders=frozenset({2, 3}))) == [
        ("a broker tells its sizes again", {"broker": 3})
    ]


def test_a_broker_that_is_asked_no_more_is_not_said_to_be_back() -> None:
    assert told(Standing(brokers_away={3: "time-out"}), Standing(leaders=frozenset({1}))) == [
        ("a broker that told no sizes leads nothing any more", {"broker": 3})
    ]


def test_a_topic_that_is_not_there_is_told_and_so_is_its_coming() -> None:
    missing = Standing(missing=frozenset({"orders"}))
    assert told(Standing(), missing) == [("no such topic, or no right to describe it", {"topic": "orders"})]
    assert told(missing, Standing()) == [("topic found", {"topic": "orders"})]


def test_faults_of_the_whole_are_told_when_they_begin_and_when_they_end() -> None:
    broken = Standing(cluster_away="refused", publishing_fails="time-out")
    assert told(Standing(), broken) == [
        ("the cluster cannot be reached, retrying", {"reason": "refused"}),
        ("write speeds cannot be published, retrying", {"reason": "time-out"}),
    ]
    assert told(broken, Standing()) == [("the cluster is back", {}), ("write speeds are published again", {})]


def test_partitions_that_lose_their_leader_are_told_and_vanished_ones_did_not_regain_it() -> None:
    led = Standing(partitions=frozenset(A[:2]))
    leaderless = Standing(partitions=frozenset(A[:2]), leaderless=frozenset(A[:2]))
    assert told(led, leaderless) == [("partitions have no leader", {"topic": "a", "partitions": "0-1"})]
    assert told(leaderless, Standing(partitions=frozenset(A[:1]))) == [
        ("partitions vanished", {"topic": "a", "partitions": "1"}),
        ("partitions have a leader again", {"topic": "a", "partitions": "0"}),
    ]


def test_a_topic_that_is_measured_otherwise_is_told_with_why_and_so_is_its_return() -> None:
    by_sizes = Standing(partitions=frozenset({*A, B}))
    by_offsets = Standing(partitions=by_sizes.partitions, by_offsets={"b": "denied"}, unreadable=frozenset({"b"}))
    assert [(change.event, dict(change.details), change.is_trouble) for change in changes(by_sizes, by_offsets)] == [
        ("a topic is measured by end offsets and samples of its records", {"topic": "b", "reason": "denied"}, False),
        ("no right to read a topic: how large its records are is not known", {"topic": "b"}, True),
    ]
    assert told(by_offsets, by_sizes) == [("a topic is measured by the sizes of its logs again", {"topic": "b"})]
    vanished = Standing(partitions=frozenset(A))
    assert [event for event, _ in told(by_offsets, vanished)] == ["partitions vanished"]


def test_a_prometheus_that_is_away_is_told_once_and_what_it_knows_nothing_of_by_partitions() -> None:
    away, knows_less = Standing(prometheus_away="time-out"), Standing(untold=frozenset([*A[:2], B]))
    assert told(Standing(), away) == [("Prometheus tells no sizes, retrying", {"reason": "time-out"})]
    assert told(away, Standing(prometheus_away="refused")) == []
    assert told(away, Standing()) == [("Prometheus tells sizes again", {})]
    assert told(Standing(), knows_less) == [
        ("Prometheus knows nothing of partitions", {"topic": "a", "partitions": "0-1"}),
        ("Prometheus knows nothing of partitions", {"topic": "b", "partitions": "0"}),
    ]
