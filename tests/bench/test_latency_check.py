"""The load of `kcga up` in the simulation."""

from pathlib import Path

import pytest

from app.settings import Settings, load
from bench.latency import times
from bench.latency.check import Job, main, simulate
from bench.pipeline import most_together
from sandbox.load_profile import DEMO_PERIOD_S, demo_profile
from sandbox.services import Services
from sandbox.settings_file import CONSUMER_CAPACITY, settings_text

RECORD_BYTES = 700.0


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of the demonstration, without services."""
    file = tmp_path / "settings.toml"
    nowhere = Services("nowhere:9092", "sc://nowhere", prefix="")
    file.write_text(settings_text(nowhere, demo_profile(CONSUMER_CAPACITY), tmp_path))
    return load(file)


def test_the_group_grows_and_shrinks_with_the_load(settings: Settings) -> None:
    told = simulate(Job(settings, times.load(), DEMO_PERIOD_S, 1.0, RECORD_BYTES, seed=1))
    numbers = [sample.consumers for sample in told.consumers]
    assert numbers[0] == numbers[-1] == 1
    assert told.most_consumers == max(numbers) >= 3
    assert 1 < told.mean_consumers(DEMO_PERIOD_S) < told.most_consumers
    profile = demo_profile(CONSUMER_CAPACITY)
    assert told.migrations >= 2 * (len(profile.partitions) - most_together(profile, CONSUMER_CAPACITY))
    assert told.unread_s > 0
    assert told.highest_lag > 0


def test_what_is_drawn_is_the_same_for_the_same_seed_and_for_no_other(settings: Settings) -> None:
    first, again, other = (
        simulate(Job(settings, times.load(), DEMO_PERIOD_S, 1.0, RECORD_BYTES, seed)) for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize("said", [None, "{}", "no JSON"])
def test_what_is_no_run_is_refused_in_a_sentence(
    said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.json"
    if said is not None:
        summary.write_text(said)
    monkeypatch.setattr("sys.argv", ["check", str(tmp_path), str(summary), "--to", str(tmp_path), "--busy"])
    with pytest.raises(SystemExit) as refused:
        main()
    assert refused.value.code == 2
    assert "of one run of `kcga up --keep`" in capsys.readouterr().err
