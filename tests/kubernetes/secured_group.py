"""A group whose components are users of their own with the least rights, of brokers with a private authority: what it
is installed with, by Helm or by `kcga deploy`.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from app.settings import load
from cli.commands.deploy import SETTINGS_KEY
from cli.rights import rights
from tests.patience import PATIENCE_S
from tests.secure_cluster import DATA, PASSWORD, PREFIX, Cluster

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "kcga"
CERTIFICATES = Path("/etc/kcga-certificates")
"""Where pods have them."""
OF_KAFKA = ("controller", "monitor", "consumer")
"""The components that talk to it."""


def helm(*arguments: str | Path, namespace: str, values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """Helm, with these values where it takes some."""
    taking = ["--values=-"] if CHART in arguments else []
    command = ["helm", *map(str, arguments), f"--namespace={namespace}", *taking]
    given = json.dumps(values)
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def settings_file(values: Mapping[str, Any], file: Path) -> Path:
    """The settings of the chart's values, as a file."""
    done = helm("template", "kcga", CHART, namespace="any", values=values)
    assert done.returncode == 0, done.stderr
    (data,) = (each["data"] for each in yaml.safe_load_all(done.stdout) if each["kind"] == "ConfigMap")
    file.write_text(data[SETTINGS_KEY])
    return file


def values_of(cluster: Cluster, consumer: Mapping[str, Any]) -> dict[str, Any]:
    """The chart's values of a small group that reads `DATA`, without what is secret.

    Args:
        cluster: the brokers.
        consumer: the settings of consumers: Spark, and the lake.
    """
    access = cluster.security.client_settings("nobody", "nothing")
    public = {name: value for name, value in access.items() if not name.startswith(("sasl.username", "sasl.password"))}
    kafka = {
        "bootstrap_servers": cluster.broker.bootstrap_servers,
        "group": "billing",
        "client": {**public, "ssl.ca.location": str(CERTIFICATES / "ca.crt")},
    }
    settings = {
        "kafka": kafka,
        "monitor": {"topics": [DATA], "window_s": 5},
        "controller": {"interval_s": 5},
        "consumer": {"wait_time_secs": 1, **consumer},
    }
    small = {component: {"resources": {"requests": {"cpu": "50m"}}} for component in OF_KAFKA}
    return {"image": "kcga:local", "settings": settings, **small}


def grant_rights(cluster: Cluster, file: Path) -> None:
    """To each component those that `kcga acls` names, and no more."""
    cluster.grant(list(rights(load(file))))


def secrets_of(cluster: Cluster) -> dict[str, dict[str, str]]:
    """The Secrets of the group, by their names: of each component its user, and for all the authority."""
    users = {
        f"kcga-{component}": {
            "KCGA_KAFKA__CLIENT": json.dumps({"sasl.username": f"{PREFIX}{component}", "sasl.password": PASSWORD})
        }
        for component in OF_KAFKA
    }
    return {**users, "kcga-certificates": {"ca.crt": cluster.security.ca.read_text()}}
