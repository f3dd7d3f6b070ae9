"""Mask values (`org.apache.kafka.connect.transforms.MaskField`)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from connect_py.api import ConfigType, Importance, Route
from connect_py.api.config import REQUIRED, non_empty
from connect_py.api.transform import RowChange
from connect_py.data import Schema, Struct, Type
from connect_py.data.java_text import class_name
from connect_py.data.json_rows import NULL, NeedsRecord, fields_changer
from connect_py.data.json_values import TextChange, decimal_writer, keeping_null, value_reader, value_writer
from connect_py.data.schema import DECIMAL
from connect_py.data.times import EPOCH
from connect_py.errors import DataError
from connect_py.transforms.base import (
    KAFKA,
    REPLACE_NULL,
    AnyRecord,
    OneSide,
    distinct,
    field_values,
    key,
    require_map,
    require_struct,
    require_struct_schema,
)
from connect_py.transforms.java_numbers import parse_float, to_float32, truncated, wrapped

_EMPTY: Mapping[type, Callable[[], Any]] = {
    bool: bool,
    int: int,
    float: float,
    Decimal: Decimal,
    str: str,
    datetime.datetime: lambda: EPOCH,
    datetime.date: EPOCH.date,
    datetime.time: datetime.time,
    list: list,
    dict: dict,
}


class MaskField(OneSide):
    """Replaces fields by the emptiest value of their type, or by a text or number that is given. Nulls stay null; a null record fails."""

    PURPOSE = "mask fields"
    KEYS = (
        key("fields", ConfigType.LIST, REQUIRED, Importance.HIGH, "Names of fields to mask.", distinct()),
        key(
            "replacement",
            ConfigType.STRING,
            None,
            Importance.LOW,
            "Custom value replacement, that will be applied to all 'fields' values (numeric or non-empty string values only).",
            non_empty,
        ),
        REPLACE_NULL,
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._fields: list[str] = config["fields"]
        self._replacement: str | None = config["replacement"]
        self._with_defaults: bool = config["replace.null.with.default"]

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with masked fields; in a map also fields that it lacks, as nulls.

        Raises:
            DataError: the value is neither a struct nor a map, or a field is of a type that cannot be masked in this way.
        """
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            found = require_map(value, self.PURPOSE)
            return self.changed(record, None, {**found, **{name: self._masked(found.get(name), None) for name in self._fields}})
        source = require_struct(value, self.PURPOSE, schema)
        values = field_values(source, self._with_defaults)
        for name in self._fields:
            field = source.schema.field(name)
            if field is not None:
                index = source.schema.index_of(name)
                values[index] = self._masked(values[index], field.schema)
        return self.changed(record, schema, Struct(source.schema, values))

    @property
    def handles_rows(self) -> bool:
        """Whether a null becomes its default before it is masked, as rows show it."""
        return self._with_defaults

    def row_change(self, route: Route) -> RowChange:
        """Return what masks fields of rows. Raises DataError and NeedsRecord where only `apply` can tell, or fails."""
        schema = require_struct_schema(self.schema_in(route), self.PURPOSE)
        changes = {i: self._text_mask(field.schema) for i, field in enumerate(schema.fields) if field.name in self._fields}
        change = fields_changer(schema, changes)

        def mask(row: bytes) -> bytes:
            if row == NULL:
                raise NeedsRecord("A null cannot be masked")
            return change(row)

        return self.changing_values(route, schema, mask)

    def _text_mask(self, schema: Schema) -> TextChange:
        read = value_reader(schema)
        masked: bytes | None = None  # the same for all values of a field

        def mask(text: bytes) -> bytes:
            nonlocal masked
            if masked is None:
                write = decimal_writer(schema, text) if schema.name == DECIMAL else value_writer(schema)
                masked = write(self._masked(read(text), schema))
            return masked

        return keeping_null(schema, mask)

    def _masked(self, value: Any, schema: Schema | None) -> Any:
        if value is None:
            return None
        if self._replacement is not None:
            return _replaced(value, schema, self._replacement)
        if type(value) not in _EMPTY:
            raise DataError(f"Cannot mask value of type: class {class_name(value, schema)}")
        return _EMPTY[type(value)]()


def _replaced(value: Any, schema: Schema | None, replacement: str) -> Any:
    """Return the replacement in the value's type. Raises DataError."""
    if type(value) is str:
        return replacement
    if type(value) not in (int, float, Decimal):
        raise DataError(f"Cannot mask value of type class {class_name(value, schema)} with custom replacement.")
    try:
        number = parse_float(replacement) if type(value) is float else Decimal(replacement)
    except (ValueError, InvalidOperation):
        kind = "number" if type(value) is Decimal else "a number"
        raise DataError(f"Unable to convert {replacement} (class java.lang.String) to {kind}") from None
    if isinstance(number, Decimal):
        return number if type(value) is Decimal else wrapped(truncated(number), schema.type if schema else Type.INT64)
    return to_float32(number) if schema is not None and schema.type is Type.FLOAT32 else number


class MaskFieldKey(MaskField):
    """Work on the record's key."""

    java_name, on_key = f"{KAFKA}MaskField$Key", True


class MaskFieldValue(MaskField):
    """Work on the record's value."""

    java_name = f"{KAFKA}MaskField$Value"
