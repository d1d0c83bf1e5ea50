"""`kcga up` as a user of a secured cluster who may not describe it: no sizes are told, and all checks pass."""

import json
from pathlib import Path

import pytest

from app.java import Java
from cli.rights import Component, Resource, Right
from tests.patience import PATIENCE_S
from tests.running_up import running_up
from tests.secure_cluster import PREFIX, secure_cluster

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow(70),
    pytest.mark.timeout(2400),
    pytest.mark.usefixtures("nothing_left_running"),
]

USER = Component.OPERATOR
TOPICS = ("Alter", "AlterConfigs", "Create", "Delete", "DescribeConfigs", "Read", "Write")
ALLOWED = [
    Right(USER, Resource.TOPIC, "kcga-up-", TOPICS, prefixed=True),
    Right(USER, Resource.GROUP, "kcga-", ("Read",), prefixed=True),
    Right(USER, Resource.TRANSACTIONAL_ID, "kcga-up-", ("Write",), prefixed=True),
]


def test_a_run_that_is_told_no_sizes_passes_all_its_checks(
    tmp_path: Path, java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with secure_cluster(tmp_path, java) as cluster:
        cluster.grant(ALLOWED)
        servers, client = cluster.broker.bootstrap_servers, cluster.client(f"{PREFIX}{USER}")
        del client["bootstrap.servers"]
        monkeypatch.setenv("KCGA_KAFKA__CLIENT", json.dumps(client))
        options = ("--for", "20", "--bootstrap-servers", servers, "--keep", str(run), "--output", "json")
        with running_up(tmp_path, *options) as (process, shown, _):
            output, _ = process.communicate(timeout=800)
        assert process.returncode == 0, shown.read_text()
        topics = cluster.admin.list_topics(timeout=PATIENCE_S).topics
    summary = json.loads(output)
    assert summary["ok"]
    assert summary["produced"] == summary["distinct"] > 0
    assert "a topic is measured by end offsets and samples of its records" in (run / "monitor.log").read_text()
    assert not [name for name in topics if name.startswith("kcga-up-")], "they are removed again"
    assert client["sasl.password"] not in (run / "settings.toml").read_text()
