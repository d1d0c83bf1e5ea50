"""A short fire: what `make fire` does for as long as one likes, with tables that take everything."""

from pathlib import Path

import pytest

from tests.fire.run import run

SEED = 1

pytestmark = [pytest.mark.fire, pytest.mark.integration, pytest.mark.slow(130), pytest.mark.timeout(3600)]


def test_whatever_breaks_every_record_is_in_the_lake_once(tmp_path: Path) -> None:
    said: list[str] = []
    outcome = run(45.0, SEED, tmp_path / "fire", said.append, sound=True)
    assert not outcome.faults_found, "\n".join([*outcome.faults_found, str(outcome), *said])
