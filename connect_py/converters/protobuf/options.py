"""Settings of the mapping between Connect and Protobuf (`ProtobufDataConfig.java`), and the names it uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from connect_py.api.config import ConfigKey, Importance
from connect_py.converters.registry.config import flag, mapping_values

NAMESPACE = "io.confluent.connect.protobuf"
DEFAULT_NAME = "ConnectDefault"
ENUM = f"{NAMESPACE}.Enum"
UNION = f"{NAMESPACE}.Union"
TAG = f"{NAMESPACE}.Tag"
TYPE = f"{NAMESPACE}.Type"
WRAPPER = f"{NAMESPACE}.Wrapper"
CONNECT_TYPE = "connect.type"
CONNECT_PRECISION = "connect.decimal.precision"

KEYS: tuple[ConfigKey, ...] = (
    flag("enhanced.protobuf.schema.support", False, "Whether names of messages keep their packages."),
    flag("scrub.invalid.names", False, "Whether characters that Protobuf's names cannot have are replaced."),
    flag("int.for.enums", False, "Whether enums are integers."),
    flag("optional.for.nullables", False, "Whether fields that may be null are `optional`."),
    flag("optional.for.proto2", True, "Whether proto2's `optional` is minded.", Importance.LOW),
    flag("wrapper.for.nullables", False, "Whether fields that may be null are wrapped in messages such as google.protobuf.StringValue."),
    flag("wrapper.for.raw.primitives", True, "Whether such a message at the top is a plain value.", Importance.LOW),
    flag("generate.struct.for.nulls", False, "Whether a message that is missing is a struct without values.", Importance.LOW),
    flag("generate.index.for.unions", True, "Whether the names of unions end in their indexes.", Importance.LOW),
    flag("flatten.unions", False, "Whether a union's members are fields of the struct around it.", Importance.LOW),
)


class ProtobufOptions(NamedTuple):
    """The settings, by what they change."""

    enhanced: bool = False
    scrub: bool = False
    int_enums: bool = False
    optional_for_nullables: bool = False
    optional_for_proto2: bool = True
    wrapper_for_nullables: bool = False
    wrapper_for_primitives: bool = True
    struct_for_nulls: bool = False
    index_for_unions: bool = True
    flatten_unions: bool = False
    generalized: bool = False
    ignore_default_for_nullables: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ProtobufOptions:
        """From parsed properties."""
        return cls(*mapping_values(KEYS, values))
