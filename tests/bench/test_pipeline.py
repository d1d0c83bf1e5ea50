"""The ordinary group that kcga is held against, on a real broker and a real lake."""

import json
from pathlib import Path

import pytest

from bench.pipeline import run_group
from sandbox.load_profile import DEMO_HOT
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
