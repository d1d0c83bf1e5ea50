"""A group whose topics did not carry it yet goes on there: a real broker."""

import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from app.components import command, require_no_topics_before
from app.errors import UsageError
from app.settings import Settings, load
from app.topics import Cluster
from controller.kafka import KafkaLink
from domain.messages import ConsumerReport, ConsumerState
from domain.topics import CONTROLLER_PARTITION, TopicNames
from tests.patience import PATIENCE_S
from tests.services import SharedBroker

pytestmark = pytest.mark.integration

SETTINGS = """
[kafka]
bootstrap_servers = "{servers}"
group = "{group}"
[topics]
{topics}
[monitor]
topics = ["^orders"]
[consumer]
spark_remote = "sc://127.0.0.1:1"
lake_root = "/lake"
[http]
controller_port = 0
"""
SettingsOf = Callable[..., Settings]


@pytest.fixture
def settings_of(broker: SharedBroker, unique_name: str, tmp_path: Path) -> SettingsOf:
    def settings_of(group: str = unique_name, topics: str = "") -> Settings:
        file = tmp_path / "settings.toml"
        file.write_text(SETTINGS.format(servers=broker.bootstrap_servers, group=group, topics=topics))
        return load(file)

    return settings_of


@pytest.fixture
def cluster(broker: SharedBroker, settings_of: SettingsOf) -> Cluster:
    """The group has been claimed on the topics that it had before."""
    cluster = Cluster(broker.bootstrap_servers)
    for names in (TopicNames(), settings_of().topics.names):
        cluster.ensure_internal_topics(names, 2)
    claim(settings_of(), TopicNames())
    return cluster


def claim(settings: Settings, names: TopicNames) -> None:
    with closing(KafkaLink(settings.kafka.bootstrap_servers, settings.kafka.group, {}, names)) as link:
        link.begin()


def test_it_is_told_so_where_only_its_consumers_have_spoken_for_long(
    settings_of: SettingsOf, broker: SharedBroker, unique_name: str
) -> None:
    """The claims of the last controller are deleted after an hour, and consumers read on without one."""
    cluster, settings = Cluster(broker.bootstrap_servers), settings_of()
    for names in (TopicNames(), settings.topics.names):
        cluster.ensure_internal_topics(names, 2)
    require_no_topics_before(settings, cluster)
    report = ConsumerReport(
        group=unique_name, consumer=1, incarnation="a", sequence=1, sent_at=1.0, state=ConsumerState.READY
    )
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(TopicNames().metadata, report.encode(), partition=CONTROLLER_PARTITION)
    assert producer.flush(PATIENCE_S) == 0
    with pytest.raises(UsageError, match=f"'{unique_name}' was on consumer.metadata"):
        require_no_topics_before(settings, cluster)


def test_it_is_told_what_to_set(settings_of: SettingsOf, cluster: Cluster, tmp_path: Path) -> None:
    settings = settings_of()
    with pytest.raises(UsageError, match=f"'{settings.kafka.group}' was on consumer.metadata, and no controller"):
        require_no_topics_before(settings, cluster)
    asked = command("controller", "--settings", str(tmp_path / "settings.toml"))
    ended = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
    assert "metadata = 'consumer.metadata', decisions = 'controller.decisions'" in ended.stderr.replace("\n", " ")


def test_it_begins_where_it_is_told_to_or_was_or_never_was(settings_of: SettingsOf, cluster: Cluster) -> None:
    other = settings_of("another")
    cluster.ensure_internal_topics(other.topics.names, 2)
    require_no_topics_before(other, cluster)
    require_no_topics_before(settings_of("kcga"), cluster)
    settings = settings_of()
    require_no_topics_before(settings_of(topics="metadata = 'consumer.metadata'"), cluster)
    require_no_topics_before(settings_of(topics=f"metadata = '{settings.topics.metadata}'"), cluster)
    claim(settings, settings.topics.names)
    require_no_topics_before(settings, cluster)
