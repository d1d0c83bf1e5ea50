import pytest
from pydantic import ValidationError

from monitor.settings import MonitorSettings


def test_the_defaults_are_the_papers() -> None:
    settings = MonitorSettings(topics=("orders",))
    assert (settings.interval_s, settings.window_s) == (1.0, 30.0)


def test_an_invalid_regular_expression_is_one_clear_error() -> None:
    with pytest.raises(ValidationError) as raised:
        MonitorSettings(topics=("orders", "^in-("))
    (fault,) = raised.value.errors()
    assert fault["loc"] == ("topics",)
    assert "'^in-(' begins with ^ and is no valid regular expression: missing )" in fault["msg"]


@pytest.mark.parametrize("name", ["", "a b", "orders*", "ümlaut", ".", "..", "x" * 250])
def test_what_cannot_be_the_name_of_a_topic_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="cannot be the name of a topic"):
        MonitorSettings(topics=(name,))


def test_no_topic_at_all_is_refused() -> None:
    with pytest.raises(ValidationError, match="topics"):
        MonitorSettings(topics=())


def test_a_topic_that_is_named_twice_is_refused() -> None:
    with pytest.raises(ValidationError, match="'orders' is named twice"):
        MonitorSettings(topics=("orders", "clicks", "orders"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("interval_s", 0),
        ("interval_s", float("nan")),
        ("window_s", float("inf")),
        ("hold_s", -1),
        ("discovery_interval_s", 0),
        ("request_timeout_s", 0.1),
    ],
)
def test_a_time_out_of_range_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ValidationError, match=field):
        MonitorSettings.model_validate({"topics": ("orders",), field: value})


def test_a_setting_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="windows_s"):
        MonitorSettings.model_validate({"topics": ("orders",), "windows_s": 30})


def test_a_window_too_short_for_two_measurements_is_refused() -> None:
    with pytest.raises(ValidationError, match="at least two intervals long"):
        MonitorSettings(topics=("orders",), interval_s=20, window_s=30)
