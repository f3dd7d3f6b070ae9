"""The wire format of the registry's serializers: a zero byte, the schema's id in four big-endian bytes, then the data.

Protobuf puts the path of the message's type between id and data (`MessageIndexes.java`): a count and that many indexes as zigzag varints,
and a single zero byte for the commonest path, the first message.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from connect_py.errors import DataError

_FRAME = struct.Struct(">bi")
HEADER_SIZE = _FRAME.size


def frame(schema_id: int) -> bytes:
    """Return the bytes before the data."""
    return _FRAME.pack(0, schema_id)


def schema_id_of(data: bytes) -> int:
    """Return the id in a message's frame. Raises DataError when the bytes have no frame."""
    if len(data) < HEADER_SIZE or data[0] != 0:
        raise DataError(f"Unknown magic byte! The {len(data)} bytes do not begin with a zero byte and a schema's id")
    schema_id: int = _FRAME.unpack_from(data)[1]
    return schema_id


def zigzag(number: int) -> bytes:
    """Return an integer of up to 64 bits as Avro and message indexes write it."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def message_indexes(path: Sequence[int]) -> bytes:
    """Return the path to a message's type: its index in the file, then in the message around it, and so on inward."""
    return b"\0" if list(path) == [0] else zigzag(len(path)) + b"".join(map(zigzag, path))


def read_message_indexes(data: bytes, at: int) -> tuple[list[int], int]:
    """Return the path that begins at an offset, and the offset after it. Raises DataError."""
    count, at = _read_zigzag(data, at)
    if not count:
        return [0], at
    path = []
    if not 0 < count <= len(data):
        raise DataError(f"{count} is no number of message indexes")
    for _ in range(count):
        index, at = _read_zigzag(data, at)
        path.append(index)
    return path, at


def _read_zigzag(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise DataError("The message indexes do not end")
