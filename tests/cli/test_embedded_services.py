"""The real broker and the real Spark, started the way that `kcga up` and all other tests start them."""

from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql.connect.session import SparkSession

from cli.embedded.broker import Broker
from cli.embedded.spark import SparkConnectServer
from tests.conftest import CreateTopic


def test_what_is_produced_can_be_consumed(broker: Broker, create_topic: CreateTopic, unique_name: str) -> None:
    topic = create_topic(unique_name, partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, b"value", partition=1)
    assert producer.flush(30) == 0

    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": unique_name})
    try:
        consumer.assign([TopicPartition(topic, 1, 0)])
        (record,) = consumer.consume(1, timeout=30)
    finally:
        consumer.close()
    assert (record.error(), record.value()) == (None, b"value")


def test_a_delta_table_reads_as_it_was_written(spark_server: SparkConnectServer, lake_root: Path) -> None:
    table = str(lake_root / "table")
    session = SparkSession.builder.remote(spark_server.remote).create()
    try:
        for _ in range(2):
            session.createDataFrame([(1, "a"), (2, "b")], "id int, word string").write.format("delta").mode(
                "append"
            ).save(table)
        assert sorted(session.read.format("delta").load(table).collect()) == [(1, "a"), (1, "a"), (2, "b"), (2, "b")]
    finally:
        session.stop()
