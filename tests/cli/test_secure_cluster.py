"""kcga on a cluster that is secured by SASL_SSL, SCRAM and rights: a real broker, with certificates made for it."""

import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import ConfigResource

from app.components import command
from app.java import Java
from app.settings import load
from app.topics import Cluster as Topics
from app.watch.decide.watcher import Moment
from cli.doctor.kafka import check_kafka
from cli.rights import Component, Resource, rights
from consumer.verify import verify
from domain.messages import Action, ConsumerCommand, PartitionRef
from tests.cli.ordinary_group import RdkafkaGroup, generation, producing, wait_for_group
from tests.patience import PATIENCE_S, wait_until
from tests.secure_cluster import (
    DATA,
    PASSWORD,
    PREFIX,
    Cluster,
    end_consumers,
    produce,
    running,
    secure_cluster,
    settings_file,
    wait_for,
)
from tests.services import SharedSpark

pytestmark = [pytest.mark.integration, pytest.mark.slow(20)]

GROUP = "billing"


@pytest.fixture(scope="module")
def cluster(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with secure_cluster(tmp_path_factory.mktemp("secure"), java) as cluster:
        yield cluster


SettingsOf = Callable[..., Path]
"""`settings_of(user, password=..., ca=...)`: the settings file of that user."""


@pytest.fixture
def settings_of(cluster: Cluster, tmp_path: Path) -> SettingsOf:
    def write(user: str, *, spark_remote: str = "sc://127.0.0.1:1", local: str = "", **access: str) -> Path:
        client = {**cluster.security.client_settings(PREFIX + user, PASSWORD), **access}
        return settings_file(tmp_path, user, cluster, client, GROUP, spark_remote, local, "request_timeout_s = 60")

    return write


def cannot_begin(file: Path, *said: str) -> None:
    """The controller ends and says all that. It may end before it has heard why, and then says that nobody answers."""
    told = ""

    def says_why() -> bool:
        nonlocal told
        arguments = command("controller", "--settings", str(file))
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        told = done.stderr
        assert done.returncode == 1, told
        assert "Traceback" not in told
        return all(each in told for each in said)

    wait_until(says_why, lambda: told)


@pytest.mark.usefixtures("nothing_left_running")
class TestRefusals:
    """Nobody has been granted anything yet."""

    def test_a_wrong_password_is_named(self, settings_of: SettingsOf) -> None:
        cannot_begin(settings_of("controller", **{"sasl.password": "wrong"}), "refuse who this is", "sasl.password")

    def test_a_certificate_that_nobody_known_signed_is_named(self, settings_of: SettingsOf, cluster: Cluster) -> None:
        unknown = settings_of("controller", **{"ssl.ca.location": str(cluster.other_ca)})
        cannot_begin(unknown, "no secure connection", "ssl.ca.location")

    def test_a_missing_right_is_named_with_who_prints_it(self, settings_of: SettingsOf) -> None:
        cannot_begin(settings_of("stranger"), "the brokers do not allow it (Authorization failed.)", "kcga acls")

    def test_who_may_not_ask_for_sizes_is_told_the_right_that_it_takes(
        self, settings_of: SettingsOf, cluster: Cluster, tmp_path: Path
    ) -> None:
        settings = load(settings_of("monitor"))
        without = [r for r in rights(settings) if r.component is Component.MONITOR and r.resource is Resource.TOPIC]
        cluster.grant(without)
        cluster.make(16, settings.topics.write_speed, settings.topics.metadata, settings.topics.decisions)
        log = tmp_path / "monitor.log"
        with running("monitor", settings_of("monitor"), log):
            wait_for(lambda: "the operation Describe on the resource Cluster" in log.read_text(), log)


@pytest.mark.usefixtures("nothing_left_running")
def test_the_pipeline_works_with_the_rights_that_are_printed(
    cluster: Cluster, settings_of: SettingsOf, spark_server: SharedSpark, tmp_path: Path
) -> None:
    of_consumers = settings_of("consumer", spark_remote=spark_server.remote)
    local = f'consumer_settings = "{of_consumers}"'
    of_controller = settings_of("controller", spark_remote=spark_server.remote, local=local)
    of_monitor = settings_of("monitor")
    settings = load(of_controller)
    cluster.grant(list(rights(settings)))
    records = 500
    produce(cluster.client("admin"), DATA, [b"x" * 500] * records, partitions=2)

    def in_the_lake() -> int:
        accounts = verify(spark_server.remote, settings.consumer.lake_root, [DATA]).values()
        assert sum(account.doubled for account in accounts) == 0
        return sum(account.distinct_offsets for account in accounts)

    logs = [tmp_path / f"{name}.log" for name in ("controller", "monitor")]
    try:
        with running("controller", of_controller, logs[0]), running("monitor", of_monitor, logs[1]):
            wait_for(lambda: in_the_lake() == records, *logs, tmp_path / "consumers" / "consumer-1.log")
    finally:
        end_consumers(settings, of_consumers)
    # What goes wrong for want of a right does not always stop the records.
    for log in (*logs, *(tmp_path / "consumers").glob("*.log")):
        assert "uthorization failed" not in log.read_text()

    asked = settings_of("operator")
    for arguments in (("pause",), ("resume",), ("explain",)):
        done = subprocess.run(
            command(*arguments, "--settings", str(asked)),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr


FORGED = ConsumerCommand(
    consumer=1,
    incarnation="somebody",
    epoch=99,
    plan=1,
    sequence=1,
    action=Action.STOP,
    partitions=(PartitionRef(topic=DATA, partition=0),),
).encode()


def refusal(client: Mapping[str, str], topic: str) -> int:
    """The error that a record to `topic` comes back with."""
    errors: list[int] = []

    def delivered(error: KafkaError | None, _record: Message) -> None:
        errors.append(KafkaError.NO_ERROR if error is None else error.code())

    producer = Producer({**client, "message.timeout.ms": round(1_000 * PATIENCE_S)})
    producer.produce(topic, FORGED, partition=0, on_delivery=delivered)
    producer.flush(PATIENCE_S)
    return errors[0]


def test_what_one_has_no_right_to_write_is_refused(cluster: Cluster, settings_of: SettingsOf) -> None:
    settings = load(settings_of("controller"))
    cluster.grant(list(rights(settings)))
    topics = settings.topics
    cluster.make(16, topics.write_speed, topics.metadata, topics.decisions)
    refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert refusal(cluster.client("kcga-stranger"), topics.metadata) == refused
    assert refusal(cluster.client("kcga-monitor"), topics.metadata) == refused
    assert refusal(cluster.client("kcga-consumer"), topics.write_speed) == refused
    assert refusal(cluster.client("kcga-operator"), topics.decisions) == refused
    assert refusal(cluster.client("kcga-consumer"), DATA) == refused


def test_the_controller_bounds_topics_that_exist_and_who_may_not_leaves_that_to_it(
    cluster: Cluster, settings_of: SettingsOf
) -> None:
    """Hole 1: those of the version before have no bounds but in time."""
    settings = load(settings_of("controller"))
    cluster.grant(list(rights(settings)))
    names = settings.topics.names
    cluster.make(16, names.write_speed, names.metadata, names.decisions)
    for component in ("monitor", "controller"):
        kafka = load(settings_of(component)).kafka
        seen = Topics(kafka.bootstrap_servers, kafka.client)
        wait_until(partial(knows, seen, {names.write_speed, names.metadata, names.decisions}))
        seen.ensure_internal_topics(names, highest_consumer=15)
    (answer,) = cluster.admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, names.metadata)]).values()
    assert answer.result(PATIENCE_S)["segment.ms"].value == "600000"


