"""Structs to JSON text through one generated function a schema, for the converter that writes many rows of few schemas.

`json_write.payload_writer` is the authority and is asked for whatever is not the usual value of its field: nulls, numbers out of range,
another type, a logical type, a struct of an equal schema that is another object. What is generated covers integers, booleans, texts and
structs of them, and writes the same (tests/unit/connect_py/converters/test_json_struct.py). The ten columns of the
benchmark, one of them a decimal, take half the time.

Names of fields stand in the generated text as literals only. Whether any text of a struct needs an escape is asked of orjson once for all
of them: its output is longer than its input and two quotes if one does, or if a character is not ASCII.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from connect_py.converters.json_write import LOGICAL_NAMES, WriteOptions, Writer, payload_writer, quote
from connect_py.data.schema import Schema, Struct, Type
from connect_py.rowcode import Code

#: Rows of a schema after which a function is made for it: that takes a millisecond, and some chains make a schema a record.
ROWS_BEFORE = 64

_LIMITS = {Type.INT8: 1 << 7, Type.INT16: 1 << 15, Type.INT32: 1 << 31, Type.INT64: 1 << 63}


def rows_writer(schema: Schema | None, options: WriteOptions, generate: Callable[[Schema, WriteOptions], Writer] | None = None) -> Writer:
    """`payload_writer`, quick from the 65th struct on. Raises what that raises.

    Args:
        generate: makes the quick function; `struct_writer` by default.
    """
    careful = payload_writer(schema, options)
    if schema is None or not _is_struct(schema):
        return careful
    write, left = careful, ROWS_BEFORE

    def counting(value: Any) -> str:
        nonlocal write, left
        if left:
            left -= 1
            if not left:
                write = (generate or struct_writer)(schema, options)
        return write(value)

    return counting


def struct_writer(schema: Schema, options: WriteOptions) -> Writer:
    """Return the generated function for a struct schema with fields; it raises what `payload_writer`'s does."""
    code = Code(f"writer of {schema.name}")
    for name, value in {
        "Struct": Struct,
        "SCHEMA": schema,
        "FALSE": "false",
        "TRUE": "true",
        "UNICODE_ERROR": orjson.JSONEncodeError,
        "dumps_json": orjson.dumps,
        "quote_text": quote,
        "write_careful": payload_writer(schema, options),
    }.items():
        code.bind(name, value)
    for index, field in enumerate(schema.fields):
        nested = _is_struct(field.schema)
        code.bind(f"write_{index}", struct_writer(field.schema, options) if nested else payload_writer(field.schema, options))
    with code.function("write_struct", "value"):
        _write(code, schema)
    write: Writer = code.make()["write_struct"]
    return write


def _write(code: Code, schema: Schema) -> None:
    variables = [f"c{index}" for index in range(len(schema.fields))]
    texts = [name for name, field in zip(variables, schema.fields, strict=True) if _kind(field.schema) is Type.STRING]
    with code.block("if type(value) is not Struct or value.schema is not SCHEMA:"):
        code.add("return write_careful(value)")
    code.add(f"{', '.join(variables)}{',' if len(variables) == 1 else ''} = value.values")
    if texts:
        joined = "".join(f"{{{name} if type({name}) is str else 0}}" for name in texts)
        code.add(f"texts = f'{joined}'")
        with code.block("try:"):
            code.add("plain = len(dumps_json(texts)) == len(texts) + 2")
        with code.block("except UNICODE_ERROR:"):
            code.add("plain = False  # half a surrogate pair")
        with code.block("if plain:"):
            code.add(f"return {_object(schema, escapes=False)}")
    code.add(f"return {_object(schema, escapes=True)}")


def _object(schema: Schema, *, escapes: bool) -> str:
    """Return an expression for the object's text: implicit concatenation of literals and one f-string a value."""
    return "(" + " ".join(_pieces(schema, escapes)) + ")"


def _pieces(schema: Schema, escapes: bool) -> Iterator[str]:
    before = "{"
    for index, field in enumerate(schema.fields):
        yield repr(f"{before}{quote(field.name)}:")
        value = _expression(f"c{index}", f"write_{index}", field.schema, escapes)
        yield f"f'''{{{value}}}'''"
        before = ","
    yield repr("}")


def _expression(value: str, write: str, schema: Schema, escapes: bool) -> str:
    """Return what writes one value, as it may stand in an f-string of three single quotes."""
    kind = _kind(schema)
    if kind in _LIMITS:
        limit = _LIMITS[kind]
        return f"{value} if type({value}) is int and -{limit} <= {value} < {limit} else {write}({value})"
    if kind is Type.BOOLEAN:
        return f"TRUE if {value} is True else FALSE if {value} is False else {write}({value})"
    if kind is Type.STRING:
        shown = f"quote_text({value})" if escapes else f"""f'"{{{value}}}"'"""
        return f"{shown} if type({value}) is str else {write}({value})"
    return f"{write}({value})"


def _kind(schema: Schema) -> Type | None:
    """Return the type by which a value is written, None where its logical name decides."""
    return None if schema.name in LOGICAL_NAMES else schema.type


def _is_struct(schema: Schema) -> bool:
    return _kind(schema) is Type.STRUCT and len(schema.fields) > 0
