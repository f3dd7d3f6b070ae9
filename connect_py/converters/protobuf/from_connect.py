"""The Protobuf file of a Connect schema (`ProtobufData.fromConnectSchema`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from google.protobuf import descriptor_pb2

from connect_py.converters.protobuf.known import (
    DATE_TYPE,
    DECIMAL_TYPE,
    FILES,
    TIME_TYPE,
    TIMESTAMP_TYPE,
    set_parameters,
)
from connect_py.converters.protobuf.options import (
    CONNECT_PRECISION,
    CONNECT_TYPE,
    DEFAULT_NAME,
    ENUM,
    GENERAL_ENUM,
    GENERAL_UNION,
    TAG,
    TYPE,
    UNION,
    WRAPPER,
    ProtobufOptions,
)
from connect_py.converters.registry.names import scrub_name, split_name
from connect_py.data import Schema, Type
from connect_py.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from connect_py.errors import DataError

_Message: TypeAlias = descriptor_pb2.DescriptorProto
_Field: TypeAlias = descriptor_pb2.FieldDescriptorProto

_SCALARS: Mapping[Type, tuple[str, str]] = {
    Type.INT8: ("int32", "google.protobuf.Int32Value"),
    Type.INT16: ("int32", "google.protobuf.Int32Value"),
    Type.INT32: ("int32", "google.protobuf.Int32Value"),
    Type.INT64: ("int64", "google.protobuf.Int64Value"),
    Type.FLOAT32: ("float", "google.protobuf.FloatValue"),
    Type.FLOAT64: ("double", "google.protobuf.DoubleValue"),
    Type.BOOLEAN: ("bool", "google.protobuf.BoolValue"),
    Type.STRING: ("string", "google.protobuf.StringValue"),
    Type.BYTES: ("bytes", "google.protobuf.BytesValue"),
}
_UNSIGNED = {"uint32": "google.protobuf.UInt32Value", "fixed32": "google.protobuf.UInt32Value"} | dict.fromkeys(
    ("uint64", "fixed64"), "google.protobuf.UInt64Value"
)
LOGICAL: Mapping[str | None, str] = {DECIMAL: DECIMAL_TYPE, DATE: DATE_TYPE, TIME: TIME_TYPE, TIMESTAMP: TIMESTAMP_TYPE}


def wrapper_of(schema: Schema) -> str | None:
    """The message that a plain value at the top is put into, None for a struct. Raises DataError for what cannot stand there."""
    if schema.type is Type.STRUCT and not is_union(schema):
        return None
    if schema.type not in _SCALARS or schema.name in LOGICAL:
        raise DataError(f"Unsupported root schema of type {schema.name if schema.name in LOGICAL else schema.type.name}")
    return _SCALARS[schema.type][1]


def is_union(schema: Schema) -> bool:
    """Whether a struct stands for a oneof."""
    named = schema.name is not None and schema.name.startswith(UNION)
    return schema.type is Type.STRUCT and (named or schema.parameter(GENERAL_UNION) is not None)


def is_wrapped(schema: Schema, options: ProtobufOptions, in_oneof: bool) -> bool:
    """Whether a scalar field is a wrapper message. In a oneof only what was one is."""
    return options.wrapper_for_nullables and schema.optional and (not in_oneof or schema.parameter(WRAPPER) == "true")


def enum_parameter(schema: Schema, options: ProtobufOptions) -> str | None:
    """The parameter that tells an enum's symbols, None where the schema is no enum."""
    wanted = (GENERAL_ENUM, ENUM) if options.generalized else (ENUM,)
    kinds = (Type.STRING, Type.INT8, Type.INT16, Type.INT32)
    return next((name for name in wanted if schema.type in kinds and schema.parameter(name) is not None), None)


