"""A group that falls idle gives its consumers up, and reads again: a real broker, a real Spark, real processes."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.decisions import find_decision
from app.topics import Cluster
from domain.group_view.explanation import explain
from sandbox.services import Services
from tests.fire.group import CALM, FASTER, configure, speeds
from tests.fire.witnessed_group import WitnessedGroup, partitions_of
from tests.recorded_decisions import TIME_LIMIT_S, not_foretold
from tests.services import SharedBroker, SharedSpark

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow(60),
    pytest.mark.timeout(2400),
    pytest.mark.usefixtures("nothing_left_running"),
]

TO_ZERO = FASTER | {
    "[controller]\n": f"[controller]\nmin_consumers = 0\nidle_time_s = 4\ntime_limit_s = {TIME_LIMIT_S}\n"
}


def test_nobody_reads_an_idle_group_until_something_is_written(
    tmp_path: Path, broker: SharedBroker, spark_server: SharedSpark, unique_name: str
) -> None:
    partitions = partitions_of(f"{unique_name}.orders", 3)
    services = Services(broker.bootstrap_servers, spark_server.remote, f"{unique_name}.")
    settings = configure(tmp_path, services, partitions, TO_ZERO)
    Cluster(broker.bootstrap_servers).create(Counter(partition.topic for partition in partitions))
    with ExitStack() as stack:
        group = WitnessedGroup(stack, tmp_path, settings, speeds(partitions, CALM))
        for component in ("controller", "monitor"):
            group.begin(component)
        group.converges("the group begins")
        for _ in range(2):
            group.load.step(dict.fromkeys(partitions, 0.0))
            group.reads(partitions, "nobody is left", lambda: not group.consumers)
            said = list(explain(find_decision(settings, None, None)))
            assert said[0].endswith("scaled down from 1 to 0 consumers.")
            assert "  - nothing was written, and nothing was left to read, for 4 s" in said
            group.load.step(speeds(partitions[1:2], 0.01))
            group.converges("the first records are read, and everything has a reader")
        group.require_all_once(spark_server)
        for child in group.children.values():
            child.stop()
        assert not_foretold(settings) == []
