"""Messages that every registry knows, and the pools that schemas are linked in.

The only module of this room that imports Google's library and its generated messages. A pool holds one schema, so that schemas that give
one name to different messages do not meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.types import decimal_pb2
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2, wrappers_pb2
from google.protobuf.message import DecodeError
from google.type import date_pb2, timeofday_pb2

from connect_py.data import Type
from connect_py.errors import DataError

DECIMAL_TYPE, DECIMAL_FILE = "confluent.type.Decimal", "confluent/type/decimal.proto"
DATE_TYPE, DATE_FILE = "google.type.Date", "google/type/date.proto"
TIME_TYPE, TIME_FILE = "google.type.TimeOfDay", "google/type/timeofday.proto"
TIMESTAMP_TYPE, TIMESTAMP_FILE = "google.protobuf.Timestamp", "google/protobuf/timestamp.proto"
WRAPPERS_FILE = "google/protobuf/wrappers.proto"

#: Wrappers, in the order of their file, with the types that they wrap.
WRAPPERS: Mapping[str, Type] = {
    "google.protobuf.DoubleValue": Type.FLOAT64,
    "google.protobuf.FloatValue": Type.FLOAT32,
    "google.protobuf.Int64Value": Type.INT64,
    "google.protobuf.UInt64Value": Type.INT64,
    "google.protobuf.Int32Value": Type.INT32,
    "google.protobuf.UInt32Value": Type.INT64,
    "google.protobuf.BoolValue": Type.BOOLEAN,
    "google.protobuf.StringValue": Type.STRING,
    "google.protobuf.BytesValue": Type.BYTES,
}
#: Where the messages of known types are defined.
FILES: Mapping[str, str] = {
    DECIMAL_TYPE: DECIMAL_FILE,
    DATE_TYPE: DATE_FILE,
    TIME_TYPE: TIME_FILE,
    TIMESTAMP_TYPE: TIMESTAMP_FILE,
    **dict.fromkeys(WRAPPERS, WRAPPERS_FILE),
}
_MODULES = (meta_pb2, decimal_pb2, timestamp_pb2, wrappers_pb2, date_pb2, timeofday_pb2)  # importing them puts them into the default pool


def parameters_of(field: Any) -> dict[str, str]:
    """Return the parameters in a field's `confluent.field_meta` option, by name."""
    options = field.GetOptions() if hasattr(field, "GetOptions") else field.options
    return dict(sorted(options.Extensions[meta_pb2.field_meta].params.items()))


def set_parameters(field: descriptor_pb2.FieldDescriptorProto, parameters: Mapping[str, str]) -> None:
    """Put parameters into a field's `confluent.field_meta` option."""
    field.options.Extensions[meta_pb2.field_meta].params.update(parameters)


def file_of(serialized: bytes) -> descriptor_pb2.FileDescriptorProto:
    """Return a file's description from its bytes. Raises DataError."""
    try:
        return descriptor_pb2.FileDescriptorProto.FromString(serialized)
    except DecodeError:
        raise DataError("The registry's answer is no description of a Protobuf file") from None


def link(file: descriptor_pb2.FileDescriptorProto, used: Mapping[str, descriptor_pb2.FileDescriptorProto] = {}) -> Any:
    """Return a file's descriptor, in a pool of its own.

    Args:
        used: the files that it imports, directly or not, by the names they are imported by.

    Raises:
        DataError: an import is missing or the description contradicts itself.
    """
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()
    try:
        for name, other in used.items():
            _add(pool, name, other, used, added)
        _add(pool, file.name or "default", file, used, added)
        return pool.FindFileByName(file.name or "default")
    except (TypeError, KeyError, ValueError) as error:
        raise DataError(f"The Protobuf schema cannot be used: {error}") from None


def _add(pool: Any, name: str, file: Any, used: Mapping[str, Any], added: set[str]) -> None:
    if name in added:
        return
    added.add(name)
    for dependency in file.dependency:
        found = used.get(dependency) or _known(dependency)
        if found is None:
            raise DataError(f"The Protobuf schema imports {dependency}, which it does not refer to")
        _add(pool, dependency, found, used, added)
    copied = descriptor_pb2.FileDescriptorProto()
    copied.CopyFrom(file)
    copied.name = name
    pool.Add(copied)


def _known(name: str) -> Any:
    try:
        found = descriptor_pool.Default().FindFileByName(name)
    except KeyError:
        return None
    file = descriptor_pb2.FileDescriptorProto()
    found.CopyToProto(file)
    return file


def message_class(descriptor: Any) -> Any:
    """Return the class of a message."""
    return message_factory.GetMessageClass(descriptor)


def message_at(file: Any, path: list[int]) -> Any:
    """Return the message type at a path of indexes. Raises DataError."""
    try:
        found = list(file.message_types_by_name.values())[path[0]]
        for index in path[1:]:
            found = found.nested_types[index]
    except IndexError:
        raise DataError(f"The Protobuf schema has no message type with the indexes {path}") from None
    return found


def wrappers_file() -> Any:
    """Return Google's file of wrappers."""
    return wrappers_pb2.DESCRIPTOR
