"""Rows of a result of the text protocol, from the socket's bytes to texts (page_protocol_com_query_response_text_resultset.html). No I/O.

A row is a packet of values behind their lengths. Rows stay bytes until their records are made (`packet_rows.py`), or their texts: those
that are not characters have a character U+0000 to U+00FF for each byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from connectors.engine.encode.names import Names
from connectors.engine.encode.texts import Text

#: Texts of a row, one a column.
TextRow = tuple[Text, ...]
#: Takes a row's bytes, and the same as a str. Raises MalformedRowError, IndexError.
ReadRow = Callable[[bytes, str], TextRow]

NULL = 0xFB
_WHOLE_PACKET = 0xFFFFFF
#: Bytes of the length behind the first byte of a value that is longer than 250 bytes.
LENGTH_SIZES = {0xFC: 2, 0xFD: 3, 0xFE: 8}
#: First bytes of values that are NULL, or longer than 250 bytes. UTF-8 has none of them.
SPECIAL = (b"\xfb", b"\xfc", b"\xfd", b"\xfe")
_HEAD = struct.Struct("<IB").unpack_from


class MalformedRowError(ValueError):
    """Bytes that are no row of the result's columns."""


def split_packets(data: bytes, place: int, append: Callable[[bytes], None], limit: int) -> tuple[int, bool]:
    """Cut rows out of a buffer.

    Args:
        append: takes each row without its packet's head.
        limit: rows at most.

    Returns:
        The place behind the last row, and whether a packet stands there that is no usual row: an end, an error, or the first part of a row
        that is larger than a packet.
    """
    last = len(data) - 5
    head = _HEAD
    while limit and place <= last:
        size, first = head(data, place)
        size &= _WHOLE_PACKET
        after = place + 4 + size
        if after > last + 5:
            break
        if (first > 0xFD and (first == 0xFF or size < 9)) or size == _WHOLE_PACKET:
            return place, True
        append(data[place + 4 : after])
        place = after
        limit -= 1
    return place, False


def row_function(characters: Sequence[bool]) -> ReadRow:
    """Make the function that reads one row's texts.

    Args:
        characters: of each column, whether its values are characters, in UTF-8.
    """
    lines = ["def read_row(d, s):", "    p = 0"]
    for i, is_text in enumerate(characters):
        lines += [
            "    size = d[p]",
            f"    if size == {NULL}:",
            f"        c{i} = None",
            "        p += 1",
            "    else:",
            *(f"        {line}" for line in _any_value(i, is_text)),
        ]
    row = "(" + "".join(f"c{i}, " for i in range(len(characters))) + ")"
    lines += ["    if p != len(d): raise MalformedRowError('a row is not as long as its packets')", f"    return {row}", ""]
    names = Names({"MalformedRowError": MalformedRowError, "sized": _sized})
    return names.run("\n".join(lines), "<rows of a result>")["read_row"]  # type: ignore[return-value]


def _any_value(i: int, is_text: bool) -> list[str]:
    return [
        "if size < 251:",
        "    a = p + 1",
        "    p = a + size",
        "else:",
        "    a, p = sized(d, p)",
        f"c{i} = s[a:p]",
        *_decoded(i, is_text),
    ]


def _decoded(i: int, is_text: bool) -> list[str]:
    return [f"if not c{i}.isascii(): c{i} = d[a:p].decode('utf-8', 'replace')"] if is_text else []


def _sized(data: bytes, place: int) -> tuple[int, int]:
    """Where a value of more than 250 bytes begins and ends."""
    if data[place] not in LENGTH_SIZES:
        raise MalformedRowError(f"{data[place]} begins no value")
    begin = place + 1 + LENGTH_SIZES[data[place]]
    return begin, begin + int.from_bytes(data[place + 1 : begin], "little")


def packet_size(data: bytes, place: int) -> int | None:
    """Bytes of the packet that begins at a place, with its head; None where its head is not all there."""
    return 4 + int.from_bytes(data[place : place + 3], "little") if len(data) >= place + 4 else None


def large_row(data: bytes, place: int) -> tuple[bytes, int] | None:
    """A row of several packets.

    Returns:
        Its bytes and the place behind it; None where it is not all there.
    """
    parts = []
    while (size := packet_size(data, place)) is not None and len(data) >= place + size:
        parts.append(data[place + 4 : place + size])
        place += size
        if size - 4 < _WHOLE_PACKET:
            return b"".join(parts), place
    return None
