"""Connect values to the JSON that a JSON Schema describes, and back (`JsonSchemaData.fromConnectData`, `toConnectData`), with the settings
of the mapping (`JsonSchemaDataConfig.java`) and the names it uses.

What is written differs from JsonConverter's in maps whose keys are no strings (objects with key and value), in unions, and in that a
required field without a value is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from connect_py.api.config import ConfigKey, ConfigType, Importance, one_of_ignoring_case
from connect_py.converters.base import struct_values, wrong_type
from connect_py.converters.json_read import node_type, payload_reader
from connect_py.converters.json_write import WriteOptions, payload_writer, quote
from connect_py.converters.registry.config import GENERAL_UNION, flag, mapping_values
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import STRING
from connect_py.errors import DataError

NAMESPACE = "io.confluent.connect.json"
CONNECT_TYPE = "connect.type"
CONNECT_VERSION = "connect.version"
CONNECT_PARAMETERS = "connect.parameters"
CONNECT_INDEX = "connect.index"

ENUM = f"{NAMESPACE}.Enum"
ONE_OF = f"{NAMESPACE}.OneOf"
NULL_SYMBOL = "<NULL>"

KEYS: tuple[ConfigKey, ...] = (
    flag("object.additional.properties", True, "Whether objects may have properties that their schema does not name."),
    flag("use.optional.for.nonrequired", False, "Whether properties that are not required are optional fields."),
    ConfigKey(
        "decimal.format",
        ConfigType.STRING,
        "BASE64",
        Importance.LOW,
        "Whether decimals are texts of bytes (BASE64) or numbers (NUMERIC).",
        validator=one_of_ignoring_case("BASE64", "NUMERIC"),
    ),
    flag("flatten.singleton.unions", True, "Whether a choice of one schema is that schema.", Importance.LOW),
)


class JsonSchemaOptions(NamedTuple):
    """The settings, by what they change."""

    additional_properties: bool = True
    optional_for_nonrequired: bool = False
    numeric_decimals: bool = False
    flatten_singletons: bool = True
    generalized: bool = False
    ignore_default_for_nullables: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> JsonSchemaOptions:
        """From parsed properties."""
        found = cls(*mapping_values(KEYS, values))
        return found._replace(numeric_decimals=values["decimal.format"].upper() == "NUMERIC")


#: One value to JSON text, which is empty where a value is left out; raises DataError.
Writer = Callable[[Any], str]


def writer(schema: Schema, options: JsonSchemaOptions) -> Writer:
    """Return the function that writes values of a schema."""
    write = _plain_writer(schema, options)
    if schema.default is not None and not options.ignore_default_for_nullables:
        null = write(schema.default)
    else:
        null = "null" if schema.optional else ""
    return lambda value: null if value is None else write(value)


def _plain_writer(schema: Schema, options: JsonSchemaOptions) -> Writer:
    match schema.type:
        case Type.ARRAY:
            return _array(schema, options)
        case Type.MAP:
            return _map_writer(schema, options)
        case Type.STRUCT:
            union = schema.name == ONE_OF or schema.parameter(GENERAL_UNION) is not None
            return _union_writer(schema, options) if union else _struct_writer(schema, options)
        case _:
            return payload_writer(schema, WriteOptions(options.numeric_decimals))


def _array(schema: Schema, options: JsonSchemaOptions) -> Writer:
    assert schema.value_schema is not None
    element = writer(schema.value_schema, options)

    def write(value: Any) -> str:
        if not isinstance(value, list | tuple):
            raise wrong_type(schema, value)
        return "[" + ",".join([element(item) or "null" for item in value]) + "]"

    return write


def _map_writer(schema: Schema, options: JsonSchemaOptions) -> Writer:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    key, item = writer(schema.key_schema, options), writer(schema.value_schema, options)
    as_object = schema.key_schema.type is Type.STRING and not schema.key_schema.optional

    def write(value: Any) -> str:
        if not isinstance(value, Mapping):
            raise wrong_type(schema, value)
        if as_object:
            return "{" + ",".join([f"{_name(k)}:{item(v) or 'null'}" for k, v in value.items()]) + "}"
        return "[" + ",".join([f'{{"key":{key(k) or "null"},"value":{item(v) or "null"}}}' for k, v in value.items()]) + "]"

    return write


def _name(key: Any) -> str:
    if not isinstance(key, str):
        raise wrong_type(STRING, key)
    return quote(key)


def _struct_writer(schema: Schema, options: JsonSchemaOptions) -> Writer:
    parts = [(quote(field.name) + ":", writer(field.schema, options)) for field in schema.fields]

    def write(value: Any) -> str:
        texts = [(name, part(item)) for (name, part), item in zip(parts, struct_values(schema, value, "Mismatching schema."), strict=True)]
        return "{" + ",".join([name + text for name, text in texts if text]) + "}"

    return write


def _union_writer(schema: Schema, options: JsonSchemaOptions) -> Writer:
    parts = [writer(field.schema, options) for field in schema.fields]

    def write(value: Any) -> str:
        for part, item in zip(parts, struct_values(schema, value, "Mismatching schema."), strict=True):
            if item is not None:
                return part(item)
        return "null" if schema.optional else ""

    return write


#: One parsed JSON value to Connect data; raises DataError.
Reader = Callable[[Any], Any]
_MISSING = object()


def reader(schema: Schema, options: JsonSchemaOptions) -> Reader:
    """Return the function that reads values of a schema. A property that is missing is null even where the schema requires it."""
    read = _plain_reader(schema, options)

    def read_or_null(value: Any) -> Any:
        if value is not None and value is not _MISSING:
            return read(value)
        if schema.default is None and not schema.optional and value is None:
            raise DataError(f"Invalid null value for required {schema.type.name} field")
        return schema.default

    return read_or_null


def _plain_reader(schema: Schema, options: JsonSchemaOptions) -> Reader:
    match schema.type:
        case Type.ARRAY:
            element = _inner(schema.value_schema, options)
            return lambda value: [element(item) for item in _of(value, list, "Arrays should be encoded as JSON arrays")]
        case Type.MAP:
            return _map_reader(schema, options)
        case Type.STRUCT:
            union = schema.name == ONE_OF or schema.parameter(GENERAL_UNION) is not None
            return _union_reader(schema, options) if union else _struct_reader(schema, options)
        case _:
            return payload_reader(schema)


def _inner(schema: Schema | None, options: JsonSchemaOptions) -> Reader:
    assert schema is not None
    return reader(schema, options)


def _of(value: Any, type_: type, rule: str) -> Any:
    if not isinstance(value, type_):
        raise DataError(f"{rule}, but found {node_type(value)}")
    return value


def _map_reader(schema: Schema, options: JsonSchemaOptions) -> Reader:
    key, item = _inner(schema.key_schema, options), _inner(schema.value_schema, options)
    assert schema.key_schema is not None
    if schema.key_schema.type is Type.STRING and not schema.key_schema.optional:
        rule = "Maps with string fields should be encoded as JSON objects"
        return lambda value: {name: item(held) for name, held in _of(value, dict, rule).items()}

    def read(value: Any) -> dict[Any, Any]:
        found = {}
        for entry in _of(value, list, "Maps with non-string fields should be encoded as JSON array of objects"):
            if len(_of(entry, dict, "Found invalid map entry instead of object")) != 2:
                raise DataError(f"Found invalid map entry, expected length 2 but found :{len(entry)}")
            found[key(entry.get("key", _MISSING))] = item(entry.get("value", _MISSING))
        return found

    return read


def _struct_reader(schema: Schema, options: JsonSchemaOptions) -> Reader:
    parts = [(field.name, reader(field.schema, options)) for field in schema.fields]

    def read(value: Any) -> Struct:
        get = _of(value, dict, "Structs should be encoded as JSON objects").get
        return Struct(schema, [part(get(name, _MISSING)) for name, part in parts])

    return read


def _union_reader(schema: Schema, options: JsonSchemaOptions) -> Reader:
    """Return the member whose simple type fits, else the struct that shares most properties with the value."""
    parts = [reader(field.schema, options) for field in schema.fields]

    def read(value: Any) -> Struct:
        best, most = None, 0
        for at, field in enumerate(schema.fields):
            if _is_simple(field.schema, value):
                best = at
                break
            shared = _shared(field.schema, value)
            if shared > most:
                best, most = at, shared
        if best is None:
            raise DataError("Did not find matching oneof field for data")
        values: list[Any] = [None] * len(parts)
        values[best] = parts[best](value)
        return Struct(schema, values)

    return read


_KINDS: dict[Type, tuple[str, ...]] = {
    Type.BOOLEAN: ("BOOLEAN",),
    Type.STRING: ("STRING",),
    Type.ARRAY: ("ARRAY",),
    Type.MAP: ("OBJECT", "ARRAY"),
    Type.FLOAT32: ("NUMBER",),
    Type.FLOAT64: ("NUMBER",),
}


def _is_simple(schema: Schema, value: Any) -> bool:
    if schema.type in (Type.INT8, Type.INT16, Type.INT32, Type.INT64):
        return type(value) is int
    return node_type(value) in _KINDS.get(schema.type, ())


def _shared(schema: Schema, value: Any) -> int:
    if schema.type is not Type.STRUCT or not isinstance(value, dict):
        return 0
    fields = [field for field in schema.fields if field.name in value]
    return len(fields) + sum(_shared(field.schema, value[field.name]) for field in fields)
