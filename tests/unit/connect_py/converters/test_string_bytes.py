"""StringConverter and ByteArrayConverter."""

import pytest

from connect_py.converters.primitive import ByteArrayConverter, StringConverter
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import BYTES, FLOAT32, INT32, OPTIONAL_BYTES, OPTIONAL_STRING, STRING, struct
from connect_py.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (STRING, 'a "b"', b'a "b"'),
        (INT32, 5, b"5"),
        (None, True, b"true"),
        (FLOAT32, 1.1, b"1.1"),
        (None, 1e10, b"1.0E10"),
        (None, {"a": 1, "b": None}, b"{a=1, b=null}"),
        (None, [1, "x"], b"[1, x]"),
        (struct([("a", INT32), ("b", OPTIONAL_STRING)]), None, None),
    ],
)
def test_any_value_becomes_its_java_text(schema, value, text):
    assert StringConverter().from_connect_data("t", schema, value) == text


def test_a_struct_shows_its_fields_that_are_not_null():
    schema = struct([("a", INT32), ("b", Schema(Type.STRING, optional=True)), ("c", OPTIONAL_STRING)])
    assert StringConverter().from_connect_data("t", schema, Struct(schema, [1, "x", None])) == b"Struct{a=1,b=x}"


def test_text_is_never_parsed():
    assert StringConverter().to_connect_data("t", b"5") == (OPTIONAL_STRING, "5")
    assert StringConverter().to_connect_data("t", None) == (OPTIONAL_STRING, None)


def test_the_encoding_is_a_setting():
    latin = StringConverter()
    latin.configure({"converter.encoding": "ISO-8859-1"})
    assert latin.from_connect_data("t", STRING, "é") == b"\xe9"
    assert latin.to_connect_data("t", b"\xe9")[1] == "é"
    with pytest.raises(DataError, match="Failed to serialize"):
        latin.from_connect_data("t", STRING, "€")
    with pytest.raises(ConfigError, match="unknown character set: nope"):
        latin.configure({"converter.encoding": "nope"})
    with pytest.raises(DataError, match="Failed to deserialize"):
        StringConverter().to_connect_data("t", b"\xff")


def test_bytes_pass_and_nothing_else_does():
    plain = ByteArrayConverter()
    assert plain.from_connect_data("t", BYTES, b"x") == b"x"
    assert plain.from_connect_data("t", None, None) is None
    assert plain.to_connect_data("t", b"x") == (OPTIONAL_BYTES, b"x")
    with pytest.raises(DataError, match="Invalid schema type for ByteArrayConverter: STRING"):
        plain.from_connect_data("t", STRING, "x")
    with pytest.raises(DataError, match="is not compatible with objects of type class java"):
        plain.from_connect_data("t", None, "x")
