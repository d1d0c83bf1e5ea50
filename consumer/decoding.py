"""Gives rows the columns that their values have by a schema registry, on their way into any sink.

A column takes what the schemas of all records say of it, as long as one type does. What cannot be read, and what would
need a column of another type than there is, is refused like what a table refuses: found, set aside, and where there is
more of that, the topic is parked.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from consumer.decide.evolution import IncompatibleError, columns_of, field_of, in_sql, merged, of_fields
from consumer.decide.parsing import UnparsableError
from consumer.decide.reader import Reader, UnreadableError
from consumer.registry import Registry
from consumer.settings import ConsumerSettings
from consumer.sink import NO_EPOCHS, RefusedError, Sink, TableError

LONGEST_REASON = 300

Columns = Callable[[str], pa.StructType]
"""Those that there are of a topic, beside those of every record."""


class Decoding:
    """Makes columns of values; safe to use from several threads.

    Args:
        registry: has the schemas of those in `registered`.
        registered: topics whose values are in a registry's format.
        without_value: topics of which the value is left out where its columns hold all of it.
    """

    def __init__(self, registry: Registry | None, registered: Collection[str], without_value: Collection[str]) -> None:
        self._registry = registry
        self._registered = frozenset(registered)
        self._without_value = frozenset(without_value)
        self._known: dict[str, dict[frozenset[str], pa.StructType]] = {}
        """By topic and the names of the schemas that occur together, the columns."""

    def decoded(self, topic: str, rows: pa.Table, there: Columns) -> pa.Table:
        """The rows, with their columns.

        Raises:
            RefusedError: a value cannot be read, or has no place in the columns that there are.
            RegistryError: the registry does not answer.
        """
        if self._registry is not None and topic in self._registered:
            rows = self._with_columns(self._registry, topic, rows, there)
        if topic in self._without_value:
            place = rows.schema.get_field_index("value")
            nothing = pa.scalar(None, pa.binary())
            kept = pc.if_else(rows["error"].is_null(), nothing, rows["value"]).combine_chunks()
            rows = rows.set_column(place, rows.schema.field(place), kept)
        return rows

    def forget(self, topic: str) -> None:
        """The columns of the topic may be others by now."""
        self._known.pop(topic, None)

    def _with_columns(self, registry: Registry, topic: str, rows: pa.Table, there: Columns) -> pa.Table:
        documents: list[Mapping[str, Any] | None] = []
        readers: dict[str, tuple[Reader, int]] = {}
        for place, value in enumerate(rows["value"].to_pylist()):
            if value is None:
                documents.append(None)
                continue
            try:
                (name, reader), rest = registry.of(value)
            except UnreadableError as error:
                raise RefusedError(str(error), place) from error
            readers.setdefault(name, (reader, place))
            try:
                documents.append(reader.read(rest))
            except Exception as error:  # whatever a value of nonsense makes of what reads it
                why = str(error) if isinstance(error, UnparsableError) else f"{type(error).__name__}: {error}"
                raise RefusedError(f"the value does not follow {name}: {why[:LONGEST_REASON]}", place) from error
        if not readers:
            return rows
        columns = self._columns(topic, readers, there)
        kind = pa.struct([pa.field(field_of(column.name), column.type) for column in columns])
        try:
            arrays = pa.array(documents, kind).flatten() if len(kind) else []
        except Exception as error:
            raise _misfit(documents, kind) from error
        fields = [pa.field(column.name, column.type) for column in columns]
        return pa.Table.from_arrays([*rows.columns, *arrays], schema=pa.schema([*rows.schema, *fields]))

    def _columns(self, topic: str, readers: Mapping[str, tuple[Reader, int]], there: Columns) -> pa.StructType:
        known = self._known.setdefault(topic, {})
        names = frozenset(readers)
        if names not in known:
            so_far, columns = there(topic), pa.struct([])
            for name, (reader, place) in readers.items():
                try:
                    columns = of_fields(merged(columns, columns_of(reader.fields)), so_far)
                except IncompatibleError as error:
                    raise RefusedError(f"{name}: {error}", place) from error
            known[names] = columns
        return known[names]


def _misfit(documents: Sequence[Mapping[str, Any] | None], kind: pa.StructType) -> RefusedError:
    """Tells of the first field that its column does not take."""
    for place, document in enumerate(documents):
        for field in kind:
            try:
                pa.array([(document or {}).get(field.name)], field.type)
            except Exception as error:  # as above
                why = f"{field.name} is not {in_sql(field.type)}: {error}"[:LONGEST_REASON]
                return RefusedError(f"the value has no place in its columns: {why}", place)
    return RefusedError("the values are too large together for their columns")


class DecodingSink:
    """Another sink, whose rows have the columns of their values; see `consumer.sink.Sink`."""

    def __init__(self, sink: Sink, decoding: Decoding) -> None:
        self._sink = sink
        self._decoding = decoding
        self.connect = sink.connect
        self.set_aside = sink.set_aside
        self.seal = sink.seal
        self.columns = sink.columns
        self.last_appended = sink.last_appended
        self.last_set_aside = sink.last_set_aside
        self.last_offsets = sink.last_offsets
        self.close = sink.close

    def append(self, topic: str, version: int, rows: pa.Table, epochs: Mapping[int, int] = NO_EPOCHS) -> None:
        decoded = self._decoding.decoded(topic, rows, self._sink.columns)
        try:
            self._sink.append(topic, version, decoded, epochs)
        except TableError:
            self._decoding.forget(topic)
            anew = self._decoding.decoded(topic, rows, self._sink.columns)
            if anew.schema == decoded.schema:
                raise
            self._sink.append(topic, version, anew, epochs)  # another consumer had made its columns wider


def decoding_of(settings: ConsumerSettings) -> Decoding:
    """What these settings say of values.

    Raises:
        RegistryError: the client of the registry refuses its settings.
    """
    url = settings.registry_url
    registry = Registry(url, settings.registry_client) if url is not None and settings.registered else None
    return Decoding(registry, settings.registered, settings.without_value)
