"""Protobuf: the columns of a message, and its values.

A schema is a file of message types, as its compiler describes it (`FileDescriptorProto`): nothing here reads the
language. A value says first which of them it is of, by its place in the file. A field that cannot be absent has the
value that it has by default; others are null.
"""

import base64
import importlib
from binascii import Error as NoBase64Error
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from consumer.decide.columns import EPOCH
from consumer.decide.reader import Reader, Referred, UnreadableError

Take = Callable[[Any], Any]
"""What a message holds in a field, as Arrow takes it."""

OF_PROTOBUF = ("google/protobuf/", "google/type/")
"""Where files lie that come with Protobuf, or with Google's common types."""
LONGEST_PATH = 100
_MAIN = "the schema"
_ANY = "google.protobuf."
_AS_JSON = {f"{_ANY}{name}" for name in ("Struct", "Value", "ListValue", "Duration")}
_WRAPPERS = {
    f"{_ANY}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_TYPES = {
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_FIXED64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_ENUM: pa.string(),
}


class MessageTypes:
    """Of one file.

    Args:
        schema: its description, in base64.
        references: files that it imports, each behind those that it imports itself.

    Raises:
        UnreadableError: it is no such description.
    """

    def __init__(self, schema: str, references: Sequence[Referred] = ()) -> None:
        self._pool = DescriptorPool()
        self._added: set[str] = set()
        self._readers: dict[tuple[int, ...], Reader] = {}
        try:
            for reference in references:
                self._add(_described(reference.schema, reference.name))
            self._file = _described(schema, _MAIN)
            self._add(self._file)
            self._pool.FindFileByName(_MAIN)
        except (NoBase64Error, ValueError, DecodeError, TypeError, KeyError, ImportError) as error:
            raise UnreadableError(f"the registry describes no file of Protobuf (format=serialized): {error}") from error

    def of(self, value: bytes) -> tuple[str, Reader, bytes]:
        """The message type that a value is of, what reads it, and what is to be read.

        Raises:
            UnreadableError: the file has no such type.
        """
        path, rest = _path(value)
        if path not in self._readers:
            self._readers[path] = self._reader(path)
        return ".".join(map(str, path)), self._readers[path], rest

    def _add(self, file: FileDescriptorProto) -> None:
        for name in file.dependency:
            if name not in self._added and name.startswith(OF_PROTOBUF):
                module = importlib.import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
                self._add(FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb))
        if file.name not in self._added:
            self._added.add(file.name)
            self._pool.AddSerializedFile(file.SerializeToString())

    def _reader(self, path: tuple[int, ...]) -> Reader:
        names, types = [self._file.package] if self._file.package else [], self._file.message_type
        for place in path:
            if place >= len(types):
                raise UnreadableError(f"the file has no message type at {'.'.join(map(str, path))}")
            names.append(types[place].name)
            types = _without_maps(types[place].nested_type)
        descriptor = self._pool.FindMessageTypeByName(".".join(names))
        fields, take = _record(descriptor, self._pool, ())
        parse = GetMessageClass(descriptor).FromString
        return Reader(fields, lambda value: take(parse(value)))


def _described(schema: str, name: str) -> FileDescriptorProto:
    file = FileDescriptorProto.FromString(base64.b64decode(schema, validate=True))
    file.name = name
    return file


def _without_maps(types: Sequence[DescriptorProto]) -> list[DescriptorProto]:
    """Those that are written in the file: a map has one of its own beside them."""
    return [kind for kind in types if not kind.options.map_entry]


def _path(value: bytes) -> tuple[tuple[int, ...], bytes]:
    """The places of a message type, from the outermost inwards, that a value begins with."""
    length, at = _number(value, 0)
    if not length:
        return (0,), value[at:]
    if not 0 < length <= LONGEST_PATH:
        raise UnreadableError(f"a message type is named by {length} numbers: it must be 0 to {LONGEST_PATH}")
    path = []
    for _ in range(length):
        place, at = _number(value, at)
        path.append(place)
    if min(path) < 0:
        raise UnreadableError(f"the place of a message type is {min(path)}: it must not be negative")
    return tuple(path), value[at:]


def _number(value: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, in zigzag, and where it ends."""
    found = 0
    for place, byte in enumerate(value[at : at + 10]):
        found |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at + place + 1
    raise UnreadableError("the value ends before it says which message type it is of")


def _record(
    descriptor: Descriptor, pool: DescriptorPool, inside: tuple[str, ...]
) -> tuple[tuple[pa.Field, ...], Callable[[Any], Mapping[str, Any]]]:
    """The fields of a message that lies in others of these names, and what makes them of one."""
    fields, takes = [], []
    for field in descriptor.fields:
        kind, take = _field(field, pool, (*inside, descriptor.full_name))
        fields.append(pa.field(field.name, kind))
        takes.append((field.name, field.has_presence, take))

    def taken(message: Any) -> dict[str, Any]:
        return {
            name: take(getattr(message, name)) if not can_be_absent or message.HasField(name) else None
            for name, can_be_absent, take in takes
        }

    return tuple(fields), taken


def _field(field: FieldDescriptor, pool: DescriptorPool, inside: tuple[str, ...]) -> tuple[pa.DataType, Take]:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        key, _ = _value(entry.fields_by_name["key"], pool, inside)
        kind, take = _value(entry.fields_by_name["value"], pool, inside)
        return pa.map_(key, kind), lambda found: [(each, take(found[each])) for each in sorted(found)]
    kind, take = _value(field, pool, inside)
    if field.is_repeated:
        return pa.list_(kind), lambda found: [take(each) for each in found]
    return kind, take


def _value(field: FieldDescriptor, pool: DescriptorPool, inside: tuple[str, ...]) -> tuple[pa.DataType, Take]:
    """Of one value of the field."""
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return pa.string(), lambda number: names.get(number, str(number))
    descriptor = field.message_type
    if descriptor is None:
        return _TYPES[field.type], lambda found: found
    name = descriptor.full_name
    if name == f"{_ANY}Timestamp":
        return pa.timestamp("us", tz="UTC"), _moment
    if name in _WRAPPERS:
        return _TYPES[descriptor.fields_by_name["value"].type], lambda found: found.value
    if name in _AS_JSON or name in inside or not descriptor.fields:
        return pa.string(), lambda found: MessageToJson(found, indent=None, descriptor_pool=pool)
    fields, take = _record(descriptor, pool, inside)
    return pa.struct(fields), take


def _moment(timestamp: Any) -> Any:
    return EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)
