"""What `kcga watch` refuses, and what it makes of a coordinator's answers. No cluster."""

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from app.errors import KcgaError, UsageError
from app.watch.decide.membership import Protocol
from app.watch.looks import Look, topics_of
from app.watch.membership import NoSuchGroupError, membership
from cli.main import app
from domain.partitions import TopicPartition
from monitor.cluster_logs import BrokerAwayError, ClusterLogs
from tests.cli.test_watcher import group, watched


def refusal(*options: str) -> str:
    done = CliRunner().invoke(app, ["watch", "--group", "billing", *options])
    assert isinstance(done.exception, UsageError), done.output
    return str(done.exception)


HERE = ("--bootstrap-servers", "127.0.0.1:1")


def test_it_must_be_said_where_the_brokers_are() -> None:
    assert "give --bootstrap-servers, or --settings" in refusal()
    assert "give --bootstrap-servers, or --settings" in refusal("--capacity", "100")


def test_it_lasts_as_long_as_asked_for_from_the_first_look_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes to connect."""
    now = 0.0

    def look_at(*_: object) -> Iterator[Look]:
        nonlocal now
        now += 60.0
        while True:
            yield Look(watched(group(("orders-0",)), 1.0), None)
            now += 1.0

    monkeypatch.setattr("cli.commands.watch.look_at", look_at)
    monkeypatch.setattr("cli.commands.watch.time", SimpleNamespace(monotonic=lambda: now))
    options = ("--group", "billing", *HERE, "--capacity", "100", "--for", "3", "--output", "json")
    done = CliRunner().invoke(app, ["watch", *options])
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 4), done.output


def test_a_capacity_that_is_estimated_is_one_for_all_consumers() -> None:
    assert "do not go together" in refusal(*HERE, "--class", "large=400:3")


def test_what_is_out_of_range_is_named(tmp_path: Path) -> None:
    assert "controller.consumer_capacity" in refusal(*HERE, "--capacity", "0")
    assert "monitor.topics" in refusal(*HERE, "--capacity", "100", "--topic", "no topic")
    file = tmp_path / "settings.toml"
    file.write_text("[kafka]\ngroup = 'another'\n")
    assert "kafka.bootstrap_servers: field required" in refusal("--settings", str(file))
    file.write_text("kafka = 1")
    assert "kafka" in refusal("--settings", str(file))


def test_classes_are_checked_and_no_number_is_served_to_keda_where_there_are_any(tmp_path: Path) -> None:
    given = (*HERE, "--capacity", "100")
    assert "--class is 'large'" in refusal(*given, "--class", "large")
    assert "there twice" in refusal(*given, "--class", "large=400:3", "--class", "large=500:4")
    assert "--keda-port" in refusal(*given, "--class", "large=400:3", "--keda-port", "0")
    file = tmp_path / "settings.toml"
    large = '[[consumer.classes]]\nname = "large"\ncapacity = 400\nprice = 3\n'
    file.write_text(f'[kafka]\nbootstrap_servers = "127.0.0.1:1"\n[controller]\nconsumer_capacity = 100\n{large}')
    assert "--keda-port" in refusal("--settings", str(file), "--keda-port", "0")


def test_an_environment_that_says_otherwise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCGA_KAFKA__GROUP", "another")
    assert "unset KCGA_KAFKA__GROUP" in refusal(*HERE, "--capacity", "100")


class Told:
    """A cluster that gives these answers, one after the other."""

    def __init__(self, *answers: object) -> None:
        self._answers = iter(answers)

    def ask(self, _question: object) -> object:
        return next(self._answers)


def classic(**told: object) -> dict[str, Any]:
    described = {"error": None, "group_state": "Stable", "protocol_type": "consumer", "protocol_data": "range"}
    return {**described, "members": [], **told}


def asked(*answers: object) -> Any:
    return membership(cast("ClusterLogs", Told(*answers)), "billing")


def test_while_a_rebalance_is_under_way_members_are_told_without_what_they_read() -> None:
    member = {"member_id": "a", "client_id": "app\x1b", "client_host": "/10.0.0.1"}
    told = {**member, "member_metadata": b"", "member_assignment": b""}
    found = asked(classic(group_state="PreparingRebalance", protocol_data="", members=[told]))
    assert not found.settled
    assert [(each.name, each.client, each.held) for each in found.members] == [("a", "app\\x1b@10.0.0.1", frozenset())]


def test_a_group_of_the_newer_protocol_is_asked_for_in_its_own_way() -> None:
    member: dict[str, Any] = {"member_id": "a", "client_id": "app", "client_host": "/10.0.0.1"}
    member["subscribed_topic_names"] = ["clicks"]
    member["assignment"] = {"topic_partitions": [{"topic_name": "orders", "partitions": [0, 3]}]}
    described = {"error_code": 0, "group_state": "Stable", "assignor_name": "uniform", "group_epoch": 7}
    not_classic = classic(group_state="Dead", error="[Error 69] GroupIdNotFoundError: not a classic group.")
    found = asked(not_classic, {**described, "members": [member]})
    assert (found.protocol, found.epoch, found.topics) == (Protocol.CONSUMER, 7, frozenset({"clicks", "orders"}))
    assert found.members[0].held == {TopicPartition("orders", 0), TopicPartition("orders", 3)}


def test_a_group_that_is_none_of_consumers_or_does_not_exist_is_refused() -> None:
    with pytest.raises(KcgaError, match="one of connect"):
        asked(classic(protocol_type="connect"))
    for newer in (None, {"error_code": 69, "error_message": "not found"}):  # older brokers know of no such groups
        with pytest.raises(NoSuchGroupError):
            asked(classic(group_state="Dead"), newer)


def topics(*answers: object) -> tuple[str, ...]:
    return topics_of(cast("ClusterLogs", Told(*answers)), "billing", (), threading.Event())


def test_the_first_rebalance_of_a_group_is_waited_for_and_a_group_that_reads_nothing_is_not() -> None:
    under_way = classic(group_state="PreparingRebalance")
    nothing: dict[str, Any] = {"billing": {}}
    member = {
        "member_id": "a",
        "client_id": "app",
        "client_host": "/10.0.0.1",
        "member_metadata": {"topics": ["orders"]},
    }
    assert topics(under_way, nothing, classic(members=[{**member, "member_assignment": None}])) == ("orders",)
    assert topics(classic(group_state="Empty"), {"billing": {TopicPartition("clicks", 0): 7}}) == ("clicks",)
    with pytest.raises(KcgaError, match=r"it is Empty.*--topic"):
        topics(classic(group_state="Empty"), nothing)


def test_a_coordinator_that_refuses_is_away() -> None:
    with pytest.raises(BrokerAwayError, match="NotCoordinator"):
        asked(classic(error="[Error 16] NotCoordinatorError", group_state=""))
    with pytest.raises(BrokerAwayError, match="TopicAuthorizationFailed"):
        asked(classic(group_state="Dead"), {"error_code": 29, "error_message": "no right"})