class FromConnect:
    """Makes the file of one struct schema.

    Raises:
        DataError: the schema has something that Protobuf cannot have.
    """

    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options
        self._unnamed = 0
        self.file = descriptor_pb2.FileDescriptorProto(name="default", syntax="proto3")
        self._made: dict[str, Schema] = {}

    def __call__(self, schema: Schema) -> tuple[descriptor_pb2.FileDescriptorProto, str]:
        """The file, and the full name of its message."""
        package, name = split_name(self._name(schema), scrub=self._options.scrub, underscore_first=False)
        if package:
            self.file.package = package
        full = f"{package}.{name}" if package else name
        self._message(self.file.message_type.add(name=name), full, schema)
        return self.file, full

    def _name(self, schema: Schema) -> str:
        if schema.name:
            return schema.name
        self._unnamed += 1
        return f"{DEFAULT_NAME}{self._unnamed}"

    def _simple_name(self, schema: Schema) -> str:
        return self.field_name(self._name(schema).rpartition(".")[2])

    def field_name(self, name: str) -> str:
        """A name, scrubbed if that is asked for."""
        return scrub_name(name, underscore_first=False) if self._options.scrub else name

    def _message(self, message: _Message, full: str, schema: Schema) -> None:
        self._made[full] = schema
        index = 1
        synthetic = []
        for field in schema.fields:
            given = field.schema.parameter(TAG)
            if given is None:
                tag, index = index, index + 1
            else:
                tag = int(given)
            if is_union(field.schema):
                self._oneof(message, full, field.schema)
                continue
            made = self._field(message, full, self.field_name(field.name), tag, field.schema)
            if self._options.optional_for_nullables and field.schema.optional and made.label != _Field.LABEL_REPEATED:
                made.proto3_optional = True
                synthetic.append(made)
        for made in synthetic:  # after the real ones, as the rules of Protobuf want it
            made.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{made.name}")

    def _oneof(self, message: _Message, full: str, schema: Schema) -> None:
        name = schema.parameter(GENERAL_UNION) if self._options.generalized else None
        if name is None:
            name = self.field_name((schema.name or "").removeprefix(f"{UNION}.").rpartition(".")[2])
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=name)
        for field in schema.fields:
            tag = field.schema.parameter(TAG)
            if tag is None:
                raise DataError(f"The member {field.name} of a union has no parameter {TAG}, so it has no field number")
            self._field(message, full, self.field_name(field.name), int(tag), field.schema, in_oneof=True).oneof_index = index

    def _field(self, message: _Message, full: str, name: str, tag: int, schema: Schema, in_oneof: bool = False) -> _Field:
        repeated = schema.type in (Type.ARRAY, Type.MAP)
        if schema.type is Type.ARRAY:
            assert schema.value_schema is not None
            schema = schema.value_schema
            if schema.type in (Type.ARRAY, Type.MAP):
                raise DataError(f"The field {name} is an array of arrays or maps, which Protobuf cannot have")
        made = message.field.add(name=name, number=tag, label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL)
        enum = enum_parameter(schema, self._options)
        if schema.name in LOGICAL:
            self._known(made, LOGICAL[schema.name])
            if schema.name == DECIMAL:
                told = {"precision": schema.parameter(CONNECT_PRECISION), "scale": schema.parameter("scale")}
                set_parameters(made, {key: value for key, value in told.items() if value is not None})
        elif schema.type is Type.STRUCT:
            self._nested(message, full, made, schema)
        elif schema.type is Type.MAP:
            self._map(message, full, made, schema)
        elif enum is not None:
            self._enum(message, full, made, schema, enum)
        else:
            self._scalar(made, schema, in_oneof)
        return made

    def _known(self, made: _Field, type_: str) -> None:
        made.type, made.type_name = _Field.TYPE_MESSAGE, f".{type_}"
        if FILES[type_] not in self.file.dependency:
            self.file.dependency.append(FILES[type_])

    def _scalar(self, made: _Field, schema: Schema, in_oneof: bool) -> None:
        kind, wrapper = _SCALARS[schema.type]
        if schema.type in (Type.INT8, Type.INT16):
            set_parameters(made, {CONNECT_TYPE: schema.type.value})
        elif schema.type in (Type.INT32, Type.INT64):
            kind = schema.parameter(TYPE) or kind
            wrapper = _UNSIGNED.get(kind, wrapper)
        if is_wrapped(schema, self._options, in_oneof):
            self._known(made, wrapper)
            return
        try:
            made.type = _Field.Type.Value(f"TYPE_{kind.upper()}")
        except ValueError:
            raise DataError(f"{kind} is no type of Protobuf ({TYPE} of the field {made.name})") from None

    def _nested(self, message: _Message, full: str, made: _Field, schema: Schema) -> None:
        name = self._simple_name(schema)
        if name == made.name:
            name += "Message"  # a type and a field cannot share a name
        made.type, made.type_name = _Field.TYPE_MESSAGE, f".{full}.{name}"
        earlier = self._made.get(f"{full}.{name}")
        if name == message.name or (earlier is not None and earlier.fields != schema.fields):
            raise DataError(f"Two unlike schemas would both be the Protobuf message {name}; give one of them another name")
        if earlier is None:
            self._message(message.nested_type.add(name=name), f"{full}.{name}", schema)

    def _map(self, message: _Message, full: str, made: _Field, schema: Schema) -> None:
        name = map_entry(self._simple_name(schema))
        if f"{full}.{name}" in self._made:
            raise DataError(f"Two maps would both be the Protobuf message {name}; give one of them another name")
        self._made[f"{full}.{name}"] = schema
        made.type, made.type_name = _Field.TYPE_MESSAGE, f".{full}.{name}"
        entry = _Message(name=name)
        for tag, (part, held) in enumerate((("key", schema.key_schema), ("value", schema.value_schema)), 1):
            assert held is not None
            self._field(entry, f"{full}.{name}", part, tag, held)
        message.nested_type.append(entry)

    def _enum(self, message: _Message, full: str, made: _Field, schema: Schema, parameter: str) -> None:
        name = schema.parameter(parameter) or self._simple_name(schema)
        made.type, made.type_name = _Field.TYPE_ENUM, f".{full}.{name}"
        if any(known.name == name for known in message.enum_type):
            return
        enum = message.enum_type.add(name=name)
        for key, value in schema.parameters:
            if key.startswith(f"{parameter}."):
                enum.value.add(name=key.removeprefix(f"{parameter}."), number=int(value))


def map_entry(name: str) -> str:
    """The name of a map's entries."""
    if "_" in name:
        name = "".join(part.capitalize() for part in name.split("_"))
    return f"{name}Entry"


def map_field(name: str) -> str:
    """A map's name from that of its entries."""
    start, dot, last = name.rpartition(".")
    if last.endswith("Entry"):
        last = re.sub(r"(?<!^)([A-Z])", r"_\1", last.removesuffix("Entry")).lower()
    return f"{start}{dot}{last}"
