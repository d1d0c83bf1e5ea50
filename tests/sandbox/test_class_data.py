"""The archive of Spark's classes: made by a real Java, mapped by the JVM of a server and by one of a consumer's own."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from app.class_data import archive_for
from app.jars import DELTA, obtain
from app.java import Java
from sandbox import class_data
from sandbox.spark import SparkConnectServer, warm_up
from tests.patience import PATIENCE_S

SESSION = """
import sys
from pathlib import Path

import psutil

from app.settings import load
from app.spark_needs import with_jars
from consumer.session import open_session

session = open_session("local[1]", with_jars(load(Path(sys.argv[1]))).consumer.spark_conf)
session.range(3).write.format("delta").save(sys.argv[2])
assert session.read.format("delta").load(sys.argv[2]).count() == 3
(jvm,) = (child for child in psutil.Process().children(recursive=True) if child.name() == "java")
print(*{each.path for each in jvm.memory_maps()}, sep="\\n")
session.stop()
"""


def mapped_by(process: int) -> set[str]:
    """The files that its JVM maps."""
    processes = (psutil.Process(process), *psutil.Process(process).children(recursive=True))
    return {each.path for java in processes if java.name() == "java" for each in java.memory_maps()}


@pytest.mark.integration
@pytest.mark.slow(30)
def test_what_java_archives_is_mapped_by_servers_and_by_consumers_jvms(java: Java, tmp_path: Path) -> None:
    archive = archive_for(obtain(DELTA))
    if not archive.exists():  # `make test` has made it
        assert class_data.make() == archive
    with SparkConnectServer(tmp_path / "spark", jars=obtain(DELTA), java=java) as spark:
        assert str(archive) in mapped_by(spark.child.pid)
        warm_up(spark.remote, tmp_path / "lake")
    file = tmp_path / "settings.toml"
    file.write_text(
        '[kafka]\nbootstrap_servers = "127.0.0.1:1"\n[monitor]\ntopics = ["orders"]\n'
        f'[consumer]\nspark_master = "local[1]"\nlake_root = "{tmp_path}/lake"\n'
    )
    session = [sys.executable, "-c", SESSION, str(file), str(tmp_path / "table")]
    told = subprocess.run(session, capture_output=True, text=True, timeout=PATIENCE_S)
    assert told.returncode == 0, told.stderr
    assert str(archive) in told.stdout.splitlines()
