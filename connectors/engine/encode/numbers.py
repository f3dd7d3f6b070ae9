"""Integers and bytes as JsonConverter writes those of Decimals and BYTES: base64."""

from __future__ import annotations

from binascii import b2a_base64


def base64_of_integer(value: int) -> str:
    """Base64 text, without quotes, of an integer's shortest big-endian two's complement (java.math.BigInteger.toByteArray)."""
    size = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return b2a_base64(value.to_bytes(size, "big", signed=True), newline=False).decode()


def base64_of_bytes(data: bytes) -> str:
    """Base64 text of bytes, without quotes."""
    return b2a_base64(data, newline=False).decode()
