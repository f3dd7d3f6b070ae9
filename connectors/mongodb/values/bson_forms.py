"""Texts of BSON's scalar values in MongoDB's three forms of extended JSON, as the Java driver writes them.

`org.bson.json.JsonWriterSettings` has the converters of each output mode, `org.bson.json.*Converter` the texts. Every function is pure.
Texts hold the characters themselves; `connect_py.data.java_text.escaped` turns what Java escapes into ``\\\\uXXXX``, once a document.
"""

from __future__ import annotations

import enum
import functools
from binascii import b2a_base64
from codecs import register_error
from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple

from connect_py.data.java_text import reformat
from connect_py.errors import DataError

#: `RelaxedExtendedJsonDateTimeConverter`: later dates keep the canonical form, and so do those before 1970.
LAST_MS_OF_YEAR_9999 = 253402300799999
_EPOCH = date(1970, 1, 1)
_TWO_DIGITS = tuple(f"{number:02}" for number in range(60))
_EXPONENT_BIAS = 6176
_SIGNIFICAND = (1 << 113) - 1


def decode_text(data: bytes) -> str:
    """Decode UTF-8 as `new String(bytes, UTF_8)` does: what is malformed becomes U+FFFD, as in the reference's events."""
    return data.decode("utf-8", "java-replace")


def double_text(value: float) -> str:
    """Return what `Double.toString` gives.

    `1.5`, `1.0E10`, `NaN`, `-Infinity`. (Drivers later than 5.6 write `1.0E+10`; Debezium 3.6 has 5.6.)
    """
    if 0.001 <= value < 1e7 or -1e7 < value <= -0.001 or value == 0:
        return repr(value)
    if 1e7 <= value < 1e16:  # instants of JavaScript, most of them; plain in Python
        whole, _, fraction = repr(value).partition(".")
        return f"{whole[0]}.{(whole[1:] + fraction).rstrip('0') or '0'}E{len(whole) - 1}"
    return reformat(repr(value))


def date_text(milliseconds: int) -> str:
    """Return an instant of the years 1970 to 9999 as ISO 8601 in UTC; the fraction without needless zeros."""
    day, rest = divmod(milliseconds, 86_400_000)
    second, fraction = divmod(rest, 1000)
    minute, second = divmod(second, 60)
    shown = f"{_day_text(day)}T{_TWO_DIGITS[minute // 60]}:{_TWO_DIGITS[minute % 60]}:{_TWO_DIGITS[second]}"
    return f"{f'{shown}.{fraction:03}'.rstrip('0')}Z" if fraction else f"{shown}Z"


@functools.lru_cache(maxsize=4096)
def _day_text(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).isoformat()


def base64_text(data: bytes) -> str:
    """Return Base64 with padding, in one line."""
    return b2a_base64(data, newline=False).decode("ascii")


def decimal_text(low: int, high: int) -> str:
    """Return a decimal128 from its two unsigned halves (`org.bson.types.Decimal128.toString`)."""
    sign = "-" if high >> 63 else ""
    if high & 0x7C00000000000000 == 0x7C00000000000000:
        return "NaN"
    if high & 0x7C00000000000000 == 0x7800000000000000:
        return f"{sign}Infinity"
    if high & 0x6000000000000000 == 0x6000000000000000:
        exponent, digits = (high >> 47 & 0x3FFF) - _EXPONENT_BIAS, "0"  # its digits would be more than 34: not canonical, so zero
    else:
        exponent, digits = (high >> 49 & 0x3FFF) - _EXPONENT_BIAS, str((high << 64 | low) & _SIGNIFICAND)
    adjusted = exponent + len(digits) - 1
    if exponent > 0 or adjusted < -6:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}E{'+' if adjusted > 0 else ''}{adjusted}"
    if exponent == 0:
        return sign + digits
    padded = digits.rjust(1 - exponent, "0")
    return f"{sign}{padded[:exponent]}.{padded[exponent:]}"


def _java_replace(error: UnicodeError) -> tuple[str, int]:
    """Put one U+FFFD where Java's decoder does: a surrogate in three bytes counts as one fault there, as three in Python."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    found = error.object[error.start : error.start + 3]
    surrogate = len(found) == 3 and found[0] == 0xED and 0xA0 <= found[1] <= 0xBF and 0x80 <= found[2] <= 0xBF
    return "\ufffd", error.start + 3 if surrogate else error.end


register_error("java-replace", _java_replace)


#: Types without content, by their type byte.
CONSTANTS = {0x06: '{"$undefined": true}', 0x0A: "null", 0x7F: '{"$maxKey": 1}', 0xFF: '{"$minKey": 1}'}


class Form(enum.Enum):
    """How numbers, dates, binaries and regular expressions look."""

    STRICT = "strict"
    CANONICAL = "canonical"
    RELAXED = "relaxed"


class ScalarTexts(NamedTuple):
    """Functions that write the types on which forms differ; `regex` receives pattern and options as JSON strings."""

    int32: Callable[[int], str]
    int64: Callable[[int], str]
    double: Callable[[float], str]
    date: Callable[[int], str]
    binary: Callable[[bytes, int], str]
    regex: Callable[[str, str], str]


def scalar_texts(form: Form, comma: str) -> ScalarTexts:
    """Return the functions of a form; `comma` stands between the members of a value that is a document in JSON."""
    if form is Form.STRICT:
        return ScalarTexts(
            str,
            _number_long,
            double_text,
            lambda milliseconds: f'{{"$date": {milliseconds}}}',
            lambda content, subtype: f'{{"$binary": "{base64_text(content)}"{comma}"$type": "{subtype:02X}"}}',
            lambda pattern, options: f'{{"$regex": {pattern}{comma}"$options": {options}}}',
        )

    def binary(content: bytes, subtype: int) -> str:
        return f'{{"$binary": {{"base64": "{base64_text(content)}"{comma}"subType": "{subtype:02X}"}}}}'

    def regex(pattern: str, options: str) -> str:
        return f'{{"$regularExpression": {{"pattern": {pattern}{comma}"options": {options}}}}}'

    if form is Form.CANONICAL:
        return ScalarTexts(_number_int, _number_long, _number_double, _canonical_date, binary, regex)
    return ScalarTexts(str, str, _relaxed_double, _relaxed_date, binary, regex)


def _number_int(value: int) -> str:
    return f'{{"$numberInt": "{value}"}}'


def _number_long(value: int) -> str:
    return f'{{"$numberLong": "{value}"}}'


def _number_double(value: float) -> str:
    return f'{{"$numberDouble": "{double_text(value)}"}}'


def _relaxed_double(value: float) -> str:
    return double_text(value) if value - value == 0 else _number_double(value)


def _canonical_date(milliseconds: int) -> str:
    return f'{{"$date": {{"$numberLong": "{milliseconds}"}}}}'


def _relaxed_date(milliseconds: int) -> str:
    if 0 <= milliseconds <= LAST_MS_OF_YEAR_9999:
        return f'{{"$date": "{date_text(milliseconds)}"}}'
    return _canonical_date(milliseconds)


class MalformedBsonError(DataError):
    """Bytes are no BSON document: cut short, a wrong length, an unknown type. Nothing of the document was used."""
