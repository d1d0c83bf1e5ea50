"""The whole system on this machine, as `make up` runs it, killed, interrupted, and until its time is over.

How a group follows its load is seen in tests/test_status_page_live.py.
"""

import json
import re
import signal
from pathlib import Path

import pytest

from app.java import Java
from tests.patience import PATIENCE_S
from tests.running_up import running_up, wait_for
from tests.spark_cluster import SparkCluster

KILLS = 111
"""The seed of a chaos that kills the broker, Spark, a consumer, the controller and the monitor first."""
SERVERS = {"the Kafka broker", "Spark", "the controller", "the monitor"}
CONSUMER_IS_KILLED = re.compile(r"chaos: consumer \d+ is killed")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow(50),
    pytest.mark.timeout(2400),
    pytest.mark.usefixtures("nothing_left_running"),
]


@pytest.mark.slow(110)
def test_whatever_is_killed_is_begun_anew_and_a_sigterm_ends_the_run_in_order(tmp_path: Path) -> None:
    chaos = ("--chaos", "--chaos-every", "5", "--seed", str(KILLS), "--output", "json")
    with running_up(tmp_path, *chaos) as (process, shown, temporary):

        def all_befell() -> bool:
            said = shown.read_text()
            killed = all(f"{server} was ended by SIGKILL" in said for server in SERVERS)
            return killed and CONSUMER_IS_KILLED.search(said) is not None

        wait_for(all_befell, process, shown)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=800)
    assert process.returncode == 0, shown.read_text()
    summary = json.loads(output)
    assert summary["ok"]
    assert summary["produced"] == summary["distinct"] > 0
    assert summary["faults"] > len(SERVERS)
    assert summary["restarts"].keys() >= SERVERS, shown.read_text()
    assert not list(temporary.glob("kcga-*"))


@pytest.mark.slow(70)
def test_a_run_of_so_many_seconds_on_a_cluster_that_is_there_ends_by_itself_and_leaves_nothing_behind(
    tmp_path: Path, java: Java
) -> None:
    with (
        SparkCluster(tmp_path / "cluster", java, workers=2) as cluster,
        running_up(tmp_path, "--for", "5", "--spark-master", cluster.url) as (process, shown, temporary),
    ):
        output, _ = process.communicate(timeout=800)
        assert process.returncode == 0, shown.read_text()
        assert "Registered app kcga" in cluster.master.log.read_text()
    assert output == b""
    assert "every check passed" in shown.read_text()
    assert not list(temporary.glob("kcga-*"))


def test_a_run_that_is_interrupted_while_it_starts_leaves_nothing_behind(tmp_path: Path) -> None:
    with running_up(tmp_path) as (process, shown, temporary):
        wait_for(lambda: bool(list(temporary.glob("kcga-*/spark"))), process, shown)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in shown.read_text()
    assert not list(temporary.glob("kcga-*"))
