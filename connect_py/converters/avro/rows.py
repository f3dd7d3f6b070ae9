"""Write rows of JSON as Avro, through one generated function a schema: no object a field, no `Struct`.

A row is what a connector serialised (`connect_py.data.json_rows`): JSON without a schema, nulls with a default written as that. What is
written is what `write.encoder` makes of the same row's values (tests/unit/connect_py/task/test_row_chain.py); where that takes more than a
value of its field's own type, in a schema that somebody else registered for example, a row is left to it.

Of a change event the rest that follows the rows, its source block above all, is the same for all rows of a snapshot's batch, and written
once. Avro's binary form of a record is its fields' one after the other, so an event is put together from such parts.
"""

from __future__ import annotations

import struct
from binascii import a2b_base64
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from connect_py.converters.avro.binary import DOUBLE, FLOAT, SMALL, block_bytes, long_bytes, text_bytes
from connect_py.converters.avro.options import AvroOptions, is_enum, is_union
from connect_py.converters.avro.schema import AvroSchema
from connect_py.converters.avro.write import HOLDS, branch_of
from connect_py.data import Schema, Type
from connect_py.data.avro_names import scrub_name
from connect_py.data.json_events import Event, event_reader
from connect_py.data.json_rows import NeedsRecord
from connect_py.data.schema import STRING
from connect_py.rowcode import Code

#: JSON text of a row to its Avro bytes; raises NeedsRecord for a row that `write.encoder` must write, or refuse.
RowBytes = Callable[[bytes], bytes]

_UNUSUAL = (KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error)


def row_writer(schema: Schema, avro: AvroSchema, options: AvroOptions) -> RowBytes:
    """Return the function that writes rows of a schema. Raises DataError and NeedsRecord where `write.encoder` must do it."""
    if schema.type is Type.BYTES or avro.type == "union":
        raise NeedsRecord("Not a plain row")
    code = Code(f"Avro rows of {schema.name}")
    code.bind_all(_NAMES)
    try:
        read = event_reader(schema)
    except NeedsRecord:
        return _whole(code, schema, avro, options)
    return _in_parts(read, code, schema, avro, options)


def _whole(code: Code, schema: Schema, avro: AvroSchema, options: AvroOptions) -> RowBytes:
    expression = _value(code, schema, avro, options)
    with code.function("write_row", "v"):
        code.add(f"return {expression}")
    write: Callable[[Any], bytes] = code.make()["write_row"]

    def write_row(row: bytes) -> bytes:
        try:
            return write(orjson.loads(row))
        except _UNUSUAL as error:
            raise NeedsRecord("Not a plain row") from error

    return write_row


def _in_parts(read: Callable[[bytes], Event], code: Code, schema: Schema, avro: AvroSchema, options: AvroOptions) -> RowBytes:
    fields = _fields_of(schema, avro, options)
    for side, (held, place) in zip(("before", "after"), fields, strict=False):
        expression = _nullable(code, held, place, options)
        with code.function(f"write_{side}", "v"):
            code.add(f"return {expression}")
    _define(code, "write_rest", schema, fields, options, first=2)
    functions = code.make()
    write_before, write_after, write_rest = (functions[f"write_{part}"] for part in ("before", "after", "rest"))
    last: bytes | None = None
    written = b""

    def write_event(value: bytes) -> bytes:
        nonlocal last, written
        before, after, rest = read(value)
        try:
            if rest != last:
                written, last = write_rest(orjson.loads(b"{" + rest[1:])), rest
            old = write_before(None if before is None else orjson.loads(before))
            new = write_after(None if after is None else orjson.loads(after))
        except _UNUSUAL as error:
            raise NeedsRecord("Not a plain event") from error
        return b"".join((old, new, written))

    return write_event


# -- what is generated -------------------------------------------------------------------------------------------------------------

_NAMES = {
    "BOOLEANS": {False: b"\0", True: b"\1"},
    "SMALL": SMALL,
    "base64_bytes": a2b_base64,
    "block_bytes": block_bytes,
    "join_bytes": b"".join,
    "long_bytes": long_bytes,
    "pack_double": DOUBLE.pack,
    "pack_float": FLOAT.pack,
    "text_bytes": text_bytes,
}


def _fields_of(schema: Schema, avro: AvroSchema, options: AvroOptions) -> list[tuple[Schema, AvroSchema]]:
    names = [scrub_name(field.name) if options.scrub else field.name for field in schema.fields]
    if is_union(schema) or [field.name for field in avro.fields] != names:
        raise NeedsRecord("Not the schema's own record")
    return [(field.schema, place.schema) for field, place in zip(schema.fields, avro.fields, strict=True)]


def _define(
    code: Code, name: str, schema: Schema, fields: Sequence[tuple[Schema, AvroSchema]], options: AvroOptions, *, first: int = 0
) -> str:
    """Write a function of an object, for its fields from the first one on. Return its name."""
    names = [field.name for field in schema.fields]
    shown = [(at, _nullable(code, *fields[at], options)) for at in range(first, len(fields))]
    with code.function(name, "row") as found:
        for at, expression in shown:
            code.add(f"v = row[{names[at]!r}]", f"f{at} = {expression}")
        code.add(f"return join_bytes(({''.join(f'f{at}, ' for at, _ in shown)}))")
    return found


def _nullable(code: Code, schema: Schema | None, avro: AvroSchema | None, options: AvroOptions) -> str:
    """Return the expression of the bytes of `v`, which may be None. A null that has a default has become that."""
    if schema is None or avro is None:
        raise NeedsRecord("Not a value with a schema")
    if avro.type != "union":
        return _value(code, schema, avro, options)
    if is_union(schema):
        raise NeedsRecord("A union of several types")
    index, branch = branch_of(schema, avro, options)
    value = f"{long_bytes(index)!r} + {_value(code, schema, branch, options)}"
    null = next((at for at, member in enumerate(avro.branches) if member.type == "null"), None)
    return f"({value})" if null is None or not schema.optional else f"({long_bytes(null)!r} if v is None else {value})"


def _value(code: Code, schema: Schema, avro: AvroSchema, options: AvroOptions) -> str:
    """Return the expression of the bytes of `v`, which is not None."""
    if avro.type not in HOLDS[schema.type]:
        raise NeedsRecord("Not a value of its own type")
    match schema.type:
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
            return "(SMALL[v + 64] if -64 <= v < 8192 else long_bytes(v))"
        case Type.FLOAT32 | Type.FLOAT64:
            return f"pack_{avro.type}(v)"
        case Type.BOOLEAN:
            return "BOOLEANS[v]"
        case Type.STRING if avro.type == "string" and not is_enum(schema, options):
            return "(SMALL[len(d := v.encode()) + 64] + d if len(v) < 2000 else text_bytes(v))"
        case Type.BYTES if avro.type == "bytes":
            return "(long_bytes(len(d := base64_bytes(v))) + d)"
        case Type.ARRAY:
            return f"block_bytes([{_nullable(code, schema.value_schema, avro.items, options)} for v in v])"
        case Type.MAP if avro.type == "map" and schema.key_schema == STRING:
            item = _nullable(code, schema.value_schema, avro.items, options)
            return f"block_bytes([text_bytes(k) + {item} for k, v in v.items()])"
        case Type.STRUCT:
            return f"{_define(code, 'write_object', schema, _fields_of(schema, avro, options), options)}(v)"
    raise NeedsRecord("Not a value of its own type")
