"""Schemas, structs and logical types."""

from __future__ import annotations

import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.data import Schema, Struct, Type
from connect_py.data import schema as s
from connect_py.data.schema import bytes_to_decimal, decimal_schema, decimal_to_bytes, int_to_bytes, sized, whole
from connect_py.errors import DataError

POINT = s.struct([("x", s.INT32.with_default(7)), ("y", s.OPTIONAL_STRING)], name="Point")


def test_equal_schemas_are_one_key_of_a_cache():
    other = s.struct([("x", s.INT32.with_default(7)), ("y", s.OPTIONAL_STRING)], name="Point")
    assert {POINT: 1}[other] == 1
    assert POINT.as_optional() != POINT
    assert POINT.as_optional().as_optional() == POINT.as_optional()


def test_a_struct_gives_a_default_where_a_value_is_missing():
    value = Struct(POINT)
    assert value["x"] == 7
    assert value.without_default("x") is None
    value["x"] = 1
    assert value == Struct(POINT, [1])
    assert repr(value) == "Struct{x=1}"


def test_unknown_fields_and_too_many_values_are_refused():
    with pytest.raises(DataError, match="z is not a valid field name"):
        Struct(POINT)["z"]
    with pytest.raises(DataError, match="3 values for the 2 fields"):
        Struct(POINT, [1, "a", 3])
    with pytest.raises(DataError, match="Not a struct schema"):
        Struct(Schema(Type.INT8))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "00"), (127, "7f"), (128, "0080"), (-1, "ff"), (-128, "80"), (-129, "ff7f"), (256, "0100"), (-32768, "8000")],
)
def test_integers_become_java_biginteger_bytes(value, expected):
    assert int_to_bytes(value).hex() == expected


@given(st.integers())
def test_integer_bytes_are_shortest_and_reversible(value):
    data = int_to_bytes(value)
    assert int.from_bytes(data, "big", signed=True) == value
    if len(data) > 1:
        with pytest.raises(OverflowError):
            value.to_bytes(len(data) - 1, "big", signed=True)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6), st.integers(6, 12))
def test_decimals_round_trip_at_any_scale_that_holds_them(value, scale):
    assert bytes_to_decimal(decimal_to_bytes(value, scale), scale) == value


def test_decimals_that_do_not_fit_are_refused():
    assert decimal_to_bytes(decimal.Decimal("2.22"), 2).hex() == "00de"
    with pytest.raises(DataError, match="mismatching scale"):
        decimal_to_bytes(decimal.Decimal("2.225"), 2)
    with pytest.raises(DataError, match="no exact decimal form"):
        decimal_to_bytes(decimal.Decimal("NaN"), 2)


@pytest.mark.parametrize("text", ["1e999999999", "-1E+150000", "1e-999999999", "Infinity", "NaN"])
def test_decimals_whose_digits_nobody_could_write_are_refused_at_once(text: str) -> None:
    for use in (sized, whole, lambda value: decimal_to_bytes(value, 2)):
        with pytest.raises(DataError):
            use(decimal.Decimal(text))


def test_the_largest_numbers_of_a_database_are_whole() -> None:
    assert whole(decimal.Decimal("9" * 131_072 + ".5")) == int(decimal.Decimal("9" * 131_072))


def test_a_decimal_schema_carries_scale_and_precision():
    assert decimal_schema(2, 10).parameters == (("scale", "2"), ("connect.decimal.precision", "10"))
    assert decimal_schema(2).parameter("connect.decimal.precision") is None
