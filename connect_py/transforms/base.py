"""Share what all transforms have: their configuration, the side of the record that they work on, and what they require of it.

Transforms are used from their task's thread. They change no record, value or schema in place: a record may be tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from connect_py.api import ConfigDef, ConfigKey, ConfigType, Importance, Route, SinkRecord, SourceRecord
from connect_py.api.config import Validator, invalid
from connect_py.api.transform import RowChange
from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.java_regex import compile_java_regex
from connect_py.data.java_text import class_name
from connect_py.data.json_rows import NULL, NeedsRecord
from connect_py.errors import ConfigError, DataError

AnyRecord = SourceRecord | SinkRecord

KAFKA = "org.apache.kafka.connect.transforms."

REPLACE_NULL = ConfigKey(
    "replace.null.with.default",
    ConfigType.BOOLEAN,
    True,
    Importance.MEDIUM,
    "Whether to replace fields that have a default value and that are null to the default value. When set to true, the default "
    "value is used, otherwise null is used.",
    display_name="replace.null.with.default",
)


def key(name: str, type_: ConfigType, default: Any, importance: Importance, text: str, validator: Validator | None = None) -> ConfigKey:
    """Return a property of a transform: it has no group, and its name is what forms show."""
    return ConfigKey(name, type_, default, importance, text, display_name=name, validator=validator)


class Plugin:
    """A transform's or predicate's configuration.

    Class attributes:
        KEYS: the properties, in the order that answers show.
    """

    java_name: ClassVar[str]
    version: ClassVar[str] = "4.3.1"
    KEYS: ClassVar[Sequence[ConfigKey]] = ()

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the properties that Connect documents."""
        return ConfigDef(cls.KEYS)

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        self.use(self.config_def().parse(config))

    def use(self, config: Mapping[str, Any]) -> None:
        """Take parsed properties. Raises ConfigError."""

    def close(self) -> None:
        """There is nothing to free."""


class OneSide(Plugin):
    """A transform of the key or of the value; the concrete classes are `X$Key` and `X$Value`.

    Class attributes:
        on_key: which of the two.
        PURPOSE: what it does, as messages put it.
    """

    on_key: ClassVar[bool] = False
    PURPOSE: ClassVar[str] = ""

    def schema_of(self, record: AnyRecord) -> Schema | None:
        """Return the schema of this side."""
        return record.key_schema if self.on_key else record.value_schema

    def value_of(self, record: AnyRecord) -> Any:
        """Return the value of this side."""
        return record.key if self.on_key else record.value

    def schema_in(self, route: Route) -> Schema | None:
        """Return the schema of this side of a route's rows."""
        return route.key_schema if self.on_key else route.value_schema

    def with_schema(self, route: Route, schema: Schema) -> Route:
        """Return a route whose rows have another schema on this side."""
        return replace(route, key_schema=schema) if self.on_key else replace(route, value_schema=schema)

    def changing(self, route: Route, schema: Schema, change: Callable[[bytes], bytes], *, passes_null: bool = True) -> RowChange:
        """Return what changes this side of a route's rows and gives it a schema. A null passes as it is, one with a schema if it may."""
        to, passing = self.with_schema(route, schema), NULL if passes_null else None
        if self.on_key:
            return lambda key, value: (route, key, value) if key is None or key == passing else (to, change(key), value)
        return lambda key, value: (route, key, value) if value is None or value == passing else (to, key, change(value))

    def changing_values(self, route: Route, schema: Schema, change: Callable[[bytes], bytes]) -> RowChange:
        """Return what `changing` does where a null that has a schema is changed as well, and one without needs its record."""
        to = self.with_schema(route, schema)

        def checked(text: bytes | None) -> bytes:
            if text is None:
                raise NeedsRecord("There is no value")
            return change(text)

        if self.on_key:
            return lambda key, value: (to, checked(key), value)
        return lambda key, value: (to, key, checked(value))

    def changed(self, record: AnyRecord, schema: Schema | None, value: Any) -> AnyRecord:
        """Return the record with another schema and value on this side."""
        return with_key(record, schema, value) if self.on_key else with_value(record, schema, value)


def with_key(record: AnyRecord, schema: Schema | None, key: Any) -> AnyRecord:
    """Return the record with another key."""
    return replace(record, key_schema=schema, key=key)


