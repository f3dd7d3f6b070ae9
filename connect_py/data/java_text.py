"""Show values, numbers and classes as Java does.

`to_text` is `toString`: what StringConverter writes, and what messages quote. `java_class` says what Java would call the class of a value,
for messages that people know from there.

`double_text` and `float_text` are `Double.toString` and `Float.toString`, which is what JsonConverter, StringConverter and casts show. The
digits are the shortest that read back as the same number, as `java.lang.Double#toString` has specified since JDK 19 (JDK-4511638).
Runtimes before 19 print needless digits for some large numbers (1.0E23 was 9.999999999999999E22). Measured against JDK 17 with 40,000
numbers each: no difference for prices and fractions; 0.3 % of doubles (2.6E16 to 9.3E18) and 11 % of floats (3.4E7 to 7.6E25) with random
bits, all of them texts that read back as the same number. Kafka's and Debezium's own images run on 21, so the newer rule is kept here.
The layout never changed: plain between 1.0E-3 and 1.0E7, otherwise one digit, a point, at least one digit, `E` and the exponent.

`escaped` escapes what MongoDB's Java driver escapes in JSON (`org.bson.json.StrictCharacterStreamJsonWriter.writeStringHelper`).
"""

from __future__ import annotations

import datetime
import decimal
import functools
import re
import struct
import sys
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from connect_py.data.java_map import in_java_order
from connect_py.data.schema import Schema, Struct, Type

_FLOAT = struct.Struct(">f")
_BITS = struct.Struct(">I")
_DOUBLE = struct.Struct(">d")
_LONG = struct.Struct(">Q")
#: Six digits of a normal float are always its own (FLT_DIG), so the first of these that reads back is the shortest, zeros stripped.
_TRIES = ("%.6g", "%.7g", "%.8g", "%.9g")
#: Bits of `Float.MIN_NORMAL`, the one limit that tests and people write down, and always with the digits of older runtimes.
_MIN_NORMAL = 0x00800000
#: Bits of 3.4E38: rounding up the digits of larger floats could overflow.
_NEAR_THE_END = 0x7F7FC99E


def double_text(value: float) -> str:
    """Return a 64-bit float as `Double.toString` gives it: `1.0`, `1.0E10`, `4.9E-324`, `NaN`, `-Infinity`."""
    return repr(value) if 0.001 <= abs(value) < 1e7 else reformat(repr(value))


def float_text(value: float) -> str:
    """Return a 32-bit float as `Float.toString` gives it. A Python float that is none is rounded to the nearest first."""
    try:
        packed = _FLOAT.pack(value)
    except OverflowError:
        return "Infinity" if value > 0 else "-Infinity"
    exact: float = _FLOAT.unpack(packed)[0]
    if exact == 0 or exact - exact != 0:  # zero, an infinity, or no number
        return reformat(repr(exact))
    bits = _BITS.unpack(packed)[0] & 0x7FFFFFFF
    if bits == _MIN_NORMAL:
        return "-1.17549435E-38" if exact < 0 else "1.17549435E-38"
    if bits & 0x7FFFFF and bits >> 23 and bits < _NEAR_THE_END:
        for digits in _TRIES:
            text = digits % exact
            double = float(text)
            if _LONG.unpack(_DOUBLE.pack(double))[0] & 0x1FFFFFFF == 0x10000000:
                break  # halfway between two floats as far as a double can tell: let the exact way decide
            if _FLOAT.pack(double) == packed:
                return reformat(text)
    return reformat(_shortest_float(exact, bits))


