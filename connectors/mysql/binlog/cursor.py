"""Reading an event's fields: a cursor over little-endian bytes, and what MariaDB compresses by itself.

A read past the end raises `MalformedEventError`. MariaDB compresses events under `log_bin_compress`, and values of COMPRESSED columns
(`log_event.cc`, `field.cc`).
"""

from __future__ import annotations

import zlib

from connectors.mysql.binlog.codes import MalformedEventError


class Cursor:
    """Reads fields one after the other.

    Attributes:
        data: all bytes.
        at: the position of the next read.
        end: the position after the last byte that may be read.
    """

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        stop = self.at + size
        if size < 0 or stop > self.end:
            raise MalformedEventError(f"{size} bytes were expected at {self.at} of {self.end}")
        found = self.data[self.at : stop]
        self.at = stop
        return found

    def number(self, size: int) -> int:
        """Return an unsigned integer."""
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """Return a length-encoded integer (protocol_basic_dt_integers.html)."""
        first = self.number(1)
        if first < 251:
            return first
        if first == 252:
            return self.number(2)
        if first == 253:
            return self.number(3)
        if first == 254:
            return self.number(8)
        raise MalformedEventError(f"{first} does not begin a length-encoded integer")

    def rest(self) -> bytes:
        """Return all that is left."""
        return self.take(self.end - self.at)

    def text(self, size: int) -> str:
        """Read UTF-8, with escapes for what is none."""
        return self.take(size).decode("utf-8", "backslashreplace")


#: MariaDB's largest `slave_max_allowed_packet`, which holds for a whole event.
MAX_UNPACKED = 1 << 30
_DEFLATE, _RAW, _SIZE_BITS = 8, 8, 7


def unpacked(cursor: Cursor) -> bytes:
    """Return the rest of an event: a byte with the length's size and the algorithm, the length big-endian, zlib."""
    head = cursor.number(1)
    if head >> 4 & 7:
        raise MalformedEventError(f"{head >> 4 & 7} is no known compression")
    size = int.from_bytes(cursor.take(head & 7), "big")
    return _inflated(cursor.rest(), size, zlib.MAX_WBITS, "event")


def unpacked_value(data: bytes) -> bytes:
    """Return a value of a COMPRESSED column: nothing for the empty value, else a byte with the algorithm and the size of the length, the
    length, raw deflate or zlib; an algorithm of 0 is no compression.

    Raises:
        MalformedEventError: it is none.
    """
    if not data:
        return data
    method = data[0]
    if method == 0:
        return data[1:]
    size_bytes = method & _SIZE_BITS
    if method >> 4 != _DEFLATE or not 1 <= size_bytes <= 4:
        raise MalformedEventError(f"{method} is no known compression of a value")
    size = int.from_bytes(data[1 : 1 + size_bytes], "big")
    return _inflated(data[1 + size_bytes :], size, -zlib.MAX_WBITS if method & _RAW else zlib.MAX_WBITS, "value")


def _inflated(data: bytes, size: int, window: int, what: str) -> bytes:
    """Inflate at most one byte more than announced: a megabyte of zlib may hold a gigabyte, and zlib takes a limit of 0 for none."""
    if size > MAX_UNPACKED:
        raise MalformedEventError(f"a compressed {what} unpacks to {size} bytes, more than {MAX_UNPACKED}")
    try:
        found = zlib.decompressobj(window).decompress(data, size + 1)
    except zlib.error as error:
        raise MalformedEventError(f"a compressed {what} could not be unpacked: {error}") from error
    if len(found) != size:
        raise MalformedEventError(f"a compressed {what} unpacks to other than {size} bytes")
    return found
