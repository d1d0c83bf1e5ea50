"""Jars of Delta Lake for consumers with a JVM of their own: only where they are needed and none are named."""

from pathlib import Path
from typing import Any

import pytest

from app import own_spark
from app.own_spark import with_jars
from app.settings import Settings
from tests.app.any_settings import settings

JARS = [Path("/cache/delta.jar"), Path("/cache/storage.jar")]


@pytest.fixture(autouse=True)
def obtained(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    asked: list[object] = []

    def obtain(jars: object) -> list[Path]:
        asked.append(jars)
        return JARS

    monkeypatch.setattr(own_spark, "obtain", obtain)
    return asked


def with_master(**conf: str) -> Settings:
    consumer: dict[str, Any] = {"spark_remote": None, "spark_master": "local[1]", "spark_conf": conf}
    return settings(consumer=consumer)


def test_a_session_of_ones_own_gets_the_jars_beside_what_is_set() -> None:
    given = with_master(**{"spark.driver.memory": "1g"})
    conf = with_jars(given).consumer.spark_conf
    assert conf == {"spark.driver.memory": "1g", "spark.jars": "/cache/delta.jar,/cache/storage.jar"}
    assert "spark.jars" not in given.consumer.spark_conf


@pytest.mark.parametrize("name", ["spark.jars", "spark.jars.packages"])
def test_jars_that_the_settings_name_are_left_to_them(name: str, obtained: list[object]) -> None:
    given = with_master(**{name: "mine"})
    assert with_jars(given) is given
    assert obtained == []


def test_a_server_has_jars_of_its_own(obtained: list[object]) -> None:
    given = settings()
    assert with_jars(given) is given
    assert obtained == []
