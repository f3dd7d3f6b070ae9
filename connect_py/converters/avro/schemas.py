"""Map Avro schemas to Connect schemas and back (`AvroData.toConnectSchema`, `AvroData.fromConnectSchema`).

A record that contains itself is refused: Connect's schemas here are plain values, which cannot contain themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from connect_py.converters.avro.binary import ANYTHING
from connect_py.converters.avro.defaults import default_from_json, default_to_json, is_valid_default
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
    INTERNAL_TYPE,
    MAP_ENTRY,
    NAMESPACE,
    RECORD_DOC,
    UNION,
    AvroOptions,
    has_string_keys,
    is_enum,
    is_fixed,
    is_map_entry,
    is_union,
    member_field,
    nullable_member,
)
from connect_py.converters.avro.schema import NO_DEFAULT, AvroField, AvroSchema, json_text
from connect_py.converters.json_write import scale_of
from connect_py.converters.registry.config import GENERAL_ENUM, GENERAL_UNION, GENERAL_UNION_PREFIX
from connect_py.data import Field, Schema, Type
from connect_py.data.avro_names import full_name, scrub_name, split_name
from connect_py.data.schema import DATE, DECIMAL, TIME, TIMESTAMP
from connect_py.errors import DataError

log = logging.getLogger(__name__)


_SIMPLE: Mapping[str, Type] = {
    "boolean": Type.BOOLEAN,
    "double": Type.FLOAT64,
    "float": Type.FLOAT32,
    "int": Type.INT32,
    "long": Type.INT64,
    "string": Type.STRING,
    "bytes": Type.BYTES,
    "fixed": Type.BYTES,
    "enum": Type.STRING,
}


@dataclass
class _Parts:
    """A schema in the making."""

    type: Type
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    optional: bool = False
    parameters: dict[str, str] = field(default_factory=dict)
    fields: list[Field] = field(default_factory=list)
    key_schema: Schema | None = None
    value_schema: Schema | None = None

    def build(self) -> Schema:
        parameters = tuple(self.parameters.items())
        return Schema(
            self.type,
            self.optional,
            self.name,
            self.version,
            self.doc,
            parameters,
            None,
            tuple(self.fields),
            self.key_schema,
            self.value_schema,
        )


class ToConnect:
    """Makes the Connect schemas of one converter.

    Raises (on call):
        DataError: the Avro schema has something that Connect has not.
    """

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._unions = 0
        self._open: list[AvroSchema] = []

    def __call__(self, avro: AvroSchema, version: int | None = None) -> Schema:
        return self._schema(avro, version=version)

    def _schema(
        self, avro: AvroSchema, *, optional: bool = False, default: Any = NO_DEFAULT, doc: str | None = None, version: int | None = None
    ) -> Schema:
        options = self._options
        if avro.type == "union":
            if len(avro.branches) == 1 and options.flatten_singletons:
                return self._schema(avro.branches[0], doc=doc)
            member = nullable_member(avro)
            if member is not None:
                return self._schema(member, optional=True, doc=doc)
        parts = self._parts(avro)
        self._documentation(avro, parts, doc)
        self._version(avro, parts, version)
        self._parameters(avro, parts)
        connect_default = avro.props.get(CONNECT_DEFAULT)
        if default is NO_DEFAULT:
            default = connect_default
        elif not options.discard_type_doc_default and options.metadata and connect_default is None:
            parts.parameters[FIELD_DEFAULT_FLAG] = "true"
        self._name(avro, parts)
        parts.optional = parts.optional or optional
        made = parts.build()
        return self._with_default(made, avro, default)

    def _parts(self, avro: AvroSchema) -> _Parts:
        match avro.type:
            case "bytes" | "fixed":
                return _bytes(avro)
            case "int":
                return _int(avro)
            case "long" if _is_logical(avro, "timestamp-millis"):
                return _Parts(Type.INT64, TIMESTAMP, 1)
            case "array":
                return self._array(avro)
            case "map":
                assert avro.items is not None
                return _Parts(Type.MAP, key_schema=Schema(Type.STRING), value_schema=self._schema(avro.items))
            case "record":
                return self._record(avro)
            case "enum":
                return self._enum(avro)
            case "union":
                return self._union(avro)
            case "null":
                raise DataError("Standalone null schemas are not supported by this converter")
            case _:
                return _Parts(_SIMPLE[avro.type])

    def _array(self, avro: AvroSchema) -> _Parts:
        assert avro.items is not None
        if not is_map_entry(avro.items):
            return _Parts(Type.ARRAY, value_schema=self._schema(avro.items))
        key, value = avro.items.field_named("key"), avro.items.field_named("value")
        if len(avro.items.fields) != 2 or key is None or value is None:
            raise DataError("Found map encoded as array of key-value pairs, but array elements do not match the expected format.")
        return _Parts(Type.MAP, key_schema=self._schema(key.schema), value_schema=self._schema(value.schema))

    def _record(self, avro: AvroSchema) -> _Parts:
        if any(known is avro for known in self._open):
            raise DataError(f"The Avro record {avro.name} contains itself, which is not supported")
        keeps_docs = not self._options.discard_type_doc_default and self._options.metadata
        parts = _Parts(Type.STRUCT)
        if keeps_docs and avro.doc is not None:
            parts.parameters[RECORD_DOC] = avro.doc
        self._open.append(avro)
        for part in avro.fields:
            if keeps_docs and part.doc is not None:
                parts.parameters[FIELD_DOC_PREFIX + part.name] = part.doc
            schema = self._schema(part.schema, default=part.default, doc=part.doc)
            given = part.props.get(CONNECT_PARAMETERS)
            if self._options.metadata and isinstance(given, dict):
                merged = dict(schema.parameters) | {name: _java_text(value) for name, value in given.items()}
                schema = replace(schema, parameters=tuple(merged.items()))
            parts.fields.append(Field(part.name, schema))
        self._open.pop()
        return parts

    def _enum(self, avro: AvroSchema) -> _Parts:
        options, simple = self._options, avro.full_name.rpartition(".")[2]
        parts = _Parts(Type.STRING)
        if options.metadata:
            if avro.doc is not None:
                parts.parameters[CONNECT_ENUM_DOC if options.discard_type_doc_default else ENUM_DOC_PREFIX + simple] = avro.doc
            if not options.discard_type_doc_default and avro.enum_default is not None:
                parts.parameters[ENUM_DEFAULT_PREFIX + simple] = avro.enum_default
        name = GENERAL_ENUM if options.generalized else ENUM
        parts.parameters[name] = avro.full_name
        for index, symbol in enumerate(avro.symbols):
            parts.parameters[f"{name}.{symbol}"] = str(index) if options.generalized else symbol
        return parts

    def _union(self, avro: AvroSchema) -> _Parts:
        parts = _Parts(Type.STRUCT, UNION)
        if self._options.generalized:
            parts.name = f"{GENERAL_UNION_PREFIX}{self._unions}"
            parts.parameters[GENERAL_UNION] = parts.name
            self._unions += 1
        for index, branch in enumerate(avro.branches):
            if branch.type == "null":
                parts.optional = True
                continue
            name = member_field(branch, index, self._options)
            if any(known.name == name for known in parts.fields):
                raise DataError("Multiple union schemas map to the Connect union field name")
            parts.fields.append(Field(name, self._schema(branch, optional=True)))
        return parts

    def _documentation(self, avro: AvroSchema, parts: _Parts, doc: str | None) -> None:
        own = avro.props.get(CONNECT_DOC)
        if self._options.discard_type_doc_default:
            parts.doc = doc if doc is not None else avro.doc if avro.doc is not None else own
            if self._options.metadata and avro.doc is not None:
                parts.parameters[CONNECT_RECORD_DOC] = avro.doc
        elif self._options.metadata:
            parts.doc = own

    def _version(self, avro: AvroSchema, parts: _Parts, version: int | None) -> None:
        given = avro.props.get(CONNECT_VERSION)
        if given is not None and (isinstance(given, bool) or not isinstance(given, int | float)):
            raise DataError(f"Invalid Connect version found: {given}")
        wanted = version if given is None else int(given)
        if wanted is None or wanted < 0:
            return
        if parts.version is not None and parts.version != wanted:
            raise DataError(f"Mismatched versions: the type's own ({parts.version}) differs from version in source schema ({wanted})")
        parts.version = wanted

    def _parameters(self, avro: AvroSchema, parts: _Parts) -> None:
        given = avro.props.get(CONNECT_PARAMETERS)
        if self._options.metadata and given is not None:
            if not isinstance(given, dict):
                raise DataError(f"Expected JSON object for schema parameters but found: {json_text(given)}")
            for name, value in given.items():
                if not isinstance(value, str):
                    raise DataError(f"Expected schema parameter values to be strings but found: {json_text(value)}")
                parts.parameters[name] = value
        for name, value in avro.props.items():
            if name.startswith("avro"):
                parts.parameters[name] = _java_text(value)

    def _name(self, avro: AvroSchema, parts: _Parts) -> None:
        name = avro.props.get(CONNECT_NAME)
        if name is not None and not isinstance(name, str):
            raise DataError(f"Invalid schema name: {json_text(name)}")
        if name is None and (avro.type in ("record", "enum") or (avro.type == "fixed" and parts.name != DECIMAL)):
            name = avro.full_name
        if name is None or name.startswith(DEFAULT_NAME):
            return
        if parts.name is not None and parts.name != name:
            raise DataError(f"Mismatched names: the type's own ({parts.name}) differs from name in source schema ({name})")
        parts.name = name

    def _with_default(self, schema: Schema, avro: AvroSchema, default: Any) -> Schema:
        if default is None or default is NO_DEFAULT:
            return schema
        try:
            return schema.with_default(default_from_json(schema, avro, default, self._options))
        except (DataError, AttributeError, KeyError, TypeError, ValueError) as error:
            log.warning("Ignoring invalid default for schema %s: %s", avro.full_name, error)
            return schema


def _is_logical(avro: AvroSchema, name: str) -> bool:
    return (avro.logical_type or "").lower() == name


def _bytes(avro: AvroSchema) -> _Parts:
    parts = _Parts(Type.BYTES)
    if _is_logical(avro, "decimal"):
        scale, precision = avro.props.get("scale", 0), avro.props.get("precision")
        parts = _Parts(Type.BYTES, DECIMAL, 1, parameters={"scale": str(int(scale))})
        if precision is not None and not isinstance(precision, int | float):
            raise DataError("precision property must be a JSON Integer. https://avro.apache.org/docs/1.9.1/spec.html#Decimal")
        if precision is not None and int(precision) != DEFAULT_PRECISION:
            parts.parameters[DECIMAL_PRECISION] = str(int(precision))
    if avro.type == "fixed":
        parts.parameters[FIXED_SIZE] = str(avro.size)
    return parts


def _int(avro: AvroSchema) -> _Parts:
    if avro.logical_type is not None:
        if _is_logical(avro, "date"):
            return _Parts(Type.INT32, DATE, 1)
        return _Parts(Type.INT32, TIME, 1) if _is_logical(avro, "time-millis") else _Parts(Type.INT32)
    kind = avro.props.get(CONNECT_TYPE)
    if kind is None:
        return _Parts(Type.INT32)
    if kind not in ("int8", "int16"):
        raise DataError("Connect type annotation for Avro int field is null")
    return _Parts(Type(kind))


def _java_text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


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
        """Return a full name; unnamed structs are ConnectDefault, ConnectDefault2 and so on."""
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
        for part in schema.fields:
            name = scrub_name(part.name) if self._options.scrub else part.name
            made.fields.append(self._field(name, part.schema, None if discard else parameters.get(FIELD_DOC_PREFIX + part.name)))
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
    """Return the name that subject strategies use; a union has none."""
    return None if schema.type == "union" else schema.full_name
