"""Add headers, remove them, and take them from fields (`org.apache.kafka.connect.transforms.{InsertHeader,DropHeaders,HeaderFrom}`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from connect_py.api import ConfigType, Header, Importance, Route
from connect_py.api.config import REQUIRED, one_of
from connect_py.api.transform import RowChange
from connect_py.data import Schema, Struct, values
from connect_py.data.schema import STRING, SchemaCache
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import (
    KAFKA,
    REPLACE_NULL,
    AnyRecord,
    OneSide,
    Plugin,
    distinct,
    field_values,
    key,
    like,
    non_empty_list,
    non_null,
    require_map,
    require_schema,
    require_struct,
)


class InsertHeader(Plugin):
    """Adds one header with the same value to all records; its type is inferred from the text."""

    java_name = f"{KAFKA}InsertHeader"
    KEYS = (
        key("header", ConfigType.STRING, REQUIRED, Importance.HIGH, "The name of the header.", non_null),
        key(
            "value.literal",
            ConfigType.STRING,
            REQUIRED,
            Importance.HIGH,
            "The literal value that is to be set as the header value on all records.",
            non_null,
        ),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        schema, value = values.parse(config["value.literal"])
        self._header = Header(config["header"], value, schema)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the header after the others."""
        return replace(record, headers=[*record.headers, self._header])

    @property
    def handles_rows(self) -> bool:
        """Whether the header is a text, which is all that routes hold."""
        return self._header.schema == STRING

    def row_change(self, route: Route) -> RowChange:
        """Return what gives rows the header."""
        to = replace(route, headers=(*route.headers, (self._header.name, self._header.value)))
        return lambda key, value: (to, key, value)


class DropHeaders(Plugin):
    """Removes all headers of some names."""

    handles_rows = True
    java_name = f"{KAFKA}DropHeaders"
    KEYS = (key("headers", ConfigType.LIST, REQUIRED, Importance.HIGH, "The name of the headers to be removed.", distinct()),)

    def use(self, config: Mapping[str, Any]) -> None:
        self._names = set(config["headers"])

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the other headers."""
        return replace(record, headers=[header for header in record.headers if header.name not in self._names])

    def row_change(self, route: Route) -> RowChange:
        """Return what leaves rows the other headers."""
        to = replace(route, headers=tuple(header for header in route.headers if header[0] not in self._names))
        return lambda key, value: (to, key, value)


class _Plan(NamedTuple):
    """What is done with structs of one schema: positions of the fields that become headers, and of those that stay."""

    taken: list[int]
    schema: Schema
    kept: list[int]


class HeaderFrom(OneSide):
    """Copies or moves fields into headers."""

    KEYS = (
        key(
            "fields",
            ConfigType.LIST,
            REQUIRED,
            Importance.HIGH,
            "Field names in the record whose values are to be copied or moved to headers.",
            non_empty_list,
        ),
        key(
            "headers",
            ConfigType.LIST,
            REQUIRED,
            Importance.HIGH,
            "Header names, in the same order as the field names listed in the fields configuration property.",
            non_empty_list,
        ),
        key(
            "operation",
            ConfigType.STRING,
            REQUIRED,
            Importance.HIGH,
            "Either <code>move</code> if the fields are to be moved to the headers (removed from the key/value), or <code>copy</code> if "
            "the fields are to be copied to the headers (retained in the key/value).",
            one_of("move", "copy"),
        ),
        REPLACE_NULL,
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._fields: list[str] = config["fields"]
        self._headers: list[str] = config["headers"]
        if len(self._fields) != len(self._headers):
            raise ConfigError("'fields' config must have the same number of elements as 'headers' config.")
        self._moves = config["operation"] == "move"
        self._purpose = f"header {config['operation']}"
        self._with_defaults: bool = config["replace.null.with.default"]
        self._plans: SchemaCache[_Plan] = SchemaCache(self._plan, 16)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the headers after the others. Raises DataError for a null, or a field that the schema does not have."""
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            found = require_map(value, self._purpose)
            pairs = zip(self._headers, self._fields, strict=True)
            added = [Header(header, found.get(field)) for header, field in pairs]
            left = {name: item for name, item in found.items() if name not in self._fields} if self._moves else found
            return replace(self.changed(record, None, left), headers=[*record.headers, *added])
        source = require_struct(value, self._purpose, schema)
        plan = self._plans(schema)
        items = field_values(source, self._with_defaults)
        added = [Header(header, items[i], schema.fields[i].schema) for header, i in zip(self._headers, plan.taken, strict=True)]
        if self._moves:
            record = self.changed(record, plan.schema, Struct(plan.schema, [items[i] for i in plan.kept]))
        return replace(record, headers=[*record.headers, *added])

    def _plan(self, schema: Schema | None) -> _Plan:
        source = require_schema(schema, self._purpose)
        for name in self._fields:
            if source.field(name) is None:
                raise DataError(f"Field does not exist: {name}")
        kept = [i for i, field in enumerate(source.fields) if field.name not in self._fields]
        return _Plan([source.index_of(name) for name in self._fields], like(source, [source.fields[i] for i in kept]), kept)


class HeaderFromKey(HeaderFrom):
    """Work on the record's key."""

    java_name, on_key = f"{KAFKA}HeaderFrom$Key", True


class HeaderFromValue(HeaderFrom):
    """Work on the record's value."""

    java_name = f"{KAFKA}HeaderFrom$Value"
