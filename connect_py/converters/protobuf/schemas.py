"""Map Protobuf message types to Connect schemas and back (`ProtobufData.toConnectSchema`, `ProtobufData.fromConnectSchema`).

A message type becomes a Connect schema and the function that reads its messages. A message that contains itself is refused: Connect's
schemas here are plain values, which cannot contain themselves.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor

from connect_py.converters.protobuf.known import (
    DATE_TYPE,
    DECIMAL_TYPE,
    FILES,
    TIME_TYPE,
    TIMESTAMP_TYPE,
    WRAPPERS,
    parameters_of,
    set_parameters,
)
from connect_py.converters.protobuf.options import (
    CONNECT_PRECISION,
    CONNECT_TYPE,
    DEFAULT_NAME,
    ENUM,
    TAG,
    TYPE,
    UNION,
    WRAPPER,
    ProtobufOptions,
)
from connect_py.converters.registry.config import GENERAL_ENUM, GENERAL_UNION
from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.avro_names import scrub_name, split_name
from connect_py.data.schema import DATE, DECIMAL, EXACT, TIME, TIMESTAMP, sized
from connect_py.data.times import millis_to_timestamp
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
    """Return the message that a plain value at the top is put into, None for a struct. Raises DataError for what cannot stand there."""
    if schema.type is Type.STRUCT and not is_union(schema):
        return None
    if schema.type not in _SCALARS or schema.name in LOGICAL:
        raise DataError(f"Unsupported root schema of type {schema.name if schema.name in LOGICAL else schema.type.name}")
    return _SCALARS[schema.type][1]


def is_union(schema: Schema) -> bool:
    """Return whether a struct stands for a oneof."""
    named = schema.name is not None and schema.name.startswith(UNION)
    return schema.type is Type.STRUCT and (named or schema.parameter(GENERAL_UNION) is not None)


def is_wrapped(schema: Schema, options: ProtobufOptions, in_oneof: bool) -> bool:
    """Return whether a scalar field is a wrapper message. In a oneof only what was one is."""
    return options.wrapper_for_nullables and schema.optional and (not in_oneof or schema.parameter(WRAPPER) == "true")


def enum_parameter(schema: Schema, options: ProtobufOptions) -> str | None:
    """Return the parameter that lists an enum's symbols, None where the schema is no enum."""
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
        """Return the file, and the full name of its message."""
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
        """Return a name, scrubbed if that is asked for."""
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
    """Return the name of a map's entries."""
    if "_" in name:
        name = "".join(part.capitalize() for part in name.split("_"))
    return f"{name}Entry"


def map_field(name: str) -> str:
    """Return a map's name from that of its entries."""
    start, dot, last = name.rpartition(".")
    if last.endswith("Entry"):
        last = re.sub(r"(?<!^)([A-Z])", r"_\1", last.removesuffix("Entry")).lower()
    return f"{start}{dot}{last}"


#: A field's value in the library's form to Connect data.
Reader = Callable[[Any], Any]

_KINDS: Mapping[int, tuple[str, Type]] = {
    FieldDescriptor.TYPE_INT32: ("int32", Type.INT32),
    FieldDescriptor.TYPE_SINT32: ("sint32", Type.INT32),
    FieldDescriptor.TYPE_SFIXED32: ("sfixed32", Type.INT32),
    FieldDescriptor.TYPE_UINT32: ("uint32", Type.INT64),
    FieldDescriptor.TYPE_FIXED32: ("fixed32", Type.INT64),
    FieldDescriptor.TYPE_INT64: ("int64", Type.INT64),
    FieldDescriptor.TYPE_UINT64: ("uint64", Type.INT64),
    FieldDescriptor.TYPE_SINT64: ("sint64", Type.INT64),
    FieldDescriptor.TYPE_FIXED64: ("fixed64", Type.INT64),
    FieldDescriptor.TYPE_SFIXED64: ("sfixed64", Type.INT64),
    FieldDescriptor.TYPE_FLOAT: ("float", Type.FLOAT32),
    FieldDescriptor.TYPE_DOUBLE: ("double", Type.FLOAT64),
    FieldDescriptor.TYPE_BOOL: ("bool", Type.BOOLEAN),
    FieldDescriptor.TYPE_STRING: ("string", Type.STRING),
    FieldDescriptor.TYPE_BYTES: ("bytes", Type.BYTES),
}


