"""Jars for consumers with a JVM of their own: only where they are needed and none are named."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from app import spark_needs
from app.jars import JarSet
from app.settings import Settings
from app.spark_needs import with_jars
from consumer import jvm
from tests.app.any_settings import settings

LOG_STORE = "spark.delta.logStore.s3a.impl"


@pytest.fixture(autouse=True)
def obtained(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    asked: list[object] = []

    def obtain(jars: JarSet) -> tuple[Path, ...]:
        asked.append(jars)
        return (Path(f"/cache/{jars.name}-1.jar"), Path(f"/cache/{jars.name}-2.jar"))

    def log_store(jars: Sequence[Path]) -> Path:
        return Path(f"/cache/log-store-of-{len(jars)}.jar")

    monkeypatch.setattr(spark_needs, "obtain", obtain)
    monkeypatch.setattr(spark_needs, "log_store", log_store)
    return asked


def with_master(lake_root: str = "/lake", **conf: str) -> Settings:
    consumer: dict[str, Any] = {"spark_remote": None, "spark_master": "local[1]", "spark_conf": conf}
    return settings(consumer={**consumer, "lake_root": lake_root})


def test_a_session_of_ones_own_gets_the_jars_beside_what_is_set() -> None:
    given = with_master(**{"spark.driver.memory": "1g"})
    conf = with_jars(given).consumer.spark_conf
    assert conf == {
        "spark.driver.memory": "1g",
        "spark.driver.extraClassPath": "/cache/delta-1.jar:/cache/delta-2.jar",
        **jvm.of_a_consumer(),
    }
    assert given.consumer.spark_conf == {"spark.driver.memory": "1g"}


def test_options_of_its_jvm_that_are_set_stand_as_they_are() -> None:
    given = with_master(**{jvm.OPTIONS: "-Dmine=1"})
    assert with_jars(given).consumer.spark_conf[jvm.OPTIONS] == "-Dmine=1"


def test_on_s3_it_gets_the_connector_and_a_log_store_for_many_writers_too() -> None:
    conf = with_jars(with_master("s3a://bucket/lake")).consumer.spark_conf
    assert [Path(jar).name for jar in conf["spark.jars"].split(",")] == [
        *("s3-1.jar", "s3-2.jar", "log-store-of-4.jar"),
    ]
    assert conf[LOG_STORE] == "kcga.ConditionalPutLogStore"
    given = with_master("s3a://bucket/lake", **{LOG_STORE: "io.delta.storage.S3DynamoDBLogStore"})
    assert with_jars(given).consumer.spark_conf[LOG_STORE] == "io.delta.storage.S3DynamoDBLogStore"


@pytest.mark.parametrize("name", ["spark.jars", "spark.jars.packages"])
def test_jars_that_the_settings_name_are_left_to_them(name: str, obtained: list[object]) -> None:
    given = with_master(**{name: "mine"})
    assert with_jars(given) is given
    assert obtained == []


def test_a_server_has_jars_of_its_own(obtained: list[object]) -> None:
    given = settings()
    assert with_jars(given) is given
    assert obtained == []
