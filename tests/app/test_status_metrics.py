"""The figures for Prometheus: what they are called, and what they say."""

import re

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from app.status.board import Board
from domain.messages import ControllerClaim, Foresight, Standing
from tests.app.status_messages import SETTINGS, Clock, registry_of, told_board
from tests.sandbox.watch_messages import BEGAN

BASE_UNITS = ("_seconds", "_bytes", "_ratio", "_bytes_per_second")
OTHER_UNITS = re.compile(r"_(ms|millis|minutes|hours|kb|mb|percent|kbytes)(_|$)")


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, {"group": "billing", **labels})


def test_the_figures_are_those_of_the_group() -> None:
    registry = registry_of(told_board())
    assert value(registry, "kcga_partitions") == 6
    assert value(registry, "kcga_partitions_unknown") == 1
    assert value(registry, "kcga_partitions_oversized") == 1
    assert value(registry, "kcga_partitions_moving") == 1
    assert value(registry, "kcga_consumers", state="ready") == 2
    assert value(registry, "kcga_consumers", state="awaited") == 1
    assert value(registry, "kcga_consumer_load_bytes_per_second", consumer="2") == 130
    assert value(registry, "kcga_decisions_total", outcome="carried_out") == 2
    assert value(registry, "kcga_migrations_total") == 1
    assert value(registry, "kcga_leader") == 1
    assert value(registry, "kcga_state", state="manage") == 1
    assert value(registry, "kcga_partition_write_speed_bytes_per_second", topic="orders", partition="1") == 40


def test_how_often_forecasts_held_is_told_where_the_controller_looks_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.status.board.PICTURE_S", 0.0)
    board = told_board()
    assert value(registry_of(board), "kcga_forecast_horizon_seconds") is None
    for due, ratio in ((0, None), (50, 0.92)):
        foresight = Foresight(horizon_s=25.0, quantile=0.9, partitions=4, due=due, held=round(0.92 * due))
        standing = Standing(began_at=BEGAN, counted_on=(1, 2), foresight=foresight)
        board.heard(ControllerClaim(epoch=7, incarnation="a", sequence=due + 1, sent_at=BEGAN, standing=standing))
        assert value(registry_of(board), "kcga_forecast_held_ratio") == ratio
    assert value(registry_of(board), "kcga_forecast_horizon_seconds") == 25
    assert value(registry_of(board), "kcga_forecast_partitions") == 4
    assert board.picture().foresight == (
        "looks 25 s ahead, 4 partitions are to grow: 46 of 50 forecasts held lately, 92%; 90% are to"
    )


def test_lag_has_the_name_and_labels_that_others_use() -> None:
    registry = registry_of(told_board())
    labels = {"consumergroup": "billing", "topic": "orders"}
    assert registry.get_sample_value("kafka_consumergroup_lag", {**labels, "partition": "0"}) == 12
    assert registry.get_sample_value("kafka_consumergroup_lag_sum", labels) == 15
    assert value(registry, "kcga_lag_bytes") == 150
    assert value(registry, "kcga_lag_seconds") == 4


def test_series_of_partitions_can_be_left_out() -> None:
    text = generate_latest(registry_of(told_board(), by_partition=False)).decode()
    assert "partition=" not in text
    assert "kafka_consumergroup_lag_sum" in text


def test_names_follow_the_conventions() -> None:
    families = list(text_string_to_metric_families(generate_latest(registry_of(told_board())).decode()))
    assert len({family.name for family in families}) == len(families)
    for family in families:
        assert family.name.startswith(("kcga_", "kafka_consumergroup_lag"))
        assert family.documentation
        assert not OTHER_UNITS.search(family.name)
        totals = [sample for sample in family.samples if sample.name.endswith("_total")]
        assert bool(totals) == (family.type == "counter")
        if "speed" in family.name or "capacity" in family.name:
            assert family.name.endswith(BASE_UNITS)


def test_what_is_not_known_yet_has_no_figure() -> None:
    registry = registry_of(Board("billing", SETTINGS, Clock()))
    assert value(registry, "kcga_write_speed_bytes_per_second") is None
    assert value(registry, "kcga_partitions") == 0
    assert value(registry, "kcga_leader") == 0
