"""SimpleHeaderConverter and the inference behind it; every expectation was read off Kafka 4.3.1's own converter."""

import datetime
import decimal
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.converters.primitive import SimpleHeaderConverter
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import FLOAT32, INT32, OPTIONAL_STRING, STRING, array, map_of, struct
from connect_py.data.values import parse, to_text
from connect_py.errors import DataError
from tests.paths import GOLDEN


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("", Type.STRING, ""),
        (" ", Type.STRING, " "),
        ("true", Type.BOOLEAN, True),
        (" false ", Type.BOOLEAN, False),
        ("true}", Type.STRING, "true}"),
        ("1", Type.INT8, 1),
        ("-129", Type.INT16, -129),
        ("1e3", Type.INT16, 1000),
        ("1.0", Type.INT8, 1),
        ("70000", Type.INT32, 70000),
        ("5000000000", Type.INT64, 5_000_000_000),
        ("+5", Type.INT8, 5),
        (" 1 ", Type.INT8, 1),
        ("1.5", Type.FLOAT32, 1.5),
        ("1e50", Type.FLOAT64, 1e50),
        ("1e400", Type.BYTES, decimal.Decimal("1e400")),
        ("123456789012345678901", Type.BYTES, decimal.Decimal("123456789012345678901")),
        ("1,2", Type.INT8, 1),
        ("12:30", Type.INT8, 12),
        ("12:30:45.123Z", Type.INT32, datetime.time(12, 30, 45, 123000)),
        ("12\\:30\\:45.123Z", Type.INT32, datetime.time(12, 30, 45, 123000)),
        ("2020-01-02", Type.INT32, datetime.date(2020, 1, 2)),
        ("2020-13-45", Type.INT32, datetime.date(2021, 2, 14)),
        ("2020-01-02T03:04:05.678Z", Type.INT64, datetime.datetime(2020, 1, 2, 3, 4, 5, 678000, datetime.UTC)),
        ("0x10", Type.STRING, "0x10"),
        ("1.5f", Type.STRING, "1.5f"),
        ("-", Type.STRING, "-"),
        ("a,b", Type.STRING, "a,b"),
        ('"5"', Type.STRING, '"5"'),
        ("\\", Type.STRING, "\\"),
        ("[1,2.5]", Type.ARRAY, [1.0, 2.5]),
        ('[1,"a"]', Type.ARRAY, [1, "a"]),
        ("[null]", Type.ARRAY, [None]),
        ("[1,null]", Type.STRING, "[1,null]"),
        ("[1,]", Type.ARRAY, [1]),
        ("[1 2]", Type.STRING, "[1 2]"),
        ("[1,2", Type.STRING, "[1,2"),
        ('["a : b"]', Type.ARRAY, ["a : b"]),
        ('["2020-01-02"]', Type.ARRAY, [datetime.date(2020, 1, 2)]),
        ('{"a":1}', Type.MAP, {"a": 1}),
        ("{1:2}", Type.MAP, {1: 2}),
        ("{a:1}", Type.STRING, "{a:1}"),
        ('{"a":1 "b":2}', Type.MAP, {"a": 1, "b": 2}),
        ('{"a":1,"b":null}', Type.STRING, '{"a":1,"b":null}'),
        ("[" * 5000, Type.STRING, "[" * 5000),
    ],
)
def test_a_texts_type_is_inferred(text, type_, value):
    schema, found = SimpleHeaderConverter().to_connect_header("t", "h", text.encode())
    assert (schema.type, found) == (type_, value)
    assert type(found) is type(value)


def test_null_is_null():
    assert SimpleHeaderConverter().to_connect_header("t", "h", None) == (None, None)
    assert SimpleHeaderConverter().to_connect_header("t", "h", b"null") == (None, None)
    assert SimpleHeaderConverter().from_connect_header("t", "h", STRING, None) is None


ROW = struct([("a", INT32), ("b", OPTIONAL_STRING)])


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (STRING, 'a "b"', 'a "b"'),
        (INT32, 5, "5"),
        (None, True, "true"),
        (FLOAT32, 1.1, "1.1"),
        (array(FLOAT32), [1.1], "[1.1]"),
        (None, b"\x00\xff", "AP8="),
        (None, [1, 'x"\\', None, b"a"], '[1,"x\\"\\\\",null,"YQ=="]'),
        (map_of(STRING, INT32), {"k": 1}, '{"k":1}'),
        (ROW, Struct(ROW, [1, None]), '{"a":1,"b":null}'),
        (None, decimal.Decimal("1.50"), "1.50"),
        (None, datetime.time(12, 30, 45, 123000), "12:30:45.123Z"),
        (None, datetime.date(2020, 1, 2), "2020-01-02"),
        (None, datetime.datetime(2020, 1, 2, 3, 4, 5, 678000, datetime.UTC), "2020-01-02T03:04:05.678Z"),
    ],
)
def test_values_are_written_as_texts(schema, value, text):
    assert SimpleHeaderConverter().from_connect_header("t", "h", schema, value).decode() == text


def test_what_has_no_text_is_refused():
    with pytest.raises(DataError, match="unexpected value type object"):
        to_text(None, object())
    with pytest.raises(DataError, match="half a surrogate pair"):
        SimpleHeaderConverter().from_connect_header("t", "h", STRING, "\ud800")


@given(st.text(alphabet='[]{}:,"\\ 1.5e-Zatruefalsnl0', max_size=30))
def test_any_text_has_a_value(text):
    schema, value = parse(text)
    assert (schema is None) == (value is None)
    assert schema is None or isinstance(schema, Schema)


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_come_back(number):
    assert parse(to_text(None, number)).value == number


def _shape(schema: Schema | None) -> str:
    if schema is None:
        return "!"
    name = schema.type.name + (f":{schema.name}" if schema.name else "")
    if schema.type is Type.ARRAY:
        return f"{name}<{_shape(schema.value_schema)}>"
    return f"{name}<{_shape(schema.key_schema)},{_shape(schema.value_schema)}>" if schema.type is Type.MAP else name


def test_generated_texts_have_the_types_and_go_back_to_the_texts_that_kafka_gives_them():
    """`golden/simple_headers.jsonl`: [text, schema, text again] by Kafka 4.3.0's SimpleHeaderConverter."""
    made = SimpleHeaderConverter()
    lines = (GOLDEN / "simple_headers.jsonl").read_text().splitlines()
    for text, shape, again in map(json.loads, lines):
        schema, value = made.to_connect_header("t", "h", text.encode())
        assert _shape(schema) == shape.replace("<->", "<!>").replace("<-,->", "<!,!>").replace(",->", ",!>"), text
        assert made.from_connect_header("t", "h", schema, value) == again.encode(), text
