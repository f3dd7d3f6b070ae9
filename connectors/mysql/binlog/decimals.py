"""Decimals as MySQL stores them (`strings/decimal.cc`, decimal2bin): groups of nine digits in four bytes, big-endian, the sign in the first
bit, every bit turned over for negative numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from connectors.engine.encode.names import Names
from connectors.mysql.binlog.errors import MalformedEventError

_GROUP_DIGITS = 9
#: Bytes of a group that holds so many digits.
_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def stored_size(precision: int, scale: int) -> int:
    """Bytes of a decimal(precision, scale)."""
    whole = precision - scale
    return whole // 9 * 4 + _SIZES[whole % 9] + scale // 9 * 4 + _SIZES[scale % 9]


def stored_groups(precision: int, scale: int) -> list[tuple[int, int, int]]:
    """First byte, byte behind the last, and digits of each group."""
    groups: list[tuple[int, int, int]] = []
    at = 0
    for digits in (*_whole_groups(precision - scale), *_fraction_groups(scale)):
        groups.append((at, at + _SIZES[digits], digits))
        at += _SIZES[digits]
    return groups


@lru_cache(maxsize=1024)
def decimal_reader(precision: int, scale: int) -> Callable[[bytes], str]:
    """From stored bytes to text: no leading zeros, exactly `scale` digits of fraction. The reader raises MalformedEventError."""
    whole = precision - scale
    groups = stored_groups(precision, scale)
    at = groups[-1][1] if groups else 0
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

    return _quick(read, groups, split, scale) if size else read


def _quick(careful: Callable[[bytes], str], groups: list[tuple[int, int, int]], whole: int, scale: int) -> Callable[[bytes], str]:
    """A reader for the usual numbers, generated for their groups; negative and malformed ones, whose groups are too large, go the careful
    way."""
    size = groups[-1][1]
    lines = ["def read(data):", f"    n = number(data, 'big') ^ {1 << (8 * size - 1)}"]
    limits, digits, value, fraction = [], 0, "", ""
    for i, (first, last, count) in enumerate(groups):
        lines.append(f"    g{i} = n >> {8 * (size - last)}" + ("" if i == 0 else f" & {(1 << 8 * (last - first)) - 1}"))
        limits.append(f"g{i} < {10**count}")
        if digits < whole:
            value = f"({value}) * {10**count} + g{i}" if value else f"g{i}"
        else:
            fraction += f"{{g{i}:0{count}}}"
        digits += count
    point = f".{fraction}" if scale else ""
    lines += [
        f"    if len(data) == {size} and {' and '.join(limits)}:",
        f'        return f"{{{value or 0}}}{point}"',
        "    return careful(data)",
        "",
    ]
    names = Names({"careful": careful, "number": int.from_bytes})
    return names.run("\n".join(lines), "<a decimal of a binlog>")["read"]  # type: ignore[return-value]


def _whole_groups(digits: int) -> list[int]:
    """The short group comes first."""
    return ([digits % 9] if digits % 9 else []) + [_GROUP_DIGITS] * (digits // 9)


def _fraction_groups(digits: int) -> list[int]:
    return [_GROUP_DIGITS] * (digits // 9) + ([digits % 9] if digits % 9 else [])
