"""Connect values to Protobuf messages (`ProtobufData.fromConnectData`)."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping
from typing import Any

from connect_py.converters.base import BITS, struct_values, wrong_logical, wrong_type
from connect_py.converters.protobuf.known import WRAPPERS, message_class
from connect_py.converters.protobuf.options import ProtobufOptions
from connect_py.converters.protobuf.schemas import LOGICAL, enum_parameter, is_union
from connect_py.data import Schema, Struct, Type
from connect_py.data.avro_names import scrub_name
from connect_py.data.schema import DATE, DECIMAL, TIME, int_to_bytes
from connect_py.data.times import date_to_days, days_to_date, timestamp_to_millis
from connect_py.errors import DataError

#: Puts a value into a message.
Fill = Callable[[Any, Any], None]


def encoder(schema: Schema, descriptor: Any, options: ProtobufOptions) -> Callable[[Any], bytes]:
    """Return the function that writes values of a schema as messages of a type, which may be another's: fields are matched by name.

    Raises:
        DataError: the type has no place for a field; also on call, for a value that is not what the schema says.
    """
    make = message_class(descriptor)
    fill = _into_value(schema) if schema.type is not Type.STRUCT else _struct(schema, descriptor, options)

    def encode(value: Any) -> bytes:
        message = make()
        try:
            fill(message, value)
            return message.SerializeToString()  # type: ignore[no-any-return]
        except (TypeError, ValueError) as error:
            raise DataError(f"The value cannot be written as {descriptor.full_name}: {error}") from None

    return encode


def _struct(schema: Schema, descriptor: Any, options: ProtobufOptions) -> Fill:
    parts = [_field(field.name, field.schema, descriptor, options) for field in schema.fields]
    defaults = [None if options.ignore_default_for_nullables else field.schema.default for field in schema.fields]

    def fill(message: Any, value: Any) -> None:
        for part, item, default in zip(parts, struct_values(schema, value), defaults, strict=True):
            if item is not None:
                part(message, item)
            elif default is not None:
                part(message, default)

    return fill


def _field(name: str, schema: Schema, descriptor: Any, options: ProtobufOptions) -> Fill:
    if is_union(schema):
        return _union(schema, descriptor, options)
    name = scrub_name(name, underscore_first=False) if options.scrub else name
    field = descriptor.fields_by_name.get(name)
    if field is None:
        raise DataError(f"Cannot find field with name {name} in the Protobuf message {descriptor.full_name}")
    if schema.type is Type.ARRAY:
        return _array(name, schema, field, options)
    if schema.type is Type.MAP:
        return _map(name, schema, field, options)
    if field.message_type is not None:
        into = _into_message(schema, field.message_type, options)

        def fill(message: Any, value: Any) -> None:
            part = getattr(message, name)
            part.SetInParent()
            into(part, value)

        return fill
    convert = _scalar(schema, field, options)
    return lambda message, value: setattr(message, name, convert(value))


def _union(schema: Schema, descriptor: Any, options: ProtobufOptions) -> Fill:
    parts = [_field(field.name, field.schema, descriptor, options) for field in schema.fields]

    def fill(message: Any, value: Any) -> None:
        if not isinstance(value, Struct):
            raise wrong_type(schema, value)
        for part, item in zip(parts, value.values, strict=True):
            if item is not None:
                part(message, item)
                return
        raise DataError("Cannot find non-null field")

    return fill


def _array(name: str, schema: Schema, field: Any, options: ProtobufOptions) -> Fill:
    element = schema.value_schema
    assert element is not None
    if field.message_type is not None:
        into = _into_message(element, field.message_type, options)

        def fill(message: Any, value: Any) -> None:
            for item in _listed(schema, value):
                into(getattr(message, name).add(), item)

        return fill
    convert = _scalar(element, field, options)
    return lambda message, value: getattr(message, name).extend([convert(item) for item in _listed(schema, value)])


def _listed(schema: Schema, value: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise wrong_type(schema, value)
    if None in value:
        raise DataError("Protobuf cannot have a null in an array")
    return value


def _map(name: str, schema: Schema, field: Any, options: ProtobufOptions) -> Fill:
    key, item = schema.key_schema, schema.value_schema
    assert key is not None
    assert item is not None
    if field.message_type is None:
        raise DataError(f"The Protobuf field {name} is no list of entries, and the record has a map")
    set_key, set_value = _field("key", key, field.message_type, options), _field("value", item, field.message_type, options)

    def fill(message: Any, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise wrong_type(schema, value)
        entries = getattr(message, name)
        for one, other in value.items():
            entry = entries.add()
            if one is not None:
                set_key(entry, one)
            if other is not None:
                set_value(entry, other)

    return fill


def _into_message(schema: Schema, descriptor: Any, options: ProtobufOptions) -> Fill:
    if schema.name in LOGICAL:
        return _LOGICAL.get(schema.name, _timestamp)
    if descriptor.full_name in WRAPPERS:
        return _into_value(schema)
    return _struct(schema, descriptor, options)


def _into_value(schema: Schema) -> Fill:
    """Into a wrapper's only field."""
    convert = _plain(schema)

    def fill(message: Any, value: Any) -> None:
        message.value = convert(value)

    return fill


