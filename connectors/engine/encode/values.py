"""Values as JSON that several databases share: integers and bytes in base64, decimals of a fixed scale, dates beyond the years that
`datetime` knows, ISO texts of Java's formatters (IsoDate.java, IsoTime.java, IsoTimestamp.java), bytes by `binary.handling.mode`, geometry
(`io.debezium.data.geometry`). Pure.

Usual dates and times are read by `datetime.fromisoformat`: 0.2 µs to microseconds since 1970, fractions included. Tables of dates and times
of day were measured against it and dropped: three look-ups take 0.3 µs at random times, and they hold memory.
"""

from __future__ import annotations

import base64
import datetime
from binascii import b2a_base64
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import cache
from string import ascii_letters, digits

from connect_py.data import Schema
from connect_py.data.java_text import double_text
from connect_py.data.schema import BYTES, EXACT, FLOAT64, INT32, OPTIONAL_BYTES, struct
from connectors.engine.encode.plan import ColumnPlan, Stored, Unrepresentable

_DIGITS = ascii_letters[26:] + ascii_letters[:26] + digits + "+/"
#: Twelve bits each, in two digits: two bytes are one of them and four bits more, three bytes are two. Looked up they take half of the time
#: that bytes and their base64 do, and most amounts of money are that small.
PAIRS = [first + second for first in _DIGITS for second in _DIGITS]
FOUR_BITS = [_DIGITS[value << 2] + "=" for value in range(16)]
#: `base64_of_integer` of the variable `$`, of which most numbers are made without a call (0.1 µs less).
BASE64_OF_VARIABLE = (
    "PAIRS[$ >> 12] + PAIRS[$ & 4095] if 32767 < $ < 8388608 else PAIRS[$ >> 4] + FOUR_BITS[$ & 15] if 127 < $ < 32768 "
    "else base64_of_integer($)"
)


def base64_of_integer(value: int) -> str:
    """Return base64 text, without quotes, of an integer's shortest big-endian two's complement (java.math.BigInteger.toByteArray)."""
    if 0x7F < value < 0x800000:
        if value > 0x7FFF:
            return PAIRS[value >> 12] + PAIRS[value & 0xFFF]
        return PAIRS[value >> 4] + FOUR_BITS[value & 15]
    size = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return b2a_base64(value.to_bytes(size, "big", signed=True), newline=False).decode()


def base64_of_expression(number: str) -> str:
    """Return `BASE64_OF_VARIABLE` of an expression with `$`, which is put into the variable `n$` where the range is asked for, first of
    all."""
    return BASE64_OF_VARIABLE.replace("$", "n$").replace("32767 < n$", f"32767 < (n$ := {number})")


def base64_of_bytes(data: bytes) -> str:
    """Return base64 text of bytes, without quotes."""
    return b2a_base64(data, newline=False).decode()


def json_number(shown: str) -> str:
    """Return a number's JSON text; NaN and the infinities are strings in JSON."""
    return shown if shown[-1].isdigit() else f'"{shown}"'


def decimal_plan(name: str, schema: Schema, scale: int) -> ColumnPlan:
    """Return the plan of a Connect Decimal of a fixed scale.

    The server prints exactly `scale` digits, so the unscaled value is the text without its point: 0.3 µs a value. A cache of texts costs
    0.2 µs when it misses, so it would pay above a hit rate of one half only.
    """

    unscaled = _unscaled(scale)
    number = "int($)" if scale == 0 else f"int($.replace('.', '')) if $[{-scale - 1}] == '.' else unscaled_{scale}($)"
    return ColumnPlan(
        name,
        schema,
        lambda text: f'"{base64_of_integer(unscaled(text))}"',
        base64_of_expression(number) if scale >= 0 else "",
        quoted=scale >= 0,
        helpers={"PAIRS": PAIRS, "FOUR_BITS": FOUR_BITS, "base64_of_integer": base64_of_integer, f"unscaled_{scale}": unscaled},
        stored=(Stored(f"decimal.{scale}", BASE64_OF_VARIABLE),) if scale >= 0 else (),
        numeric=lambda text: str(finite(text)),
        fallback='"AA=="',
    )


