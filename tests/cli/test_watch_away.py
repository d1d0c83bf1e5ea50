"""A watch outlasts the brokers: while they are away it says so, and goes on when they are back."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.jars import KAFKA, obtain
from app.java import Java
from app.topics import Cluster
from sandbox.broker import Broker
from tests.cli.ordinary_group import RdkafkaGroup, producing, until, wait_for_group
from tests.cli.test_watch_group import settings_of, settled_on, watching
from tests.kafka_python import LEAVES_SOCKETS

pytestmark = [pytest.mark.integration, pytest.mark.slow(40)]

TOPIC, GROUP = "orders", "billing"


@pytest.fixture
def sockets_end_here() -> Iterator[None]:
    """kafka-python leaks the sockets of attempts that were refused: they are this test's, and no other's."""
    yield
    gc.collect()


@LEAVES_SOCKETS
@pytest.mark.usefixtures("sockets_end_here")
def test_a_broker_that_is_away_is_named_and_waited_for(java: Java, tmp_path: Path) -> None:
    with Broker(tmp_path / "broker", jars=obtain(KAFKA), java=java) as broker:
        servers = broker.bootstrap_servers
        Cluster(servers).create({TOPIC: 2})
        client = {"bootstrap.servers": servers}
        with RdkafkaGroup(client, GROUP, TOPIC) as group, producing(client, TOPIC, {0: 1_000, 1: 1_000}):
            group.join()
            wait_for_group(client, GROUP)
            with watching(settings_of(servers, GROUP, 100_000)) as looks:
                before = until(looks, settled_on(1)).moment
                broker.child.stop()
                away = until(looks, lambda look: look.moment.state is None).moment
                assert away.decision is None
                assert any("is not told" in trouble for trouble in away.troubles)
                assert [each.member for each in away.members] == [each.member for each in before.members]
                broker.begin_again()
                until(looks, lambda look: settled_on(1)(look) and not look.moment.troubles)
