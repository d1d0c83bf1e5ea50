"""Schemas of Protobuf, as its compiler describes them, and records of them."""

from base64 import b64encode
from typing import Any

from google.protobuf import any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

OPTIONAL, REPEATED = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED
MESSAGE, ENUM = FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_ENUM
WELL_KNOWN = [
    module.DESCRIPTOR for module in (any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
]


def file(*types: DescriptorProto, package: str = "shop", imports: tuple[str, ...] = ()) -> FileDescriptorProto:
    known = tuple(each.name for each in WELL_KNOWN)
    return FileDescriptorProto(
        name="main.proto", syntax="proto3", package=package, message_type=types, dependency=(*known, *imports)
    )


def message(name: str, **fields: Any) -> DescriptorProto:
    """Each field by its type, the name of another message or enumeration, a list of one of them, or a map by two."""
    made = DescriptorProto(name=name)
    for number, (called, kind) in enumerate(fields.items(), 1):
        label = REPEATED if isinstance(kind, list | dict) else OPTIONAL
        field = made.field.add(name=called, number=number, label=label)
        if isinstance(kind, dict):
            ((key, item),) = kind.items()
            entry = message(f"{called.title().replace('_', '')}Entry", key=key, value=item)
            entry.options.map_entry = True
            made.nested_type.append(entry)
            kind = f".shop.{name}.{entry.name}"
        elif isinstance(kind, list):
            (kind,) = kind
        if isinstance(kind, str):
            field.type_name, field.type = kind, ENUM if kind.endswith("Kind") else MESSAGE
        else:
            field.type = kind
    return made


def as_registered(described: FileDescriptorProto) -> str:
    return b64encode(described.SerializeToString()).decode()


def class_of(described: FileDescriptorProto, name: str, *imported: FileDescriptorProto) -> Any:
    """The class of its messages."""
    pool = DescriptorPool()
    for each in WELL_KNOWN:
        pool.AddSerializedFile(each.serialized_pb)
    for each in (*imported, described):
        pool.AddSerializedFile(each.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(name))
