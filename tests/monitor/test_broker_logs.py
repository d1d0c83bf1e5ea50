from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from domain.partitions import OffsetRange, TopicPartition
from domain.speeds import Source
from monitor.broker_logs import BrokerLogs, Log
from monitor.cluster_logs import BrokerAwayError, SizesDeniedError
from monitor.measure.samples import Sample
from monitor.prometheus import Prometheus
from monitor.settings import MonitorSettings
from tests.monitor.measured_logs import FakeLogs
from tests.monitor.test_samples import batch

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)
BOTH = frozenset({A0, B0})
HELD = OffsetRange(0, 10)


@dataclass
class Setup:
    cluster: FakeLogs = field(
        default_factory=lambda: FakeLogs(
            stored={A0: 100, B0: 200},
            ranges={A0: HELD, B0: HELD},
            kept={A0: batch(0, 10, 100), B0: batch(0, 10, 200)},
        )
    )
    now: float = 0.0

    def logs(self, source: str) -> BrokerLogs:
        settings = MonitorSettings.model_validate({"topics": ["a", "b"], "source": source, "discovery_interval_s": 5.0})
        return BrokerLogs(self.cluster, 1, settings, Prometheus(settings), lambda: self.now)


BY_SIZES = {A0: Log(100), B0: Log(200)}
BY_OFFSETS = {A0: Log(None, HELD, Sample(100, 10)), B0: Log(None, HELD, Sample(200, 10))}


@pytest.mark.parametrize("source", ["auto", "log_dirs"])
def test_sizes_are_the_source_where_they_are_told_and_nothing_is_read(source: str) -> None:
    setup = Setup()
    told = setup.logs(source).ask(BOTH)
    assert (told.source, told.logs) == (Source.LOG_DIRS, BY_SIZES)
    assert setup.cluster.fetched_from == []


def test_offsets_are_the_source_where_they_are_asked_for() -> None:
    told = Setup().logs("offsets").ask(BOTH)
    assert (told.source, told.because, told.logs) == (Source.OFFSETS, "monitor.source says so", BY_OFFSETS)


def test_auto_takes_offsets_where_sizes_are_refused_and_says_why() -> None:
    setup = Setup()
    setup.cluster.sizes_denied = True
    told = setup.logs("auto").ask(BOTH)
    assert (told.source, told.because, told.logs) == (Source.OFFSETS, "it shows no log directories", BY_OFFSETS)


def test_auto_asks_again_for_sizes_once_in_a_while_and_takes_them_once_they_are_told() -> None:
    setup = Setup()
    setup.cluster.sizes_denied = True
    logs = setup.logs("auto")
    logs.ask(BOTH)
    setup.cluster.sizes_denied = False
    setup.now = 4.9
    assert logs.ask(BOTH).source is Source.OFFSETS
    setup.now = 5.0
    told = logs.ask(BOTH)
    assert (told.source, told.because, logs.refusal) == (Source.LOG_DIRS, "", "")
    setup.cluster.sizes_denied = True
    assert logs.ask(BOTH).source is Source.OFFSETS


def away(setup: Setup) -> None:
    setup.cluster.brokers_away = {1}


def denied(setup: Setup) -> None:
    setup.cluster.sizes_denied = True


@pytest.mark.parametrize(
    ("source", "harm", "error"),
    [("auto", away, BrokerAwayError), ("log_dirs", denied, SizesDeniedError), ("offsets", away, BrokerAwayError)],
)
def test_a_broker_that_does_not_answer_or_may_not_be_asked_otherwise_is_an_error(
    source: str, harm: Callable[[Setup], None], error: type[Exception]
) -> None:
    setup = Setup()
    harm(setup)
    with pytest.raises(error):
        setup.logs(source).ask(BOTH)


def test_a_topic_that_may_not_be_read_costs_only_itself() -> None:
    setup = Setup()
    setup.cluster.unreadable = {"b"}
    told = setup.logs("offsets").ask(BOTH)
    assert told.logs == {A0: BY_OFFSETS[A0], B0: Log(None, HELD, None)}
    assert told.unreadable == {"b"}


def test_a_topic_that_may_be_read_no_more_has_no_sample_from_then_on() -> None:
    setup = Setup()
    logs = setup.logs("offsets")
    logs.ask(BOTH)
    setup.cluster.unreadable = {"b"}
    assert logs.ask(BOTH).logs[B0].sample == Sample(200, 10), "it has not grown"
    setup.cluster.ranges[B0] = grown = OffsetRange(0, 11)
    told = logs.ask(BOTH)
    assert (told.logs[B0], told.unreadable) == (Log(None, grown, None), frozenset({"b"}))
    setup.cluster.unreadable = set()
    told = logs.ask(BOTH)
    assert (told.logs[B0], told.unreadable) == (Log(None, grown, Sample(200, 10)), frozenset[str]())
