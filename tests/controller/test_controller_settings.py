"""What the controller may be told."""

import pytest
from pydantic import ValidationError

from controller.settings import ControllerSettings, parse_partition
from domain.messages import Throughput
from domain.partitions import TopicPartition


@pytest.mark.parametrize(("interval_s", "window_s", "weight"), [(60, 300, 0.4), (60, 0, 2.0), (600, 300, 0.2)])
def test_lambda_is_the_price_of_moving_a_full_partition_over_that_of_a_consumer_while_the_plan_stands(
    interval_s: float, window_s: float, weight: float
) -> None:
    # A consumer costs 0.06 an hour, 0.001 a minute; unread for 4 s at 0.0005 a second costs 0.002: two for a minute.
    settings = ControllerSettings(
        consumer_hour_price=0.06,
        unread_partition_second_price=0.0005,
        handover_s=4,
        interval_s=interval_s,
        scale_down_window_s=window_s,
    )
    assert settings.weight == pytest.approx(weight)


def test_without_a_weight_or_prices_lambda_is_a_half() -> None:
    assert ControllerSettings().weight == 0.5
    assert ControllerSettings(migration_weight=0.0).weight == 0.0


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"migration_weight": 1, "consumer_hour_price": 1, "unread_partition_second_price": 1}, "either"),
        ({"migration_weight": 1, "handover_s": 1}, "either"),
        ({"consumer_hour_price": 1}, "unread_partition_second_price is not"),
        ({"unread_partition_second_price": 1}, "consumer_hour_price is not"),
        ({"handover_s": 1}, "consumer_hour_price and unread_partition_second_price is not"),
        ({"consumer_hour_price": 0, "unread_partition_second_price": 1}, "greater than or equal to 0.000000001"),
        ({"min_consumers": 3, "max_consumers": 2}, r"min_consumers \(3\) is above max_consumers \(2\)"),
        (
            {"max_consumers": 2, "schedules": [{"cron": "0 8 * * *", "duration_s": 60, "min_consumers": 3}]},
            r"the schedule '0 8 \* \* \*' has min_consumers \(3\) above max_consumers \(2\)",
        ),
        ({"pinned": {"orders": 1}}, "'orders' names no partition"),
        ({"pinned": {"orders-1": 0}}, "greater than or equal to 1"),
        ({"pinned": {"orders-1": 101}}, "at most max_consumers, 100"),
        ({"pinned": {"orders-1": 1, "orders/1": 2}}, "are the same partition"),
        ({"engine": "magic"}, "'magic'.*one of auto"),
        ({"scale_down_window_s": -1}, "scale_down_window_s"),
        ({"migration_budget": -1}, "migration_budget"),
    ],
)
def test_settings_that_disagree_or_are_out_of_range_are_named(settings: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        ControllerSettings.model_validate(settings)


def test_faults_between_fields_are_named_together_with_faults_of_fields() -> None:
    with pytest.raises(ValidationError) as error:
        ControllerSettings.model_validate(
            {
                "interval_s": 0,
                "consumer_hour_price": 1,
                "packing_capacity": 9e9,
                "pinned": {"x": 1},
                "min_consumers": 200,
            }
        )
    assert [fault["loc"] for fault in error.value.errors()] == [
        ("packing_capacity",),
        ("handover_s",),
        ("interval_s",),
        ("min_consumers",),
        ("pinned",),
    ]


@pytest.mark.parametrize("name", ["orders-3", "orders/3"])
def test_a_partition_has_two_spellings(name: str) -> None:
    assert parse_partition(name) == TopicPartition("orders", 3)


def test_a_topic_may_have_hyphens() -> None:
    assert parse_partition("a-1-2") == TopicPartition("a-1", 2)


def test_a_capacity_that_is_learned_begins_at_the_floor() -> None:
    told = [Throughput(bytes_per_s=8e6, variation=0.0, cycles=9, record_bytes=1000.0)]
    settings = ControllerSettings.model_validate({"consumer_capacity": "auto", "capacity_floor": 1e6})
    assert settings.consumer_capacity == 1e6
    assert settings.having_learned([]) == settings
    learned = settings.having_learned(told)
    assert (learned.consumer_capacity, learned.packing) == (8e6, 6e6)
    assert learned.having_learned([]).consumer_capacity == 8e6, "who told is gone, what was told stays"


def test_a_capacity_that_is_set_stays() -> None:
    told = [Throughput(bytes_per_s=8e6, variation=0.0, cycles=9, record_bytes=1000.0)]
    assert ControllerSettings().having_learned(told) == ControllerSettings()


def test_the_floor_is_within_the_ceiling() -> None:
    with pytest.raises(ValidationError, match=r"capacity_ceiling \(1e\+06\) is below capacity_floor"):
        ControllerSettings(capacity_floor=2e6, capacity_ceiling=1e6)
