"""JsonConverter: bytes as the reference writes them, and back.

The texts in WRITTEN are what Kafka 4.3.1's own JsonConverter wrote for these schemas and values.
"""

import datetime
import decimal
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.json_read import decode_payload, parse_json
from connect_py.converters.json_schema import schema_from_json, schema_to_json
from connect_py.converters.json_write import WriteOptions, encode_value, quote
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    array,
    decimal_schema,
    map_of,
    struct,
)
from connect_py.errors import ConfigError, DataError
from tests.seeds import examples

ROW = struct(
    [
        ("id", INT32),
        ("s", Schema(Type.STRING, optional=True, default="x")),
        ("price", decimal_schema(2)),
        ("a", array(INT64)),
        ("m", map_of(STRING, Schema(Type.FLOAT32, optional=True))),
    ],
    name="com.acme.Row",
    version=3,
)
ROW_VALUE = Struct(ROW, [1, None, decimal.Decimal("2.22"), [1], {"k": 1.5}])
ROW_JSON = (
    '{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"},'
    '{"type":"string","optional":true,"default":"x","field":"s"},'
    '{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2"},"field":"price"},'
    '{"type":"array","items":{"type":"int64","optional":false},"optional":false,"field":"a"},'
    '{"type":"map","keys":{"type":"string","optional":false},"values":{"type":"float","optional":true},"optional":false,"field":"m"}],'
    '"optional":false,"name":"com.acme.Row","version":3},'
    '"payload":{"id":1,"s":"x","price":"AN4=","a":[1],"m":{"k":1.5}}}'
)


def converter(**settings: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({name.replace("_", "."): value for name, value in settings.items()}, is_key=False)
    return made


def test_a_row_looks_as_the_reference_writes_it():
    assert converter().from_connect_data("t", ROW, ROW_VALUE).decode() == ROW_JSON


def test_a_row_reads_back_and_so_does_the_next_one_with_the_same_schema():
    reader = converter()
    for _ in range(3):
        schema, value = reader.to_connect_data("t", ROW_JSON.encode())
        assert schema == ROW
        assert value == Struct(ROW, [1, "x", decimal.Decimal("2.22"), [1], {"k": 1.5}])


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (INT8, -128, "-128"),
        (FLOAT32, 1.1, "1.1"),
        (FLOAT32, 1e10, "1.0E10"),
        (FLOAT64, 123456.789, "123456.789"),
        (FLOAT64, math.nan, '"NaN"'),
        (FLOAT64, -math.inf, '"-Infinity"'),
        (BOOLEAN, True, "true"),
        (BYTES, b"\x00\xff", '"AP8="'),
        (STRING, 'q"\\/\b\f\n\r\t', '"q\\"\\\\/\\b\\f\\n\\r\\t"'),
        (STRING, "\x01\x0b\x1f\x7fé\u2028", '"\\u0001\\u000B\\u001F\x7fé\u2028"'),
        (STRING, "\\u001b \x1b", '"\\\\u001b \\u001B"'),
        (STRING, "😀", '"\\uD83D\\uDE00"'),
        (STRING, "\ud800", '"\\uD800"'),
        (map_of(INT32, STRING), {1: "a", 2: "b"}, '[[1,"a"],[2,"b"]]'),
        (decimal_schema(2), decimal.Decimal("-0.01"), '"/w=="'),
        (Schema(Type.INT32, name=DATE, version=1), datetime.date(1970, 1, 2), "1"),
        (Schema(Type.INT32, name=TIME, version=1), datetime.time(0, 0, 1, 2000), "1002"),
        (Schema(Type.INT64, name=TIMESTAMP, version=1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, datetime.UTC), "-1"),
        (None, {"a": [1, 2.5, None, True, "x"]}, '{"a":[1,2.5,null,true,"x"]}'),
        (None, {1: "a", "b": 2}, '[[1,"a"],["b",2]]'),
    ],
)
def test_values_look_as_the_reference_writes_them(schema, value, text):
    assert encode_value(schema, value).decode() == text


def test_decimals_can_be_numbers_with_their_zeros_kept():
    assert encode_value(decimal_schema(2), decimal.Decimal("2.00"), WriteOptions(numeric_decimals=True)) == b"2.00"
    numeric = converter(decimal_format="numeric")
    written = numeric.from_connect_data("t", decimal_schema(2).with_default(decimal.Decimal("1.50")), decimal.Decimal("2.00"))
    assert written.endswith(b'"default":1.50},"payload":2.00}')
    assert str(numeric.to_connect_data("t", written)[1]) == "2.00"


