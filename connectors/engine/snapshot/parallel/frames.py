"""Frames between a process that reads chunks of a snapshot and the task that sends their rows: what both need. Pure.

A frame is its length (4 bytes, big endian, without itself), a kind (1 byte) and a body. To a reader go SPEC and CHUNK, both JSON, and READY
and BEGIN without a body, which it answers with READY when it has connected, or has begun its consistent snapshot. From it come

    FIRST  the raw first row of a chunk that has more of them         LAST  the raw last row of a chunk, or its only one
    ROWS   keys and values of rows between them, one a line           END   the chunk has ended
    VALUES the same of a table without a key                          ERROR JSON: why it could not be read

JSON text has no line ends of its own, so that lines are cut and joined without a step in Python for each: with lengths before every key and
value it would be ten times the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from struct import Struct
from typing import Final

from connect_py.api import Route
from connect_py.api.record import EncodedRow

SPEC: Final = 0x53
CHUNK: Final = 0x43
FIRST: Final = 0x46
ROWS: Final = 0x52
LAST: Final = 0x4C
VALUES: Final = 0x56
END: Final = 0x45
ERROR: Final = 0x58
READY: Final = 0x41
BEGIN: Final = 0x4D

#: Length and kind.
HEADER: Final = Struct(">IB")


def frame(kind: int, body: bytes = b"") -> bytes:
    """Return a whole frame."""
    return HEADER.pack(len(body) + 1, kind) + body


def rows_frame(rows: Sequence[EncodedRow]) -> bytes:
    """Return a frame of records; the key is null in all of them or in none. Values are texts of JSON."""
    _, keys, values = zip(*rows, strict=True)
    if keys[0] is None:
        return frame(VALUES, b"\n".join(values))
    lines: list[bytes] = [b""] * (2 * len(rows))
    lines[::2] = keys
    lines[1::2] = values
    return frame(ROWS, b"\n".join(lines))


def unpack_rows(kind: int, body: bytes, route: Route, key_head: bytes, value_head: bytes) -> list[EncodedRow]:
    """Return the records of a frame of ROWS or VALUES.

    Args:
        key_head: stands before every key, and a closing brace after it; empty for neither.
        value_head: the same of values.
    """
    lines = body.split(b"\n")
    join = b"".join
    keys: Sequence[bytes] = () if kind == VALUES else lines[::2]
    values = lines if kind == VALUES else lines[1::2]
    if key_head:
        keys = [join((key_head, key, b"}")) for key in keys]
    if value_head:
        values = [join((value_head, value, b"}")) for value in values]
    return list(zip(repeat(route), repeat(None) if kind == VALUES else keys, values))
