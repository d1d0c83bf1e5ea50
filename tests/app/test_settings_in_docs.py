"""The settings that pages for other people's clusters show: both Kafka clients take them."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from app.settings import checked
from monitor.connection import kafka_python_arguments

PAGES = Path(__file__).parents[2] / "docs"
SECRETS: dict[str | None, dict[str, str]] = {"OAUTHBEARER": {"sasl.oauthbearer.client.secret": "secret"}, None: {}}
PASSWORD = {"sasl.username": "kcga", "sasl.password": "secret"}
NEEDED: dict[str, dict[str, Any]] = {
    "kafka": {"bootstrap_servers": "kafka-1:9092"},
    "monitor": {"topics": ["orders"]},
    "consumer": {"spark_remote": "sc://spark:15002", "lake_root": "/lake"},
}


def shown() -> list[Any]:
    return [
        pytest.param(block, id=f"{page.stem}-{number}")
        for name in ("security", "confluent-cloud", "msk", "google-kafka", "strimzi")
        for page in [PAGES / f"{name}.md"]
        for number, block in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL))
    ]


@pytest.mark.parametrize("block", shown())
def test_what_is_shown_is_taken_by_the_settings_and_by_both_clients(block: str) -> None:
    given = tomllib.loads(block)
    settings = checked({name: needed | given.get(name, {}) for name, needed in NEEDED.items()}, "in docs")
    mechanism = settings.kafka.client.get("sasl.mechanism")
    if settings.kafka.auth is not None:
        return  # nothing in client can be refused
    client = {**SECRETS.get(mechanism, PASSWORD), **settings.kafka.client}
    # Files are of the reader's own machine.
    client = {name: value for name, value in client.items() if not name.endswith(".location")}
    kafka_python_arguments(settings.kafka.bootstrap_servers, client)
    AdminClient({**client, "bootstrap.servers": "127.0.0.1:1", "log_level": 0})
