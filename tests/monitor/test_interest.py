import pytest

from domain.partitions import TopicPartition
from domain.topics import DECISIONS, METADATA, WRITE_SPEED
from monitor.measure.interest import Topic, topics_of_interest
from tests.monitor.measured_logs import topic


def named(*names: str) -> dict[str, Topic]:
    return {name: topic(name) for name in names}


def test_a_name_means_exactly_that_topic() -> None:
    interest = topics_of_interest(("orders",), named("orders", "orders-old", "clicks"))
    assert list(interest.topics) == ["orders"]
    assert not interest.missing


def test_an_expression_matches_from_the_beginning_of_a_name() -> None:
    interest = topics_of_interest(("^in-",), named("in-b", "in-a", "main-a"))
    assert list(interest.topics) == ["in-a", "in-b"]


def test_an_expression_that_ends_with_a_dollar_matches_whole_names() -> None:
    assert list(topics_of_interest(("^in-a$",), named("in-a", "in-ab")).topics) == ["in-a"]


def test_a_dot_in_a_name_is_a_dot() -> None:
    assert not topics_of_interest(("in.a",), named("in-a")).topics


def test_an_expression_never_matches_internal_topics_nor_kcgas_own() -> None:
    others = (f"{METADATA}.billing", f"{WRITE_SPEED}.billing", f"{DECISIONS}.a.b")
    topics = named(WRITE_SPEED, METADATA, DECISIONS, *others, "__consumer_offsets", "orders", f"{METADATA}s") | {
        "hidden": Topic("hidden", "1", {0: 1}, internal=True)
    }
    assert list(topics_of_interest(("^",), topics).topics) == [f"{METADATA}s", "orders"]


def test_an_expression_does_not_match_own_topics_of_another_name() -> None:
    assert not topics_of_interest(("^",), named("speeds"), own={"speeds"}).topics


@pytest.mark.parametrize("name", ["__consumer_offsets", METADATA, f"{METADATA}.billing"])
def test_an_internal_topic_can_be_named(name: str) -> None:
    assert list(topics_of_interest((name,), named(name)).topics) == [name]


def test_a_name_that_no_topic_has_and_an_expression_that_matches_none_are_reported() -> None:
    interest = topics_of_interest(("orders", "clicks", "^in-", "^out-"), named("orders", "in-a"))
    assert interest.missing == {"clicks", "^out-"}


def test_the_partitions_of_interest_are_those_of_all_topics_even_without_a_leader() -> None:
    topics = {"a": topic("a", {0: 1, 1: None}), "b": topic("b", {0: 2})}
    assert topics_of_interest(("^",), topics).leaders == {
        TopicPartition("a", 0): 1,
        TopicPartition("a", 1): None,
        TopicPartition("b", 0): 2,
    }
