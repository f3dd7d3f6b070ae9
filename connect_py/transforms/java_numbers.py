"""Convert numbers as Java does: narrowing keeps the low bits of integers, and floats stop at the ends of the integers."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal

from connect_py.data import Type
from connect_py.data.schema import whole
from connect_py.errors import DataError

BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}

_FLOAT = struct.Struct(">f")
_FLOAT_TEXT = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_INTEGER_TEXT = re.compile(r"[+-]?\d+")
#: Characters that java.lang.String.trim removes.
_BLANK = "".join(map(chr, range(33)))


def wrapped(value: int, type_: Type) -> int:
    """Return an integer's low bits, as a cast in Java keeps them."""
    bits = BITS[type_]
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def truncated(value: Decimal) -> int:
    """Return a decimal without its fraction. Raises DataError for what is no number, or one of too many digits."""
    try:
        return whole(value)
    except DataError:
        raise DataError(f"Value ({value}) was out of range for requested data type") from None


def float_to_int(value: float, type_: Type) -> int:
    """A float as `Number.byteValue`, `shortValue`, `intValue` and `longValue` give it: NaN is 0, and what is too large is the largest int
    or long, whose low bits are kept."""
    widest = BITS[Type.INT64] if type_ is Type.INT64 else BITS[Type.INT32]
    low, high = -(1 << (widest - 1)), (1 << (widest - 1)) - 1
    if math.isnan(value):
        return 0
    whole = (high if value > 0 else low) if math.isinf(value) else min(max(int(value), low), high)
    return wrapped(whole, type_)


def parse_int(text: str, type_: Type) -> int:
    """`Byte.parseByte` and so on. Raises ValueError."""
    if not _INTEGER_TEXT.fullmatch(text):
        raise ValueError(text)
    value = int(text)
    if wrapped(value, type_) != value:
        raise ValueError(text)
    return value


def parse_float(text: str) -> float:
    """`Double.parseDouble`, but for its hexadecimal form. Raises ValueError."""
    trimmed = text.strip(_BLANK)
    if not _FLOAT_TEXT.fullmatch(trimmed):
        raise ValueError(text)
    return float(trimmed if trimmed.endswith(("NaN", "Infinity")) else trimmed.rstrip("fFdD"))


def to_float32(value: float) -> float:
    """Return the nearest 32-bit float; infinite beyond the largest."""
    try:
        nearest: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return nearest
