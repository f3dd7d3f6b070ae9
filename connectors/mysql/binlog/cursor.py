"""A place in bytes from which little-endian fields are read. A read past the end raises `MalformedEventError`."""

from __future__ import annotations

from connectors.mysql.binlog.errors import MalformedEventError


class Cursor:
    """Reads fields one after the other.

    Attributes:
        data: all bytes.
        at: the place of the next read.
        end: the place behind the last byte that may be read.
    """

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def take(self, size: int) -> bytes:
        """The next bytes."""
        stop = self.at + size
        if size < 0 or stop > self.end:
            raise MalformedEventError(f"{size} bytes were expected at {self.at} of {self.end}")
        found = self.data[self.at : stop]
        self.at = stop
        return found

    def number(self, size: int) -> int:
        """An unsigned integer."""
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """A length-encoded integer (protocol_basic_dt_integers.html)."""
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
        """All that is left."""
        return self.take(self.end - self.at)

    def text(self, size: int) -> str:
        """UTF-8, with escapes for what is none."""
        return self.take(size).decode("utf-8", "backslashreplace")
