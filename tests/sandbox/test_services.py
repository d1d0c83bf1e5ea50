"""The real broker and the real Spark, started the way that `kcga up` and all other tests start them."""

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from app.errors import KcgaError
from app.jars import DELTA, KAFKA, obtain
from app.java import Java
from consumer.session import open_session, release
from sandbox.broker import Broker
from sandbox.ports import LOOPBACK, free_port
from sandbox.server import Server
from sandbox.spark import SparkConnectServer
from tests.conftest import CreateTopic
from tests.patience import PATIENCE_S
from tests.services import SharedBroker, SharedSpark


@pytest.fixture(scope="module")
def kafka_jars() -> Sequence[Path]:
    return obtain(KAFKA)


def is_over(server: Server) -> bool:
    """Whether no process of the server is left, nor any that it started."""
    return not any(process.info["cwd"] == str(server.log.parent) for process in psutil.process_iter(["cwd"]))


def test_what_is_produced_can_be_consumed(broker: SharedBroker, create_topic: CreateTopic, unique_name: str) -> None:
    topic = create_topic(unique_name, partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, b"value", partition=1)
    assert producer.flush(30) == 0

    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": unique_name})
    try:
        consumer.assign([TopicPartition(topic, 1, 0)])
        (record,) = consumer.consume(1, timeout=PATIENCE_S)
    finally:
        consumer.close()
    assert (record.error(), record.value()) == (None, b"value")


def test_a_delta_table_reads_as_it_was_written(spark_server: SharedSpark, lake_root: Path) -> None:
    table = str(lake_root / "table")
    session = open_session(spark_server.remote)
    try:
        rows = session.createDataFrame([(1, "a"), (2, "b")], "id int, word string")
        for _ in range(2):
            rows.write.format("delta").mode("append").save(table)
        assert sorted(session.read.format("delta").load(table).collect()) == [(1, "a"), (1, "a"), (2, "b"), (2, "b")]
    finally:
        release(session)


@pytest.mark.integration
@pytest.mark.slow
def test_a_broker_that_is_started_again_has_the_same_topics_and_leaves_no_process(
    tmp_path: Path, kafka_jars: Sequence[Path], java: Java
) -> None:
    with Broker(tmp_path / "a broker", jars=kafka_jars, java=java) as first:
        admin = AdminClient({"bootstrap.servers": first.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(timeout=PATIENCE_S)
        assert not is_over(first)
    assert is_over(first)

    port = int(first.bootstrap_servers.rpartition(":")[2])
    with Broker(tmp_path / "a broker", jars=kafka_jars, java=java, port=port) as again:
        assert again.bootstrap_servers == first.bootstrap_servers
        assert (
            "kept" in AdminClient({"bootstrap.servers": again.bootstrap_servers}).list_topics(timeout=PATIENCE_S).topics
        )
    assert is_over(again)


@pytest.mark.integration
@pytest.mark.slow
def test_spark_leaves_no_process_and_no_file_outside_its_folder(
    tmp_path: Path, java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("SPARK_HOME", "/nowhere")  # another Spark's settings do no harm
    with SparkConnectServer(tmp_path / "spark", jars=obtain(DELTA), java=java) as spark:
        assert not is_over(spark)
    assert is_over(spark)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_taken_port_is_one_clear_line(tmp_path: Path, java: Java) -> None:
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        other.listen()
        port = other.getsockname()[1]
        for server in (
            Broker(tmp_path / "broker", jars=[], java=java, port=port),
            SparkConnectServer(tmp_path / "spark", jars=[], java=java, port=port),
        ):
            with pytest.raises(KcgaError, match=f"port {port} of {LOOPBACK} is taken") as raised:
                server.start()
            assert server.title in str(raised.value)
            assert "\n" not in str(raised.value)


def test_a_broker_whose_jars_are_no_good_is_noticed_at_once(tmp_path: Path, java: Java) -> None:
    broker = Broker(tmp_path, jars=[tmp_path / "absent.jar"], java=java)
    with pytest.raises(KcgaError, match="the storage of the Kafka broker could not be formatted") as raised:
        broker.start()
    assert "ClassNotFoundException: kafka.tools.StorageTool" in str(raised.value)
    assert is_over(broker)


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path, java: Java) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(KcgaError, match=r"the Kafka broker cannot be started: .*file") as raised:
        Broker(tmp_path / "file" / "broker", jars=[], java=java).start()
    assert "\n" not in str(raised.value)


@pytest.mark.integration
@pytest.mark.parametrize("moment", ["at once", "while its process starts"])
def test_a_server_can_be_stopped_while_another_thread_starts_it(
    tmp_path: Path, kafka_jars: Sequence[Path], java: Java, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broker, "_answers", lambda _: False)  # or it might serve before it is stopped
    broker = Broker(tmp_path, jars=kafka_jars, java=java)
    with ThreadPoolExecutor() as pool:
        starting = pool.submit(broker.start)
        while moment != "at once" and is_over(broker):
            assert not starting.done()
        broker.stop()
    assert isinstance(starting.exception(), KcgaError)
    assert is_over(broker)


@pytest.mark.integration
@pytest.mark.slow
def test_a_port_that_another_program_was_faster_to_take_is_replaced(
    tmp_path: Path, kafka_jars: Sequence[Path], java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        other.listen()
        taken = [other.getsockname()[1]]
        monkeypatch.setattr("sandbox.server.free_port", lambda: taken.pop() if taken else free_port())
        with Broker(tmp_path, jars=kafka_jars, java=java) as broker:
            assert not taken
            assert AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=PATIENCE_S).brokers
