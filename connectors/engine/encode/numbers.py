"""Integers and bytes as JsonConverter writes those of Decimals and BYTES: base64."""

from __future__ import annotations

from binascii import b2a_base64
from string import ascii_letters, digits

_DIGITS = ascii_letters[26:] + ascii_letters[:26] + digits + "+/"
#: Twelve bits each, in two digits: two bytes are one of them and four bits more, three bytes are two. Looked up they take half of the time
#: that bytes and their base64 do, and most amounts of money are that small.
PAIRS = [first + second for first in _DIGITS for second in _DIGITS]
_FOUR_BITS = [_DIGITS[value << 2] + "=" for value in range(16)]
#: `base64_of_integer` of the variable `$`, of which most numbers are made without a call (0.1 µs less).
BASE64_OF_VARIABLE = "PAIRS[$ >> 12] + PAIRS[$ & 4095] if 32767 < $ < 8388608 else base64_of_integer($)"


def base64_of_integer(value: int) -> str:
    """Base64 text, without quotes, of an integer's shortest big-endian two's complement (java.math.BigInteger.toByteArray)."""
    if 0x7F < value < 0x800000:
        if value > 0x7FFF:
            return PAIRS[value >> 12] + PAIRS[value & 0xFFF]
        return PAIRS[value >> 4] + _FOUR_BITS[value & 15]
    size = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return b2a_base64(value.to_bytes(size, "big", signed=True), newline=False).decode()


def base64_of_expression(number: str) -> str:
    """`BASE64_OF_VARIABLE` of an expression with `$`, which is put into the variable `n$` where the range is asked for, first of all."""
    return BASE64_OF_VARIABLE.replace("$", "n$").replace("32767 < n$", f"32767 < (n$ := {number})")


def base64_of_bytes(data: bytes) -> str:
    """Base64 text of bytes, without quotes."""
    return b2a_base64(data, newline=False).decode()