def reformat(text: str) -> str:
    """Return shortest digits in Java's layout.

    Args:
        text: a float8's or float4's shortest form in any usual layout: Python's repr, PostgreSQL's output, C's %g; also
            `nan`, `inf`, `Infinity` in any case. More digits than needed are kept as they are.
    """
    sign = ""
    if text[:1] in ("+", "-"):
        sign = "-" if text[0] == "-" else ""
        text = text[1:]
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    if not (whole + fraction).isdigit():
        if text.lower() not in ("nan", "inf", "infinity"):
            raise ValueError(f"{text[:80]!r} is no number")
        return "NaN" if text[:1] in "nN" else sign + "Infinity"
    digits = whole + fraction
    point = len(whole) + int(exponent or 0)
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    if not digits:
        return sign + "0.0"
    if point < -320 and len(digits) == 1:
        digits, point = _two_digits(digits, point)
    if 0 < point <= 7:
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _two_digits(digits: str, point: int) -> tuple[str, int]:
    """Java always shows two digits, so of the few numbers that one digit identifies it shows the nearest two: 5e-324 is 4.9E-324."""
    mantissa, _, exponent = f"{float(f'0.{digits}e{point}'):.1e}".partition("e")
    return mantissa.replace(".", "").rstrip("0"), int(exponent) + 1


def _shortest_float(value: float, bits: int) -> str:
    """The shortest decimal (of two digits at least) that rounds to this 32-bit float, the nearest of those; `bits` without the sign."""
    magnitude = Fraction(abs(value))
    mantissa = bits & 0x7FFFFF
    gap = Fraction(2) ** (max(bits >> 23, 1) - 150)
    below = gap / 4 if mantissa == 0 and bits >> 23 > 1 else gap / 2
    low, high, closed = magnitude - below, magnitude + gap / 2, mantissa % 2 == 0
    for precision in range(1, 9):
        text = f"{abs(value):.{precision}e}"
        _, _, exponent = text.partition("e")
        step = Fraction(10) ** (int(exponent) - precision)
        nearest = Fraction(text)
        # below a power of two the floats lie closer, so the next decimal above may be the only one that still rounds here
        for candidate in (nearest, nearest + step):
            if low < candidate < high or (closed and candidate in (low, high)):
                units = int(candidate / step)
                return f"{'-' if value < 0 else ''}{units}e{int(exponent) - precision}"
    raise AssertionError(f"nine digits identify every float: {value!r}")  # pragma: no cover


def duration_text(seconds: int, nanos: int) -> str:
    """As `Duration.toString` of Java shows whole seconds, rounded down, and the nanoseconds above them: ``PT-1H-0.5S``."""
    total = seconds * 10**9 + nanos
    sign, whole = (-1, -total) if total < 0 else (1, total)
    whole, part = divmod(whole, 10**9)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    text = "PT" + (f"{sign * hours}H" if hours else "") + (f"{sign * minutes}M" if minutes else "")
    if not rest and not part and text != "PT":
        return text
    fraction = f".{part:09}".rstrip("0") if part else ""
    return f"{text}{'-' if sign < 0 else ''}{rest}{fraction}S"


