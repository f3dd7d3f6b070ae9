"""Rows in the forms in which PostgreSQL and MySQL send them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

# -- PostgreSQL: COPY's text format, and pgoutput's TupleData ----------------------------------------------------------------------------

_ESCAPES = str.maketrans({"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"})


def copy_line(row: Sequence[str | None]) -> bytes:
    return ("\t".join("\\N" if text is None else text.translate(_ESCAPES) for text in row) + "\n").encode()


def tuple_data(row: Sequence[str | None]) -> bytes:
    parts = [struct.pack(">h", len(row))]
    for text in row:
        data = None if text is None else text.encode()
        parts.append(b"n" if data is None else b"t" + struct.pack(">i", len(data)) + data)
    return b"".join(parts)


# -- MySQL: rows of the text protocol, and of the binlog ---------------------------------------------------------------------------------


def text_value(data: bytes | None) -> bytes:
    if data is None:
        return b"\xfb"
    size = len(data)
    if size < 251:
        return bytes([size]) + data
    if size < 1 << 16:
        return b"\xfc" + size.to_bytes(2, "little") + data
    return (b"\xfd" + size.to_bytes(3, "little") if size < 1 << 24 else b"\xfe" + size.to_bytes(8, "little")) + data


def log_image(values: Sequence[bytes | None]) -> bytes:
    """Return an image of all columns, of values as they are stored."""
    nulls = sum(1 << i for i, value in enumerate(values) if value is None)
    return nulls.to_bytes((len(values) + 7) // 8, "little") + b"".join(value for value in values if value is not None)


def stored_text(text: str, length_size: int) -> bytes:
    data = text.encode()
    return len(data).to_bytes(length_size, "little") + data


def stored_decimal(unscaled: int, precision: int, scale: int) -> bytes:
    """Return what `decimal2bin` makes of a decimal: groups of nine digits, the sign in the first bit, negative ones inverted."""
    digits = str(abs(unscaled)).zfill(precision)
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    head = len(whole) % 9
    groups = ([whole[:head]] if head else []) + [whole[i : i + 9] for i in range(head, len(whole), 9)]
    groups += [fraction[i : i + 9] for i in range(0, len(fraction), 9)]
    data = b"".join(int(group).to_bytes((0, 1, 1, 2, 2, 3, 3, 4, 4, 4)[len(group)], "big") for group in groups)
    data = bytes([data[0] ^ 0x80]) + data[1:]
    return bytes(octet ^ 0xFF for octet in data) if unscaled < 0 else data


def stored_fraction(micros: int, digits: int) -> bytes:
    size = (digits + 1) // 2
    return (micros // 10 ** (6 - 2 * size)).to_bytes(size, "big")


def stored_datetime(parts: tuple[int, int, int, int, int, int], micros: int, digits: int) -> bytes:
    """Return a DATETIME(digits) of year, month, day, hour, minute and second."""
    year, month, day, hour, minute, second = parts
    packed = ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second
    return (packed + 0x8000000000).to_bytes(5, "big") + stored_fraction(micros, digits)


def stored_time(seconds: int, micros: int, digits: int, *, negative: bool) -> bytes:
    """Return a TIME(digits)."""
    size = (digits + 1) // 2
    packed = (seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60) << 8 * size
    packed |= int.from_bytes(stored_fraction(micros, digits), "big")
    return ((0x800000 << 8 * size) + (-packed if negative else packed)).to_bytes(3 + size, "big")
