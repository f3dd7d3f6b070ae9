"""Cast values or fields to another type (`org.apache.kafka.connect.transforms.Cast`)."""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from connect_py.api import ConfigType, Importance, Route
from connect_py.api.config import REQUIRED, invalid
from connect_py.api.transform import RowChange
from connect_py.data import Field, Schema, Struct, Type, values
from connect_py.data.java_text import float_text, java_class
from connect_py.data.json_rows import fields_changer
from connect_py.data.json_values import LOGICAL_NAMES, TextChange, value_changer
from connect_py.data.schema import SchemaCache
from connect_py.data.times import date_to_days, time_to_millis, timestamp_to_millis
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import (
    KAFKA,
    REPLACE_NULL,
    AnyRecord,
    OneSide,
    field_values,
    java_split,
    key,
    like,
    require_fields,
    require_map,
    require_schema,
    require_struct,
    require_struct_schema,
)
from connect_py.transforms.java_numbers import BITS, float_to_int, parse_float, parse_int, to_float32, truncated, wrapped

_OUTPUTS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING)
_INPUTS = (*_OUTPUTS, Type.BYTES)
_INFERRED: Mapping[type, Type] = {
    bool: Type.BOOLEAN,
    int: Type.INT64,
    float: Type.FLOAT64,
    str: Type.STRING,
    bytes: Type.BYTES,
    list: Type.ARRAY,
    dict: Type.MAP,
    Struct: Type.STRUCT,
    Decimal: Type.BYTES,
    datetime.date: Type.INT32,
    datetime.time: Type.INT32,
    datetime.datetime: Type.INT64,
}


def parse_casts(spec: Sequence[str]) -> dict[str | None, Type]:
    """Field → type of `field:type` items; the one type of a whole value is that of None. Raises ConfigError."""
    if not spec:
        raise ConfigError("Must specify at least one field to cast.")
    casts: dict[str | None, Type] = {}
    for item in spec:
        parts = java_split(item, ":")
        if len(parts) > 2:
            raise invalid("renames", list(spec), f"Invalid rename mapping: {item}")  # the reference's words, though it is no renaming
        casts[parts[0].strip() if len(parts) == 2 else None] = _parse_type(parts[-1].strip())
    if None in casts and len(spec) > 1:
        raise ConfigError(
            "Cast transformations that specify a type to cast the entire value to may only specify a single cast in their spec"
        )
    return casts


def _parse_type(name: str) -> Type:
    found = Type.__members__.get(name.upper())
    if found is None:
        # the reference gives its exception as the value, and the text as the name (`Cast.validCastType`)
        unknown = f"java.lang.IllegalArgumentException: No enum constant org.apache.kafka.connect.data.Schema.Type.{name.upper()}"
        raise ConfigError(f"Invalid value {unknown} for configuration Invalid type found in casting spec: {name}")
    if found not in _OUTPUTS:
        raise ConfigError(f"Cast transformation does not support casting to {found.name}; supported types are {_names(_OUTPUTS)}")
    return found


def _names(types: Sequence[Type]) -> str:
    return "[" + ", ".join(type_.name for type_ in types) + "]"


def _valid_spec(_name: str, value: Any) -> None:
    parse_casts(value)


