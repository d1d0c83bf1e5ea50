"""A whole group on a real API server: real processes as pods, a real broker, a real Spark, and all that can fail."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.messages import RolloutStanding
from tests.conftest import CreateTopic
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.group import (
    HIGH,
    LARGE,
    LOW,
    NAMESPACE,
    PARTITIONS,
    GroupOnKubernetes,
    a_group,
    require_a_large_one_comes_and_goes,
    write_template_of_large,
)
from tests.kubernetes.process_kubelet import ProcessKubelet
from tests.services import SharedBroker, SharedSpark

LEASE_S = 30
"""A controller that stands still for a while loses no Lease."""


@pytest.fixture
def group(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    kubelet: ProcessKubelet,
    kubectl: None,  # noqa: ARG001
    broker: SharedBroker,
    spark_server: SharedSpark,
    create_topic: CreateTopic,
    unique_name: str,
    tmp_path: Path,
    lake_root: Path,
) -> Iterator[GroupOnKubernetes]:
    topic = create_topic(unique_name, partitions=PARTITIONS)
    consumer = {"spark_remote": spark_server.remote, "lake_root": str(lake_root), "wait_time_secs": 10}
    impatient = {"ready_timeout_s": 120}
    more = getattr(request, "param", "")
    write_template_of_large(tmp_path)
    with a_group(
        control_plane,
        kubelet,
        broker.bootstrap_servers,
        topic,
        consumer,
        tmp_path,
        impatient,
        more,
        {"lease_s": LEASE_S},
    ) as group:
        yield group


@pytest.mark.slow(140)
@pytest.mark.timeout(2400)
def test_the_group_converges_whatever_fails_and_the_lake_has_every_record_once(
    group: GroupOnKubernetes, spark_server: SharedSpark, lake_root: Path
) -> None:
    with group.load(LOW):
        group.wait_until(lambda: group.all_are_read_by(1, 1))
    with group.load(HIGH):
        group.wait_until(lambda: group.all_are_read_by(2, 4))

        print(f"the standby leads {group.kill_controller():.1f} s after the controller was killed")  # noqa: T201
        group.wait_until(lambda: group.all_are_read_by(2, 4))

        killed = group.a_running_consumer()
        group.kill(killed)
        group.wait_until(lambda: killed not in group.consumer_pods() and group.all_are_read_by(2, 4))

        deleted = sorted(group.consumer_deployments())[0]
        uid = group.apps.read_namespaced_deployment(deleted, NAMESPACE).metadata.uid
        group.apps.delete_namespaced_deployment(deleted, NAMESPACE, propagation_policy="Background")
        group.wait_until(lambda: uid not in uids(group) and group.all_are_read_by(2, 4))

    epoch = group.epoch
    with group.load(LOW):
        with group.control_plane.hanging():
            time.sleep(1.5 * LEASE_S)
        group.wait_until(lambda: group.all_are_read_by(1, 1) and len(group.consumer_pods()) == 1)
    assert group.epoch == epoch, "a controller that could not renew its lease goes on"

    group.require_all_once(spark_server.remote, lake_root)


@pytest.mark.slow(230)
@pytest.mark.timeout(2400)
def test_another_image_comes_to_every_consumer_and_one_that_cannot_be_had_to_none(
    group: GroupOnKubernetes, spark_server: SharedSpark, lake_root: Path
) -> None:
    """With every change the controllers and the monitor roll as well."""

    def all_have(image: str) -> bool:
        return set(group.consumer_images().values()) == {image} and group.all_are_read_by(2, 4)

    with group.load(HIGH):
        group.wait_until(lambda: all_have("kcga:local"))

        group.deploy("kcga:next")
        group.wait_until(lambda: all_have("kcga:next"))

        before = group.consumer_images()
        group.deploy("kcga:local", of_consumers="missing")
        standing = group.wait_until(lambda: (seen := rollout(group)).failed is not None and seen)
        assert standing
        assert set(standing.outdated) == {int(name.rpartition("-")[2]) for name in before}
        group.wait_until(lambda: group.consumer_images() == before and group.all_are_read_by(2, 4))

        group.deploy("kcga:next")
        group.wait_until(lambda: bool((seen := rollout(group)).revision) and not seen.outdated)
        group.wait_until(lambda: group.all_are_read_by(2, 4))
        assert group.consumer_images() == before
    group.require_all_once(spark_server.remote, lake_root)


@pytest.mark.slow(90)
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("group", [LARGE], indirect=True, ids=["with a class"])
def test_a_partition_too_fast_for_an_ordinary_consumer_has_a_large_one_of_a_template_of_its_own(
    group: GroupOnKubernetes, spark_server: SharedSpark, lake_root: Path
) -> None:
    require_a_large_one_comes_and_goes(group)
    group.require_all_once(spark_server.remote, lake_root)


def rollout(group: GroupOnKubernetes) -> RolloutStanding:
    return group.view.rollout or RolloutStanding()


def uids(group: GroupOnKubernetes) -> set[str]:
    return {each.metadata.uid for each in group.apps.list_namespaced_deployment(NAMESPACE).items}
