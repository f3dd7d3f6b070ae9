"""Decimals as MySQL stores them (`strings/decimal.cc`, decimal2bin): groups of nine digits in four bytes, big-endian, the sign in the first
bit, every bit turned over for negative numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from connectors.mysql.binlog.errors import MalformedEventError

_GROUP_DIGITS = 9
#: Bytes of a group that holds so many digits.
_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def stored_size(precision: int, scale: int) -> int:
    """Bytes of a decimal(precision, scale)."""
    whole = precision - scale
    return whole // 9 * 4 + _SIZES[whole % 9] + scale // 9 * 4 + _SIZES[scale % 9]


@lru_cache(maxsize=1024)
def decimal_reader(precision: int, scale: int) -> Callable[[bytes], str]:
    """From stored bytes to text: no leading zeros, exactly `scale` digits of fraction. The reader raises MalformedEventError."""
    whole = precision - scale
    groups: list[tuple[int, int, int]] = []  # first byte, last byte, digits
    at = 0
    for digits in (*_whole_groups(whole), *_fraction_groups(scale)):
        groups.append((at, at + _SIZES[digits], digits))
        at += _SIZES[digits]
    size, mask = at, (1 << 8 * at) - 1
    sign = 1 << (8 * at - 1) if at else 0
    split = whole

    def read(data: bytes) -> str:
        if len(data) != size:
            raise MalformedEventError(f"a decimal({precision},{scale}) has {size} bytes, not {len(data)}")
        number = int.from_bytes(data, "big")
        negative = not number & sign
        number ^= sign
        if negative:
            number ^= mask
        octets = number.to_bytes(size, "big")
        digits = ""
        for first, last, count in groups:
            group = str(int.from_bytes(octets[first:last], "big"))
            if len(group) > count:
                raise MalformedEventError(f"a group of {count} digits holds {group}")
            digits += group.zfill(count)
        text = digits[:split].lstrip("0") or "0"
        if scale:
            text = f"{text}.{digits[split:]}"
        return f"-{text}" if negative and digits.strip("0") else text

    return read


def _whole_groups(digits: int) -> list[int]:
    """The short group comes first."""
    return ([digits % 9] if digits % 9 else []) + [_GROUP_DIGITS] * (digits // 9)


def _fraction_groups(digits: int) -> list[int]:
    return [_GROUP_DIGITS] * (digits // 9) + ([digits % 9] if digits % 9 else [])
