"""Which tests run side by side, and which one after the other.

Tests that start services of their own, or share one that belongs to the process that they run in, are in a group; of a
group one test runs at a time. Groups and all other tests are handed out in the order of their collection.
"""

from collections.abc import Mapping

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

CONTROL_PLANE, OWN_BROKERS, OWN_SPARK, WHOLE_SYSTEM = "control plane", "own brokers", "own Spark", "whole system"

GROUPS: Mapping[str, str] = {
    "tests/sandbox/test_services.py": OWN_BROKERS,
    "tests/cli/test_access_tokens.py": WHOLE_SYSTEM,
    "tests/cli/test_cloud_tokens.py": OWN_BROKERS,
    "tests/cli/test_secure_cluster.py": OWN_BROKERS,
    "tests/cli/test_watch_away.py": OWN_BROKERS,
    "tests/consumer/test_consumer_faults.py": OWN_SPARK,
    "tests/consumer/test_exactly_once.py::test_with_a_jvm_of_its_own": OWN_SPARK,
    "tests/fire/test_fire.py": OWN_BROKERS,
    "tests/kubernetes/": CONTROL_PLANE,
    "tests/monitor/test_monitor_brokers.py": OWN_BROKERS,
    "tests/test_consumer_classes.py": OWN_BROKERS,
    "tests/test_evolving_schemas.py": OWN_BROKERS,
    "tests/test_parked_topics.py": OWN_BROKERS,
    "tests/test_pipeline.py": WHOLE_SYSTEM,
    "tests/test_rollout.py": OWN_BROKERS,
    "tests/test_scale_to_zero.py": OWN_BROKERS,
    "tests/test_status_page_live.py": WHOLE_SYSTEM,
    "tests/test_up_on_secured_brokers.py": WHOLE_SYSTEM,
}
"""By how the tests' names begin."""


def group_of(test: str) -> str | None:
    """The group that a test is in, by its name; none where it may run beside any other."""
    return next((group for beginning, group in GROUPS.items() if test.startswith(beginning)), None)


class Scheduler(LoadScopeScheduling):  # type: ignore[misc]
    """Hands tests out to processes."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or nodeid

    def remove_node(self, node: WorkerController) -> str | None:
        """Hands on what a process that died has not run.

        Units of which it ran every test are left out: whoever were given one would wait for ever to be told more.
        """
        assigned = self.assigned_work[node]
        self.assigned_work[node] = {scope: tests for scope, tests in assigned.items() if not all(tests.values())}
        crashed: str | None = super().remove_node(node)
        return crashed
