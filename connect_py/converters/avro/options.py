"""Hold the settings of the mapping between Connect and Avro (`AvroDataConfig.java`), and tell kinds of schemas apart.

Here are the names of the properties that carry what Avro lacks, and what an Avro or a Connect schema stands for: unions, enums, fixed
bytes, maps (`AvroData.java`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from connect_py.api.config import ConfigKey, Importance
from connect_py.converters.avro.schema import AvroSchema
from connect_py.converters.registry.config import GENERAL_ENUM, GENERAL_UNION, flag, mapping_values
from connect_py.data import Schema, Type

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_NAME = f"{NAMESPACE}.ConnectDefault"
MAP_ENTRY = "MapEntry"
INTERNAL_TYPE = "connect.internal.type"

CONNECT_NAME = "connect.name"
CONNECT_DOC = "connect.doc"
CONNECT_RECORD_DOC = "connect.record.doc"
CONNECT_ENUM_DOC = "connect.enum.doc"
CONNECT_VERSION = "connect.version"
CONNECT_DEFAULT = "connect.default"
CONNECT_PARAMETERS = "connect.parameters"
CONNECT_TYPE = "connect.type"

RECORD_DOC = f"{NAMESPACE}.record.doc"
ENUM_DOC_PREFIX = f"{NAMESPACE}.enum.doc."
ENUM_DEFAULT_PREFIX = f"{NAMESPACE}.enum.default."
FIELD_DOC_PREFIX = f"{NAMESPACE}.field.doc."
FIELD_DEFAULT_FLAG = f"{NAMESPACE}.field.default"

UNION = f"{NAMESPACE}.Union"
ENUM = f"{NAMESPACE}.Enum"
GENERAL_UNION_FIELD_PREFIX = "connect_union_field_"

FIXED_SIZE = "connect.fixed.size"
DECIMAL_PRECISION = "connect.decimal.precision"
DEFAULT_PRECISION = 64

KEYS: tuple[ConfigKey, ...] = (
    flag("enhanced.avro.schema.support", False, "Whether enums stay enums and union members keep their namespaces."),
    flag("scrub.invalid.names", False, "Whether characters that Avro's names cannot have are replaced."),
    flag("connect.meta.data", True, "Whether names, versions, parameters and defaults of Connect are put into the schema.", Importance.LOW),
    flag("discard.type.doc.default", False, "Whether documentation and defaults are those of fields only.", Importance.LOW),
    flag("allow.optional.map.keys", False, "Whether maps with optional string keys are Avro maps.", Importance.LOW),
    flag("flatten.singleton.unions", True, "Whether a union of one type is that type.", Importance.LOW),
)


class AvroOptions(NamedTuple):
    """The settings, by what they change."""

    enhanced: bool = False
    scrub: bool = False
    metadata: bool = True
    discard_type_doc_default: bool = False
    optional_map_keys: bool = False
    flatten_singletons: bool = True
    generalized: bool = False
    ignore_default_for_nullables: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> AvroOptions:
        """From parsed properties."""
        return cls(*mapping_values(KEYS, values))


def is_union(schema: Schema) -> bool:
    """Return whether a struct stands for one value of several types."""
    return schema.type is Type.STRUCT and (schema.name == UNION or schema.parameter(GENERAL_UNION) is not None)


def is_enum(schema: Schema, options: AvroOptions) -> bool:
    """Return whether a string is an enum's symbol, with the options that keep enums."""
    return schema.type is Type.STRING and (
        (options.generalized and schema.parameter(GENERAL_ENUM) is not None)
        or (options.enhanced and not options.generalized and schema.parameter(ENUM) is not None)
    )


def is_fixed(schema: Schema) -> bool:
    """Return whether bytes have a fixed length."""
    return schema.type is Type.BYTES and schema.name is not None and schema.parameter(FIXED_SIZE) is not None


def has_string_keys(schema: Schema, options: AvroOptions) -> bool:
    """Return whether a map is an Avro map; another is an array of entries."""
    key = schema.key_schema
    return key is not None and key.type is Type.STRING and (not key.optional or options.optional_map_keys)


def is_map_entry(avro: AvroSchema) -> bool:
    """Return whether an array's items are a map's entries."""
    return avro.type == "record" and (avro.name == f"{NAMESPACE}.{MAP_ENTRY}" or avro.props.get(INTERNAL_TYPE) == MAP_ENTRY)


def nullable_member(avro: AvroSchema) -> AvroSchema | None:
    """Return the type of a union that stands for an optional value, or of one that is flattened; None for another union."""
    members = [branch for branch in avro.branches if branch.type != "null"]
    return members[0] if len(avro.branches) == 2 and len(members) == 1 else None


def member_field(avro: AvroSchema, index: int, options: AvroOptions) -> str:
    """Return the name of a union member's field."""
    if options.generalized:
        return f"{GENERAL_UNION_FIELD_PREFIX}{index}"
    if avro.name is not None:
        return avro.name if options.enhanced else avro.name.rpartition(".")[2]
    return avro.type