def with_value(record: AnyRecord, schema: Schema | None, value: Any) -> AnyRecord:
    """Return the record with another value. Said field by field: `replace` takes four times as long, and this is done for every row."""
    if type(record) is not SourceRecord:
        return replace(record, value_schema=schema, value=value)
    return SourceRecord(
        record.source_partition,
        record.source_offset,
        record.topic,
        record.key_schema,
        record.key,
        schema,
        value,
        record.partition,
        record.timestamp,
        record.headers,
    )


# -- what is required ------------------------------------------------------------------------------------------------------------


def require_map(value: Any, purpose: str) -> dict[str, Any]:
    """Return the map of a value without a schema. Raises DataError (`util/Requirements.java`)."""
    if not isinstance(value, dict):
        raise DataError(f"Only Map objects supported in absence of schema for [{purpose}], found: {class_name(value)}")
    return value


def require_struct(value: Any, purpose: str, schema: Schema | None = None) -> Struct:
    """Return the struct of a value with a schema. Raises DataError."""
    if not isinstance(value, Struct):
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {class_name(value, schema)}")
    return value


def require_schema(schema: Schema | None, purpose: str) -> Schema:
    """Return the schema. Raises DataError when there is none."""
    if schema is None:
        raise DataError(f"Schema required for [{purpose}]")
    return schema


def require_struct_schema(schema: Schema | None, purpose: str) -> Schema:
    """Return the schema of a route's structs. Raises NeedsRecord for another and for none: each record has its own error."""
    if schema is None or schema.type is not Type.STRUCT:
        raise NeedsRecord(purpose)
    return schema


def require_fields(schema: Schema, verb: str = "list") -> Schema:
    """Return the schema of a struct. Raises DataError for another (`ConnectSchema.fields`, and `field` where the verb is `look up`)."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"Cannot {verb} fields on non-struct type")
    return schema


# -- schemas and structs -----------------------------------------------------------------------------------------------------------


def like(source: Schema, fields: Sequence[Field]) -> Schema:
    """Return a required struct schema with the name, version, doc and parameters of another schema (`util/SchemaUtil.copySchemaBasics`).

    Raises:
        DataError: two fields have one name, or one has none.
    """
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise DataError(f"Cannot create field because of field name duplication {field.name}")
        if not field.name:
            raise DataError("fieldName cannot be null.")
        seen.add(field.name)
    return Schema(Type.STRUCT, name=source.name, version=source.version, doc=source.doc, parameters=source.parameters, fields=tuple(fields))


def field_values(struct: Struct, with_defaults: bool) -> list[Any]:
    """Return a struct's values in its schema's order, nulls replaced by defaults or not."""
    if not with_defaults:
        return list(struct.values)
    fields = struct.schema.fields
    return [fields[i].schema.default if value is None else value for i, value in enumerate(struct.values)]


# -- validators --------------------------------------------------------------------------------------------------------------------


def distinct(*, may_be_empty: bool = False) -> Validator:
    """Accept a list without repeated or empty items (`ConfigDef.ValidList.anyNonDuplicateValues`)."""

    def check(name: str, value: Any) -> None:
        if value is None:
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        if not value and not may_be_empty:
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: any non-empty value")
        if len(set(value)) < len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        if not all(value):
            raise ConfigError(f"Configuration '{name}' values must not be empty.")

    return check


def non_empty_list(name: str, value: Any) -> None:
    """A list with items (`util/NonEmptyListValidator.java`)."""
    if not value:
        raise invalid(name, value, "Empty list")


def non_null(name: str, value: Any) -> None:
    """Something (`ConfigDef.NonNullValidator`)."""
    if value is None:
        raise invalid(name, None, "entry must be non null")


def valid_regex(name: str, value: Any) -> None:
    """A Java regex (`util/RegexValidator.java`)."""
    if value is None:
        # the reference's own words, next to those that say that a value is missing
        raise invalid(name, None, 'Invalid regex: Cannot invoke "String.isEmpty()" because "this.pattern" is null')
    try:
        compile_java_regex(value)
    except ConfigError as error:
        raise invalid(name, value, f"Invalid regex: {error}") from None


def java_split(text: str, separator: str) -> list[str]:
    """`String.split`: empty parts at the end do not count."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts
