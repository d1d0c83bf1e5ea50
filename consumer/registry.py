"""A schema registry: which schema the number means that a record begins with.

In the wire format that Confluent's serializers have: a byte that is 0, four bytes with the number of the schema, and
the value. A schema never changes under its number, so each is asked for once.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from consumer.decide.avro import avro_reader
from consumer.decide.json_schema import json_schema_reader
from consumer.decide.protobuf import MessageTypes
from consumer.decide.reader import Reader, Referred, UnreadableError
from consumer.sink import RegistryError

REQUEST_LIMIT_S = 10.0
"""An answer that takes longer does not come."""
NOT_THERE = (40401, 40402, 40403)
"""What a registry calls it that it has no such subject, version or schema: others of its answers may pass."""
PREFIX = struct.Struct(">bI")
MAGIC = 0
MOST_REFERENCES = 100
PROTOBUF = "PROTOBUF"
DESCRIBED = "serialized"
"""The form in which the registry gives what Protobuf's compiler makes of a schema."""

READERS: Mapping[str, Callable[[str, Sequence[Referred]], Reader | MessageTypes]] = MappingProxyType(
    {"AVRO": avro_reader, "JSON": json_schema_reader, PROTOBUF: MessageTypes}
)
"""By what a registry calls the formats."""


class NamedReader(NamedTuple):
    name: str
    """Of the schema, in words."""
    reader: Reader


class Registry:
    """Safe to use from several threads.

    Args:
        url: of the registry; several with commas.
        client: more settings of Confluent's client by their names.

    Raises:
        RegistryError: the client refuses its settings.
    """

    def __init__(self, url: str, client: Mapping[str, str]) -> None:
        self._url = url
        once = {"timeout": REQUEST_LIMIT_S, "max.retries": 0}  # who asks tries again, and says so meanwhile
        try:
            self._client = SchemaRegistryClient({**client, "url": url, **once})
        except (OSError, TypeError, ValueError) as error:
            raise RegistryError(f"the client of the schema registry refuses its settings: {error}") from error
        self._schemas: dict[int, Reader | MessageTypes] = {}

    def of(self, value: bytes) -> tuple[NamedReader, bytes]:
        """What reads the value, and what of the value is to be read.

        Raises:
            UnreadableError: it has no schema that can be used.
            RegistryError: the registry does not answer, or talks nonsense.
        """
        if len(value) < PREFIX.size or value[0] != MAGIC:
            raise UnreadableError(
                "the value is not in the format of a schema registry: it begins with "
                f"{value[: PREFIX.size].hex(' ')!r}, not with 00 and the four bytes of a schema's number"
            )
        number, rest = PREFIX.unpack_from(value)[1], value[PREFIX.size :]
        schema = self._schemas.get(number)
        if schema is None:
            schema = self._schemas[number] = self._usable(number)
        if isinstance(schema, Reader):
            return NamedReader(f"schema {number}", schema), rest
        try:
            place, reader, rest = schema.of(rest)
        except Exception as error:  # as below
            raise UnreadableError(f"schema {number}: {error}") from error
        return NamedReader(f"schema {number} (message type {place})", reader), rest

    def formats(self) -> list[str]:
        """That the registry has.

        Raises:
            RegistryError: it does not answer, or talks nonsense.
        """
        answer = self._answer(self._client.get_schema_types)
        if not isinstance(answer, list):
            raise RegistryError(f"the schema registry {self._url} answers without formats")
        return [str(each) for each in answer]

    def _usable(self, number: int) -> Reader | MessageTypes:
        try:
            schema = self._schema(number, None)
            kind = schema.schema_type or "AVRO"
            if kind not in READERS:
                raise UnreadableError(f"its format is {kind!r}: it must be {', '.join(READERS)}")
            form = DESCRIBED if kind == PROTOBUF else None
            if form is not None:
                self._forget()
                schema = self._schema(number, form)
            return READERS[kind](str(schema.schema_str), list(self._references(schema, form, set())))
        except _NoSuchSchemaError as error:
            raise UnreadableError(f"there is no schema {number} in the registry {self._url}") from error
        except RegistryError:
            raise
        except Exception as error:  # whatever nonsense makes of what takes schemas in
            raise UnreadableError(f"schema {number}: {error}") from error
        finally:
            self._forget()

    def _forget(self) -> None:
        """What the client keeps, it keeps in whatever form it came, nonsense too."""
        self._client.clear_caches()  # type: ignore[no-untyped-call]

    def _schema(self, number: int, form: str | None) -> Schema:
        schema: Schema = self._answer(partial(self._client.get_schema, number, fmt=form))
        return schema

    def _references(self, schema: Schema, form: str | None, seen: set[tuple[str, int]]) -> Iterator[Referred]:
        """The schemas that it refers to, each behind those that it refers to itself."""
        for reference in schema.references or ():
            subject, version = str(reference.subject), int(reference.version or 0)
            if (subject, version) in seen:
                continue
            if len(seen) >= MOST_REFERENCES:
                raise UnreadableError(f"it refers to more than {MOST_REFERENCES} others")
            seen.add((subject, version))
            try:
                ask = partial(self._client.get_version, subject, version, fmt=form)
                referred = self._answer(ask).schema
            except _NoSuchSchemaError as error:
                raise UnreadableError(f"it refers to version {version} of {subject}, which is not there") from error
            yield from self._references(referred, form, seen)
            yield Referred(str(reference.name), str(referred.schema_str))

    def _answer(self, ask: Callable[[], Any]) -> Any:
        try:
            answer = ask()
        except SchemaRegistryError as error:
            kind = _NoSuchSchemaError if error.error_code in NOT_THERE else RegistryError
            raise kind(f"the schema registry {self._url} refuses: {error}") from error
        except Exception as error:  # whatever its HTTP client, its tokens, JSON and its own checks raise
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise RegistryError(f"the schema registry {self._url} does not answer: {said}") from error
        if answer is None or (isinstance(answer, Schema) and type(answer.schema_str) is not str):
            raise RegistryError(f"the schema registry {self._url} answers without a schema")
        return answer


class _NoSuchSchemaError(RegistryError):
    """The registry says that it has none."""
