"""Everything is replaced under load, as an upgrade does it: a real broker, a real Spark, consumers as processes."""

import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path

import pytest
import structlog

from app.topics import Cluster
from domain.messages import RolloutStanding
from sandbox.services import Services
from tests.archives import unpack
from tests.fire.group import BUSY, WAIT, configure, speeds
from tests.fire.witnessed_group import WitnessedGroup, partitions_of
from tests.services import SharedBroker, SharedSpark
from tests.tools import NOT_TESTED

log = structlog.get_logger()

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow(100),
    pytest.mark.timeout(2400),
    pytest.mark.usefixtures("nothing_left_running"),
]

ROOT = Path(__file__).parents[1]
RELEASE_BEFORE = "## 0.1.0 ("
"""What the commit of that release brought into the changelog."""
PARTITIONS = 6


@pytest.fixture
def group(
    tmp_path: Path, broker: SharedBroker, spark_server: SharedSpark, unique_name: str
) -> Iterator[WitnessedGroup]:
    """Under a load that two consumers read; no component is begun."""
    partitions = partitions_of(f"{unique_name}.orders", PARTITIONS)
    services = Services(broker.bootstrap_servers, spark_server.remote, f"{unique_name}.")
    settings = configure(tmp_path, services, partitions)
    Cluster(broker.bootstrap_servers).create(Counter(partition.topic for partition in partitions))
    with ExitStack() as stack:
        yield WitnessedGroup(stack, tmp_path, settings, speeds(partitions, BUSY))


@pytest.fixture(scope="module")
def release_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its packages, as this repository's history has them."""
    found = git("log", "--format=%H", "--reverse", f"-S{RELEASE_BEFORE}", "--", "CHANGELOG.md").decode().split()
    if not found or not (ROOT / ".git").exists():
        pytest.skip(f"{NOT_TESTED}: the release before is not in the history of this clone")
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=BytesIO(git("archive", found[0]))) as archive:
        unpack(archive, folder, archive.getmembers())
    return folder


def git(*arguments: str) -> bytes:
    """What it prints; nothing where there is no repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False).stdout  # noqa: S607


def begin(group: WitnessedGroup) -> None:
    for component in ("controller", "monitor"):
        group.begin(component)
    group.converges("the group begins")
    # What was written before anybody read may have asked for a third for a while.
    group.wait("two read, and there is no other", lambda: len(group.readers) == 2 == len(group.consumers))


def change(group: WitnessedGroup, before: str, after: str) -> None:
    """In the settings file, while everything runs."""
    text = group.settings_file.read_text()
    assert before in text
    group.settings_file.write_text(text.replace(before, after))


def rollout_of(group: WitnessedGroup) -> RolloutStanding:
    claim = group.witness.claim
    return (claim.rollout if claim is not None else None) or RolloutStanding()


def replaced(group: WitnessedGroup, before: dict[int, int]) -> bool:
    """Whether all who read are other processes, and nobody is left to be replaced."""
    now = group.consumers
    return bool(now) and not set(now.values()) & set(before.values()) and not rollout_of(group).outdated


def tell_longest_gap(group: WitnessedGroup) -> None:
    """How long a partition had no reader between two, and how long cycles took."""
    group.witness.listen()
    log.warning("from one reader to the next", longest_s=round(max(group.witness.gaps_s, default=0.0), 2))


def test_all_are_replaced_by_such_as_begin_with_the_new_settings_and_back(
    group: WitnessedGroup, spark_server: SharedSpark
) -> None:
    begin(group)
    first = group.consumers
    change(group, WAIT, "wait_time_secs = 7\n")
    group.wait("all are replaced", lambda: replaced(group, first))
    group.converges("they read")
    second = group.consumers
    change(group, "wait_time_secs = 7\n", WAIT)
    group.wait("all are replaced again", lambda: replaced(group, second))
    group.require_all_once(spark_server)
    assert group.gave_up == []
    tell_longest_gap(group)


def test_settings_with_which_none_can_begin_stop_it_at_the_first_and_the_group_reads_on(
    group: WitnessedGroup, spark_server: SharedSpark
) -> None:
    begin(group)
    before = group.consumers
    change(group, WAIT, 'wait_time_secs = "soon"\n')
    group.wait("it has stopped", lambda: rollout_of(group).failed is not None)
    group.converges("it reads on")
    group.wait("those of before are there, and no other", lambda: group.consumers == before)
    assert set(rollout_of(group).outdated) == before.keys()
    change(group, 'wait_time_secs = "soon"\n', WAIT)
    group.wait("there is nothing left to do", lambda: not rollout_of(group).outdated)
    group.wait("those of before are there, and no other", lambda: group.consumers == before)
    group.require_all_once(spark_server)


def test_the_release_before_is_upgraded_and_comes_back(
    group: WitnessedGroup, spark_server: SharedSpark, release_before: Path
) -> None:
    """Its controller and its consumers; then this version's, which replace them; then its controller over these."""
    of_before = {"PYTHONPATH": str(release_before), "PYTHONSAFEPATH": "1"}
    change(group, "forecast = true\n", "")  # unknown to it
    for component in ("controller", "monitor"):
        group.begin(component, of_before)
    group.wait("two read", lambda: len(group.readers) == 2)
    group.converges("the release before")
    first = group.consumers
    assert not any("revision" in file.read_text() for file in group.settings.local.folder.glob("consumer-*.json"))
    for component in ("controller", "monitor"):
        group.children[component].stop()
        group.begin(component)
    group.wait("all are replaced", lambda: replaced(group, first))
    group.converges("this version")
    second = group.consumers
    assert all("revision" in file.read_text() for file in group.settings.local.folder.glob("consumer-*.json"))
    for component in ("controller", "monitor"):
        group.children[component].stop()
        group.begin(component, of_before)
    group.load.step(speeds(group.partitions, 2 * BUSY))
    group.wait("three read", lambda: len(group.readers) >= 3)
    group.converges("the release before again")
    assert second.items() <= group.consumers.items()
    group.require_all_once(spark_server)
    tell_longest_gap(group)
