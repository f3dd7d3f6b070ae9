"""What MariaDB compresses is unpacked to as many bytes as it says, and no further: a small event cannot take the task's memory."""

from __future__ import annotations

import tracemalloc
import zlib

import pytest

from connectors.mysql.binlog.codes import MalformedEventError
from connectors.mysql.binlog.cursor import MAX_UNPACKED, Cursor, unpacked, unpacked_value

BOMB = zlib.compress(bytes(32 << 20), 9)


def event(size: int, data: bytes) -> Cursor:
    octets = size.to_bytes(4, "big")
    return Cursor(bytes([4]) + octets + data)


def value(size: int, data: bytes) -> bytes:
    return bytes([0x80 | 4]) + size.to_bytes(4, "big") + data


def test_an_event_of_the_announced_size_is_unpacked() -> None:
    data = b"row" * 1000
    assert unpacked(event(len(data), zlib.compress(data))) == data
    assert unpacked(event(0, zlib.compress(b""))) == b""


@pytest.mark.parametrize("size", [0, 1, 5_000])
def test_nothing_is_unpacked_beyond_the_announced_size(size: int) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MalformedEventError, match=f"other than {size} bytes"):
            unpacked(event(size, BOMB))
        with pytest.raises(MalformedEventError, match=f"other than {size} bytes"):
            unpacked_value(value(size, BOMB))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_size_that_no_event_has_is_refused_before_anything_is_unpacked() -> None:
    with pytest.raises(MalformedEventError, match="more than"):
        unpacked(event(MAX_UNPACKED + 1, BOMB))
    with pytest.raises(MalformedEventError, match="more than"):
        unpacked_value(value((1 << 32) - 1, BOMB))


def test_a_damaged_event_is_malformed() -> None:
    with pytest.raises(MalformedEventError, match="could not be unpacked"):
        unpacked(event(5, b"no zlib"))