def test_nulls_are_tombstones_only_without_a_schema():
    for enabled in ("true", "false"):
        assert converter(schemas_enable=enabled).from_connect_data("t", None, None) is None
        assert converter(schemas_enable=enabled).to_connect_data("t", None) == (None, None)
    assert converter(schemas_enable="false").from_connect_data("t", OPTIONAL_STRING, None) == b"null"
    assert converter().from_connect_data("t", OPTIONAL_STRING, None).endswith(b'"payload":null}')


def test_a_null_stays_null_when_defaults_shall_not_replace_it():
    kept = converter(replace_null_with_default="false")
    assert b'"s":null' in kept.from_connect_data("t", ROW, ROW_VALUE)
    assert kept.to_connect_data("t", kept.from_connect_data("t", ROW, ROW_VALUE))[1].without_default("s") is None


def test_values_that_do_not_fit_their_schema_are_refused():
    for schema, value in [
        (INT32, "1"),
        (INT32, 2**31),
        (INT32, True),
        (STRING, 1),
        (BYTES, "x"),
        (ROW, {}),
        (array(INT32), 5),
        (INT32, None),
    ]:
        with pytest.raises(DataError):
            encode_value(schema, value)
    with pytest.raises(DataError, match="Mismatching schema"):
        encode_value(struct([("a", INT32)]), ROW_VALUE)
    with pytest.raises(DataError, match="does not have corresponding schema type"):
        encode_value(None, decimal.Decimal(1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "may not contain additional fields"),
        ("null", "may not contain additional fields"),
        ("[]", "may not contain additional fields"),
        ('{"schema":null}', "may not contain additional fields"),
        ('{"schema":{"type":"int32"},"payload":1,"x":2}', "may not contain additional fields"),
        ('{"schema":{"type":"nope"},"payload":1}', "Unknown schema type: nope"),
        ('{"schema":{"typ":"int32"},"payload":1}', "Schema must contain 'type' field"),
        ('{"schema":5,"payload":1}', "Schema must contain 'type' field"),
        ('{"schema":{"type":"array"},"payload":1}', "Array schema did not specify the element type"),
        ('{"schema":{"type":"map"},"payload":1}', "Map schema did not specify the key type"),
        ('{"schema":{"type":"map","keys":{"type":"string"}},"payload":1}', "Map schema did not specify the value type"),
        ('{"schema":{"type":"struct"},"payload":1}', 'Struct schema\'s "fields" argument is not an array.'),
        ('{"schema":{"type":"struct","fields":[{"type":"int8"}]},"payload":1}', "field name not specified properly"),
        ('{"schema":{"type":"int32","parameters":{"a":1}},"payload":1}', "Schema parameters must have string values."),
        ('{"schema":{"type":"int32"},"payload":null}', "Invalid null value for required INT32 field"),
        ('{"schema":{"type":"struct","fields":[]},"payload":[]}', "Structs should be encoded as JSON objects, but found ARRAY"),
        ('{"schema":{"type":"bytes"},"payload":"!"}', "Invalid bytes field"),
        ('{"schema":{"type":"int32"},"payload":"5"}', "A JSON STRING is no INT32"),
        ("{'a':1}", "Converting byte[] to Kafka Connect data failed due to serialization error: "),
        ('{"a":NaN}', "Converting byte[] to Kafka Connect data failed due to serialization error: "),
    ],
)
def test_what_cannot_be_read_says_why(text, message):
    with pytest.raises(DataError) as caught:
        converter().to_connect_data("t", text.encode())
    assert message in str(caught.value)


def test_plain_json_is_read_by_its_own_types():
    plain = converter(schemas_enable="false")
    assert plain.to_connect_data("t", b'{"a":[1,1.0,"x",null]}') == (None, {"a": [1, 1.0, "x", None]})
    assert plain.to_connect_data("t", b"007") == (None, 7)
    assert plain.to_connect_data("t", b'{"a":"007","b":-01.5,"c":[00]}') == (None, {"a": "007", "b": -1.5, "c": [0]})
    assert plain.to_connect_data("t", b"") == (None, None)


def test_integers_are_narrowed_as_a_java_cast_does():
    assert decode_payload(INT8, 300) == 44
    assert decode_payload(INT32, 5_000_000_000) == 705032704
    assert decode_payload(INT32, 5.9) == 5


