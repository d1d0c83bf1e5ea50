"""Classes of consumers in the settings."""

import re
from typing import Any

import pytest
from pydantic import ValidationError

from domain.consumer_class import ConsumerClass
from tests.app.any_settings import settings as any_settings

LARGE = {"name": "large", "capacity": 5000, "price": 4}


def test_the_controller_goes_by_its_own_settings_and_by_the_consumers_classes() -> None:
    found = any_settings(consumer={"classes": [LARGE, {**LARGE, "name": "small", "capacity": 500, "price": 0.5}]})
    assert found.of_controller.classes == (ConsumerClass("large", 5000, 4), ConsumerClass("small", 500, 0.5))
    assert found.of_controller.consumer_capacity == 1000


def test_a_consumer_goes_by_what_its_class_says() -> None:
    own = {**LARGE, "batch_bytes": 20_000_000}
    consumer = any_settings(consumer={"rate_limit": 9000, "classes": [own]}).consumer
    large = consumer.of_class("large")
    assert (large.batch_bytes, large.rate_limit) == (20_000_000, 9000)
    assert consumer.of_class("ordinary") == consumer.of_class("gone") == consumer


@pytest.mark.parametrize(
    ("controller", "consumer", "complaint"),
    [
        ({"consumer_capacity": "auto"}, {"classes": [LARGE]}, "do not go together"),
        ({}, {"classes": [LARGE, LARGE]}, "it is there twice"),
        ({}, {"classes": [{**LARGE, "name": "ordinary"}]}, "what those of consumer_capacity are called"),
        ({}, {"classes": [{**LARGE, "name": "Large"}]}, "should match pattern"),
        ({}, {"classes": [{**LARGE, "price": 0}]}, "greater than or equal to 0.001"),
        ({}, {"classes": [LARGE], "rate_limit": 4000}, "the capacity of the class 'large'"),
        ({}, {"classes": [{**LARGE, "rate_limit": 4000}], "rate_limit": 9000}, "the capacity of the class 'large'"),
        ({}, {"classes": [{**LARGE, "resources": {"request": {}}}]}, "'requests' or 'limits'"),
    ],
)
def test_what_is_wrong_with_classes_is_said(
    controller: dict[str, Any], consumer: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValidationError, match=re.escape(complaint)):
        any_settings(controller=controller, consumer=consumer)
