"""The rights that `kcga acls` prints, without a cluster."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.errors import UsageError
from app.settings import Settings, load
from cli import iam
from cli.commands.acls import RightsFormat, acls, commands, json_lines, kafka_users
from cli.rights import Component, Resource, Right, operations_on, rights
from domain.speeds import Source

SETTINGS = """\
[kafka]
bootstrap_servers = "kafka-1:9092"
group = "billing"

[monitor]
topics = {topics}

[consumer]
spark_remote = "sc://spark:15002"
lake_root = "/lake"
"""


def settings_of(tmp_path: Path, topics: str = '["orders"]') -> Settings:
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS.format(topics=topics))
    return load(file)


def of_data(settings: Settings, component: Component) -> list[tuple[str, bool]]:
    """The topics with data that a component has any right to."""
    own = {settings.topics.write_speed, settings.topics.metadata, settings.topics.decisions}
    return [
        (right.name, right.prefixed)
        for right in rights(settings)
        if right.component is component and right.resource is Resource.TOPIC and right.name not in own
    ]


def test_no_component_but_the_controller_may_create_anything(tmp_path: Path) -> None:
    may_create = {right.component for right in rights(settings_of(tmp_path)) if "Create" in right.operations}
    assert may_create == {Component.CONTROLLER}


def test_nobody_may_write_what_producers_write(tmp_path: Path) -> None:
    wanted = rights(settings_of(tmp_path))
    assert not [right for right in wanted if right.name == "orders" and "Write" in right.operations]


def test_only_the_controller_writes_decisions_and_only_the_monitor_speeds(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)

    def writers(topic: str) -> set[Component]:
        return {r.component for r in rights(settings) if r.name == topic and "Write" in r.operations}

    assert writers(settings.topics.decisions) == {Component.CONTROLLER}
    assert writers(settings.topics.write_speed) == {Component.MONITOR}


@pytest.mark.parametrize(
    ("topics", "patterns"),
    [
        ('["orders", "clicks"]', [("clicks", False), ("orders", False)]),
        (r'["^clicks\\..*"]', [("clicks.", True)]),
        ('["^clicks-[0-9]+$"]', [("clicks-", True)]),
        ('["^clicks?"]', [("click", True)]),  # the last letter need not be there
        ('["^.*"]', [("", True)]),
        ('["^orders|^clicks"]', [("", True)]),  # either: they begin with nothing in common
        ('["^(orders)"]', [("", True)]),
    ],
)
def test_an_expression_asks_for_all_topics_that_begin_as_its_matches_do(
    tmp_path: Path, topics: str, patterns: list[tuple[str, bool]]
) -> None:
    settings = settings_of(tmp_path, topics)
    assert of_data(settings, Component.CONSUMER) == patterns
    assert of_data(settings, Component.MONITOR) == patterns


def test_a_command_names_who_gets_which_operations_on_what(tmp_path: Path) -> None:
    right = Right(Component.CONSUMER, Resource.TOPIC, "orders", ("Read",))
    (command,) = commands([right], settings_of(tmp_path), "kcga-")
    words = shlex.split(command)
    assert words[0] == "kafka-acls.sh"
    assert words[words.index("--allow-principal") + 1] == "User:kcga-consumer"
    assert words[words.index("--operation") + 1] == "Read"
    assert words[words.index("--topic") + 1] == "orders"
    assert words[words.index("--resource-pattern-type") + 1] == "literal"


def test_what_begins_with_nothing_in_common_is_everything(tmp_path: Path) -> None:
    right = Right(Component.CONSUMER, Resource.TOPIC, "", ("Read",), prefixed=True)
    (command,) = commands([right], settings_of(tmp_path), "kcga-")
    assert "--topic '*' --resource-pattern-type literal" in command


def test_json_has_one_object_for_each_right(tmp_path: Path) -> None:
    wanted = rights(settings_of(tmp_path))
    lines = [json.loads(line) for line in json_lines(wanted, "my-")]
    assert len(lines) == len(wanted)
    assert {line["principal"] for line in lines} == {
        "User:my-monitor",
        "User:my-controller",
        "User:my-consumer",
        "User:my-operator",
        "User:my-watcher",
    }
    assert all(line["operations"] for line in lines)


def test_what_is_done_to_a_topic_is_what_any_component_does_to_it(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, '["^.*"]')
    assert operations_on(rights(settings), Resource.TOPIC, "orders") == {"Read", "Describe", "DescribeConfigs"}
    of_decisions = {"AlterConfigs", "Create", "Describe", "DescribeConfigs", "Read", "Write"}
    assert operations_on(rights(settings), Resource.TOPIC, settings.topics.decisions) == of_decisions
    assert operations_on(rights(settings), Resource.GROUP, "billing") == {"Describe", "Read"}
    assert operations_on(rights(settings), Resource.GROUP, "another") == frozenset()


def test_where_samples_tell_the_speeds_topics_are_read_and_nothing_is_asked_of_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings_of(tmp_path)
    asked = (
        (None, [Resource.CLUSTER, Resource.TOPIC]),
        (Source.OFFSETS, [Resource.TOPIC]),
        (Source.PROMETHEUS, [Resource.TOPIC]),
    )
    for source, resources in asked:
        acls(tmp_path / "settings.toml", "kcga-", source, None, RightsFormat.JSON)
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        of_watcher = [right for right in printed if right["principal"] == "User:kcga-watcher"]
        assert [right["resource"] for right in of_watcher if right["resource"] != Resource.GROUP] == resources
        (operations,) = [right["operations"] for right in of_watcher if right["name"] == "orders"]
        assert ("Read" in operations) is (source is Source.OFFSETS)


def users_of(settings: Settings, client: dict[str, str]) -> dict[str, dict[str, Any]]:
    kafka = settings.kafka.model_copy(update={"client": client, "bootstrap_servers": "east-kafka-bootstrap.kafka:9093"})
    settings = settings.model_copy(update={"kafka": kafka})
    return {user["metadata"]["name"]: user for user in kafka_users(rights(settings), settings, "kcga-")}


def test_strimzi_is_asked_for_a_user_of_each_component_with_the_same_rights(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, r'["orders", "^clicks\\..*"]')
    users = users_of(settings, {})
    assert users.keys() == {f"kcga-{component}" for component in Component}
    assert {user["metadata"]["labels"]["strimzi.io/cluster"] for user in users.values()} == {"east"}
    granted = sum(len(user["spec"]["authorization"]["acls"]) for user in users.values())
    assert granted == len(rights(settings))
    of_consumer = users["kcga-consumer"]["spec"]["authorization"]["acls"]
    names = {
        (rule["resource"]["type"], rule["resource"]["name"], rule["resource"]["patternType"]) for rule in of_consumer
    }
    assert {("topic", "orders", "literal"), ("topic", "clicks.", "prefix"), ("group", "billing", "literal")} <= names
    assert ("transactionalId", "billing/", "prefix") in names
    assert users["kcga-monitor"]["spec"]["authorization"]["acls"][0] == {
        "resource": {"type": "cluster"},
        "operations": ["Describe"],
    }


@pytest.mark.parametrize(
    ("client", "authentication"),
    [
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}, {"type": "scram-sha-512"}),
        ({"security.protocol": "ssl"}, {"type": "tls"}),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, None),
    ],
)
def test_strimzi_hands_out_what_clients_say_who_they_are_by(
    tmp_path: Path, client: dict[str, str], authentication: dict[str, str] | None
) -> None:
    for user in users_of(settings_of(tmp_path), client).values():
        assert user["spec"].get("authentication") == authentication


def test_what_strimzi_cannot_take_is_one_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings_of(tmp_path)
    file = tmp_path / "settings.toml"
    with pytest.raises(UsageError, match="--cluster must name the Kafka cluster"):
        acls(file, "kcga-", None, None, RightsFormat.STRIMZI)
    with pytest.raises(UsageError, match="--prefix must be of lower case letters"):
        acls(file, "Kcga_", None, "east", RightsFormat.STRIMZI)
    acls(file, "kcga-", None, "east", RightsFormat.STRIMZI)
    kinds = [user["kind"] for user in yaml.safe_load_all(capsys.readouterr().out)]
    assert kinds == ["KafkaUser"] * len(Component)


ARN = "arn:aws:kafka:eu-central-1:123456789012:cluster/east/4c6e-7"


@pytest.mark.parametrize("mode", ["manage", "observe"])
@pytest.mark.parametrize("source", Source)
def test_every_right_is_granted_by_its_action_of_iam_and_nothing_else_is(
    tmp_path: Path, source: Source, mode: str
) -> None:
    settings = settings_of(tmp_path, r'["orders", "^clicks\\..*"]')
    settings = settings.model_copy(
        update={
            "monitor": settings.monitor.model_copy(update={"source": source}),
            "controller": settings.controller.model_copy(update={"mode": mode}),
        }
    )
    wanted = rights(settings)
    assert {(right.resource, each) for right in wanted for each in right.operations} <= iam.ACTIONS.keys()
    granted = iam.policies(wanted, "kcga-", ARN)
    assert granted.keys() == {f"kcga-{component}" for component in Component}
    for component in Component:
        allowed = {
            (arn, action)
            for statement in granted[f"kcga-{component}"]["Statement"]
            for arn in statement["Resource"]
            for action in statement["Action"]
        }
        needed = {(ARN, "kafka-cluster:Connect")}
        for right in wanted:
            of_kind = f"{ARN.partition(':cluster/')[0]}:{right.resource}/east/4c6e-7/{right.name}"
            arn = ARN if right.resource is Resource.CLUSTER else of_kind + ("*" if right.prefixed else "")
            if right.component is component:
                actions = (action for each in right.operations for action in iam.ACTIONS[right.resource, each])
                needed |= {(arn, f"kafka-cluster:{action}") for action in actions}
        extra = {(ARN, "kafka-cluster:WriteDataIdempotently")} if component is Component.CONSUMER else set()
        assert allowed == needed | extra


def test_a_policy_of_iam_has_the_form_that_amazon_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings_of(tmp_path)
    acls(tmp_path / "settings.toml", "kcga-", None, ARN, RightsFormat.MSK_IAM)
    of_account = "arn:aws:kafka:eu-central-1:123456789012"
    assert json.loads(capsys.readouterr().out)["kcga-consumer"] == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["kafka-cluster:Connect", "kafka-cluster:WriteDataIdempotently"],
                "Resource": [ARN],
            },
            {
                "Effect": "Allow",
                "Action": ["kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"],
                "Resource": [f"{of_account}:topic/east/4c6e-7/orders"],
            },
            {
                "Effect": "Allow",
                "Action": ["kafka-cluster:DescribeTopic", "kafka-cluster:ReadData", "kafka-cluster:WriteData"],
                "Resource": [f"{of_account}:topic/east/4c6e-7/consumer.metadata.billing"],
            },
            {
                "Effect": "Allow",
                "Action": ["kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup"],
                "Resource": [f"{of_account}:group/east/4c6e-7/billing"],
            },
            {
                "Effect": "Allow",
                "Action": ["kafka-cluster:AlterTransactionalId", "kafka-cluster:DescribeTransactionalId"],
                "Resource": [f"{of_account}:transactional-id/east/4c6e-7/billing/*"],
            },
        ],
    }


def test_names_that_mean_something_to_iam_mean_themselves() -> None:
    right = Right(Component.CONSUMER, Resource.GROUP, "a*b?$", ("Read",))
    (policy,) = iam.policies([right], "", "arn:aws-cn:kafka:cn-north-1:123456789012:cluster/east/*").values()
    assert policy["Statement"][1]["Resource"] == [
        "arn:aws-cn:kafka:cn-north-1:123456789012:group/east/*/a${*}b${?}${$}"
    ]


@pytest.mark.parametrize("cluster", [None, "east", "arn:aws:kafka:eu-central-1:1:cluster/east/4c6e-7", f"{ARN}/orders"])
def test_a_cluster_that_iam_does_not_know_is_one_clear_error(tmp_path: Path, cluster: str | None) -> None:
    settings_of(tmp_path)
    with pytest.raises(UsageError, match="--cluster must be the ARN of the MSK cluster"):
        acls(tmp_path / "settings.toml", "kcga-", None, cluster, RightsFormat.MSK_IAM)


def test_a_controller_that_only_observes_has_the_rights_of_a_watcher(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    observing = settings.model_copy(update={"controller": settings.controller.model_copy(update={"mode": "observe"})})

    def of(component: Component) -> list[tuple[Resource, str, tuple[str, ...]]]:
        return [(r.resource, r.name, r.operations) for r in rights(observing) if r.component is component]

    assert of(Component.CONTROLLER) == of(Component.WATCHER)
    assert {each for _, _, operations in of(Component.CONTROLLER) for each in operations} == {
        "Describe",
        "DescribeConfigs",
    }
