"""Settings for tests of which nothing is ever connected to."""

from typing import Any

from app.settings import Settings


def settings(**sections: dict[str, Any]) -> Settings:
    """Valid ones, with these values in place of, or beside, their own."""
    values: dict[str, dict[str, Any]] = {
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "group": "billing"},
        "monitor": {"topics": ["orders"]},
        "controller": {"consumer_capacity": 1000},
        "consumer": {"spark_remote": "sc://127.0.0.1:1", "lake_root": "/lake"},
    }
    for name, section in sections.items():
        values[name] = {**values.get(name, {}), **section}
    return Settings.model_validate(values)
