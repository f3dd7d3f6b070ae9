"""Convert times to another form (`org.apache.kafka.connect.transforms.TimestampConverter`)."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Importance, Route
from connect_py.api.config import REQUIRED, one_of
from connect_py.api.transform import RowChange
from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.java_text import java_class
from connect_py.data.json_rows import fields_changer
from connect_py.data.json_values import TextChange, keeping_null, value_changer
from connect_py.data.schema import DATE, TIME, TIMESTAMP, SchemaCache
from connect_py.data.times import (
    MILLIS_OF_DAY,
    date_to_days,
    days_to_date,
    millis_to_time,
    millis_to_timestamp,
    time_to_millis,
    timestamp_to_millis,
)
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import (
    KAFKA,
    REPLACE_NULL,
    AnyRecord,
    OneSide,
    field_values,
    key,
    like,
    require_fields,
    require_map,
    require_struct,
    require_struct_schema,
)
from connect_py.transforms.date_format import DateFormat

_TARGETS = {
    "string": Schema(Type.STRING),
    "unix": Schema(Type.INT64),
    "Date": Schema(Type.INT32, name=DATE, version=1),
    "Time": Schema(Type.INT32, name=TIME, version=1),
    "Timestamp": Schema(Type.INT64, name=TIMESTAMP, version=1),
}
#: Units of one millisecond, or (negative) milliseconds of one unit.
_PRECISIONS = {"nanoseconds": 1_000_000, "microseconds": 1000, "milliseconds": 1, "seconds": -1000}
_LONG = 2**63


class TimestampConverter(OneSide):
    """Converts the whole value or one field between texts, Unix times and Connect's dates and times, by way of milliseconds; nulls stay."""

    PURPOSE = "converting timestamp formats"
    KEYS = (
        key(
            "field",
            ConfigType.STRING,
            "",
            Importance.HIGH,
            "The field containing the timestamp, or empty if the entire value is a timestamp",
        ),
        key(
            "target.type",
            ConfigType.STRING,
            REQUIRED,
            Importance.HIGH,
            "The desired timestamp representation: string, unix, Date, Time, or Timestamp",
            one_of(*_TARGETS),
        ),
        key(
            "format",
            ConfigType.STRING,
            "",
            Importance.MEDIUM,
            "A SimpleDateFormat-compatible format for the timestamp. Used to generate the output when type=string or used to parse the "
            "input if the input is a string.",
        ),
        key(
            "unix.precision",
            ConfigType.STRING,
            "milliseconds",
            Importance.LOW,
            "The desired Unix precision for the timestamp: seconds, milliseconds, microseconds, or nanoseconds. Used to generate the "
            "output when type=unix or used to parse the input if the input is a Long.Note: This SMT will cause precision loss during "
            "conversions from, and to, values with sub-millisecond components.",
            one_of(*_PRECISIONS),
        ),
        REPLACE_NULL,
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._field: str = config["field"]
        self._target: str = config["target.type"]
        self._factor = _PRECISIONS[config["unix.precision"]]
        pattern: str = config["format"]
        if self._target == "string" and not pattern:
            raise ConfigError("TimestampConverter requires format option to be specified when using string timestamps")
        try:
            self._format = DateFormat(pattern) if pattern else None
        except ConfigError as error:
            raise ConfigError(
                f"TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: {pattern} ({error})"
            ) from None
        self._with_defaults: bool = config["replace.null.with.default"]
        self._schemas: SchemaCache[Schema | None] = SchemaCache(self._updated, 16)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the time in its new form. Raises DataError for a value that is no time."""
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            if value is None or not self._field:
                return self.changed(record, None, self._convert(value, None))
            found = require_map(value, self.PURPOSE)
            return self.changed(record, None, {**found, self._field: self._convert(found.get(self._field), None)})
        if self._field and value is not None:
            require_struct(value, self.PURPOSE, schema)
        updated = self._schemas(schema)
        if not self._field:
            return self.changed(record, updated, self._convert(value, schema))
        return self.changed(record, updated, None if value is None else self._convert_field(value, updated))

    @property
    def handles_rows(self) -> bool:
        """Whether a field's null becomes its default before it is converted, as rows show it."""
        return self._with_defaults or not self._field

    def row_change(self, route: Route) -> RowChange:
        """Return what converts times of rows. Raises DataError and NeedsRecord where only `apply` can tell."""
        schema = self.schema_in(route)
        if schema is None:
            return lambda key, value: (route, key, value)
        if self._field:
            require_struct_schema(schema, self.PURPOSE)
        updated = self._schemas(schema)
        assert updated is not None
        if not self._field:
            return self.changing(route, updated, self._text_change(schema, updated), passes_null=False)
        pairs = enumerate(zip(schema.fields, updated.fields, strict=True))
        changes = {i: self._text_change(old.schema, new.schema) for i, (old, new) in pairs if old.name == self._field}
        return self.changing(route, updated, keeping_null(updated, fields_changer(schema, changes)), passes_null=False)

    def _text_change(self, source: Schema, target: Schema) -> TextChange:
        self._convert(None, source)  # refuses what is no time
        return value_changer(source, target, lambda value: self._from_millis(self._to_millis(value)))

    def _convert_field(self, value: Struct, updated: Schema | None) -> Struct:
        items = field_values(value, self._with_defaults)
        field = value.schema.field(self._field)
        if field is not None:
            index = value.schema.index_of(self._field)
            items[index] = self._convert(items[index], field.schema)
        assert updated is not None
        return Struct(updated, items)

    def _updated(self, schema: Schema | None) -> Schema | None:
        if schema is None:
            return None
        target = _TARGETS[self._target]
        if not self._field:
            return replace(target, optional=schema.optional)
        require_fields(schema)
        fields = [Field(f.name, replace(target, optional=f.schema.optional)) if f.name == self._field else f for f in schema.fields]
        updated = replace(like(schema, fields), optional=schema.optional)
        return updated if schema.default is None else replace(updated, default=self._convert_field(schema.default, updated))

    def _convert(self, value: Any, schema: Schema | None) -> Any:
        if schema is not None and schema.name not in (DATE, TIME, TIMESTAMP) and schema.type not in (Type.STRING, Type.INT64):
            shown = f"{schema.name}:{schema.type.name}" if schema.name else schema.type.name
            raise DataError(f"Schema Schema{{{shown}}} does not correspond to a known timestamp type format")
        if value is None:
            return None
        return self._from_millis(self._to_millis(value))

    def _to_millis(self, value: Any) -> int:
        match value:
            case datetime.datetime():
                return timestamp_to_millis(value)
            case datetime.date():
                return date_to_days(value) * MILLIS_OF_DAY
            case datetime.time():
                return time_to_millis(value)
            case str():
                if self._format is None:
                    raise DataError(f"TimestampConverter needs its property format to read the text {value}")
                return self._format.parse(value)
            case int() if not isinstance(value, bool):
                return value * -self._factor if self._factor < 0 else _quotient(value, self._factor)
            case _:
                raise DataError(f"TimestampConverter does not support {java_class(value)} objects as timestamps")

    def _from_millis(self, millis: int) -> Any:
        match self._target:
            case "string":
                assert self._format is not None
                return self._format.format(millis)
            case "Date":
                return days_to_date(millis // MILLIS_OF_DAY)
            case "Time":
                return millis_to_time(millis % MILLIS_OF_DAY)
            case "Timestamp":
                return millis_to_timestamp(millis)
            case _:
                units = _quotient(millis, -self._factor) if self._factor < 0 else millis * self._factor
                return min(max(units, -_LONG), _LONG - 1)  # as java.util.concurrent.TimeUnit does


def _quotient(value: int, divisor: int) -> int:
    """Return a quotient rounded towards zero, as Java's is."""
    return -(-value // divisor) if value < 0 else value // divisor


class TimestampConverterKey(TimestampConverter):
    """Work on the record's key."""

    java_name, on_key = f"{KAFKA}TimestampConverter$Key", True


class TimestampConverterValue(TimestampConverter):
    """Work on the record's value."""

    java_name = f"{KAFKA}TimestampConverter$Value"
