"""Settings of the mapping between Connect and JSON Schema (`JsonSchemaDataConfig.java`), and the names it uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from connect_py.api.config import ConfigKey, ConfigType, Importance, one_of_ignoring_case
from connect_py.converters.registry.config import flag

NAMESPACE = "io.confluent.connect.json"
CONNECT_TYPE = "connect.type"
CONNECT_VERSION = "connect.version"
CONNECT_PARAMETERS = "connect.parameters"
CONNECT_INDEX = "connect.index"

ENUM = f"{NAMESPACE}.Enum"
ONE_OF = f"{NAMESPACE}.OneOf"
GENERAL_UNION = "org.apache.kafka.connect.data.Union"
GENERAL_ENUM = "org.apache.kafka.connect.data.Enum"
GENERAL_UNION_PREFIX = "connect_union_"
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
        return cls(
            values["object.additional.properties"],
            values["use.optional.for.nonrequired"],
            values["decimal.format"].upper() == "NUMERIC",
            values["flatten.singleton.unions"],
            values["generalized.sum.type.support"],
            values["ignore.default.for.nullables"],
        )
