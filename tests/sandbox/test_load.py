"""The load generator against the real broker."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaTopicPartition

from app.errors import KcgaError
from brokers.reading import bounds
from domain.partitions import TopicPartition
from sandbox.load import run_load
from sandbox.load_profile import Course, LoadProfile, demo_profile
from sandbox.ports import LOOPBACK, free_port
from tests.conftest import CreateTopic
from tests.patience import PATIENCE_S
from tests.services import SharedBroker

SIZE_OF_A_RECORD = 1_000
CountRecords = Callable[[TopicPartition], int]


@pytest.fixture
def count_records(broker: SharedBroker) -> CountRecords:
    """How many records a partition holds, as the broker knows it."""

    def count(partition: TopicPartition) -> int:
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "count"})
        try:
            low, high = bounds(consumer, KafkaTopicPartition(partition.topic, partition.partition), PATIENCE_S)
            return high - low
        finally:
            consumer.close()

    return count


def test_the_report_counts_what_the_brokers_hold_and_the_bytes_are_those_of_the_profile(
    broker: SharedBroker,
    create_topic: CreateTopic,
    unique_name: str,
    count_records: CountRecords,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sandbox.load._LONGEST_STEP_S", 0.09)  # the last one begins at 1.4 s or later, by its own clock
    topic = create_topic(unique_name, partitions=2)
    slow, fast = TopicPartition(topic, 0), TopicPartition(topic, 1)
    profile = LoadProfile({slow: Course(((0, 20_000), (60, 20_000))), fast: Course(((0, 0), (2, 400_000)))})

    report = run_load(broker.bootstrap_servers, profile, stop=threading.Event(), duration_s=1.5)

    assert report.undelivered == 0
    assert report.problem is None
    assert report.delivered == {slow: count_records(slow), fast: count_records(fast)}
    assert report.as_json()["produced"] == count_records(slow) + count_records(fast)
    for partition, count in report.delivered.items():
        # The last step may begin just before the end, and ends with a whole record.
        least = profile.courses[partition].bytes_until(1.4)
        assert count * SIZE_OF_A_RECORD >= least
        assert count * SIZE_OF_A_RECORD / 2 <= profile.courses[partition].bytes_until(2.5) + SIZE_OF_A_RECORD


def test_a_partition_that_gets_nothing_is_reported_with_0(
    broker: SharedBroker, create_topic: CreateTopic, unique_name: str
) -> None:
    partition = TopicPartition(create_topic(unique_name), 0)
    stopped = threading.Event()
    stopped.set()
    report = run_load(broker.bootstrap_servers, LoadProfile({partition: Course(((0, 1e6), (1, 1e6)))}), stop=stopped)
    assert report.delivered == {partition: 0}


@pytest.mark.parametrize(("partitions", "said"), [(0, "there is no such topic"), (2, "it has 2")])
def test_topics_that_lack_partitions_are_refused(
    broker: SharedBroker, create_topic: CreateTopic, unique_name: str, partitions: int, said: str
) -> None:
    if partitions:
        create_topic(unique_name, partitions=partitions)
    profile = LoadProfile({TopicPartition(unique_name, 2): Course(((0, 1), (1, 1)))})
    with pytest.raises(KcgaError, match=f"needs 3 partitions of the topic {unique_name}; .*{said}"):
        run_load(broker.bootstrap_servers, profile, stop=threading.Event())


def never() -> None:
    raise AssertionError("the load has not begun")


def test_brokers_that_do_not_answer_are_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sandbox.load._CONNECT_WITHIN_S", 0.5)
    nobody = f"{LOOPBACK}:{free_port()}"
    with pytest.raises(KcgaError, match=f"no Kafka broker answers at {nobody}") as raised:
        run_load(nobody, demo_profile(1.0), stop=threading.Event(), begins=never)
    assert "\n" not in str(raised.value)
    assert "rdkafka" not in capfd.readouterr().err


def test_a_generator_that_is_asked_to_end_still_reports_what_was_delivered(
    broker: SharedBroker, create_topic: CreateTopic, unique_name: str, count_records: CountRecords, tmp_path: Path
) -> None:
    prefix = f"{unique_name}."
    profile = demo_profile(1.0, prefix)
    for topic, partitions in profile.topics.items():
        create_topic(topic, partitions)
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f"""
[kafka]
bootstrap_servers = "{broker.bootstrap_servers}"
[monitor]
topics = ["{prefix}orders"]
[controller]
consumer_capacity = 400000
[consumer]
spark_remote = "sc://localhost:1"
lake_root = "{tmp_path}"
"""
    )
    command = [sys.executable, "-m", "sandbox.load", "--settings", str(settings), "--prefix", prefix]
    command += ["--began", str(tmp_path / "began")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as generator:
        while not all(map(count_records, profile.partitions)):
            assert generator.poll() is None
        generator.terminate()
        output, errors = generator.communicate(timeout=PATIENCE_S)

    assert (generator.returncode, errors) == (0, "")
    assert (tmp_path / "began").exists()
    report = json.loads(output)
    assert report["undelivered"] == 0
    counted = {
        topic: {str(number): count_records(TopicPartition(topic, number)) for number in range(partitions)}
        for topic, partitions in profile.topics.items()
    }
    assert report["delivered"] == counted
    assert report["produced"] == sum(sum(counts.values()) for counts in counted.values())
