"""Names of topics and fields in another style (`io.debezium.connector.jdbc.transforms`, which Debezium ships with its JDBC sink)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from connect_py.api import ConfigKey, ConfigType, Importance, Width
from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.schema import SchemaCache
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import AnyRecord, like
from connect_py.transforms.debezium import DebeziumTransform, is_envelope, option

_PACKAGE = "io.debezium.connector.jdbc.transforms."
_BORDER = re.compile(r"([a-z])([A-Z])|([a-zA-Z])([0-9])|([0-9])([a-zA-Z])|\.")


def to_snake_case(name: str) -> str:
    """Return `order_2_items` of `Order2Items` and of `order.2.items` (`Strings#toSnakeCase`).

    As in Debezium, the character after a border begins no other border: `a1b` gives `a_1b`.
    """
    return _BORDER.sub(_with_underscore, name).lower()


def _with_underscore(match: re.Match[str]) -> str:
    one, two, three, four, five, six = (group or "" for group in match.groups())
    return f"{one}{three}{five}_{two}{four}{six}"


def to_camel_case(name: str) -> str:
    """Return `orderItems` of `order_items` and of `ORDER.ITEMS`; a name without separators becomes small letters
    (`Strings#convertDotAndUnderscoreStringToCamelCase`)."""
    words = re.split(r"[._]+", name)
    return words[0].lower() + "".join(word[:1].upper() + word[1:].lower() for word in words[1:])


_STYLES: Mapping[str, Callable[[str], str]] = {
    "snake_case": to_snake_case,
    "camel_case": to_camel_case,
    "upper_case": str.upper,
    "lower_case": str.lower,
    "default": str,
}


def _options(group: str, what: str) -> tuple[ConfigKey, ...]:
    def text(part: str, default: str, title: str, meaning: str) -> ConfigKey:
        return option(f"{group}.naming.{part}", ConfigType.STRING, default, Importance.LOW, Width.NONE, title, meaning)

    name = what.capitalize()
    return (
        text("prefix", "", f"{name} Name Prefix", f"What {what} names begin with in addition."),
        text("suffix", "", f"{name} Name Suffix", f"What {what} names end with in addition."),
        text(
            "style",
            "default",
            f"{name} Naming Style",
            f"The style of {what} names: snake_case, camel_case, UPPER_CASE, lower_case or default.",
        ),
    )


class _Naming(DebeziumTransform):
    """Class attributes: GROUP is what its properties begin with."""

    GROUP: str

    def use(self, config: Mapping[str, Any]) -> None:
        self._prefix, self._suffix = (config[f"{self.GROUP}.naming.{part}"] or "" for part in ("prefix", "suffix"))
        style = config[f"{self.GROUP}.naming.style"] or ""
        found = _STYLES.get(style.strip().lower())
        if found is None:
            error = ConfigError(f"Invalid naming style: {style}. Allowed styles are: {', '.join(map(str.upper, _STYLES))}")
            error.java_name = "io.debezium.DebeziumException"
            raise error
        self._style = found

    def renamed(self, name: str) -> str:
        """Return a name in the style, with prefix and suffix."""
        return f"{self._prefix}{self._style(name)}{self._suffix}"


class CollectionNameTransformation(_Naming):
    """Renames topics; a sink makes its tables' names of them."""

    java_name = f"{_PACKAGE}CollectionNameTransformation"
    GROUP = "collection"
    KEYS = _options(GROUP, "collection")

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with its new topic."""
        return replace(record, topic=self.renamed(record.topic))


class _Plan(NamedTuple):
    """What becomes of structs of one schema: their new schema, and in an event the new schemas of its rows by their index."""

    schema: Schema
    rows: Mapping[int, Schema]


class FieldNameTransformation(_Naming):
    """Renames the fields of rows and of keys, in change events those of `before` and `after`. Structs inside of them are left alone.

    A record whose value has no schema, or is no struct, is left alone with its key: so is a tombstone.
    """

    java_name = f"{_PACKAGE}FieldNameTransformation"
    GROUP = "column"
    KEYS = _options(GROUP, "column")

    def use(self, config: Mapping[str, Any]) -> None:
        super().use(config)
        self._rows: SchemaCache[Schema] = SchemaCache(self._row, 1024)
        self._plans: SchemaCache[_Plan] = SchemaCache(self._plan, 1024)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with new names. Raises DataError where two fields get one name, or an event's rows are no structs."""
        if record.value_schema is None or record.value_schema.type is not Type.STRUCT:
            return record
        if record.key_schema is not None and record.key_schema.type is Type.STRUCT:
            key_schema = self._rows(record.key_schema)
            record = replace(record, key_schema=key_schema, key=_of_schema(key_schema, record.key))
        plan = self._plans(record.value_schema)
        return replace(record, value_schema=plan.schema, value=self._value(plan, record.value))

    @staticmethod
    def _value(plan: _Plan, value: Struct | None) -> Struct | None:
        if value is None or not plan.rows:
            return _of_schema(plan.schema, value)
        values = [_of_schema(plan.rows[i], found) if i in plan.rows else found for i, found in enumerate(value.values)]
        return Struct(plan.schema, values)

    def _plan(self, schema: Schema | None) -> _Plan:
        assert schema is not None
        if not is_envelope(schema):
            return _Plan(self._rows(schema), {})
        rows = {i: self._rows(field.schema) for i, field in enumerate(schema.fields) if field.name in ("before", "after")}
        fields = tuple(Field(field.name, rows.get(i, field.schema)) for i, field in enumerate(schema.fields))
        return _Plan(replace(schema, fields=fields), rows)

    def _row(self, schema: Schema | None) -> Schema:
        if schema is None or schema.type is not Type.STRUCT:
            raise DataError("Cannot list fields on non-struct type")
        named = like(schema, [Field(self.renamed(field.name), field.schema) for field in schema.fields])
        return replace(named, optional=schema.optional, default=_of_schema(named, schema.default))


def _of_schema(schema: Schema, value: Struct | None) -> Struct | None:
    """Return a struct's values under other names."""
    return None if value is None else Struct(schema, value.values)
