"""What an Avro or a Connect schema stands for: unions, enums, fixed bytes, maps (`AvroData.java`)."""

from __future__ import annotations

from connect_py.converters.avro.options import (
    ENUM,
    FIXED_SIZE,
    GENERAL_ENUM,
    GENERAL_UNION,
    GENERAL_UNION_FIELD_PREFIX,
    INTERNAL_TYPE,
    MAP_ENTRY,
    NAMESPACE,
    UNION,
    AvroOptions,
)
from connect_py.converters.avro.schema import AvroSchema
from connect_py.data import Schema, Type


def is_union(schema: Schema) -> bool:
    """Whether a struct stands for one value of several types."""
    return schema.type is Type.STRUCT and (schema.name == UNION or schema.parameter(GENERAL_UNION) is not None)


def is_enum(schema: Schema, options: AvroOptions) -> bool:
    """Whether a string is an enum's symbol, with the options that keep enums."""
    return schema.type is Type.STRING and (
        (options.generalized and schema.parameter(GENERAL_ENUM) is not None)
        or (options.enhanced and not options.generalized and schema.parameter(ENUM) is not None)
    )


def is_fixed(schema: Schema) -> bool:
    """Whether bytes have a fixed length."""
    return schema.type is Type.BYTES and schema.name is not None and schema.parameter(FIXED_SIZE) is not None


def has_string_keys(schema: Schema, options: AvroOptions) -> bool:
    """Whether a map is an Avro map; another is an array of entries."""
    key = schema.key_schema
    return key is not None and key.type is Type.STRING and (not key.optional or options.optional_map_keys)


def is_map_entry(avro: AvroSchema) -> bool:
    """Whether an array's items are a map's entries."""
    return avro.type == "record" and (avro.name == f"{NAMESPACE}.{MAP_ENTRY}" or avro.props.get(INTERNAL_TYPE) == MAP_ENTRY)


def nullable_member(avro: AvroSchema) -> AvroSchema | None:
    """The type of a union that stands for an optional value, or of one that is flattened; None for another union."""
    members = [branch for branch in avro.branches if branch.type != "null"]
    return members[0] if len(avro.branches) == 2 and len(members) == 1 else None


def member_field(avro: AvroSchema, index: int, options: AvroOptions) -> str:
    """The name of a union member's field."""
    if options.generalized:
        return f"{GENERAL_UNION_FIELD_PREFIX}{index}"
    if avro.name is not None:
        return avro.name if options.enhanced else avro.name.rpartition(".")[2]
    return avro.type
