"""Leave out, pick or rename fields (`org.apache.kafka.connect.transforms.ReplaceField`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from connect_py.api import ConfigType, Importance, Route
from connect_py.api.config import invalid
from connect_py.api.transform import RowChange
from connect_py.data import Field, Schema, Struct
from connect_py.data.json_rows import fields_reader, object_of
from connect_py.data.schema import SchemaCache
from connect_py.transforms.base import (
    KAFKA,
    REPLACE_NULL,
    AnyRecord,
    OneSide,
    distinct,
    field_values,
    java_split,
    key,
    like,
    require_map,
    require_schema,
    require_struct,
    require_struct_schema,
)


def parse_renames(mappings: Sequence[str]) -> dict[str, str]:
    """Old name → new name of `old:new` items. Raises ConfigError."""
    renames = {}
    for mapping in mappings:
        parts = java_split(mapping, ":")
        if len(parts) != 2:
            raise invalid("renames", mappings, f"Invalid rename mapping: {mapping}")
        renames[parts[0]] = parts[1]
    return renames


def _valid_renames(_name: str, value: Any) -> None:
    parse_renames(value)


class _Plan(NamedTuple):
    """What becomes of structs of one schema."""

    schema: Schema
    kept: list[int]


class ReplaceField(OneSide):
    """Filters fields by their old names, then renames them; a null passes. What is excluded is excluded even if it is included too."""

    PURPOSE = "field replacement"
    handles_rows = True
    KEYS = (
        key(
            "exclude",
            ConfigType.LIST,
            "",
            Importance.MEDIUM,
            "Fields to exclude. This takes precedence over the fields to include.",
            distinct(may_be_empty=True),
        ),
        key(
            "include",
            ConfigType.LIST,
            "",
            Importance.MEDIUM,
            "Fields to include. If specified, only these fields will be used.",
            distinct(may_be_empty=True),
        ),
        key(
            "renames",
            ConfigType.LIST,
            "",
            Importance.MEDIUM,
            "Field rename mappings.",
            _valid_renames,
        ),
        REPLACE_NULL,
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._exclude = set(config["exclude"])
        self._include = set(config["include"])
        self._renames = parse_renames(config["renames"])
        self._with_defaults: bool = config["replace.null.with.default"]
        self._plans: SchemaCache[_Plan] = SchemaCache(self._plan, 16)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the fields that are left. Raises DataError."""
        value = self.value_of(record)
        if value is None:
            return record
        if self.schema_of(record) is None:
            old = require_map(value, self.PURPOSE)
            new = {self._renames.get(name, name): found for name, found in old.items() if self._keeps(name)}
            return self.changed(record, None, new)
        struct = require_struct(value, self.PURPOSE, self.schema_of(record))
        schema, kept = self._plans(struct.schema)
        values = field_values(struct, self._with_defaults)
        return self.changed(record, schema, Struct(schema, [values[i] for i in kept]))

    def row_change(self, route: Route) -> RowChange:
        """Return what leaves these fields in rows. Raises DataError and NeedsRecord for what it cannot know of all of them."""
        schema = self.schema_in(route)
        if schema is None:
            return lambda key, value: (route, key, value)
        changed, kept = self._plans(require_struct_schema(schema, self.PURPOSE))
        read, template = fields_reader(schema, kept), object_of([field.name for field in changed.fields])
        return self.changing(route, changed, lambda row: template % read(row))

    def _keeps(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def _plan(self, schema: Schema | None) -> _Plan:
        source = require_schema(schema, self.PURPOSE)
        kept = [i for i, field in enumerate(source.fields) if self._keeps(field.name)]
        fields = [source.fields[i] for i in kept]
        return _Plan(like(source, [Field(self._renames.get(f.name, f.name), f.schema) for f in fields]), kept)


class ReplaceFieldKey(ReplaceField):
    """Work on the record's key."""

    java_name, on_key = f"{KAFKA}ReplaceField$Key", True


class ReplaceFieldValue(ReplaceField):
    """Work on the record's value."""

    java_name = f"{KAFKA}ReplaceField$Value"
