"""A table that takes nothing, and one that refuses some records, in a group under load: a real broker, a real Spark,
consumers as processes."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from app.topics import Cluster
from cli.commands.status import status_json
from cli.main import app
from consumer.session import open_session, release
from consumer.table import COLUMNS
from consumer.verify import verify
from domain.group_view.picture import GroupPicture
from domain.partitions import TopicPartition
from sandbox.services import Services
from tests.fire.group import CALM, FASTER, configure, speeds
from tests.fire.witnessed_group import WitnessedGroup, partitions_of
from tests.made_tables import constrain, make
from tests.services import SharedBroker, SharedSpark

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow(120),
    pytest.mark.timeout(2400),
    pytest.mark.usefixtures("nothing_left_running"),
]

PARK_AFTER_S = 5
REFUSED = range(40, 380, 75)
"""Offsets. So few, as to find each takes some ten appends: a busy Spark would never come to an end of more."""
WITH_A_COLUMN = '[consumer.schemas."{topic}"]\namount = "double"\n\n[local]\ngrace_s = 300\n'


@pytest.fixture
def session(spark_server: SharedSpark) -> Iterator[SparkSession]:
    session = open_session(spark_server.remote)
    yield session
    release(session)


class Tables:
    """Three topics: one's table takes nothing, one's refuses records of these offsets, and one's takes all."""

    def __init__(self, name: str, session: SparkSession, refused: range = REFUSED) -> None:
        self.at_fault, self.picky, self.fine = (
            partitions_of(f"{name}.{topic}", count) for topic, count in (("orders", 3), ("clicks", 1), ("views", 3))
        )
        self._session = session
        self._refused = refused

    @property
    def partitions(self) -> list[TopicPartition]:
        return [*self.picky, *self.at_fault, *self.fine]

    @property
    def topic(self) -> str:
        """Whose table takes nothing."""
        return self.at_fault[0].topic

    def create(self, group: WitnessedGroup) -> None:
        make(self._session, group.settings.consumer.table(self.topic), f"{COLUMNS}, amount DATE")
        picky = group.settings.consumer.table(self.picky[0].topic)
        of = self._refused
        constrain(
            self._session, picky, f"offset NOT BETWEEN {of[0]} AND {of[-1]} OR (offset - {of[0]}) % {of.step} <> 0"
        )

    def mend(self, group: WitnessedGroup) -> None:
        """Gives the column its type."""
        make(self._session, group.settings.consumer.table(self.topic), f"{COLUMNS}, amount DOUBLE")

    def require_dead_letters(self, group: WitnessedGroup, spark: SharedSpark) -> None:
        """Those that the constraint refuses, and no other."""
        (picky,), at_fault = self.picky, self.at_fault
        accounts = verify(spark.remote, group.settings.consumer.lake_root, [picky.topic, self.topic])
        read = accounts[picky].distinct_offsets
        refused = range(self._refused.start, min(self._refused.stop, read), self._refused.step)
        assert accounts[picky].dead_letters == len(refused) > 0
        assert [accounts[partition].dead_letters for partition in at_fault] == [0] * len(at_fault)


@pytest.fixture
def tables(unique_name: str, session: SparkSession) -> Tables:
    return Tables(unique_name, session)


@pytest.fixture
def parking_group(
    tmp_path: Path, broker: SharedBroker, spark_server: SharedSpark, unique_name: str, tables: Tables
) -> Iterator[WitnessedGroup]:
    services = Services(broker.bootstrap_servers, spark_server.remote, f"{unique_name}.")
    with group_that_parks(tmp_path, services, tables) as group:
        yield group


@contextmanager
def group_that_parks(folder: Path, services: Services, tables: Tables) -> Iterator[WitnessedGroup]:
    """Under a load that one consumer reads; no component is begun."""
    folder.mkdir(exist_ok=True)
    most = "max_consumers = 12\n"
    other = {
        **FASTER,
        most: f"{FASTER[most]}park_after_s = {PARK_AFTER_S}\n",
        "[local]\n": WITH_A_COLUMN.format(topic=tables.topic),
    }
    settings = configure(folder, services, tables.partitions, other)
    Cluster(services.bootstrap_servers).create(Counter(partition.topic for partition in tables.partitions))
    with ExitStack() as stack:
        yield WitnessedGroup(stack, folder, settings, speeds(tables.partitions, CALM))


def unpark(group: WitnessedGroup, topic: str) -> None:
    """Its table takes what comes; the controller's own next trial may find that out first."""
    asked = CliRunner().invoke(app, ["unpark", topic, "--settings", str(group.settings_file)])
    found_out = f"{topic} is not parked" in str(asked.exception) and group.parked == ()
    assert f"asked to unpark {topic}" in asked.stdout or found_out, asked


def test_a_table_that_takes_nothing_is_parked_alone_and_once_it_is_mended_all_of_it_is_there_once(
    parking_group: WitnessedGroup, tables: Tables, spark_server: SharedSpark
) -> None:
    group = parking_group
    tables.create(group)
    for component in ("controller", "monitor"):
        group.begin(component)
    group.wait("it is parked", lambda: [each.topic for each in group.parked] == [tables.topic])
    assert "amount" in group.parked[0].reason
    processes = group.consumers
    group.reads(tables.picky + tables.fine, "all others are read", lambda: tables.topic not in group.held_topics)
    group.wait("it is tried in vain", lambda: group.parked[0].times >= 3)
    shown = GroupPicture.model_validate_json(status_json(group.settings))
    assert all(each.topic != tables.topic for each in shown.unread)
    group.reads(tables.picky + tables.fine, "all others are read on", lambda: tables.topic not in group.held_topics)
    assert group.consumers == processes, "nobody ended, and none was made"
    assert group.gave_up == []
    tables.mend(group)
    unpark(group, tables.topic)
    group.wait("it is written", lambda: group.parked == ())
    group.require_all_once(spark_server)
    tables.require_dead_letters(group, spark_server)
    assert group.gave_up == []
