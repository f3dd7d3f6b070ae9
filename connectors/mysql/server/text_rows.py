"""Rows of the text protocol, from the socket's bytes to texts (MySQL internals, "Text Resultset Row"). No I/O.

A row is a packet of values, each after its length. Rows stay bytes until their records are made (`snapshot/rows.py`), or their texts:
values that are not characters get a character U+0000 to U+00FF for each byte.

`usual_rows` and `any_rows` are for functions that read rows and write records in one pass (`engine/encode/fused.py`). They read rows as a
file in memory, which takes half the time of positions and slices. Where the writer accepts a date and time in pieces, no text of the whole
is made: `datetime texts.<digits>` (the date, with the length's character before it and the space after it; hour and minute with their
colons; second; fraction), `timestamp texts.0` (the date in the same way; the clock).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import StringIO

from connect_py.rowcode import Code
from connectors.engine.encode.fused import UNUSUAL, FusedSource, Single, write_texts
from connectors.engine.encode.plan import Stored, Text

#: Texts of a row, one a column.
TextRow = tuple[Text, ...]
#: Reads rows' bytes. Raises MalformedRowError.
ReadRows = Callable[[Sequence[bytes]], list[TextRow]]

NULL = 0xFB
_WHOLE_PACKET = 0xFFFFFF
#: Bytes of the length after the first byte of a value that is longer than 250 bytes.
LENGTH_SIZES = {0xFC: 2, 0xFD: 3, 0xFE: 8}
#: First bytes of values that are NULL, or longer than 250 bytes. UTF-8 has none of them.
SPECIAL = (b"\xfb", b"\xfc", b"\xfd", b"\xfe")
_HEAD = struct.Struct("<IB").unpack_from


class MalformedRowError(ValueError):
    """Bytes that are no row of the result's columns."""


def split_packets(data: bytes, at: int, append: Callable[[bytes], None], limit: int) -> tuple[int, bool]:
    """Cut rows out of a buffer.

    Args:
        append: receives each row without its packet's head.
        limit: maximum number of rows.

    Returns:
        The position after the last row, and whether the packet there is no usual row: an end, an error, or the first part of a row
        that is larger than a packet.
    """
    last = len(data) - 5
    head = _HEAD
    while limit and at <= last:
        size, first = head(data, at)
        size &= _WHOLE_PACKET
        after = at + 4 + size
        if after > last + 5:
            break
        if (first > 0xFD and (first == 0xFF or size < 9)) or size == _WHOLE_PACKET:
            return at, True
        append(data[at + 4 : after])
        at = after
        limit -= 1
    return at, False


def rows_function(characters: Sequence[bool]) -> ReadRows:
    """Make the function that reads the texts of rows.

    Args:
        characters: of each column, whether its values are characters, in UTF-8.
    """
    code = Code("rows of a result")
    row = "".join(f"c{i}, " for i in range(len(characters)))
    write_texts(code, any_rows(characters), "read_rows", "d, s, p, end, append", [f"append(({row}))"])
    read = code.make()["read_rows"]

    def read_rows(rows: Sequence[bytes]) -> list[TextRow]:
        data = b"".join(rows)
        found: list[TextRow] = []
        try:
            read(data, data.decode("latin-1"), 0, len(data), found.append)
        except UNUSUAL as error:
            raise MalformedRowError(f"a value cannot be read: {error}") from error
        if len(found) != len(rows):
            raise MalformedRowError("rows are not as long as their packets")
        return found

    return read_rows


def packet_size(data: bytes, at: int) -> int | None:
    """Return the size of the packet that begins at a position, with its head; None while its head is incomplete."""
    return 4 + int.from_bytes(data[at : at + 3], "little") if len(data) >= at + 4 else None


def large_row(data: bytes, at: int) -> tuple[bytes, int] | None:
    """Return a row of several packets.

    Returns:
        Its bytes and the position after it; None while it is incomplete.
    """
    parts = []
    while (size := packet_size(data, at)) is not None and len(data) >= at + size:
        parts.append(data[at + 4 : at + size])
        at += size
        if size - 4 < _WHOLE_PACKET:
            return b"".join(parts), at
    return None


