"""Put a value into a field of its own (`org.apache.kafka.connect.transforms.HoistField`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.api import ConfigType, Importance, Route
from connect_py.api.config import REQUIRED
from connect_py.api.transform import RowChange
from connect_py.data import Schema, Struct
from connect_py.data.json_rows import object_of
from connect_py.data.json_values import keeping_null
from connect_py.data.schema import SchemaCache, struct
from connect_py.errors import DataError
from connect_py.transforms.base import KAFKA, AnyRecord, OneSide, key, require_schema


class HoistField(OneSide):
    """Wraps the value in a struct, or in a map when it has no schema; a null without a schema is wrapped too."""

    handles_rows = True
    KEYS = (
        key(
            "field",
            ConfigType.STRING,
            REQUIRED,
            Importance.MEDIUM,
            "Field name for the single field that will be created in the resulting Struct or Map.",
        ),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._field: str = config["field"]
        self._schemas: SchemaCache[Schema] = SchemaCache(self._wrapped, 16)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the wrapped value. Raises DataError for a null that its schema does not allow."""
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            return self.changed(record, None, {self._field: value})
        if value is None and not schema.optional and schema.default is None:
            raise DataError(f'Invalid value: null used for required field: "{self._field}", schema type: {schema.type.name}')
        updated = self._schemas(schema)
        return self.changed(record, updated, Struct(updated, [value]))

    def row_change(self, route: Route) -> RowChange:
        """Return what wraps rows. Raises DataError and NeedsRecord where only `apply` can tell, or fails."""
        schema = require_schema(self.schema_in(route), "hoisting")
        template = object_of([self._field])
        allowed = keeping_null(schema, lambda row: row)
        return self.changing_values(route, self._schemas(schema), lambda row: template % allowed(row))

    def _wrapped(self, schema: Schema | None) -> Schema:
        if not self._field:
            raise DataError("fieldName cannot be null.")
        return struct([(self._field, require_schema(schema, "hoisting"))])


class HoistFieldKey(HoistField):
    """Work on the record's key."""

    java_name, on_key = f"{KAFKA}HoistField$Key", True


class HoistFieldValue(HoistField):
    """Work on the record's value."""

    java_name = f"{KAFKA}HoistField$Value"
