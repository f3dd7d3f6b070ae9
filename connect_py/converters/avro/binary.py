"""Avro's binary form of single values, both ways: zigzag varints, floats, texts, blocks of items.

What reads takes the bytes and an offset and gives the value and the next offset; bytes that end too early raise IndexError or struct.error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from connect_py.converters.avro.schema import AvroSchema
from connect_py.converters.registry.wire import zigzag
from connect_py.errors import DataError

#: One value to its Avro bytes; raises DataError.
Writer = Callable[[Any], bytes]
#: Bytes and an offset to a value and the offset after it.
Reader = Callable[[bytes, int], tuple[Any, int]]

FLOAT, DOUBLE = struct.Struct("<f"), struct.Struct("<d")
SMALL = [zigzag(number) for number in range(-64, 8192)]


def long_bytes(number: int) -> bytes:
    """An int or long. Small ones, which are most, come from a table."""
    return SMALL[number + 64] if -64 <= number < 8192 else zigzag(number)


def text_bytes(value: str) -> bytes:
    """A string: its length in UTF-8 and the bytes. Half a surrogate pair becomes a question mark, as in Java."""
    try:
        data = value.encode()
    except UnicodeEncodeError:
        data = value.encode(errors="replace")
    return long_bytes(len(data)) + data


def symbol_writer(avro: AvroSchema) -> Writer:
    known = {symbol: long_bytes(index) for index, symbol in enumerate(avro.symbols)}

    def write(value: Any) -> bytes:
        try:
            return known[value]
        except (KeyError, TypeError):
            raise DataError(f"{value!r} is no symbol of the enum {avro.full_name}") from None

    return write


def block_bytes(parts: list[bytes]) -> bytes:
    """Items in one block, and the empty block that ends them."""
    return b"%b%b\0" % (long_bytes(len(parts)), b"".join(parts)) if parts else b"\0"


def read_long(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at
    value, shift = byte & 127, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise OverflowError


def read_fixed(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if size < 0 or end > len(data):
        raise IndexError
    return data[at:end], end


def read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    return read_fixed(data, at, size)


def read_string(data: bytes, at: int) -> tuple[str, int]:
    found, at = read_bytes(data, at)
    return found.decode(errors="replace"), at


def read_block(data: bytes, at: int) -> tuple[int, int]:
    """The number of items in the next block; a negative one is followed by the block's size in bytes."""
    count, at = read_long(data, at)
    if count < 0:
        at = read_long(data, at)[1]
        count = -count
    if count > len(data):
        raise IndexError  # an item of no bytes has no type that Connect knows
    return count, at
