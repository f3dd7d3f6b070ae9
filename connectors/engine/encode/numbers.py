"""Decimals as JsonConverter writes them: base64 of the unscaled value's shortest big-endian two's complement."""

from __future__ import annotations

from binascii import b2a_base64

from connect_py.data.logical import int_to_bytes

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#: Two base64 digits for each 12 bits: an integer of three bytes is two look-ups.
PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]


def base64_of_integer(value: int) -> str:
    """Base64 text of an integer's bytes, without quotes."""
    return b2a_base64(int_to_bytes(value), newline=False).decode()


def base64_of_bytes(data: bytes) -> str:
    """Base64 text of bytes, without quotes."""
    return b2a_base64(data, newline=False).decode()
