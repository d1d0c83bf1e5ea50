"""What can be set about a consumer, checked where it enters."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from consumer.decide.columns import OF_EVERY_RECORD, Column, type_of
from consumer.decide.layout import BY_DAY, Layout, Layouts, amiss
from consumer.decide.location import (
    ROOTED,
    S3A,
    dead_letters,
    is_name,
    is_schema,
    location,
    log_store_settings,
    of_one_writer,
    schemes,
)
from consumer.decide.out_of_range import BeyondEnd
from domain.assignment import ConsumerId
from domain.consumer_class import CLASS_NAME, HIGHEST_PRICE, LOWEST_PRICE, ORDINARY, ConsumerClass
from domain.moments import Moments
from domain.speeds import HIGHEST_SPEED, LEAST_CAPACITY

Seconds = Annotated[float, Field(ge=0.001, allow_inf_nan=False)]

TOKEN = "spark.connect.authenticate.token"  # noqa: S105
"""Spark's setting of the secret that a Spark Connect server asks for."""

_REGISTRY = r"^https?://[^/?#\s,@]+(/[^\s,@]*)?(,https?://[^/?#\s,@]+(/[^\s,@]*)?)*$"
"""Addresses without a password: that is shown."""

NAME_JARS = ("spark.jars", "spark.jars.packages")
"""Spark's settings that say which jars it has beside its own."""

_SPARKS_OWN, _OF_CATALOGS = "spark_catalog", "spark.sql.catalogImplementation"
"""The catalog that Spark brings, and its setting that says which kind that is."""

SHORTEST_RETENTION_H = 168
"""Delta Lake's own: a file that a reader or a write under way still needs is younger."""

PLACE = r"^[^`]*[^`/]/*$"
"""What the folder of a table looks like."""

LEAST_BATCH, LARGEST_BATCH = 1_000, 64_000_000
"""In bytes."""
LEAST_HEARTBEATS = 2
"""That a lease lasts for."""


class ColumnSettings(BaseModel):
    """A column of a topic's table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str
    """As `consumer.decide.columns.type_of` takes it."""
    field: Annotated[str, Field(min_length=1)] | None = None
    """Of the JSON object, with dots for objects within it; the column's name unless set."""


class TableSettings(BaseModel):
    """The table of a topic."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    path: Annotated[str, Field(pattern=PLACE)] | None = None
    """Where it is: under `lake_root`, or an absolute path, or a URL; by its topic's name unless set."""
    name: str | None = None
    """In place of `path`: what it is called in a catalog that Spark has, as `catalog.schema.table`."""
    partition_by: tuple[str, ...] | None = None
    """In place of the consumers' `partition_by`; columns of the topic's schema may be among them."""
    cluster_by: tuple[str, ...] | None = None
    """In place of the consumers' `cluster_by`; columns of the topic's schema may be among them."""


class MaintenanceSettings(Moments):
    """When tables are taken care of, and how."""

    optimize: bool = True
    """Whether small files are rewritten as large ones, of up to 128 MB, and clustered tables are clustered."""
    vacuum: bool = True
    """Whether files are deleted that a table has not needed for `retain_hours`."""
    retain_hours: Annotated[int, Field(ge=SHORTEST_RETENTION_H, le=87_600)] = SHORTEST_RETENTION_H
    """How long files are kept that a table does not need any more, for queries and writes that began before. Of a table
    whose `delta.deletedFileRetentionDuration` is longer, for that long."""


class ClassSettings(BaseModel):
    """Consumers of another size than ordinary ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(pattern=f"^{CLASS_NAME.pattern}$")]
    """What the class is called: lower case letters, digits and `-`."""
    capacity: Annotated[float, Field(ge=LEAST_CAPACITY, le=HIGHEST_SPEED, allow_inf_nan=False)]
    """What one of them reads at most, in bytes/s."""
    price: Annotated[float, Field(ge=LOWEST_PRICE, le=HIGHEST_PRICE, allow_inf_nan=False)]
    """What one of them costs, where an ordinary one costs 1."""
    rate_limit: Annotated[float, Field(ge=LEAST_CAPACITY, le=HIGHEST_SPEED, allow_inf_nan=False)] | None = None
    """In place of the consumers' `rate_limit`."""
    batch_bytes: Annotated[int, Field(ge=LEAST_BATCH, le=LARGEST_BATCH)] | None = None
    """In place of the consumers' `batch_bytes`."""
    resources: Mapping[Literal["requests", "limits"], Mapping[str, str]] = {}
    """On Kubernetes: `requests` and `limits` of its container, in place of the template's."""
    template: Path | None = None
    """On Kubernetes: the Deployment that they are made from, in place of `kubernetes.template`."""

    @property
    def of(self) -> ConsumerClass:
        return ConsumerClass(self.name, self.capacity, self.price)


