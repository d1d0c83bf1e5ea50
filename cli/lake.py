"""`kcga lake`: what the tables hold of each partition, and the care of their files."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from app.errors import KcgaError, UsageError
from app.own_spark import with_jars
from app.settings import Settings, load
from app.topics import Cluster
from consumer.maintenance import Compaction
from consumer.maintenance import optimize as optimize_table
from consumer.maintenance import vacuum as vacuum_table
from consumer.session import LakeError
from consumer.settings import ConsumerSettings
from consumer.verify import PartitionAccount
from consumer.verify import verify as account_for
from domain.partitions import TopicPartition
from monitor.measure.interest import Topic, topics_of_interest

Result = TypeVar("Result")


def verify(file: Path, topics: Sequence[str], console: Console, *, as_json: bool, allow_gaps: bool) -> None:
    """Prints the account of each partition that has rows.

    Args:
        file: the settings.
        topics: which; none for those that the settings name.
        console: where the table is printed; JSON goes to standard output.
        as_json: one object a line in place of a table.
        allow_gaps: offsets without a row are no fault: transactions and compaction leave such.

    Raises:
        KcgaError: rows are doubled, or missing; or the lake cannot be counted.
    """
    settings = with_jars(load(file))
    consumer = settings.consumer
    accounts = _asking_the_lake(
        lambda: account_for(
            consumer.spark, consumer.lake_root, _topics(settings, topics), consumer.tables, consumer.spark_conf
        )
    )
    if as_json:
        for partition, account in sorted(accounts.items()):
            print(json.dumps(_fields(partition, account)))  # noqa: T201
    else:
        console.print(_table(accounts))
    doubled = sum(account.doubled for account in accounts.values())
    missing = sum(account.missing for account in accounts.values())
    if doubled or (missing and not allow_gaps):
        raise KcgaError(
            f"{doubled} rows are doubled, {missing} offsets between rows have none; transactions and compaction leave "
            "such offsets: --allow-gaps passes over them"
        )


def optimize(file: Path, topics: Sequence[str], console: Console) -> None:
    """Compacts the table of each topic, and says what became of its files.

    Raises:
        KcgaError: the lake does not do it.
    """
    for topic, table, consumer in _tables(with_jars(load(file)), topics):
        compaction = _asking_the_lake(partial(optimize_table, consumer.spark, table, consumer.spark_conf))
        console.print(f"{topic}: {_compacted(compaction)}", highlight=False)


def vacuum(file: Path, topics: Sequence[str], console: Console, retain_h: int) -> None:
    """Deletes the files that the table of each topic has not needed for so many hours.

    Raises:
        KcgaError: the lake does not do it.
    """
    for topic, table, consumer in _tables(with_jars(load(file)), topics):
        there = _asking_the_lake(partial(vacuum_table, consumer.spark, table, retain_h, consumer.spark_conf))
        console.print(f"{topic}: {'done' if there else 'has no table'}", highlight=False)


def _tables(settings: Settings, topics: Sequence[str]) -> Iterator[tuple[str, str, ConsumerSettings]]:
    """Each topic with the location of its table, and the settings that say where Spark is."""
    for topic in _topics(settings, topics):
        yield topic, settings.consumer.table(topic), settings.consumer


def _topics(settings: Settings, named: Sequence[str]) -> list[str]:
    """Those named, or else those on the cluster that the settings name, in ascending order.

    Raises:
        UsageError: there are none.
    """
    if named:
        return sorted(set(named))
    cluster = Cluster(settings.kafka.bootstrap_servers, settings.kafka.client)
    known = {
        name: Topic(name, topic_id="", leaders=dict.fromkeys(range(count)))
        for name, count in cluster.partitions().items()
    }
    own = {settings.topics.write_speed, settings.topics.metadata, settings.topics.decisions}
    found = sorted(topics_of_interest(settings.monitor.topics, known, own).topics)
    if not found:
        raise UsageError(f"no topic at {settings.kafka.bootstrap_servers} is one of monitor.topics; name some")
    return found


def _asking_the_lake(ask: Callable[[], Result]) -> Result:
    try:
        return ask()
    except LakeError as error:
        raise KcgaError(f"the lake: {error}") from error


def _fields(partition: TopicPartition, account: PartitionAccount) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "rows": account.rows,
        "first_offset": account.first_offset,
        "last_offset": account.last_offset,
        "doubled": account.doubled,
        "missing": account.missing,
    }


def _table(accounts: dict[TopicPartition, PartitionAccount]) -> Table:
    table = Table("partition", box=None, pad_edge=False)
    for heading in ("rows", "first offset", "last offset", "doubled", "missing"):
        table.add_column(heading, justify="right")
    for partition, account in sorted(accounts.items()):
        figures = (account.rows, account.first_offset, account.last_offset, account.doubled, account.missing)
        table.add_row(str(partition), *(f"{figure:,}" for figure in figures))
    return table


def _compacted(compaction: Compaction | None) -> str:
    if compaction is None:
        return "has no table"
    return f"{compaction.files_before:,} files became {compaction.files_after:,}"
