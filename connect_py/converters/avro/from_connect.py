"""The Avro schema of a Connect schema (`AvroData.fromConnectSchema`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.converters.avro.anything import ANYTHING
from connect_py.converters.avro.defaults import default_to_json, is_valid_default
from connect_py.converters.avro.kinds import has_string_keys, is_enum, is_fixed, is_union
from connect_py.converters.avro.options import (
    CONNECT_DEFAULT,
    CONNECT_DOC,
    CONNECT_ENUM_DOC,
    CONNECT_NAME,
    CONNECT_PARAMETERS,
    CONNECT_RECORD_DOC,
    CONNECT_TYPE,
    CONNECT_VERSION,
    DECIMAL_PRECISION,
    DEFAULT_NAME,
    DEFAULT_PRECISION,
    ENUM,
    ENUM_DEFAULT_PREFIX,
    ENUM_DOC_PREFIX,
    FIELD_DEFAULT_FLAG,
    FIELD_DOC_PREFIX,
    FIXED_SIZE,
    GENERAL_ENUM,
    INTERNAL_TYPE,
    MAP_ENTRY,
    NAMESPACE,
    RECORD_DOC,
    AvroOptions,
)
from connect_py.converters.avro.schema import NO_DEFAULT, AvroField, AvroSchema
from connect_py.converters.json_write import scale_of
from connect_py.converters.registry.names import full_name, scrub_name, split_name
from connect_py.data import Schema, Type
from connect_py.data.logical import DATE, DECIMAL, TIME, TIMESTAMP

_BASE: Mapping[Type, str] = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL: Mapping[str | None, str] = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}


class FromConnect:
    """Makes one Avro schema; types of a name are made once.

    Raises (on call):
        DataError: the schema has something that Avro cannot have.
    """

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._made: dict[str | None, list[tuple[Schema, AvroSchema]]] = {}
        self._named = 0
        self._seen: set[str] = set()

    def __call__(self, schema: Schema | None, ignore_optional: bool = False) -> AvroSchema:
        if schema is None:
            return ANYTHING
        if not is_union(schema) and not schema.optional:
            for known, avro in self._made.get(schema.name, ()):
                if known == schema:
                    return avro
        if is_union(schema):
            return self._union(schema)
        if schema.type is Type.STRUCT and schema.optional:
            return _union([AvroSchema("null"), self(replace(schema, optional=False))])
        base = self._base(schema)
        if self._options.metadata:
            self._metadata(schema, base)
        self._logical(schema, base)
        for name, value in schema.parameters:
            if name.startswith("avro"):
                base.props.setdefault(name, value)
        if not schema.optional:
            self._made.setdefault(schema.name, []).append((schema, base))
        return base if ignore_optional else _optional(schema, base)

    def _union(self, schema: Schema) -> AvroSchema:
        nulls = [AvroSchema("null")] if schema.optional else []
        return _union(nulls + [self(replace(field.schema, optional=False), True) for field in schema.fields])

    def _base(self, schema: Schema) -> AvroSchema:
        match schema.type:
            case Type.STRING if is_enum(schema, self._options):
                return self._enum(schema)
            case Type.BYTES:
                return self._bytes(schema)
            case Type.ARRAY:
                return AvroSchema("array", items=self(schema.value_schema))
            case Type.MAP:
                return self._map(schema)
            case Type.STRUCT:
                return self._record(schema)
            case _:
                return AvroSchema(_BASE[schema.type])

    def _name_of(self, schema: Schema) -> str:
        """A full name; unnamed structs are ConnectDefault, ConnectDefault2 and so on."""
        if schema.name is not None:
            return full_name(schema.name, scrub=self._options.scrub)
        self._named += 1
        return DEFAULT_NAME + (str(self._named) if self._named > 1 else "")

    def _enum(self, schema: Schema) -> AvroSchema:
        name = GENERAL_ENUM if self._options.generalized else ENUM
        symbols = [key.removeprefix(f"{name}.") for key, _ in schema.parameters if key.startswith(f"{name}.")]
        made = AvroSchema("enum", name=schema.parameter(name), symbols=symbols)
        simple = split_name(self._name_of(schema))[1]
        if self._options.discard_type_doc_default:
            made.doc = schema.parameter(CONNECT_ENUM_DOC)
        else:
            made.doc, made.enum_default = schema.parameter(ENUM_DOC_PREFIX + simple), schema.parameter(ENUM_DEFAULT_PREFIX + simple)
        return made

    def _bytes(self, schema: Schema) -> AvroSchema:
        made = AvroSchema("bytes")
        if is_fixed(schema):
            made = AvroSchema("fixed", name=self._name_of(schema), size=int(schema.parameter(FIXED_SIZE) or 0))
        if schema.name == DECIMAL:
            made.props |= {"scale": scale_of(schema), "precision": int(schema.parameter(DECIMAL_PRECISION) or DEFAULT_PRECISION)}
        return made

    def _map(self, schema: Schema) -> AvroSchema:
        if has_string_keys(schema, self._options):
            return AvroSchema("map", items=self(schema.value_schema))
        if schema.name is None:
            entry = AvroSchema("record", name=f"{NAMESPACE}.{MAP_ENTRY}")
        else:
            entry = AvroSchema("record", name=self._name_of(schema), props={INTERNAL_TYPE: MAP_ENTRY})
        for name, part in (("key", schema.key_schema), ("value", schema.value_schema)):
            assert part is not None
            entry.fields.append(self._field(name, part, None))
        return AvroSchema("array", items=entry)

    def _record(self, schema: Schema) -> AvroSchema:
        discard = self._options.discard_type_doc_default
        made = AvroSchema("record", name=self._name_of(schema), doc=schema.parameter(CONNECT_RECORD_DOC if discard else RECORD_DOC))
        parameters = dict(schema.parameters)
        for field in schema.fields:
            name = scrub_name(field.name) if self._options.scrub else field.name
            made.fields.append(self._field(name, field.schema, None if discard else parameters.get(FIELD_DOC_PREFIX + field.name)))
        return made

    def _field(self, name: str, schema: Schema, doc: str | None) -> AvroField:
        default: Any = NO_DEFAULT
        if schema.default is not None:
            default = default_to_json(schema, schema.default, self._options)
        elif schema.optional:
            default = None
        scrubbed = None if schema.name is None else full_name(schema.name, scrub=self._options.scrub)
        seen = scrubbed is not None and scrubbed in self._seen
        if scrubbed is not None:
            self._seen.add(scrubbed)
        avro = self(schema)
        if default is not NO_DEFAULT and not is_valid_default(avro, default):
            default = NO_DEFAULT  # the reference leaves it out too, with a warning
        made = AvroField(name, avro, schema.doc if self._options.discard_type_doc_default else doc, default)
        if self._options.metadata and seen and schema.parameters and any(part.name for part in (avro, *avro.branches)):
            parameters = self._parameters(schema)
            if parameters:
                made.props[CONNECT_PARAMETERS] = parameters
        return made

    def _parameters(self, schema: Schema) -> dict[str, str]:
        keep_flag = self._options.discard_type_doc_default
        return {name: value for name, value in schema.parameters if keep_flag or name != FIELD_DEFAULT_FLAG}

    def _metadata(self, schema: Schema, base: AvroSchema) -> None:
        if schema.doc is not None:
            base.props[CONNECT_DOC] = schema.doc
        if schema.version is not None:
            base.props[CONNECT_VERSION] = schema.version
        if parameters := self._parameters(schema):
            base.props[CONNECT_PARAMETERS] = parameters
        if schema.default is not None and (self._options.discard_type_doc_default or schema.parameter(FIELD_DEFAULT_FLAG) is None):
            base.props[CONNECT_DEFAULT] = default_to_json(schema, schema.default, self._options)
        if schema.name is not None:
            base.props[CONNECT_NAME] = schema.name
        if schema.type in (Type.INT8, Type.INT16):
            base.props[CONNECT_TYPE] = schema.type.value

    def _logical(self, schema: Schema, base: AvroSchema) -> None:
        if schema.name == DECIMAL:
            base.props["logicalType"] = "decimal"
        elif schema.name in _LOGICAL:
            base.props["logicalType"] = _LOGICAL[schema.name]


def _union(branches: list[AvroSchema]) -> AvroSchema:
    return AvroSchema("union", branches=branches)


def _optional(schema: Schema, base: AvroSchema) -> AvroSchema:
    """A default must be of a union's first type, so null comes last where there is one."""
    if not schema.optional:
        return base
    return _union([base, AvroSchema("null")] if schema.default is not None else [AvroSchema("null"), base])


def record_name(schema: AvroSchema) -> str | None:
    """The name that subject strategies use; a union has none."""
    return None if schema.type == "union" else schema.full_name