def _scalar(schema: Schema, field: Any, options: ProtobufOptions) -> Callable[[Any], Any]:
    parameter = enum_parameter(schema, options)
    if field.enum_type is None or parameter is None or schema.type is not Type.STRING:
        return _plain(schema)
    numbers = {key.removeprefix(f"{parameter}."): int(value) for key, value in schema.parameters if key.startswith(f"{parameter}.")}

    def convert(value: Any) -> int:
        try:
            return numbers[value]
        except (KeyError, TypeError):
            raise DataError(f"{value!r} is no symbol of the enum {field.enum_type.full_name}") from None

    return convert


def _plain(schema: Schema) -> Callable[[Any], Any]:
    if schema.type in BITS:
        bound = 1 << BITS[schema.type]

        def integer(value: Any) -> int:
            if type(value) is not int:
                raise wrong_type(schema, value)
            if not -bound <= value < bound:
                raise DataError(f"{value} is not in the range of {schema.type.name}")
            return value

        return integer
    expected: Any = {Type.BOOLEAN: bool, Type.STRING: str, Type.BYTES: (bytes, bytearray, memoryview)}.get(schema.type, float)

    def convert(value: Any) -> Any:
        if not isinstance(value, expected):
            raise wrong_type(schema, value)
        return bytes(value) if schema.type is Type.BYTES else value

    return convert


# -- logical types -----------------------------------------------------------------------------------------------------------------


def _decimal(message: Any, value: Any) -> None:
    if not isinstance(value, decimal.Decimal) or not value.is_finite():
        raise wrong_logical("Decimal", value)
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    message.value, message.precision, message.scale = int_to_bytes(-unscaled if sign else unscaled), len(digits), -int(exponent)


def _date(message: Any, value: Any) -> None:
    if not isinstance(value, datetime.date):
        raise wrong_logical("Date", value)
    day = days_to_date(date_to_days(value))
    message.year, message.month, message.day = day.year, day.month, day.day


def _time(message: Any, value: Any) -> None:
    if not isinstance(value, datetime.time):
        raise wrong_logical("Time", value)
    message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
    message.nanos = value.microsecond // 1000 * 1_000_000


def _timestamp(message: Any, value: Any) -> None:
    if not isinstance(value, datetime.datetime):
        raise wrong_logical("Timestamp", value)
    seconds, millis = divmod(timestamp_to_millis(value), 1000)
    message.seconds, message.nanos = seconds, millis * 1_000_000


_LOGICAL: Mapping[str | None, Fill] = {DECIMAL: _decimal, DATE: _date, TIME: _time}
