"""Numbers look as Java prints them."""

import math
import struct
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connect_py.data.java_text import double_text, duration_text, escaped, float_text, reformat, to_text


def as_float(bits: int) -> float:
    return struct.unpack(">f", bits.to_bytes(4, "big"))[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (123456.789, "123456.789"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (1e10, "1.0E10"),
        (1e23, "1.0E23"),
        (0.001, "0.001"),
        (9.999e-4, "9.999E-4"),
        (1e-5, "1.0E-5"),
        (-4.35, "-4.35"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (5e-324, "4.9E-324"),
        (1e-323, "9.9E-324"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_doubles_look_as_in_java(value, text):
    assert double_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.1, "1.1"),
        (0.1, "0.1"),
        (1e10, "1.0E10"),
        (9.999999e22, "9.999999E22"),
        (1e23, "1.0E23"),
        (16777216.0, "1.6777216E7"),
        (33554432.0, "3.3554432E7"),
        (123456.79, "123456.79"),
        (as_float(1), "1.4E-45"),
        (as_float(2), "2.8E-45"),
        (as_float(0x00800000), "1.17549435E-38"),
        (as_float(0x7F7FFFFF), "3.4028235E38"),
        (1e39, "Infinity"),
        (-1e39, "-Infinity"),
        (math.nan, "NaN"),
        (-0.0, "-0.0"),
        (1e-50, "0.0"),
    ],
)
def test_floats_look_as_in_java(value, text):
    assert float_text(value) == text


@given(st.floats(allow_nan=False))
def test_a_double_reads_back_as_itself(value):
    assert float(double_text(value)) == value
    assert double_text(value) == reformat(repr(value))


@given(st.floats(width=32, allow_nan=False))
@example(as_float(0x4B000000))
def test_a_float_reads_back_as_itself_and_no_shorter_text_does(value):
    text = float_text(value)
    if math.isinf(value) or abs(value) == as_float(0x00800000):  # Float.MIN_NORMAL keeps the digits that everybody writes
        return
    assert struct.pack(">f", float(text)) == struct.pack(">f", value)
    digits = len(text.partition("E")[0].strip("-").replace(".", "").strip("0"))
    if value and digits > 2:
        shorter = f"{value:.{digits - 2}e}"
        assert abs(float(shorter)) > 3.4028235e38 or struct.pack(">f", float(shorter)) != struct.pack(">f", value)


@pytest.mark.parametrize(
    ("text", "java"),
    [("0.0001", "1.0E-4"), ("-1.5e-07", "-1.5E-7"), ("infinity", "Infinity"), ("-Infinity", "-Infinity"), ("nan", "NaN"),
     ("12", "12.0"), ("00012.50", "12.5"), ("0", "0.0"), ("-0", "-0.0"), ("1234567", "1234567.0"), ("12345678", "1.2345678E7")],
)  # fmt: skip
def test_other_layouts_of_the_same_digits_become_javas(text, java):
    assert reformat(text) == java


def test_a_map_is_shown_in_the_order_of_a_hash_map() -> None:
    assert to_text(None, {"n": 1, "t": "x", "p": 0, "o": 2, "s": None}) == "{p=0, s=null, t=x, n=1, o=2}"
    assert to_text(None, {2: "b", 1: "a"}) == "{2=b, 1=a}"


@pytest.mark.parametrize(
    ("seconds", "nanos", "text"),
    [
        (0, 0, "PT0S"),
        (36000, 0, "PT10H"),
        (-3600, 0, "PT-1H"),
        (-1, 500_000_000, "PT-0.5S"),
        (3661, 1000, "PT1H1M1.000001S"),
        (-61, 0, "PT-1M-1S"),
    ],
)
def test_durations_look_as_in_java(seconds: int, nanos: int, text: str) -> None:
    assert duration_text(seconds, nanos) == text


@pytest.mark.parametrize("around", ["", "plain", "Ä € я 漢"])
def test_characters_are_escaped_by_their_category_whatever_is_around_them(around: str) -> None:
    kept = ("Lu", "Ll", "Lt", "Lo", "Nd", "Nl", "No", "Zs", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So")
    for code in range(0x20, 0x10000):
        text = chr(code)
        shown = text if unicodedata.category(text) in kept else f"\\u{code:04x}"
        assert escaped(f"{around}{text}{around}") == f"{around}{shown}{around}"
    assert escaped(f"{around}😀\x7f") == f"{around}\\ud83d\\ude00\\u007f"