_TIMESTAMP = "timestamp texts.0"
#: Reads a value that is not NULL, whose length begins with `size`.
_READ = f"read(size if size < {NULL} else read_size(size, read))"
#: Digits of the fraction in each form of DATETIME.
_FRACTIONS = {f"datetime texts.{digits}": digits for digits in range(7)}


def usual_rows(characters: Sequence[bool], wanted: Sequence[Mapping[str, Stored]], passed_over: int = 0) -> FusedSource:
    """Return the source that reads adjacent rows of which no value is NULL or longer than 250 bytes.

    Args:
        characters: as of `rows_function`.
        wanted: the forms that the writer accepts in addition to texts, of each column (`engine/encode/fused.py`).
        passed_over: number of further values at the end of each row, which are no columns of events.
    """
    stored = _pieces(wanted)
    lines: list[str] = []
    for i, is_text in enumerate(characters):
        if i in stored:
            lines += ["c0 = begin + read(11)" if i == 0 else f"c{i} = read(12)", *_clock(stored[i].form, i)]
        else:
            size = "begin" if i == 0 else "read(1)"
            lines += [f"c{i} = read(ord({size}))", *_decode_read(i, is_text)]
    lines += ["read(ord(read(1)))"] * passed_over
    return FusedSource(opening=_OPENING, loop=_LOOP, closing=_CLOSING, together=lines, stored=stored, names=_NAMES)


def any_rows(characters: Sequence[bool], wanted: Sequence[Mapping[str, Stored]] = (), passed_over: int = 0) -> FusedSource:
    """Return the source that reads all other rows; arguments as of `usual_rows`."""
    stored = _pieces(wanted)
    single = []
    for i, is_text in enumerate(characters):
        value = [f"c{i} = begin + read(11)", *_clock(stored[i].form, i)] if i in stored else _read_value(i, is_text)
        single.append(Single(i, f"begin == {chr(NULL)!r}", value, before=["begin = read(1)"] if i else ()))
    single += [Single(None, f"begin == {chr(NULL)!r}", ["size = ord(begin)", _READ], before=["begin = read(1)"])] * passed_over
    return FusedSource(opening=_OPENING, loop=_LOOP, closing=_CLOSING, single=single, stored=stored, names=_NAMES)


def _pieces(wanted: Sequence[Mapping[str, Stored]]) -> dict[int, Stored]:
    """Return the columns whose values are read in pieces."""
    return {i: way for i, forms in enumerate(wanted) for form, way in forms.items() if form in _FRACTIONS or form == _TIMESTAMP}


def _clock(form: str, i: int) -> list[str]:
    """Return statements that read what follows a date. A piece is read in 40 ns, and cut out of a text in 90."""
    if form == _TIMESTAMP:
        return [f"clock{i} = read(8)"]
    digits = _FRACTIONS[form]
    return [f"clock{i} = read(6)", f"second{i} = read(2)", *(["read(1)", f"fraction{i} = read({digits})"] if digits else [])]


def _read_value(i: int, is_text: bool) -> list[str]:
    return ["size = ord(begin)", f"c{i} = {_READ}", *_decode_read(i, is_text)]


def _decode_read(i: int, is_text: bool) -> list[str]:
    return [f"if not c{i}.isascii(): c{i} = c{i}.encode('latin-1').decode('utf-8', 'replace')"] if is_text else []


def _read_size(first: int, read: Callable[[int], str]) -> int:
    """Return the length of a value of more than 250 bytes. Raises LookupError, TypeError, ValueError."""
    return int.from_bytes(read(LENGTH_SIZES[first]).encode("latin-1"), "little")


#: Follows the last row, so that a row which ends too late is seen: it swallows the mark, and nothing is left for the next look.
_END = "\u0100"
_OPENING = [f"read = file_of(s + {_END!r}).read"]
_LOOP = f"(begin := read(1)) != {_END!r}"
_CLOSING = ["p = end"]
_NAMES: dict[str, object] = {"file_of": partial(StringIO, newline=""), "read_size": _read_size}
