import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from domain.partitions import OffsetRange, TopicPartition
from domain.speeds import MeasuredBy, Source
from monitor.cluster_logs import BrokerAwayError
from monitor.measure.samples import Sample
from monitor.settings import MonitorSettings
from monitor.survey import Survey, Surveyor
from tests.monitor.measured_logs import FakeLogs, topic
from tests.monitor.test_samples import batch
from tests.patience import PATIENCE_S

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
SETTINGS = MonitorSettings(topics=("a",), interval_s=10)
"""A long interval is patient: these tests never wait it out, since every question is answered."""

MakeSurveyor = Callable[[FakeLogs], Surveyor]


@pytest.fixture
def surveyor_of() -> Iterator[MakeSurveyor]:
    made: list[Surveyor] = []

    def make(cluster: FakeLogs) -> Surveyor:
        made.append(Surveyor(cluster, SETTINGS, group="readers"))
        return made[-1]

    yield make
    for surveyor in made:
        surveyor.close()


def sizes(survey: Survey) -> dict[TopicPartition, int | None]:
    return {partition: measurement.stored_bytes for partition, measurement in survey.measurements}


def test_the_first_round_describes_and_the_second_measures(surveyor_of: MakeSurveyor) -> None:
    cluster = FakeLogs({"a": topic("a")}, stored={A0: 100}, ranges={A0: OffsetRange(0, 7)}, compacted_topics={"a"})
    surveyor = surveyor_of(cluster)
    first = surveyor.survey()
    assert first.interest is not None
    assert first.measurements == ()
    ((partition, measurement),) = surveyor.survey().measurements
    assert (partition, measurement.leader, measurement.stored_bytes) == (A0, 1, 100)
    assert (measurement.offsets, measurement.compacted) == (OffsetRange(0, 7), True)


def test_a_broker_that_is_away_costs_only_its_own_partitions(surveyor_of: MakeSurveyor) -> None:
    cluster = FakeLogs({"a": topic("a", {0: 1, 1: 2})}, stored={A0: 100, A1: 200}, brokers_away={2})
    surveyor = surveyor_of(cluster)
    surveyor.survey()
    survey = surveyor.survey()
    assert sizes(survey) == {A0: 100}
    assert survey.away == {2: "broker 2 does not answer"}
    cluster.brokers_away.clear()
    survey = surveyor.survey()
    assert sizes(survey) == {A0: 100, A1: 200}
    assert survey.away == {}


def test_a_broker_that_leads_nothing_any_more_is_not_away(surveyor_of: MakeSurveyor) -> None:
    cluster = FakeLogs({"a": topic("a", {0: 1, 1: 2})}, stored={A0: 100, A1: 200}, brokers_away={2})
    surveyor = surveyor_of(cluster)
    surveyor.survey()
    surveyor.survey()
    cluster.described["a"] = topic("a", {0: 1, 1: None})
    surveyor.survey()
    survey = surveyor.survey()
    assert survey.away == {}
    assert sizes(survey) == {A0: 100}


def test_the_sizes_of_a_topic_that_was_recreated_meanwhile_count_for_neither(surveyor_of: MakeSurveyor) -> None:
    cluster = FakeLogs({"a": topic("a", topic_id="old")}, stored={A0: 100})
    surveyor = surveyor_of(cluster)
    surveyor.survey()
    cluster.described["a"] = topic("a", topic_id="new")
    assert surveyor.survey().measurements == ()
    ((_, measurement),) = surveyor.survey().measurements
    assert measurement.topic_id == "new"


def test_the_sizes_of_a_topic_that_was_deleted_meanwhile_do_not_count(surveyor_of: MakeSurveyor) -> None:
    cluster = FakeLogs({"a": topic("a")}, stored={A0: 100})
    surveyor = surveyor_of(cluster)
    surveyor.survey()
    del cluster.described["a"]
    survey = surveyor.survey()
    assert survey.measurements == ()
    assert survey.interest is not None
    assert survey.interest.missing == {"a"}


def test_a_cluster_that_is_away_at_the_start_leaves_the_interest_unknown(surveyor_of: MakeSurveyor) -> None:
    cluster = FakeLogs({"a": topic("a")}, is_away=True)
    surveyor = surveyor_of(cluster)
    survey = surveyor.survey()
    assert survey.interest is None
    assert survey.cluster_away == "nobody answers"
    cluster.is_away = False
    survey = surveyor.survey()
    assert survey.interest is not None
    assert survey.cluster_away is None


def test_a_cluster_that_goes_away_later_keeps_the_interest_and_confirms_nothing(surveyor_of: MakeSurveyor) -> None:
    cluster = FakeLogs({"a": topic("a")}, stored={A0: 100})
    surveyor = surveyor_of(cluster)
    surveyor.survey()
    cluster.is_away = True
    survey = surveyor.survey()
    assert survey.interest is not None
    assert survey.measurements == ()
    assert survey.cluster_away == "nobody answers"


@dataclass
class HangingLogs(FakeLogs):
    """Does not answer for the sizes of the broker `hangs`, or for offsets at all, before it is let go."""

    hangs: int | None = None
    offsets_hang: bool = False
    let_go: threading.Event = field(default_factory=threading.Event)

    def sizes(self, broker: int, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int]:
        if broker == self.hangs:
            self.let_go.wait()
        return super().sizes(broker, partitions)

    def offsets(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, OffsetRange]:
        if self.offsets_hang:
            self.let_go.wait()
        return super().offsets(partitions)


