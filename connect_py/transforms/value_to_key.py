"""Make a key of fields of the value (`org.apache.kafka.connect.transforms.ValueToKey`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from connect_py.api import ConfigType, Importance, Route
from connect_py.api.config import REQUIRED
from connect_py.api.record import EncodedRow
from connect_py.api.transform import RowChange
from connect_py.data import Schema, Struct
from connect_py.data.json_rows import NULL, NeedsRecord, fields_reader, is_plain, object_of
from connect_py.data.schema import DECIMAL, SchemaCache, struct
from connect_py.errors import DataError
from connect_py.transforms.base import (
    KAFKA,
    REPLACE_NULL,
    AnyRecord,
    Plugin,
    distinct,
    field_values,
    key,
    require_map,
    require_schema,
    require_struct,
    require_struct_schema,
)

_PURPOSE = "copying fields from value to key"


class _Plan(NamedTuple):
    schema: Schema
    taken: list[int]


class ValueToKey(Plugin):
    """Replaces the key by a struct or map of the value's fields."""

    handles_rows = True
    java_name = f"{KAFKA}ValueToKey"
    KEYS = (
        key(
            "fields",
            ConfigType.LIST,
            REQUIRED,
            Importance.HIGH,
            "Field names on the record value to extract as the record key.",
            distinct(),
        ),
        REPLACE_NULL,
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._fields: list[str] = config["fields"]
        self._with_defaults: bool = config["replace.null.with.default"]
        self._plans: SchemaCache[_Plan] = SchemaCache(self._plan, 16)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with its new key. Raises DataError for a null value, or a field that its schema does not have."""
        if record.value_schema is None:
            value = require_map(record.value, _PURPOSE)
            return replace(record, key_schema=None, key={name: value.get(name) for name in self._fields})
        source = require_struct(record.value, _PURPOSE, record.value_schema)
        schema, taken = self._plans(source.schema)
        values = field_values(source, self._with_defaults)
        return replace(record, key_schema=schema, key=Struct(schema, [values[i] for i in taken]))

    def row_change(self, route: Route) -> RowChange:
        """Return what gives rows the key. Raises DataError and NeedsRecord for what it cannot know of all of them."""
        source = require_struct_schema(route.value_schema, _PURPOSE)
        schema, taken = self._plans(source)
        if any(field.schema.name == DECIMAL or not is_plain(field.schema) for field in schema.fields):
            raise NeedsRecord("The converter of keys may write decimals otherwise")
        to, read, template = replace(route, key_schema=schema), fields_reader(source, taken), object_of(self._fields)

        def change(_key: bytes | None, value: bytes | None) -> EncodedRow:
            if value is None or value == NULL:
                raise NeedsRecord("There is no value")
            return to, template % read(value), value

        return change

    def _plan(self, schema: Schema | None) -> _Plan:
        source = require_schema(schema, _PURPOSE)
        for name in self._fields:
            if source.field(name) is None:
                raise DataError(f"Field does not exist: {name}")
        taken = [source.index_of(name) for name in self._fields]
        return _Plan(struct((name, source.fields[i].schema) for name, i in zip(self._fields, taken, strict=True)), taken)
