"""What the demonstration runs on: Kafka, its own or somebody's, and a Spark of its own."""

import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from app.jars import DELTA, KAFKA, obtain
from app.java import find_java
from app.topics import Cluster
from sandbox.broker import Broker
from sandbox.server import Server
from sandbox.spark import SparkConnectServer, warm_up


@dataclass(frozen=True, slots=True)
class Services:
    bootstrap_servers: str
    spark_remote: str
    prefix: str
    """Of the names of all topics and of the group: none where the brokers are kcga's own."""
    servers: tuple[Server, ...] = ()
    """Those that are kcga's own."""


def start_services(
    stack: ExitStack,
    folder: Path,
    console: Console,
    *,
    bootstrap_servers: str | None = None,
    client_config: Mapping[str, str] | None = None,
    kafka_port: int | None = None,
    spark_cluster: str | None = None,
) -> Services:
    """Starts what is not there yet, at the same time; it ends with the stack.

    Args:
        stack: closed at the end, or here if something cannot be started.
        folder: takes data and logs.
        console: is told what is waited for.
        bootstrap_servers: brokers to use in place of one that is started.
        client_config: how to connect to those, by librdkafka's names.
        kafka_port: of the broker that is started; a free one where there is none.
        spark_cluster: does what Spark has to do, see `SparkConnectServer`; none for this machine alone.

    Raises:
        UsageError: `spark_cluster` names none.
        KcgaError: something cannot be started, or the brokers do not answer.
    """
    prefix = ""
    if bootstrap_servers is not None:
        prefix = f"kcga-up-{uuid.uuid4().hex[:8]}."
        stack.callback(Cluster(bootstrap_servers, client_config).delete, prefix)
    java = find_java()
    spark = SparkConnectServer(folder / "spark", jars=obtain(DELTA), java=java, cluster=spark_cluster)
    stack.callback(spark.stop)

    def start_spark() -> None:
        spark.start()
        warm_up(spark.remote, folder / "spark" / "warm-up")

    servers: list[Server] = [spark]
    starts: list[Callable[[], None]] = [start_spark]
    if bootstrap_servers is None:
        broker = Broker(folder / "kafka", jars=obtain(KAFKA), java=java, port=kafka_port)
        stack.callback(broker.stop)
        servers.append(broker)
        starts.append(broker.start)
    with console.status("Starting Kafka and Spark ..."), ThreadPoolExecutor() as pool:
        try:
            for started in as_completed([pool.submit(start) for start in starts]):
                started.result()
        except BaseException:
            stack.close()  # so that what is still starting ends at once
            raise
    return Services(bootstrap_servers or broker.bootstrap_servers, spark.remote, prefix, tuple(servers))