def knows(topics: Topics, names: set[str]) -> bool:
    """Whether these are among them: rights take a moment."""
    return names <= topics.partitions().keys()


def test_the_doctor_names_the_rights_that_are_missing(settings_of: SettingsOf) -> None:
    settings = load(settings_of("consumer"))
    metadata = settings.topics.metadata
    said = [finding.what for finding in check_kafka(settings)]
    lacking = {what.removeprefix("not allowed: ") for what in said if what.startswith("not allowed")}
    assert f"Alter on the topic {metadata}" in lacking, said
    assert not {f"Read on the topic {DATA}", f"Write on the topic {metadata}", f"Read on the group {GROUP}"} & lacking

    assert any(what.startswith(f"write speeds are measured of {DATA} by offsets") for what in said), said

    may_all = load(settings_of("consumer", **{"sasl.username": "admin"}))
    said = [finding.what for finding in check_kafka(may_all)]
    assert "write speeds are measured by log_dirs" in said, said
    assert "the brokers allow what the components do with topics and groups" in said, said


def test_who_has_no_right_to_it_cannot_depose_the_controller_nor_fence_a_consumer(
    cluster: Cluster, settings_of: SettingsOf
) -> None:
    cluster.grant(list(rights(load(settings_of("controller")))))
    for user, transactional_id in (
        ("kcga-stranger", f"{GROUP}.controller"),
        ("kcga-consumer", f"{GROUP}.controller"),
        ("kcga-monitor", f"{GROUP}/1/somebody"),
    ):
        client = {**cluster.client(user), "transactional.id": transactional_id}
        assert refusal_of_a_name(client) == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def refusal_of_a_name(client: Mapping[str, str]) -> int:
    """The error that a transactional id comes back with. Nobody keeps the producer, which cannot be closed then."""
    producer = Producer({**client})
    try:
        producer.init_transactions(PATIENCE_S)
    except KafkaException as error:
        code: int = error.args[0].code()
        return code
    return KafkaError.NO_ERROR


WATCHED = "shipping"


def watch(file: Path) -> subprocess.CompletedProcess[str]:
    arguments = ("--settings", str(file), "--group", WATCHED, "--for", "15", "--output", "json")
    return subprocess.run(command("watch", *arguments), capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_a_watch_needs_no_right_that_changes_anything_and_says_which_it_lacks(
    cluster: Cluster, settings_of: SettingsOf
) -> None:
    file, may_all = settings_of("watcher"), cluster.client("admin")
    settings = load(file)
    settings = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"group": WATCHED})})
    wanted = [right for right in rights(settings) if right.component is Component.WATCHER]
    assert {operation for right in wanted for operation in right.operations} == {"Describe", "DescribeConfigs"}
    cluster.revoke_all()
    with RdkafkaGroup(may_all, WATCHED, DATA) as group, producing(may_all, DATA, {0: 5_000, 1: 5_000}):
        group.join()
        group.join()
        wait_for_group(may_all, WATCHED, members=2)
        assert "kcga acls prints" in watch(file).stderr
        cluster.grant([right for right in wanted if right.resource is not Resource.CLUSTER])
        assert "the operation Describe on the resource Cluster" in watch(file).stderr
        cluster.grant(wanted)
        wait_until(lambda: set(group.assigned.values()) == {1})
        before = generation(may_all, WATCHED)
        done = watch(file)
        assert done.returncode == 0, done.stderr
        assert generation(may_all, WATCHED) == before
    moments = [Moment.model_validate_json(line) for line in done.stdout.splitlines()]
    assert moments[-1].consumers == 2
    assert moments[-1].decision is not None, moments[-1].troubles
    assert moments[-1].decision.assignment
