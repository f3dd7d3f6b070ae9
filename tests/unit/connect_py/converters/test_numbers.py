"""Converters of single numbers and booleans."""

import pytest

from connect_py.converters.primitive import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from connect_py.data.schema import STRING
from connect_py.errors import DataError


@pytest.mark.parametrize(
    ("made", "value", "data"),
    [
        (ShortConverter(), -2, b"\xff\xfe"),
        (IntegerConverter(), 258, b"\0\0\1\2"),
        (LongConverter(), -1, b"\xff" * 8),
        (FloatConverter(), 1.5, b"\x3f\xc0\0\0"),
        (DoubleConverter(), 1.5, b"\x3f\xf8\0\0\0\0\0\0"),
        (BooleanConverter(), True, b"\1"),
    ],
)
def test_values_are_big_endian_and_of_a_fixed_width(made, value, data):
    assert made.from_connect_data("t", None, value) == data
    assert made.to_connect_data("t", data) == (made.schema, value)
    assert made.from_connect_data("t", None, None) is None
    assert made.to_connect_data("t", None) == (made.schema, None)
    assert made.schema.optional
    for wrong in (b"", data + b"\0"):
        with pytest.raises(DataError, match=f"Failed to deserialize {made.kind}"):
            made.to_connect_data("t", wrong)
    with pytest.raises(DataError):
        made.from_connect_data("t", None, "x")


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="Failed to serialize to short: 40000"):
        ShortConverter().from_connect_data("t", None, 40000)
    with pytest.raises(DataError, match="Failed to serialize to integer"):
        IntegerConverter().from_connect_data("t", None, True)
    with pytest.raises(DataError, match="Unexpected byte received by BooleanDeserializer: 7"):
        BooleanConverter().to_connect_data("t", b"\7")
    with pytest.raises(DataError, match="Invalid schema type for BooleanConverter: STRING"):
        BooleanConverter().from_connect_data("t", STRING, True)
