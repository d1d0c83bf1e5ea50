"""`kcga spark`: a real server, which whoever has the token writes by."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from app.child import Child
from app.components import command
from consumer.session import LakeError, open_session, release
from consumer.settings import TOKEN
from sandbox.ports import LOOPBACK, free_port
from tests.patience import PATIENCE_S

SECRET = "geheim-geheim-geheim"  # noqa: S105

pytestmark = [pytest.mark.integration, pytest.mark.slow(40)]


@contextmanager
def running(tmp_path: Path) -> Iterator[tuple[Child, str]]:
    """The component, once it serves, and where."""
    port = free_port()
    file = tmp_path / "settings.toml"
    file.write_text(
        '[kafka]\nbootstrap_servers = "127.0.0.1:1"\n[monitor]\ntopics = ["orders"]\n'
        f'[consumer]\nspark_remote = "sc://{LOOPBACK}:{port}"\nlake_root = "{tmp_path}/lake"\n'
        f"[spark]\nport = {port}\nheap_mb = 1024\n"
    )
    environment = os.environ | {"KCGA_SPARK__CONF": json.dumps({TOKEN: SECRET}), "TMPDIR": str(tmp_path)}
    remote = f"sc://{LOOPBACK}:{port}"

    def serves() -> bool:
        try:
            release(open_session(remote, {TOKEN: SECRET}))
        except LakeError:
            return False
        return True

    with Child(
        "kcga spark", command("spark", "--settings", str(file)), tmp_path / "log", environment=environment
    ) as spark:
        spark.wait_ready(serves, PATIENCE_S)
        yield spark, remote


def test_who_has_the_token_is_served_and_a_sigterm_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as (spark, remote):
        with pytest.raises(LakeError, match="token"):
            open_session(remote)
        with pytest.raises(LakeError, match="token"):
            open_session(remote, {TOKEN: "another"})
        processes = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout  # noqa: S607
        assert "SparkConnectServer" in processes
        assert SECRET not in processes
        os.kill(spark.pid, signal.SIGTERM)
        assert spark.wait(PATIENCE_S) == 0, spark.tail(20)
    assert not list(tmp_path.glob("kcga-spark-*"))


def test_a_server_that_dies_ends_it_with_a_reason_so_that_it_is_begun_anew(tmp_path: Path) -> None:
    with running(tmp_path) as (spark, _):
        (jvm,) = (child for child in psutil.Process(spark.pid).children() if "java" in child.name())
        jvm.kill()
        assert spark.wait(PATIENCE_S) == 1
        assert "kcga: Spark was ended by SIGKILL" in spark.log.read_text()
