"""An ordinary group on a real broker and a real lake, and what the page says of the load."""

import json
from pathlib import Path

import pytest

from bench.pipeline import most_together, run_group
from domain.partitions import TopicPartition
from sandbox.load_profile import DEMO_HOT, Course, LoadProfile, demo_profile
from sandbox.services import Services
from tests.services import SharedBroker, SharedSpark


@pytest.mark.integration
@pytest.mark.slow(30)
def test_an_ordinary_group_reads_everything_once(
    broker: SharedBroker, spark_server: SharedSpark, unique_name: str, tmp_path: Path
) -> None:
    services = Services(broker.bootstrap_servers, spark_server.remote, f"{unique_name}.")
    outcome = run_group("ordinary", 2, services, tmp_path / "group", seconds=5, seed=1)
    assert outcome.stopped == 0
    produced = json.loads((tmp_path / "group" / "load.json").read_text())["produced"]
    assert len(outcome.waits_s) == produced > 0
    assert (outcome.waits_s > 0).all()
    assert outcome.beside_hot is not None
    assert len(outcome.beside_hot) == 3
    assert str(DEMO_HOT) not in outcome.beside_hot


def test_of_the_load_of_kcga_up_three_partitions_fit_a_consumer_while_one_is_hot() -> None:
    assert most_together(demo_profile(1000.0), 1000.0) == 3
    assert most_together(demo_profile(1000.0), 750.0) == 2
    assert most_together(demo_profile(1000.0), 4000.0) == 8


def test_what_fits_a_consumer_is_counted_at_the_moment_that_leaves_the_fewest() -> None:
    swap = {0: ((0.0, 5.0), (10.0, 9.0), (20.0, 5.0)), 1: ((0.0, 5.0), (10.0, 1.0), (20.0, 5.0))}
    profile = LoadProfile({TopicPartition("t", number): Course(corners) for number, corners in swap.items()})
    assert most_together(profile, 10.0) == 2
    assert most_together(profile, 9.0) == 1
    assert most_together(profile, 4.0) == 0
