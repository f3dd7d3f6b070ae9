"""What MariaDB compresses by itself: events under `log_bin_compress`, and values of COMPRESSED columns (`log_event.cc`, `field.cc`)."""

from __future__ import annotations

import zlib

from connectors.mysql.binlog.cursor import Cursor
from connectors.mysql.binlog.errors import MalformedEventError


def unpacked(cursor: Cursor) -> bytes:
    """The rest of an event: a byte with the length's size and the algorithm, the length big-endian, zlib."""
    head = cursor.number(1)
    if head >> 4 & 7:
        raise MalformedEventError(f"{head >> 4 & 7} is no known compression")
    size = int.from_bytes(cursor.take(head & 7), "big")
    worker = zlib.decompressobj()
    found = worker.decompress(cursor.rest(), size)
    if len(found) != size or worker.unconsumed_tail:
        raise MalformedEventError(f"a compressed event unpacks to other than {size} bytes")
    return found
