"""The generated writers of structs write what the careful ones write, byte for byte and error for error."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.json_struct import ROWS_BEFORE, rows_writer, struct_writer
from connect_py.converters.json_write import WriteOptions, Writer, payload_writer
from connect_py.data.schema import DATE, DECIMAL, Field, Schema, Struct, Type, decimal_schema
from connect_py.errors import DataError

NAMES = ("id", "Ünder\n", 'a"quote', "it's", "{brace}", "{{two}}", "back\\slash", "'''", "%s", "\U0001f600")
TEXTS = ("", "plain", 'a "quote"', "back\\slash", "\x00\x1f\x7f", "tab\t", "ÿ", "\U0001f600", "\ud800", "{c0}", "'''", "%s")
ODD = (None, 1, True, 1.5, "text", b"bytes", [1], {"a": 1}, 1 << 63, -(1 << 31) - 1, Decimal("1.234"), object)


def schemas(chance: random.Random, depth: int = 0) -> Schema:
    optional = chance.random() < 0.5
    kinds = [*(Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.BOOLEAN, Type.STRING, Type.STRING, Type.FLOAT64, Type.BYTES)]
    pick = chance.randrange(len(kinds) + 4)
    if pick < len(kinds):
        plain = Schema(kinds[pick], optional=optional, name=chance.choice((None, "io.debezium.time.MicroTimestamp")))
        return plain.with_default(usual(chance, plain)) if chance.random() < 0.2 else plain
    if pick == len(kinds):
        return decimal_schema(2, optional=optional)
    if pick == len(kinds) + 1:
        return Schema(Type.INT32, optional=optional, name=DATE, version=1)
    if pick == len(kinds) + 2 or depth > 2:
        return Schema(Type.ARRAY, optional=optional, value_schema=Schema(Type.STRING, optional=True))
    return struct_schema(chance, depth + 1, optional=optional)


def struct_schema(chance: random.Random, depth: int = 0, *, optional: bool = False) -> Schema:
    names = chance.sample(NAMES, chance.randrange(len(NAMES)))
    return Schema(Type.STRUCT, optional=optional, fields=tuple(Field(name, schemas(chance, depth)) for name in names))


def usual(chance: random.Random, schema: Schema) -> Any:
    if schema.optional and chance.random() < 0.2:
        return None
    if schema.name == DATE:
        return datetime.date(2020, 1, chance.randrange(1, 29))
    match schema.type:
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
            bits = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}[schema.type]
            return chance.choice((0, (1 << bits) - 1, -(1 << bits), chance.randrange(-100, 100)))
        case Type.BOOLEAN:
            return chance.random() < 0.5
        case Type.STRING:
            return chance.choice(TEXTS)
        case Type.FLOAT64:
            return chance.choice((0.0, 1e10, float("nan"), chance.random()))
        case Type.BYTES:
            return Decimal(chance.randrange(1000)) / 100 if schema.name == DECIMAL else b"\x00\xff"
        case Type.ARRAY:
            return [chance.choice(TEXTS), None]
    return Struct(schema, [value(chance, field.schema) for field in schema.fields])


def value(chance: random.Random, schema: Schema) -> Any:
    return chance.choice(ODD) if chance.random() < 0.02 else usual(chance, schema)


def outcome(write: Writer, given: Any) -> tuple[str, str]:
    try:
        return "text", write(given)
    except DataError as error:
        return "error", str(error)


def test_the_generated_writer_writes_what_the_careful_one_writes() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    kinds = set()
    for _ in range(150):
        schema = struct_schema(chance)
        if not schema.fields:
            continue
        options = WriteOptions(chance.random() < 0.5, chance.random() < 0.5)
        careful, quick = payload_writer(schema, options), struct_writer(schema, options)
        for _ in range(15):
            given = usual(chance, schema)
            expected = outcome(careful, given)
            kinds.add(expected[0])
            assert outcome(quick, given) == expected, f"seed {seed}: {schema} {given!r}"
    assert kinds == {"text", "error"}


ROW = Schema(Type.STRUCT, fields=(Field("n", Schema(Type.INT32)), Field("t", Schema(Type.STRING, optional=True))))


@pytest.mark.parametrize("given", [None, {"n": 1}, Struct(Schema(Type.STRUCT, fields=ROW.fields[:1]), [1])])
def test_what_is_no_struct_of_the_schema_is_refused_as_before(given: Any) -> None:
    options = WriteOptions()
    expected = outcome(payload_writer(ROW, options), given)
    assert expected[0] == "error"
    assert outcome(struct_writer(ROW, options), given) == expected


def test_a_struct_of_an_equal_schema_that_is_another_object_is_written() -> None:
    twin = Schema(Type.STRUCT, fields=tuple(ROW.fields))
    assert twin is not ROW
    assert struct_writer(ROW, WriteOptions())(Struct(twin, [1, "x"])) == '{"n":1,"t":"x"}'


def test_a_function_is_generated_only_for_a_schema_with_many_rows() -> None:
    made: list[Schema] = []

    def counted(schema: Schema, options: WriteOptions) -> Writer:
        made.append(schema)
        return struct_writer(schema, options)

    write = rows_writer(ROW, WriteOptions(), counted)
    texts = [write(Struct(ROW, [n, None])) for n in range(ROWS_BEFORE - 1)]
    assert made == []
    texts += [write(Struct(ROW, [n, None])) for n in range(ROWS_BEFORE - 1, 200)]
    assert made == [ROW]
    assert texts == [f'{{"n":{n},"t":null}}' for n in range(200)]


def test_the_converter_writes_the_same_before_and_after_it_has_a_generated_function() -> None:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"})
    written = {converter.from_connect_data("t", ROW, Struct(ROW, [7, 'a "b" \U0001f600'])) for _ in range(3 * ROWS_BEFORE)}
    assert written == {b'{"n":7,"t":"a \\"b\\" \\uD83D\\uDE00"}'}