class ToConnect:
    """Makes the Connect schema of one message type.

    Raises (on call):
        DataError: the type contains itself or has something that Connect has not.
    """

    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options
        self._open: list[str] = []
        self._tags: dict[str, str] = {}

    def __call__(self, descriptor: Any, version: int | None = None) -> tuple[Schema, Reader]:
        """Return the schema, and the function that reads a message."""
        if self._options.wrapper_for_primitives and descriptor.full_name in WRAPPERS:
            schema = Schema(WRAPPERS[descriptor.full_name], version=version)
            return schema, _wrapped(_signed)
        schema, read = self._message(descriptor)
        return replace(schema, version=version), _rebound(replace(schema, version=version), read)

    def _message(self, descriptor: Any) -> tuple[Schema, Callable[[Schema, Any], Any]]:
        if descriptor.full_name in self._open:
            raise DataError(f"The Protobuf message {descriptor.full_name} contains itself, which is not supported")
        self._open.append(descriptor.full_name)
        options = self._options
        fields: list[Field] = []
        readers: list[Reader] = []
        real = [oneof for oneof in descriptor.oneofs if not _is_synthetic(oneof)]
        for oneof in real:
            if options.flatten_unions:
                for member in oneof.fields:
                    self._add(fields, readers, member, in_oneof=True)
            else:
                self._add_union(fields, readers, oneof)
        for field in descriptor.fields:
            if field.containing_oneof is None or _is_synthetic(field.containing_oneof):
                self._add(fields, readers, field)
        self._open.pop()
        name = descriptor.full_name if options.enhanced else descriptor.name
        schema = Schema(Type.STRUCT, name=name, fields=tuple(fields))
        return schema, lambda made, message: Struct(made, [read(message) for read in readers])

    def _add(self, fields: list[Field], readers: list[Reader], field: Any, in_oneof: bool = False) -> None:
        schema, read = self._field(field, in_oneof)
        name = field.name
        fields.append(Field(name, schema))
        always = (field.message_type is None or _is_repeated(field)) and not self._is_optional(field) and not in_oneof
        if always or (self._options.struct_for_nulls and not in_oneof):
            readers.append(lambda message: read(getattr(message, name)))
        else:
            readers.append(lambda message: read(getattr(message, name)) if message.HasField(name) else None)

    def _add_union(self, fields: list[Field], readers: list[Reader], oneof: Any) -> None:
        options = self._options
        name = f"{oneof.name}_{oneof.index}" if options.index_for_unions else oneof.name
        parts = {member.name: self._field(member, True) for member in oneof.fields}
        members = tuple(Field(member, schema) for member, (schema, _) in parts.items())
        if options.generalized:
            schema = Schema(Type.STRUCT, True, oneof.name, parameters=((GENERAL_UNION, oneof.name),), fields=members)
        else:
            schema = Schema(Type.STRUCT, True, f"{UNION}.{oneof.full_name if options.enhanced else oneof.name}", fields=members)
        fields.append(Field(name, schema))
        order = list(parts)

        def read(message: Any) -> Struct | None:
            chosen = message.WhichOneof(oneof.name)
            if chosen is None:
                return None
            values: list[Any] = [None] * len(order)
            values[order.index(chosen)] = parts[chosen][1](getattr(message, chosen))
            return Struct(schema, values)

        readers.append(read)

    def _is_optional(self, field: Any) -> bool:
        if field.containing_oneof is not None and _is_synthetic(field.containing_oneof):
            return True
        return self._options.optional_for_proto2 and _is_proto2_optional(field)

    def _field(self, field: Any, in_oneof: bool = False) -> tuple[Schema, Reader]:
        options = self._options
        schema, read = self._type(field)
        if _is_repeated(field) and schema.type is not Type.MAP:
            # The reference has one schema object for all uses of a message, so an element shows the tag of the message's first use.
            tag = self._tags.get(field.message_type.full_name) if schema.type is Type.STRUCT else None
            element = replace(schema, optional=True, parameters=schema.parameters if tag is None else ((TAG, tag),))
            read_element = _rebound(element, read) if schema.type is Type.STRUCT else read
            schema, read = Schema(Type.ARRAY, True, value_schema=element), lambda items: [read_element(item) for item in items]
        if in_oneof:
            schema = schema.as_optional()
            if options.wrapper_for_nullables and field.message_type is not None and field.message_type.full_name in WRAPPERS:
                schema = replace(schema, parameters=(*schema.parameters, (WRAPPER, "true")))
        elif options.optional_for_nullables:
            synthetic = field.containing_oneof is not None and _is_synthetic(field.containing_oneof)
            schema = schema.as_optional() if synthetic or _is_proto2_optional(field) else schema
        elif not options.wrapper_for_nullables:
            schema = schema.as_optional()
        if schema.type is Type.STRUCT:
            self._tags.setdefault(field.message_type.full_name, str(field.number))
        schema = replace(schema, parameters=(*schema.parameters, (TAG, str(field.number))))
        return schema, (_rebound(schema, read) if schema.type is Type.STRUCT else read)

    def _type(self, field: Any) -> tuple[Schema, Any]:
        """Return a field's schema without what its place adds, and its reader; a struct's reader takes its final schema too."""
        if field.message_type is not None:
            return self._message_field(field)
        if field.enum_type is not None:
            return self._enum(field.enum_type)
        name, kind = _KINDS[field.type]
        told = parameters_of(field).get(CONNECT_TYPE) if kind is Type.INT32 else None
        if told in ("int8", "int16"):
            half = 1 << (7 if told == "int8" else 15)
            return Schema(Type(told)), lambda value: (value + half) % (2 * half) - half
        parameters = () if name in ("int32", "int64") or kind not in (Type.INT32, Type.INT64) else ((TYPE, name),)
        return Schema(kind, parameters=parameters), _signed if name in ("uint64", "fixed64") else _same

    def _enum(self, enum: Any) -> tuple[Schema, Reader]:
        options = self._options
        parameter = GENERAL_ENUM if options.generalized else ENUM
        told = [(f"{parameter}.{value.name}", str(value.number)) for value in enum.values]
        schema = Schema(
            Type.INT32 if options.int_enums else Type.STRING,
            True,
            enum.full_name if options.enhanced else enum.name,
            parameters=((parameter, enum.name), *told),
        )
        if options.int_enums:
            return schema, _same
        names = {value.number: value.name for value in reversed(enum.values)}
        return schema, lambda number: names.get(number, f"UNKNOWN_ENUM_VALUE_{enum.name}_{number}")

    def _message_field(self, field: Any) -> tuple[Schema, Any]:
        full = field.message_type.full_name
        if full == DECIMAL_TYPE:
            told = parameters_of(field)
            parameters: tuple[tuple[str, str], ...] = (("scale", str(_integer(told.get("scale")) or 0)),)
            precision = _integer(told.get("precision"))
            if precision is not None:
                parameters += ((CONNECT_PRECISION, str(precision)),)
            return Schema(Type.BYTES, True, DECIMAL, 1, parameters=parameters), _decimal
        if full in _LOGICAL:
            type_, name, read = _LOGICAL[full]
            return Schema(type_, True, name, 1), read
        if full in WRAPPERS and (self._options.wrapper_for_nullables or self._options.wrapper_for_primitives):
            return Schema(WRAPPERS[full], True), _wrapped(_signed)
        if _is_map(field):
            return self._map(field.message_type)
        schema, read_struct = self._message(field.message_type)
        return schema.as_optional(), read_struct

    def _map(self, entry: Any) -> tuple[Schema, Reader]:
        (key, read_key), (value, read_value) = (self._field(field) for field in entry.fields)
        name = map_field(entry.full_name if self._options.enhanced else entry.name)
        schema = Schema(Type.MAP, True, name, key_schema=key, value_schema=value)
        options = entry.GetOptions()
        if options.map_entry:
            return schema, lambda items: {read_key(k): read_value(items[k]) for k in items}
        return schema, lambda items: {read_key(entry.key): read_value(entry.value) for entry in items}