class Cast(OneSide):
    """Casts the whole value or fields of it; a null passes."""

    PURPOSE = "cast types"
    handles_rows = True
    KEYS = (
        key(
            "spec",
            ConfigType.LIST,
            REQUIRED,
            Importance.HIGH,
            "List of fields and the type to cast them to of the form field1:type,field2:type to cast fields of Maps or Structs. A single "
            "type to cast the entire value. Valid types are int8, int16, int32, int64, float32, float64, boolean, and string. Note that "
            "binary fields can only be cast to string.",
            _valid_spec,
        ),
        REPLACE_NULL,
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._casts = parse_casts(config["spec"])
        self._whole = self._casts.get(None)
        self._with_defaults: bool = config["replace.null.with.default"]
        self._schemas: SchemaCache[Schema] = SchemaCache(self._updated, 16)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with cast values. Raises DataError for a value that the type cannot hold."""
        schema, value = self.schema_of(record), self.value_of(record)
        if value is None:
            return record
        if schema is None:
            if self._whole:
                return self.changed(record, None, _cast_without_schema(value, self._whole))
            found = require_map(value, self.PURPOSE)
            changes = {name: _cast_without_schema(found.get(name), type_) for name, type_ in self._casts.items() if name is not None}
            return self.changed(record, None, {**found, **changes})
        if self._whole:
            return self.changed(record, self._schemas(schema), cast(schema, value, self._whole))
        updated = self._schemas(require_fields(schema))
        source = require_struct(value, self.PURPOSE, schema)
        items = field_values(source, self._with_defaults)
        for i, field in enumerate(source.schema.fields):
            if field.name in self._casts:
                items[i] = cast(field.schema, items[i], self._casts[field.name])
        return self.changed(record, updated, Struct(updated, items))

    def row_change(self, route: Route) -> RowChange:
        """Return what casts values of rows. Raises DataError and NeedsRecord where only `apply` can tell."""
        schema = self.schema_in(route)
        if schema is None:
            return lambda key, value: (route, key, value)
        if self._whole:
            updated = self._schemas(schema)
            return self.changing(route, updated, _text_cast(schema, updated))
        updated = self._schemas(require_struct_schema(schema, self.PURPOSE))
        pairs = enumerate(zip(schema.fields, updated.fields, strict=True))
        changes = {i: _text_cast(old.schema, new.schema) for i, (old, new) in pairs if old.name in self._casts}
        return self.changing(route, updated, fields_changer(schema, changes))

    def _updated(self, schema: Schema | None) -> Schema:
        source = require_schema(schema, self.PURPOSE)
        default = source.default
        if self._whole:
            return replace(
                source,
                type=self._whole,
                default=cast(source, default, self._whole),
                fields=(),
                key_schema=None,
                value_schema=None,
            )
        fields = [Field(f.name, self._cast_field(f)) for f in source.fields]
        return replace(like(source, fields), optional=source.optional)

    def _cast_field(self, field: Field) -> Schema:
        target = self._casts.get(field.name)
        if target is None:
            return field.schema
        return Schema(target, optional=field.schema.optional, default=cast(field.schema, field.schema.default, target))


class CastKey(Cast):
    """Work on the record's key."""

    java_name, on_key = f"{KAFKA}Cast$Key", True


class CastValue(Cast):
    """Work on the record's value."""

    java_name = f"{KAFKA}Cast$Value"


def cast(schema: Schema | None, value: Any, target: Type) -> Any:
    """A value in another type, as Java's conversions make it: narrowing keeps low bits, fractions are cut off, a text must be a number.

    Raises:
        DataError: the value is of a type that cannot be cast, or the text no number of the type.
    """
    if value is None:
        return None
    source = schema.type if schema is not None else _INFERRED.get(type(value))
    if source is None:
        raise DataError(f"Cast transformation was passed a value of type {java_class(value)} which is not supported by Connect's data API")
    if source not in _INPUTS:
        raise DataError(f"Cast transformation does not support casting from {source.name}; supported types are {_names(_INPUTS)}")
    if target is Type.STRING:
        return base64.b64encode(value).decode() if isinstance(value, bytes) else values.to_text(schema, value)
    number = _encoded(value)
    if not isinstance(number, int | float | Decimal | str):
        raise DataError(f"Unexpected type in Cast transformation: {java_class(number)}")
    try:
        return _number(number, target)
    except ValueError:
        raise DataError(f"Value ({value}) was out of range for requested data type") from None


def _text_cast(source: Schema, target: Schema) -> TextChange:
    """Return the function of a value's JSON text. Raises NeedsRecord for values that are not plain."""
    change = value_changer(source, target, lambda value: cast(source, value, target.type))
    quick = None if source.name in LOGICAL_NAMES else _QUICK.get((source.type, target.type))
    if quick is None:
        return change
    shape, template = quick
    matches = shape.fullmatch
    return lambda text: template % text if matches(text) else change(text)


def _quick_casts() -> Iterator[tuple[tuple[Type, Type], tuple[re.Pattern[bytes], bytes]]]:
    """Yield casts that keep a text's characters: by types, the texts for which they do, and a template of what is made."""
    integer, few_digits = re.compile(rb"-?\d++"), re.compile(rb"-?\d{1,7}+")  # Java writes floats from 1.0E7 on with an exponent
    for source in BITS:
        yield (source, Type.STRING), (integer, b'"%b"')
        yield from (((source, target), (integer, b"%b")) for target in BITS if BITS[source] <= BITS[target])
        yield from (((source, target), (few_digits, b"%b.0")) for target in (Type.FLOAT32, Type.FLOAT64))
    yield (Type.BOOLEAN, Type.STRING), (re.compile(b"true|false"), b'"%b"')
    yield from (((source, Type.STRING), (re.compile(b'".*+', re.DOTALL), b"%b")) for source in (Type.STRING, Type.BYTES))


_QUICK: Mapping[tuple[Type, Type], tuple[re.Pattern[bytes], bytes]] = dict(_quick_casts())


def _cast_without_schema(value: Any, target: Type) -> Any:
    """As `cast`. No schema will say that a number is a FLOAT32, so it is one whose shortest digits are those of the float."""
    result = cast(None, value, target)
    return float(float_text(result)) if target is Type.FLOAT32 and result is not None else result


def _encoded(value: Any) -> Any:
    """Return what a logical type's value is as a number: days, or milliseconds."""
    match value:
        case datetime.datetime():
            return timestamp_to_millis(value)
        case datetime.date():
            return date_to_days(value)
        case datetime.time():
            return time_to_millis(value)
        case _:
            return value


def _number(value: float | Decimal | str, target: Type) -> Any:
    """Return a number, boolean or text as a number or boolean. Raises ValueError for a text that is none."""
    if target is Type.BOOLEAN:
        if isinstance(value, str):
            return value.lower() == "true"
        return bool(_integer(value, Type.INT64))
    if target in BITS:
        return parse_int(value, target) if isinstance(value, str) else _integer(value, target)
    number = parse_float(value) if isinstance(value, str) else float(value)
    return to_float32(number) if target is Type.FLOAT32 else number


def _integer(value: float | Decimal, target: Type) -> int:
    if isinstance(value, float):
        return float_to_int(value, target)
    return wrapped(truncated(value) if isinstance(value, Decimal) else int(value), target)
