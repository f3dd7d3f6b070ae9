"""Rows of a result of the text protocol, from the socket's bytes to texts (page_protocol_com_query_response_text_resultset.html). No I/O.

A row is a packet of values behind their lengths. The function that reads them is generated for the columns: a loop over all packets of a
buffer without a call for a row or a value. Texts that are not characters have a character U+0000 to U+00FF for each byte, so that the
buffer is decoded once, and slices of it are the texts.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from connectors.engine.encode.tuples import Text

#: Texts of a row, one a column.
TextRow = tuple[Text, ...]
#: Takes a buffer, the same as a str of its bytes, a place at which a packet begins, where to put rows, and how many at most. Returns the
#: place behind the last row, and whether a packet stands there that is no row of this form.
ReadPackets = Callable[[bytes, str, int, Callable[[TextRow], None], int], tuple[int, bool]]
#: Takes a row's bytes, and the same as a str.
ReadRow = Callable[[bytes, str], TextRow]

_NULL = 0xFB
_WHOLE_PACKET = 0xFFFFFF
_SIZES = {0xFC: ("<H", 2), 0xFD: ("<I", 3), 0xFE: ("<Q", 8)}


class MalformedRowError(ValueError):
    """Bytes that are no row of the result's columns."""


def row_functions(characters: Sequence[bool]) -> tuple[ReadPackets, ReadRow]:
    """Make the functions for a result's columns.

    Args:
        characters: of each column, whether its values are characters, in UTF-8.
    """
    values: list[str] = []
    for i, is_text in enumerate(characters):
        values += [
            "n = d[q]",
            "if n < 251:",
            "    a = q + 1",
            "    q = a + n",
            f"    c{i} = s[a:q]",
            *([f"    if not c{i}.isascii(): c{i} = d[a:q].decode('utf-8', 'replace')"] if is_text else []),
            f"elif n == {_NULL}:",
            f"    c{i} = None",
            "    q += 1",
            "else:",
            "    a, q = sized(d, q)",
            f"    c{i} = d[a:q].decode('utf-8', 'replace')" if is_text else f"    c{i} = s[a:q]",
        ]
    row = "(" + "".join(f"c{i}, " for i in range(len(characters))) + ")"
    lines = [
        "def read_packets(d, s, p, append, limit):",
        "    end = len(d)",
        "    while limit and p + 4 < end:",
        "        q = p + 4",
        "        e = q + (d[p] | d[p + 1] << 8 | d[p + 2] << 16)",
        "        if e > end:",
        "            break",
        "        n = d[q]",
        # an end or an error, or the first part of a row that is larger than a packet
        f"        if n > 253 and (n == 255 or e - q < 9) or e - q == {_WHOLE_PACKET}:",
        "            return p, True",
        *(f"        {line}" for line in values),
        "        if q != e: raise MalformedRowError('a row is not as long as its packet')",
        f"        append({row})",
        "        p = e",
        "        limit -= 1",
        "    return p, False",
        "def read_row(d, s):",
        "    q = 0",
        *(f"    {line}" for line in values),
        "    if q != len(d): raise MalformedRowError('a row is not as long as its packets')",
        f"    return {row}",
        "",
    ]
    names: dict[str, object] = {"MalformedRowError": MalformedRowError, "sized": _sized}
    exec(compile("\n".join(lines), "<rows of a result>", "exec"), names)  # noqa: S102  # our own text
    return names["read_packets"], names["read_row"]  # type: ignore[return-value]


def _sized(data: bytes, place: int) -> tuple[int, int]:
    """Where a value of more than 250 bytes begins and ends."""
    if data[place] not in _SIZES:
        raise MalformedRowError(f"{data[place]} begins no value")
    form, size = _SIZES[data[place]]
    begin = place + 1 + size
    (length,) = struct.unpack(form, data[place + 1 : begin].ljust(struct.calcsize(form), b"\0"))
    return begin, begin + length


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
