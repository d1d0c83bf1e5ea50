"""`kcga lake`: what the tables hold of each partition, what they refused, and the care of their files."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.errors import KcgaError, UsageError
from app.settings import Settings, load
from app.spark_needs import with_jars
from cli.options import OutputFormat, SettingsFile
from cli.topics import topics_to_read
from consumer.dead_letters import DeadLetter
from consumer.dead_letters import dead_letters as read_dead_letters
from consumer.decoding import decoding_of
from consumer.maintenance import Compaction
from consumer.maintenance import optimize as optimize_table
from consumer.maintenance import vacuum as vacuum_table
from consumer.replay import replay as replay_dead_letters
from consumer.settings import ConsumerSettings
from consumer.sink import RegistryError, SinkError
from consumer.verify import PartitionAccount
from consumer.verify import verify as account_for
from domain.partitions import TopicPartition

Result = TypeVar("Result")


Topics = Annotated[
    list[str] | None, typer.Argument(help="Topics; without any, those on the cluster that monitor.topics names.")
]


def _of_a_lake(file: Path) -> Settings:
    """The settings of a group whose records go to a lake."""
    settings = load(file)
    if settings.consumer.sink != "lake":
        raise UsageError(f"consumer.sink in {file} is {settings.consumer.sink!r}: this is for the tables of a lake")
    return with_jars(settings)


def verify(
    settings: SettingsFile,
    topic: Topics = None,
    output: Annotated[
        OutputFormat, typer.Option(help="json: one object a line for each partition.")
    ] = OutputFormat.TEXT,
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Offsets without a row are no fault (transactions, compaction).")
    ] = False,
) -> None:
    """Prints the account of each partition that has rows; the dead letters of it are rows, too.

    Raises:
        KcgaError: rows are doubled, or missing; or the lake cannot be counted.
    """
    loaded = _of_a_lake(settings)
    consumer = loaded.consumer
    accounts = _asking_the_lake(
        lambda: account_for(
            consumer.spark, consumer.lake_root, _topics(loaded, topic or ()), consumer.places, consumer.spark_conf
        )
    )
    if output is OutputFormat.JSON:
        for partition, account in sorted(accounts.items()):
            print(json.dumps(_fields(partition, account)))  # noqa: T201
    else:
        Console().print(_table(accounts))
    doubled = sum(account.doubled for account in accounts.values())
    missing = sum(account.missing for account in accounts.values())
    if doubled or (missing and not allow_gaps):
        raise KcgaError(
            f"{doubled} rows are doubled, {missing} offsets between rows have none; transactions and compaction leave "
            "such offsets: --allow-gaps passes over them"
        )


def dead_letters(
    settings: SettingsFile,
    topic: Topics = None,
    output: Annotated[
        OutputFormat, typer.Option(help="json: one object a line for each record, with all its bytes, in base64.")
    ] = OutputFormat.TEXT,
    most: Annotated[int, typer.Option(min=1, help="Print so many at most.")] = 100,
) -> None:
    """Prints the records of these topics that their tables refused, and why.

    Raises:
        KcgaError: the lake does not tell.
    """
    loaded = _of_a_lake(settings)
    consumer = loaded.consumer
    topics = _topics(loaded, topic or ())
    letters = _asking_the_lake(
        lambda: read_dead_letters(consumer.spark, consumer.lake_root, topics, most, consumer.spark_conf)
    )
    if output is OutputFormat.JSON:
        for letter in letters:
            print(json.dumps(letter._asdict(), default=_in_json))  # noqa: T201
    else:
        Console().print(_table_of_dead_letters(letters) if letters else "no dead letters")


def replay(settings: SettingsFile, topic: Annotated[str, typer.Argument(help="Whose table is mended.")]) -> None:
    """Brings them there, and says how many.

    Raises:
        KcgaError: the table refuses one still, or the lake does not do it: the same command again goes on.
    """
    consumer = _of_a_lake(settings).consumer
    replayed = _asking_the_lake(
        lambda: replay_dead_letters(
            consumer.spark,
            consumer.lake_root,
            topic,
            tables=consumer.places,
            columns=consumer.columns,
            conf=consumer.spark_conf,
            decoding=decoding_of(consumer),
            layouts=consumer.layouts,
        )
    )
    print(f"{topic}: {replayed:,} records are in its table, and no dead letters any more")  # noqa: T201


def optimize(settings: SettingsFile, topic: Topics = None) -> None:
    """Compacts the table of each topic, and says what became of its files.

    Raises:
        KcgaError: the lake does not do it.
    """
    console = Console()
    for name, table, consumer in _tables(settings, topic):
        compaction = _asking_the_lake(partial(optimize_table, consumer.spark, table, consumer.spark_conf))
        console.print(f"{name}: {_compacted(compaction)}", highlight=False)


def vacuum(
    settings: SettingsFile,
    topic: Topics = None,
    retain_hours: Annotated[int, typer.Option(min=168, help="Keep what was needed within so many hours.")] = 168,
) -> None:
    """Deletes the files that the table of each topic has not needed for so many hours.

    Raises:
        KcgaError: the lake does not do it.
    """
    console = Console()
    for name, table, consumer in _tables(settings, topic):
        there = _asking_the_lake(partial(vacuum_table, consumer.spark, table, retain_hours, consumer.spark_conf))
        console.print(f"{name}: {'done' if there else 'has no table'}", highlight=False)


def _tables(file: Path, topics: Sequence[str] | None) -> Iterator[tuple[str, str, ConsumerSettings]]:
    """Each topic with the location of its table, and the settings that say where Spark is."""
    settings = _of_a_lake(file)
    for topic in _topics(settings, topics or ()):
        yield topic, settings.consumer.table(topic), settings.consumer


def _topics(settings: Settings, named: Sequence[str]) -> list[str]:
    """Those named, or else those on the cluster that the settings name, in ascending order.

    Raises:
        UsageError: there are none.
    """
    if named:
        return sorted(set(named))
    found = topics_to_read(settings)
    if not found:
        raise UsageError(f"no topic at {settings.kafka.bootstrap_servers} is one of monitor.topics; name some")
    return found


def _asking_the_lake(ask: Callable[[], Result]) -> Result:
    try:
        return ask()
    except SinkError as error:
        raise KcgaError(f"the lake: {error}") from error
    except RegistryError as error:
        raise KcgaError(str(error)) from error


def _fields(partition: TopicPartition, account: PartitionAccount) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "rows": account.rows,
        "first_offset": account.first_offset,
        "last_offset": account.last_offset,
        "doubled": account.doubled,
        "missing": account.missing,
        "dead_letters": account.dead_letters,
    }


def _table(accounts: dict[TopicPartition, PartitionAccount]) -> Table:
    table = Table("partition", box=None, pad_edge=False)
    for heading in ("rows", "first offset", "last offset", "doubled", "missing", "dead letters"):
        table.add_column(heading, justify="right")
    for partition, account in sorted(accounts.items()):
        told = (account.rows, account.first_offset, account.last_offset, account.doubled, account.missing)
        table.add_row(str(partition), *(f"{figure:,}" for figure in (*told, account.dead_letters)))
    return table


def _table_of_dead_letters(letters: Sequence[DeadLetter]) -> Table:
    table = Table("partition", "offset", "timestamp", "reason", box=None, pad_edge=False)
    for letter in letters:
        partition = TopicPartition(letter.topic, letter.partition)
        moment = "" if letter.timestamp is None else _in_json(letter.timestamp)
        table.add_row(str(partition), str(letter.offset), moment, Text(letter.reason))
    return table


def _in_json(value: bytes | datetime) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else value.astimezone(UTC).isoformat()


def _compacted(compaction: Compaction | None) -> str:
    if compaction is None:
        return "has no table"
    return f"{compaction.files_before:,} files became {compaction.files_after:,}"