#: The categories written as they are. All others are escaped, modifier letters and combining marks too; characters beyond the BMP
#: reach the writer as two surrogates and are escaped.
_WRITTEN_AS_IS = frozenset(
    ("Lu", "Ll", "Lt", "Lo", "Nd", "Nl", "No", "Zs", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"),
)


def escaped(text: str) -> str:
    """JSON text in which the characters that Java's writer escapes are ``\\uXXXX``; quotes and controls below U+0020 are so already."""
    if text.isascii():
        return text.replace("\x7f", "\\u007f") if "\x7f" in text else text
    # a ns a byte tells that nothing is escaped in most texts of European languages; the expression needs 7 ns a character
    if not text.encode(errors="surrogatepass").translate(None, _harmless_bytes()):
        return text
    return _unprinted().sub(_escape, text)


def _codes_to_escape() -> list[int]:
    """Return the characters to escape, among those of the BMP; by the tables of this Python's Unicode, as Java goes by its runtime's."""
    return [code for code in range(0x7F, 0x10000) if unicodedata.category(chr(code)) not in _WRITTEN_AS_IS]


@functools.cache
def _harmless_bytes() -> bytes:
    """Return the bytes, in UTF-8, with which no character begins that is escaped; all that are not the first ones of a character, too."""
    starts = {chr(code).encode(errors="surrogatepass")[0] for code in _codes_to_escape()}
    return bytes(byte for byte in range(0xF0) if byte not in starts)


@functools.cache
def _unprinted() -> re.Pattern[str]:
    ranges: list[list[int]] = []
    for code in _codes_to_escape():
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    ranges.append([0x10000, sys.maxunicode])
    return re.compile("[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]")


def _escape(found: re.Match[str]) -> str:
    return _escape_one(found[0])


@functools.lru_cache(maxsize=4096)
def _escape_one(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def to_text(schema: Schema | None, value: Any) -> str:
    """`String.valueOf(value)`: `Struct{a=1,b=x}` without its null fields, `{a=1}`, `[1, 2]`, `true`, `1.0E10`, `null`.

    Bytes differ on purpose: Java prints an object's address, which says nothing; here it is the text ``[B`` and the length.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return float_text(value) if schema is not None and schema.type is Type.FLOAT32 else double_text(value)
        case Struct():
            pairs = zip(value.schema.fields, value.values, strict=True)
            return "Struct{" + ",".join(f"{f.name}={to_text(f.schema, v)}" for f, v in pairs if v is not None) + "}"
        case Mapping():
            keys, values = (schema.key_schema, schema.value_schema) if schema is not None else (None, None)
            if all(isinstance(key, str) for key in value):
                value = in_java_order(value)  # a HashMap, as Connect's converters make them
            return "{" + ", ".join(f"{to_text(keys, k)}={to_text(values, v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            element = schema.value_schema if schema is not None else None
            return "[" + ", ".join(to_text(element, item) for item in value) + "]"
        case bytes() | bytearray() | memoryview():
            return f"[B@{len(value)}"
        case datetime.datetime():
            utc = value.astimezone(datetime.UTC) if value.tzinfo else value
            return _date_text(utc)
        case datetime.date():
            return _date_text(datetime.datetime(value.year, value.month, value.day))  # shown as UTC
        case datetime.time():
            return _date_text(datetime.datetime.combine(datetime.date(1970, 1, 1), value))
        case _:
            return str(value)


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _date_text(value: datetime.datetime) -> str:
    """java.util.Date's text in a worker whose zone is UTC; names of days do not follow the locale."""
    day, month = _DAYS[value.weekday()], _MONTHS[value.month - 1]
    return f"{day} {month} {value:%d %H:%M:%S} UTC {value.year:04d}"


_CLASSES: Mapping[type, str] = {
    bool: "java.lang.Boolean",
    int: "java.lang.Long",
    float: "java.lang.Double",
    str: "java.lang.String",
    bytes: "[B",
    list: "java.util.ArrayList",
    dict: "java.util.HashMap",
    decimal.Decimal: "java.math.BigDecimal",
    Struct: "org.apache.kafka.connect.data.Struct",
    datetime.date: "java.util.Date",
    datetime.time: "java.util.Date",
    datetime.datetime: "java.util.Date",
    type(None): "null",
}
_NARROWER: Mapping[Type, str] = {
    Type.INT8: "java.lang.Byte",
    Type.INT16: "java.lang.Short",
    Type.INT32: "java.lang.Integer",
    Type.FLOAT32: "java.lang.Float",
}


def class_name(value: Any, schema: Schema | None = None) -> str:
    """`value.getClass().getName()`; the schema distinguishes numbers that are one type here."""
    if schema is not None and schema.type in _NARROWER and type(value) in (int, float):
        return _NARROWER[schema.type]
    return _CLASSES.get(type(value), type(value).__name__)


def java_class(value: Any) -> str:
    """`value.getClass()` as a text."""
    return f"class {class_name(value)}" if type(value) in _CLASSES else type(value).__name__
