"""Which JVMs map the archive of Spark's classes, and how they are brought jars."""

import sys
from pathlib import Path

import pytest

from app.class_data import archive_for, jar_settings, jvm_options
from app.java import Java
from app.spark_server import SparkServer

DELTA = (Path("/cache/delta-1.jar"), Path("/cache/delta-2.jar"))
STORE = (Path("/cache/s3.jar"),)
ON_CLASS_PATH = {"spark.driver.extraClassPath": "/cache/delta-1.jar:/cache/delta-2.jar"}


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without an archive."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "an environment"))
    return Path(sys.prefix)


def make(jars: tuple[Path, ...]) -> Path:
    archive = archive_for(jars)
    archive.parent.mkdir(parents=True)
    archive.touch()
    return archive


@pytest.mark.usefixtures("environment")
def test_an_archive_that_is_there_is_mapped_where_the_same_jars_are_on_the_class_path() -> None:
    assert jvm_options(DELTA) == ()
    archive = make(DELTA)
    assert jvm_options(DELTA) == (f"-XX:SharedArchiveFile={archive}",)
    assert jvm_options(DELTA[:1]) == ()


def test_it_lies_in_the_environment(environment: Path) -> None:
    assert environment in archive_for(DELTA).parents


def test_the_class_path_is_the_same_whichever_stores_there_are() -> None:
    assert jar_settings(DELTA, (), "local[*]", {}) == ON_CLASS_PATH
    assert jar_settings(DELTA, STORE, "local[2]", {}) == {**ON_CLASS_PATH, "spark.jars": "/cache/s3.jar"}


@pytest.mark.parametrize("master", ["spark://host:7077", "local-cluster[2,1,1024]"])
def test_the_workers_of_a_cluster_are_sent_all_jars(master: str) -> None:
    assert jar_settings(DELTA, STORE, master, {}) == {
        **ON_CLASS_PATH,
        "spark.jars": "/cache/delta-1.jar,/cache/delta-2.jar,/cache/s3.jar",
    }


def test_ones_own_class_path_comes_after() -> None:
    brought = jar_settings(DELTA, (), "local", {"spark.driver.extraClassPath": "/mine"})
    assert brought == {"spark.driver.extraClassPath": "/cache/delta-1.jar:/cache/delta-2.jar:/mine"}


def test_who_names_jars_brings_all() -> None:
    assert jar_settings(DELTA, STORE, "local[*]", {"spark.jars": "mine.jar"}) == {}


def settings_of(server: SparkServer) -> dict[str, str]:
    file = next(str(word) for word in server.prepare() if "properties" in str(word)).partition("=")[2]
    return dict(line.split("=", 1) for line in Path(file).read_text().splitlines())


@pytest.mark.usefixtures("environment")
def test_a_server_maps_it_and_one_that_makes_it_does_not(tmp_path: Path) -> None:
    archive = make(DELTA)
    java = Java(tmp_path, 17)
    server = SparkServer(folder=tmp_path, port=1, java=java, jars=DELTA, conf={})
    assert f"'-XX:SharedArchiveFile={archive}'" in settings_of(server)["spark.driver.extraJavaOptions"]
    maker = SparkServer(folder=tmp_path, port=1, java=java, jars=DELTA, conf={}, archive=Path("made.jsa"))
    options = settings_of(maker)["spark.driver.extraJavaOptions"]
    assert "-XX:ArchiveClassesAtExit=made.jsa" in options
    assert "SharedArchiveFile" not in options