def _integer(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _is_proto2_optional(field: Any) -> bool:
    return bool(field.has_presence and not field.is_required and field.containing_oneof is None and field.message_type is None)


def _is_synthetic(oneof: Any) -> bool:
    """Return the oneof that stands for proto3's `optional`."""
    return len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}"


def _is_map(field: Any) -> bool:
    entry = field.message_type
    parts = list(entry.fields)
    return (
        _is_repeated(field)
        and entry.name.endswith("Entry")
        and [part.name for part in parts] == ["key", "value"]
        and not any(_is_repeated(part) for part in parts)
    )


def _rebound(schema: Schema, read: Any) -> Reader:
    return lambda message: read(schema, message)


def _same(value: Any) -> Any:
    return value


def _signed(value: Any) -> Any:
    """Unsigned integers of 64 bits are Java's signed ones."""
    return value - (1 << 64) if type(value) is int and value >= 1 << 63 else value


def _wrapped(convert: Reader) -> Reader:
    return lambda message: convert(message.value)


def _decimal(message: Any) -> Decimal:
    return sized(Decimal(int.from_bytes(message.value, "big", signed=True)).scaleb(-message.scale, EXACT))


def _day(message: Any) -> datetime.date:
    try:
        return datetime.date(message.year, message.month, message.day)
    except ValueError as error:
        raise DataError(f"No date: {error}") from None


def _time(message: Any) -> datetime.time:
    try:
        return datetime.time(message.hours, message.minutes, message.seconds, message.nanos // 1_000_000 * 1000)
    except ValueError as error:
        raise DataError(f"No time of day: {error}") from None


_LOGICAL: Mapping[str, tuple[Type, str, Reader]] = {
    DATE_TYPE: (Type.INT32, DATE, _day),
    TIME_TYPE: (Type.INT32, TIME, _time),
    TIMESTAMP_TYPE: (Type.INT64, TIMESTAMP, lambda m: millis_to_timestamp(m.seconds * 1000 + m.nanos // 1_000_000)),
}
