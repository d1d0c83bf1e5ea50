"""How a component begins."""

import threading
from pathlib import Path

import pytest

from app import components
from app.errors import KcgaError
from tests.app.any_settings import settings


def test_a_controller_loads_its_solver_while_it_asks_the_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loaded = threading.Event()

    def away(*_: object) -> None:
        assert loaded.wait(60)
        raise KcgaError("no broker answers")

    monkeypatch.setattr("solver.load", loaded.set)
    monkeypatch.setattr("app.components.Cluster", away)
    with pytest.raises(KcgaError, match="no broker answers"):
        components.control(settings(), tmp_path / "settings.toml", threading.Event(), audience=None)  # type: ignore[arg-type]
