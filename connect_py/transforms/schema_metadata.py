"""Give a schema another name or version (`org.apache.kafka.connect.transforms.SetSchemaMetadata`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Importance, Route
from connect_py.api.transform import RowChange
from connect_py.data import Schema, Struct
from connect_py.data.schema import SchemaCache
from connect_py.errors import ConfigError
from connect_py.transforms.base import KAFKA, REPLACE_NULL, AnyRecord, OneSide, field_values, key, require_fields, require_schema


class SetSchemaMetadata(OneSide):
    """Sets the schema's name, version or both. A null without a schema passes."""

    handles_rows = True
    PURPOSE = "updating schema metadata"
    KEYS = (
        key("schema.name", ConfigType.STRING, None, Importance.HIGH, "Schema name to set."),
        key("schema.version", ConfigType.INT, None, Importance.HIGH, "Schema version to set."),
        REPLACE_NULL,
    )

    def use(self, config: Mapping[str, Any]) -> None:
        changes = {"name": config["schema.name"], "version": config["schema.version"]}
        self._changes = {name: value for name, value in changes.items() if value is not None}
        if not self._changes:
            raise ConfigError("Neither schema name nor version configured")
        self._with_defaults: bool = config["replace.null.with.default"]
        self._schemas: SchemaCache[Schema] = SchemaCache(self._updated, 16)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the changed schema. Raises DataError for a value without one."""
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None and value is None:
            return record
        updated = self._schemas(schema)
        if isinstance(value, Struct):
            value = Struct(updated, field_values(value, self._with_defaults))
        return self.changed(record, updated, value)

    def row_change(self, route: Route) -> RowChange:
        """Return what gives rows the schema. Raises DataError as `apply`."""
        if self.on_key and route.key_schema is None:
            return lambda key, value: (route, key, value)
        to = self.with_schema(route, self._schemas(self.schema_in(route)))
        return lambda key, value: (to, key, value)

    def _updated(self, schema: Schema | None) -> Schema:
        return replace(require_fields(require_schema(schema, self.PURPOSE)), **self._changes)


class SetSchemaMetadataKey(SetSchemaMetadata):
    """Work on the record's key."""

    java_name, on_key = f"{KAFKA}SetSchemaMetadata$Key", True


class SetSchemaMetadataValue(SetSchemaMetadata):
    """Work on the record's value."""

    java_name = f"{KAFKA}SetSchemaMetadata$Value"