@cache
def _unscaled(scale: int) -> Callable[[str], int]:
    """Return the function from a text to the unscaled value: one a scale, since the columns of a table share its name."""

    def unscaled(text: str) -> int:
        shifted = finite(text).scaleb(scale, EXACT)
        number = int(shifted)
        if number != shifted:
            raise Unrepresentable(f"{text} has more than {scale} fractional digits")
        return number

    return unscaled


def finite(text: str) -> Decimal:
    """Parse a decimal. Raises Unrepresentable: it is NaN or infinite. Raises ValueError: it is none, or has more digits than a database
    stores: the integer of `1e999999999` would take minutes."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text[:80]!r} is no number") from None
    if not value.is_finite():
        raise Unrepresentable(f"{text} has no form as a Decimal")
    if abs(value.adjusted()) >= EXACT.prec:
        raise ValueError(f"{text[:80]!r} has too many digits")
    return value


_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
#: Year of the calendar's cycle in which the computation is done: any whose cycle lies within `datetime`'s years.
_BASE_YEAR = 4
_BASE_ORDINAL = datetime.date(_BASE_YEAR, 1, 1).toordinal()


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 of any year; year 0 is 1 BC.

    Raises:
        ValueError: there is no such month or day.
    """
    cycles, rest = divmod(year - _BASE_YEAR, _CYCLE_YEARS)
    return datetime.date(rest + _BASE_YEAR, month, day).toordinal() + cycles * _CYCLE_DAYS - _EPOCH_ORDINAL


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day; the inverse of `days_from_civil`."""
    cycles, rest = divmod(days + _EPOCH_ORDINAL - _BASE_ORDINAL, _CYCLE_DAYS)
    inside = datetime.date.fromordinal(_BASE_ORDINAL + rest)
    return inside.year + cycles * _CYCLE_YEARS, inside.month, inside.day


_DAY_MICROS = 86_400_000_000


def iso_date(days: int) -> str:
    """Return a date, given in days since 1970-01-01; years outside of 0 to 9999 carry a sign."""
    return f"{_civil(days)}Z"


def iso_time(micros: int) -> str:
    """Return a time of day, with as many fractional digits as are needed."""
    seconds, fraction = divmod(micros, 1_000_000)
    digits = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{digits}Z"


def iso_timestamp(micros: int) -> str:
    """Return a timestamp, given in microseconds since 1970-01-01 00:00."""
    days, rest = divmod(micros, _DAY_MICROS)
    return f"{_civil(days)}T{iso_time(rest)}"


def _civil(days: int) -> str:
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


#: Mode → text, without quotes, of bytes.
TEXT_OF_BYTES: dict[str, Callable[[bytes], str]] = {
    "bytes": base64_of_bytes,
    "base64": base64_of_bytes,
    "base64-url-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
    "hex": bytes.hex,
}


POINT = struct(
    [("x", FLOAT64), ("y", FLOAT64), ("wkb", OPTIONAL_BYTES), ("srid", INT32.as_optional())],
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)
#: WKB of an empty collection: what stands for a missing value of a required column.
EMPTY_COLLECTION = bytes.fromhex("010700000000000000")


def spatial_schema(kind: str, *, optional: bool) -> Schema:
    """Return the schema of `Geometry` or `Geography`."""
    return struct(
        [("wkb", BYTES), ("srid", INT32.as_optional())],
        name=f"io.debezium.data.geometry.{kind}",
        version=1,
        doc=kind,
        optional=optional,
    )


def point_object(x: float, y: float, wkb: bytes, srid: int | None) -> str:
    """Return a `Point` as JSON text."""
    shown = "null" if srid is None else str(srid)
    return f'{{"x":{json_number(double_text(x))},"y":{json_number(double_text(y))},"wkb":"{base64_of_bytes(wkb)}","srid":{shown}}}'


def spatial_object(wkb: bytes, srid: int | None) -> str:
    """Return a `Geometry` or `Geography` as JSON text."""
    return f'{{"wkb":"{base64_of_bytes(wkb)}","srid":{"null" if srid is None else srid}}}'