@contextmanager
def impatient_surveyor(cluster: HangingLogs) -> Iterator[Surveyor]:
    surveyor = Surveyor(cluster, MonitorSettings(topics=("a",), interval_s=0.1), group="readers")
    try:
        yield surveyor
    finally:
        cluster.let_go.set()
        surveyor.close()


def test_a_broker_that_hangs_delays_no_other_and_its_late_answer_counts() -> None:
    cluster = HangingLogs({"a": topic("a", {0: 1, 1: 2})}, stored={A0: 100, A1: 200}, hangs=2)
    with impatient_surveyor(cluster) as surveyor:
        seen: dict[TopicPartition, int | None] = {}
        while A0 not in seen:
            seen |= sizes(surveyor.survey())
        assert seen == {A0: 100}
        cluster.let_go.set()
        while A1 not in seen:
            seen |= sizes(surveyor.survey())


def test_offsets_that_take_a_round_longer_than_the_sizes_count_with_them() -> None:
    """Brokers that always take longer for them would leave all lags unknown."""
    cluster = HangingLogs({"a": topic("a")}, stored={A0: 100}, ranges={A0: OffsetRange(0, 7)}, offsets_hang=True)
    with impatient_surveyor(cluster) as surveyor:
        while not surveyor._questions:
            assert not surveyor.survey().measurements
        cluster.let_go.set()
        surveyor._patience_s = PATIENCE_S
        while not (measurements := surveyor.survey().measurements):
            pass
        assert (measurements[0][1].stored_bytes, measurements[0][1].offsets) == (100, OffsetRange(0, 7))


def test_sizes_do_not_wait_longer_for_offsets_that_hang_and_late_offsets_count_for_no_other_sizes() -> None:
    cluster = HangingLogs({"a": topic("a")}, stored={A0: 100}, ranges={A0: OffsetRange(0, 7)}, offsets_hang=True)
    with impatient_surveyor(cluster) as surveyor:
        while not (measurements := surveyor.survey().measurements):
            pass
        assert measurements[0][1].offsets is None
        cluster.ranges[A0] = OffsetRange(0, 9)
        cluster.let_go.set()
        while not (measurements := surveyor.survey().measurements) or measurements[0][1].offsets is None:
            pass
        assert measurements[0][1].offsets == OffsetRange(0, 9)


@dataclass
class SizesAlone(FakeLogs):
    def offsets(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, OffsetRange]:
        raise BrokerAwayError(f"no leader for {min(partitions)}")


def test_a_broker_that_refuses_offsets_is_measured_by_its_sizes(surveyor_of: MakeSurveyor) -> None:
    surveyor = surveyor_of(SizesAlone({"a": topic("a")}, stored={A0: 100}))
    surveyor.survey()
    survey = surveyor.survey()
    ((_, measurement),) = survey.measurements
    assert (measurement.stored_bytes, measurement.offsets) == (100, None)
    assert survey.away == {}


def test_each_round_tells_the_source_of_each_topic_and_which_may_not_be_read(surveyor_of: MakeSurveyor) -> None:
    cluster = FakeLogs({"a": topic("a")}, stored={A0: 100}, ranges={A0: OffsetRange(0, 7)})
    surveyor = surveyor_of(cluster)
    assert surveyor.survey().sources == ()
    assert surveyor.survey().sources == (MeasuredBy(Source.LOG_DIRS, ("a",)),)
    cluster.sizes_denied, cluster.unreadable = True, {"a"}
    survey = surveyor.survey()
    assert survey.sources == (MeasuredBy(Source.OFFSETS, ("a",), "it shows no log directories"),)
    assert survey.unreadable == {"a"}
    ((_, measurement),) = survey.measurements
    assert (measurement.stored_bytes, measurement.offsets, measurement.sample) == (None, OffsetRange(0, 7), None)
    cluster.kept[A0], cluster.unreadable = batch(0, 7, 70), set()
    ((_, measurement),) = surveyor.survey().measurements
    assert measurement.sample == Sample(70, 7)


def test_the_groups_commits_come_with_each_round_and_a_coordinator_that_is_away_costs_nothing_else(
    surveyor_of: MakeSurveyor,
) -> None:
    cluster = FakeLogs({"a": topic("a", {0: 1, 1: 1})}, stored={A0: 100}, commits={A0: 7, A1: None})
    surveyor = surveyor_of(cluster)
    assert surveyor.survey().committed is None
    assert surveyor.survey().committed == {A0: 7, A1: None}
    cluster.coordinator_away = True
    survey = surveyor.survey()
    assert (survey.committed, survey.commits_unknown) == (None, "the coordinator of readers does not answer")
    assert sizes(survey) == {A0: 100}
    cluster.coordinator_away = False
    survey = surveyor.survey()
    assert (survey.committed, survey.commits_unknown) == ({A0: 7, A1: None}, None)


def test_a_coordinator_that_hangs_is_not_asked_again_and_its_late_answer_counts() -> None:
    @dataclass
    class HangingCoordinator(HangingLogs):
        asked: int = 0

        def committed(self, group: str, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int | None]:
            self.asked += 1
            self.let_go.wait()
            return super().committed(group, partitions)

    cluster = HangingCoordinator({"a": topic("a")}, stored={A0: 100}, commits={A0: 7})
    with impatient_surveyor(cluster) as surveyor:
        while not surveyor.survey().measurements:
            pass
        assert surveyor.survey().committed is None
        cluster.let_go.set()
        while (committed := surveyor.survey().committed) is None:
            pass
        assert (committed, cluster.asked) == ({A0: 7}, 1)
