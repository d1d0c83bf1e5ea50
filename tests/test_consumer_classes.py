"""A partition that is faster than an ordinary consumer: a real broker, a real Spark, consumers as processes."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from app.errors import KcgaError
from app.settings import Settings
from app.topics import Cluster
from cli.live.plan import plan_now
from domain.consumer_class import class_names
from sandbox.services import Services
from tests.fire.group import CAPACITY, FASTER, configure
from tests.fire.witnessed_group import WitnessedGroup, partitions_of
from tests.services import SharedBroker, SharedSpark

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow(60),
    pytest.mark.timeout(2400),
    pytest.mark.usefixtures("nothing_left_running"),
]

LARGE = f"""\
[[consumer.classes]]
name = "large"
capacity = {4 * CAPACITY}
price = 3
batch_bytes = 20_000_000

"""
LOCAL = "[local]\n"
WITH_CLASSES = {**FASTER, LOCAL: LARGE + FASTER[LOCAL]}
FAST, SLOW = 1.5, 0.3
"""In consumers."""


@pytest.fixture
def group(
    tmp_path: Path, broker: SharedBroker, spark_server: SharedSpark, unique_name: str
) -> Iterator[WitnessedGroup]:
    """Of three partitions, one of which is too fast for an ordinary consumer; no component is begun."""
    partitions = partitions_of(f"{unique_name}.orders", 3)
    services = Services(broker.bootstrap_servers, spark_server.remote, f"{unique_name}.")
    settings = configure(tmp_path, services, partitions, WITH_CLASSES)
    Cluster(broker.bootstrap_servers).create(Counter(partition.topic for partition in partitions))
    speeds = dict.fromkeys(partitions, SLOW * CAPACITY) | {partitions[0]: FAST * CAPACITY}
    with ExitStack() as stack:
        yield WitnessedGroup(stack, tmp_path, settings, speeds)


def of_class(group: WitnessedGroup) -> dict[int, str]:
    """The class of each consumer that reads."""
    folder = group.settings.local.folder
    files = {number: folder / f"consumer-{number}.json" for number in group.readers}
    return {number: json.loads(file.read_text())["class"] for number, file in files.items() if file.exists()}


def can_plan(settings: Settings) -> bool:
    """Whether speeds have come since the controller began: before, it decides nothing."""
    try:
        plan_now(settings)
    except KcgaError:
        return False
    return True


def test_it_has_a_large_consumer_for_as_long_as_it_is_so_fast_whatever_becomes_of_the_controller(
    group: WitnessedGroup, spark_server: SharedSpark
) -> None:
    fast = group.partitions[0]
    for component in ("controller", "monitor"):
        group.begin(component)
    group.wait("a large one reads", lambda: "large" in of_class(group).values())
    group.converges("all is read")
    large = next(number for number, name in of_class(group).items() if name == "large")
    assert fast in group.witness.held()[large]
    command_line = psutil.Process(group.consumers[large]).cmdline()
    assert command_line[command_line.index("--class") + 1] == "large"
    before = group.consumers
    group.children["controller"].stop()
    group.begin("controller")
    group.converges("the next controller")
    assert before.items() <= group.consumers.items()
    group.wait("the next controller has heard speeds", lambda: can_plan(group.settings))
    planned = plan_now(group.settings)
    assert class_names(planned.classes)[large] == "large"
    assert planned.saturated == ()
    group.load.step(dict.fromkeys(group.partitions, SLOW * CAPACITY / 2))
    group.wait("ordinary ones do", lambda: set(of_class(group).values()) == {"ordinary"})
    group.require_all_once(spark_server)
    assert group.gave_up == []
