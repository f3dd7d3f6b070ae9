"""Rows that a connector of this project serialised, as values: the way from `EncodedBatch` to `SourceRecord` where a chain needs one.

`json_read.payload_reader` judges every value, since anybody may have written it. What our own encoders wrote needs no judge: numbers,
texts and booleans are what the schema says and pass as they are, and a struct has its fields, all of them. That is a third of the time.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable
from decimal import Decimal
from operator import itemgetter
from typing import Any

from connect_py.converters.json_read import Reader, payload_reader
from connect_py.converters.json_write import scale_of
from connect_py.data import Schema, Struct, Type
from connect_py.data.logical import DATE, DECIMAL, EXACT, TIME, TIMESTAMP

_PASSES = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.STRING, Type.BOOLEAN)
_CONVERTED = (DATE, DECIMAL, TIME, TIMESTAMP)


def row_reader(schema: Schema | None) -> Reader:
    """The function that reads parsed rows of a schema; a null stays a null, whatever the schema's default.

    The function raises DataError for what no encoder writes: a struct without one of its fields, a text that is no base64.
    """
    careful = payload_reader(schema, None)
    if schema is None or schema.type is not Type.STRUCT or not schema.fields:
        return careful
    quick = _struct_reader(schema)

    def read(value: Any) -> Any:
        if type(value) is dict:
            try:
                return quick(value)
            except (KeyError, TypeError, ValueError):
                pass  # not what an encoder writes: let the careful reader say what is wrong
        return careful(value)

    return read


def _struct_reader(schema: Schema) -> Callable[[Any], Struct]:
    names = [field.name for field in schema.fields]
    fields_of = itemgetter(*names)
    is_single = len(names) == 1
    conversions = [(i, reader) for i, field in enumerate(schema.fields) if (reader := _converter(field.schema)) is not None]
    new = Struct.__new__

    def read(value: Any) -> Struct:
        values = [fields_of(value)] if is_single else list(fields_of(value))
        for index, convert in conversions:
            if values[index] is not None:
                values[index] = convert(values[index])
        made = new(Struct)
        made.schema = schema
        made.values = values
        return made

    return read


def _converter(schema: Schema) -> Callable[[Any], Any] | None:
    """What a field's value needs, None when it is the value already."""
    if schema.name == DECIMAL and schema.type is Type.BYTES:
        return _decimal_reader(schema)
    if schema.name not in _CONVERTED:
        if schema.type in _PASSES:
            return None
        if schema.type is Type.STRUCT and schema.fields:
            return _struct_reader(schema)
    return payload_reader(schema, None)


def _decimal_reader(schema: Schema) -> Callable[[Any], Any]:
    """Decimals of base64 texts. The function raises ValueError for a text that is none, and TypeError for what is no text."""
    exponent = -scale_of(schema)

    def read(value: Any) -> Decimal:
        return Decimal(int.from_bytes(a2b_base64(value, strict_mode=True), "big", signed=True)).scaleb(exponent, EXACT)

    return read