def test_a_fixed_schema_reads_payloads_alone():
    content = schema_to_json(ROW).decode()
    fixed = converter(schema_content=content)
    assert fixed.to_connect_data("t", b'{"id":1,"price":"AN4=","a":[],"m":{}}')[0] == ROW
    with pytest.raises(ConfigError, match="is no schema"):
        converter(schema_content="{")


def test_a_schema_whose_default_holds_the_envelopes_words_is_read_right():
    tricky = map_of(STRING, STRING).with_default({"x": "y", "payload": "z"})
    for each in (converter(),) * 3:
        for value in ({"a": "b"}, {"c": "d"}):
            assert each.to_connect_data("t", each.from_connect_data("t", tricky, value)) == (tricky, value)


# -- round trips -------------------------------------------------------------------------------------------------------------------

TEXT = st.text(max_size=5)


def leaf(type_: Type, values):
    return st.builds(
        lambda optional, name, doc, default, value: (
            Schema(type_, optional=optional, name=name and "n." + name, doc=doc, default=default),
            value,
        ),
        st.booleans(), st.none() | TEXT, st.none() | TEXT, st.none() | values, values,
    )  # fmt: skip


def integers(bits: int):
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


LEAVES = st.one_of(
    leaf(Type.INT8, integers(8)),
    leaf(Type.INT32, integers(32)),
    leaf(Type.INT64, integers(64)),
    leaf(Type.FLOAT32, st.floats(width=32, allow_nan=False)),
    leaf(Type.FLOAT64, st.floats(allow_nan=False)),
    leaf(Type.BOOLEAN, st.booleans()),
    leaf(Type.STRING, TEXT),
    leaf(Type.BYTES, st.binary(max_size=4)),
    st.builds(lambda u: (decimal_schema(3), decimal.Decimal(u).scaleb(-3)), st.integers(-(10**27), 10**27)),
    st.builds(lambda d: (Schema(Type.INT32, name=DATE, version=1), d), st.dates()),
    st.builds(
        lambda d: (Schema(Type.INT64, name=TIMESTAMP), d.replace(microsecond=d.microsecond // 1000 * 1000, tzinfo=datetime.UTC)),
        st.datetimes(),
    ),
)


def compound(children):
    return st.one_of(
        st.builds(lambda c, n: (array(c[0]), [c[1]] * n), children, st.integers(0, 2)),
        st.builds(lambda c, keys: (map_of(STRING, c[0]), dict.fromkeys(keys, c[1])), children, st.lists(TEXT, max_size=2)),
        st.builds(lambda c, keys: (map_of(INT32, c[0]), dict.fromkeys(keys, c[1])), children, st.lists(integers(32), max_size=2)),
        st.lists(st.tuples(TEXT, children), max_size=3, unique_by=lambda pair: pair[0]).map(
            lambda parts: (lambda s: (s, Struct(s, [v for _, (_, v) in parts])))(struct([(n, c) for n, (c, _) in parts], name="s"))
        ),
    )


@settings(max_examples=examples(300))
@given(st.recursive(LEAVES, compound, max_leaves=6), st.booleans())
def test_every_value_reads_back_as_it_was_with_its_schema(pair, numeric):
    schema, value = pair
    both = converter(decimal_format="NUMERIC" if numeric else "BASE64")
    written = both.from_connect_data("t", schema, value)
    assert both.to_connect_data("t", written) == (schema, value)
    assert both.to_connect_data("t", written) == (schema, value)
    assert schema_from_json(json.loads(schema_to_json(schema))) == schema


@given(st.text())
def test_quoted_text_is_json_of_the_same_text(text):
    assert json.loads(quote(text)) == text
    assert parse_json(quote(text).encode()) == text


@pytest.mark.parametrize("kind", ["double", "float"])
def test_a_whole_number_beyond_every_double_is_infinite(kind: str) -> None:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "true"})
    for sign in ("", "-"):
        text = f'{{"schema":{{"type":"{kind}","optional":true}},"payload":{sign}1{"0" * 400}}}'
        assert converter.to_connect_data("t", text.encode())[1] == float(f"{sign}inf")


def test_a_value_without_schema_that_is_nested_too_deeply_is_a_named_error() -> None:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"})
    with pytest.raises(DataError, match="nested too deeply"):
        converter.from_connect_data("t", None, value)