class ConsumerSettings(BaseModel):
    """The settings of all consumers of a group.

    Raises:
        pydantic.ValidationError: a value is out of its range, or a name is none that is set here.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    sink: Literal["lake", "command"] = "lake"
    """Where records go: `lake`, to tables that Spark writes, or `command`, to a program of yours."""
    command: tuple[Annotated[str, Field(min_length=1, pattern=r"^[^\x00]+$")], ...] = ()
    """With `sink = "command"`: the program and its arguments. Each consumer starts one; see `docs/sinks.md`."""
    spark_remote: Annotated[tuple[str, ...] | None, Field(repr=False, min_length=1)] = None
    """The Spark Connect server, as `sc://host:port`: one engine for all consumers. Or a list of them: consumer 1 begins
    with the first, consumer 2 with the second, and so on; where one does not answer, its consumers turn to the next.
    Either this or `spark_master`."""
    spark_master: Annotated[str, Field(min_length=1)] | None = None
    """A master, such as `local[1]`: each consumer has a session, and a JVM, of its own."""
    spark_conf: Annotated[Mapping[str, str], Field(repr=False)] = {}
    """With `spark_master`: Spark's settings by their names, such as `spark.driver.memory`, or `spark.jars` for the jars
    of Delta Lake and of the lake's file system in place of kcga's own, which are of Delta Lake and, where a table is on
    `s3a://` or `gs://`, of that. With `spark_remote`: `spark.connect.authenticate.token` alone, the secret that servers
    ask for."""
    lake_root: Annotated[str, Field(validate_default=True)] = ""
    """The folder of all tables, as Spark sees it: an absolute path, or any Hadoop URL (gs://bucket/lake). Or a schema
    of a catalog that Spark has, as `catalog.schema`: tables are then created, and written, by their names in it."""
    tables: Mapping[str, TableSettings | Annotated[str, Field(pattern=PLACE)]] = {}
    """Where the tables of some topics are, by topic: under `lake_root`, or an absolute path, or a URL; or
    `{ path = ..., name = ..., partition_by = [...], cluster_by = [...] }`, each of which may be left out, where `name`
    is one in a catalog (`catalog.schema.table`), in place of a path. All others have their topic's name. No two topics
    may share a table: a position is found in it by the partition's number alone."""
    partition_by: tuple[str, ...] | None = None
    """The columns that tables are partitioned by when they are created: `ingest_date`, unless they are clustered. `[]`:
    by none. A table that has another layout keeps it; consumers and `kcga doctor` tell."""
    cluster_by: tuple[str, ...] | None = None
    """The columns, four at most, that tables are clustered by when they are created (Delta Lake's liquid clustering),
    in place of being partitioned. Rows are brought together by `OPTIMIZE`: see `kcga lake optimize`."""
    maintenance: MaintenanceSettings | None = None
    """When tables are taken care of, each by the consumer that reads partition 0 of its topic; never unless set. See
    `docs/lake.md`."""
    schemas: Mapping[str, Mapping[str, ColumnSettings | str]] = {}
    """Columns that the values of some topics, JSON objects, are parsed into beside being kept: by topic and column, the
    type, or `{ type = ..., field = "inside.nested" }` where the field is not named as the column. `docs/lake.md` has
    all types."""
    registry_url: Annotated[str, Field(pattern=_REGISTRY)] | None = None
    """Where the schema registry is, which speaks as Confluent's does; several addresses of it with commas."""
    registry_client: Annotated[Mapping[str, str], Field(repr=False)] = {}
    """Further settings of its client by Confluent's names, such as `ssl.ca.location`, and `basic.auth.user.info`, which
    is a secret: `user:password`."""
    registered: tuple[str, ...] = ()
    """Topics whose values have schemas in that registry: their tables get the columns of these. See `docs/lake.md`."""
    without_value: tuple[str, ...] = ()
    """Topics, of those in `schemas` or `registered`, whose values are left out of the column `value` where they are in
    columns of their own."""
    batch_bytes: Annotated[int, Field(ge=LEAST_BATCH, le=LARGEST_BATCH)] = 5_000_000
    """BATCH_BYTES of the paper: a fetch ends with so many bytes of keys and values. A consumer's memory grows with it,
    and what Spark takes in one request bounds it."""
    wait_time_secs: Annotated[Seconds, Field(le=60)] = 5.0
    """WAIT_TIME_SECS of the paper: a fetch ends after so many seconds with what it has. Each append to a table costs
    Spark about one second of CPU, however few its rows, so short times keep it busy with little."""
    rate_limit: Annotated[float, Field(ge=LEAST_CAPACITY, le=HIGHEST_SPEED, allow_inf_nan=False)] | None = None
    """Bytes/s of keys and values that a consumer reads at most, though it could read more: its rate is then the same
    whatever else goes on, and what is left of a Spark that it shares is the others'. No limit unless set."""
    heartbeat_s: Annotated[Seconds, Field(le=60)] = 1.0
    """The longest time between two reports."""
    lease_s: Annotated[Seconds, Field(le=3600)] = 30.0
    """A consumer of which no report has reached the brokers for so long ends, and writes and commits nothing more: the
    controller may have given its partitions to others. Less than the controller's `heartbeat_timeout_s`, and twice what
    the brokers take when one of them fails, or all consumers of the group might end with it."""
    beyond_log_end: BeyondEnd = "continue"
    """What becomes of a partition whose log was cut off before the position it was read to, because a leader without
    the newest records was elected, or the topic was made anew. `continue`: it is read on from where it was cut off, and
    from the log's end where no broker tells that; `hold`: it is not read, and the consumer is degraded, until the
    group's offset was set anew and the consumer restarted. Neither reads anything twice."""
    write_limit_s: Annotated[Seconds, Field(le=86_400)] = 60.0
    """A write to the lake that takes longer has failed."""
    most_dead_letters: Annotated[int, Field(ge=0, le=10_000)] = 20
    """Records of a topic that are written to the table `_dead_letters` under `lake_root` where its own table refuses
    them: so many of one batch, or of several one after the other of which the table takes none. Each is found with some
    ten appends. Of a table that refuses more, nothing more is read until it takes them. 0: none is set aside."""
    renew_claims_s: Annotated[Seconds, Field(ge=1, le=604_800)] = 86_400.0
    """What a consumer has committed it commits again after so long, for Kafka forgets commits and transactional ids
    that are not used for some time: less than the brokers' `offsets.retention.minutes` and
    `transactional.id.expiration.ms`, 7 days each unless set."""
    give_up_after_s: Annotated[Seconds, Field(le=86_400)] = 120.0
    """Without Kafka at the start, without a commit that the brokers take, or without a Spark session, for so long, the
    consumer exits to be restarted."""
    classes: tuple[ClassSettings, ...] = ()
    """Consumers of other sizes than ordinary ones, whose capacity is the controller's `consumer_capacity`: plans have
    some of each, whatever costs least. See `docs/classes.md`."""

    @field_validator("classes")
    @classmethod
    def _have_names_of_their_own(cls, classes: tuple[ClassSettings, ...]) -> tuple[ClassSettings, ...]:
        names = [ORDINARY, *(each.name for each in classes)]
        for name in names:
            if names.count(name) > 1:
                why = "that is what those of consumer_capacity are called" if name == ORDINARY else "it is there twice"
                raise ValueError(f"a class is called {name!r}: {why}; each must have a name of its own")
        return classes

    @field_validator("spark_remote", mode="before", json_schema_input_type=str | tuple[str, ...] | None)
    @classmethod
    def _may_be_one(cls, remote: object) -> object:
        return (remote,) if isinstance(remote, str) else remote

    @field_validator("spark_remote")
    @classmethod
    def _is_remote(cls, remote: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for each in remote or ():
            if not re.fullmatch(r"sc://[^/:;]+(:\d+)?(/.*)?", each):
                raise ValueError(f"{each!r} names no Spark Connect server: it must look like sc://host:15002")
        return remote

    @field_validator("lease_s")
    @classmethod
    def _outlasts_heartbeats(cls, lease_s: float, info: ValidationInfo) -> float:
        heartbeat_s = info.data.get("heartbeat_s")
        if heartbeat_s is not None and lease_s < LEAST_HEARTBEATS * heartbeat_s:
            raise ValueError(
                f"lease_s ({lease_s:g}) is less than {LEAST_HEARTBEATS} times heartbeat_s ({heartbeat_s:g}): a single "
                "report that is late would end the consumer"
            )
        return lease_s

    @field_validator("lake_root")
    @classmethod
    def _is_root(cls, root: str, info: ValidationInfo) -> str:
        if not root and info.data.get("sink") == "command":
            return root
        if not root:
            raise PydanticCustomError("missing", "Field required: an absolute path, or a URL such as gs://bucket/lake")
        if not ROOTED.match(root) and not is_schema(root):
            raise ValueError(
                f"{root!r} is relative: it must be an absolute path, a URL such as gs://bucket/lake, or a schema of a "
                "catalog, as catalog.schema"
            )
        return root.rstrip("/") or "/"

    @field_validator("schemas")
    @classmethod
    def _has_columns(
        cls, schemas: Mapping[str, Mapping[str, ColumnSettings | str]]
    ) -> Mapping[str, Mapping[str, ColumnSettings | str]]:
        for topic, columns in schemas.items():
            taken = set(OF_EVERY_RECORD)
            for name, column in columns.items():
                if name.lower() in taken:
                    raise ValueError(
                        f"the table of {topic} has a column {name!r} already: call it otherwise, and name the field: "
                        f'{{ type = "...", field = "{name}" }}'
                    )
                if not re.fullmatch(r"[^ ,;{}()\n\t=]+", name):
                    raise ValueError(f"{name!r} of {topic} cannot be the name of a column")
                kind = column if isinstance(column, str) else column.type
                try:
                    type_of(kind)
                except (ValueError, RecursionError) as error:
                    raise ValueError(f"{topic}.{name}: {str(error) or 'its type is nested too deeply'}") from error
                taken.add(name.lower())
        return schemas

    @model_validator(mode="after")
    def _knows_what_values_are(self) -> Self:
        if self.registered and self.registry_url is None:
            raise ValueError("registered is set, and registry_url is not: it must say where the schema registry is")
        if both := sorted(self.schemas.keys() & set(self.registered)):
            raise ValueError(f"{both[0]} is in schemas, and in registered: its columns come from one of the two")
        if others := sorted(set(self.without_value) - self.schemas.keys() - set(self.registered)):
            raise ValueError(
                f"without_value names {others[0]}, which is in neither schemas nor registered: its value would be lost"
            )
        return self

    @model_validator(mode="after")
    def _has_one_sink(self) -> Self:
        of_command, of_lake = (
            self.sink == "command",
            ("spark_remote", "spark_master", "lake_root", "maintenance"),
        )
        if of_command and not self.command:
            raise ValueError('sink is "command", and command is not set: it must be the program and its arguments')
        if self.command and not of_command:
            raise ValueError('command is set, and sink is "lake": set sink = "command", or no command')
        if of_command and (others := [name for name in of_lake if getattr(self, name)]):
            raise ValueError(f'sink is "command", and {" and ".join(others)} of a lake is set: remove it, or the sink')
        return self

    @model_validator(mode="after")
    def _has_one_spark(self) -> Self:
        if self.sink == "command":
            return self
        if (self.spark_remote is None) == (self.spark_master is None):
            raise ValueError(
                "set either spark_remote, a Spark Connect server such as sc://host:15002, or spark_master, such as "
                f"local[1]; {'neither' if self.spark_master is None else 'both'} is set"
            )
        if self.spark_conf.keys() - {TOKEN} and self.spark_master is None:
            raise ValueError(
                f"spark_conf goes with spark_master: a Spark Connect server has settings of its own, but for {TOKEN}"
            )
        return self

    @model_validator(mode="after")
    def _has_a_log_store(self) -> Self:
        for scheme in of_one_writer(self.lake_root, self.places) if self.spark_master is not None else ():
            comes_with_jars = scheme == S3A and not self.names_jars
            if not comes_with_jars and not any(name in self.spark_conf for name in log_store_settings(scheme)):
                raise ValueError(
                    f"with spark_master each consumer writes by itself, and on {scheme}:// Delta Lake would lose what "
                    f"two write at once: set {log_store_settings(scheme)[0]} in spark_conf, or use one spark_remote"
                )
        return self

    @model_validator(mode="after")
    def _has_names(self) -> Self:
        for topic, table in self.tables.items():
            path, name = (table, None) if isinstance(table, str) else (table.path, table.name)
            if path is not None and name is not None:
                raise ValueError(f"tables.{topic} has both path and name: it must have one of them")
            if name is not None and not is_name(name):
                raise ValueError(
                    f"tables.{topic}: {name!r} is no name of a table: it must look like catalog.schema.table"
                )
            if path is not None and is_schema(self.lake_root) and not ROOTED.match(path):
                raise ValueError(
                    f"tables.{topic}: lake_root is a schema, and no folder that {path!r} could be in: it must be an "
                    "absolute path, a URL, or a name as catalog.schema.table"
                )
        return self

    @model_validator(mode="after")
    def _has_a_catalog(self) -> Self:
        for table in (dead_letters(self.lake_root), *self.places.values()) if self.spark_master is not None else ():
            catalog = table.partition(".")[0]
            setting = _OF_CATALOGS if catalog == _SPARKS_OWN else f"spark.sql.catalog.{catalog}"
            if is_name(table) and setting not in self.spark_conf:
                raise ValueError(
                    f"with spark_master each consumer has a Spark of its own, which knows no catalog {catalog!r} that "
                    f"others know, too: set {setting} in spark_conf, or use spark_remote"
                )
        return self

    @model_validator(mode="after")
    def _shares_no_table(self) -> Self:
        topics: dict[str, str] = {}
        for topic in sorted(self.places):
            table = self.table(topic)
            named = is_name(table)
            table = table.lower() if named else table
            folder = table.rpartition("." if named else "/")[2].removeprefix("-")
            by_default = folder if folder not in self.places and location(self.lake_root, folder) == table else topic
            other = topics.setdefault(table, topic) if by_default == topic else by_default
            if other != topic:
                raise ValueError(f"tables gives the topic {topic} the table of the topic {other}, {table}")
            if table == dead_letters(self.lake_root):
                raise ValueError(f"tables gives the topic {topic} the table of the dead letters, {table}")
        return self

    @model_validator(mode="after")
    def _has_layouts(self) -> Self:
        if why := amiss(self.layouts.by_default):
            raise ValueError(why)
        for topic in self.tables:
            if why := amiss(self._layout(topic), self.columns.get(topic, ()), and_others=topic in self.registered):
                raise ValueError(f"tables.{topic}: {why}")
        return self

    @property
    def places(self) -> dict[str, str]:
        """The tables of some topics, each by an absolute path, a URL or a name."""
        return {topic: place for topic, table in self.tables.items() if (place := self._place(table)) is not None}

    def _place(self, table: TableSettings | str) -> str | None:
        path, name = (table, None) if isinstance(table, str) else (table.path, table.name)
        if path is None or ROOTED.match(path):
            return name if path is None else path
        return f"{self.lake_root.rstrip('/')}/{path}"

    @property
    def layouts(self) -> Layouts:
        """Those of tables that are to be created."""
        return Layouts(_layout(self), {self.table(topic): self._layout(topic) for topic in self.tables})

    def _layout(self, topic: str) -> Layout:
        table = self.tables[topic]
        own = None if isinstance(table, str) else _layout(table)
        return own if own is not None and own.chosen else _layout(self)

    @property
    def columns(self) -> dict[str, tuple[Column, ...]]:
        """The columns of the topics that have a schema."""
        return {topic: tuple(map(_column, columns, columns.values())) for topic, columns in self.schemas.items()}

    @property
    def session(self) -> str:
        """What a consumer writes through, in words."""
        return "program" if self.sink == "command" else "Spark session"

    @property
    def sparks(self) -> tuple[str, ...]:
        """Where Spark is: `sc://host:port` of each server, or a master."""
        return self.spark_remote or (self.spark_master or "",)

    @property
    def names_jars(self) -> bool:
        """Whether `spark_conf` says which jars Spark has; otherwise it has kcga's own."""
        return any(name in self.spark_conf for name in NAME_JARS)

    @property
    def schemes(self) -> tuple[str, ...]:
        """Of the URLs of all tables."""
        return schemes(self.lake_root, self.places)

    @property
    def spark(self) -> str:
        """The first of them: for whatever is asked once."""
        return self.sparks[0]

    def sparks_of(self, consumer: ConsumerId) -> tuple[str, ...]:
        """The same, in the order in which this consumer turns to them."""
        first = (consumer - 1) % len(self.sparks)
        return (*self.sparks[first:], *self.sparks[:first])

    def of_class(self, name: str) -> Self:
        """What a consumer of that class goes by: like an ordinary one where there is no such class any more."""
        found = next((each for each in self.classes if each.name == name), None)
        if found is None:
            return self
        own = {"rate_limit": found.rate_limit, "batch_bytes": found.batch_bytes}
        return self.model_copy(update={setting: value for setting, value in own.items() if value is not None})

    def table(self, topic: str) -> str:
        """The location of the topic's table."""
        return location(self.lake_root, topic, self.places)


def _layout(given: ConsumerSettings | TableSettings) -> Layout:
    if given.partition_by is None and given.cluster_by is None:
        return BY_DAY
    return Layout(given.partition_by or (), given.cluster_by or ())


def _column(name: str, given: ColumnSettings | str) -> Column:
    if isinstance(given, str):
        return Column(name, given, (name,))
    return Column(name, given.type, tuple((given.field or name).split(".")))
