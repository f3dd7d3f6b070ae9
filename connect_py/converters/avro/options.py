"""Settings of the mapping between Connect and Avro (`AvroDataConfig.java`), and the names of the properties that carry what Avro lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from connect_py.api.config import ConfigKey, Importance
from connect_py.converters.registry.config import flag

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
#: What all three formats call unions and enums with ``generalized.sum.type.support``.
GENERAL_UNION = "org.apache.kafka.connect.data.Union"
GENERAL_ENUM = "org.apache.kafka.connect.data.Enum"
GENERAL_UNION_PREFIX = "connect_union_"
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
        names = (*(key.name for key in KEYS), "generalized.sum.type.support", "ignore.default.for.nullables")
        return cls(*(values[name] for name in names))
