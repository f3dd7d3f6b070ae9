"""Column texts out of the two forms in which PostgreSQL sends rows: COPY's text format and pgoutput's tuples. Pure; the careful way.

Formats: PostgreSQL documentation, COPY ("Text Format") and "Logical Replication Message Formats" (TupleData). The generated functions of
`connectors.postgres.encode.table` have quicker ways for usual rows and come here for the others.
"""

from __future__ import annotations

import re
import struct

from connect_py.errors import DataError
from connectors.engine.encode.plan import UNCHANGED, Text

#: Stands before every value that was sent, in a message of less than 64 KiB: the kind, and the upper half of the length. No text of
#: PostgreSQL holds NUL, so it stands nowhere else.
MARK = b"t\0\0"
#: The same of values that are shorter than 256 bytes.
SHORT_MARK = "t\0\0\0"
_SMALL_MESSAGE = 1 << 16
_MARK_AND_LENGTH = re.compile(rb"t\0\0..", re.DOTALL)
_NOT_SENT = {"n": None, "u": UNCHANGED}

_LENGTH = struct.Struct(">i").unpack_from
_NULL, _TOAST, _TEXT = b"nut"
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def read_copy_line(line: str) -> list[Text]:
    """Return the texts of a line of COPY … TO STDOUT in text format, without its newline."""
    return [None if field == "\\N" else unescape(field) if "\\" in field else field for field in line.split("\t")]


def unescape(field: str) -> str:
    """Undo COPY's backslash escapes."""
    return _ESCAPE.sub(_unescape_one, field)


def _unescape_one(match: re.Match[str]) -> str:
    octal, hexadecimal, character = match.groups()
    if octal:
        return chr(int(octal, 8))
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    return _CONTROLS.get(character, character)


def read_tuple(data: bytes, at: int, width: int) -> tuple[list[Text], int]:
    """Return the texts of a TupleData.

    Args:
        data: a message.
        at: where the tuple's number of columns stands.
        width: the number of columns that is expected.

    Returns:
        One text a column, and where the tuple ends.

    Raises:
        DataError: the tuple has another number of columns, is cut short, or is no tuple in text form.
    """
    columns = int.from_bytes(data[at : at + 2], "big")
    if columns != width:
        raise DataError(
            f"A tuple of {columns} columns came for a table of {width}: its description (Relation message) is missing or out of date"
        )
    at += 2
    texts: list[Text] = []
    append = texts.append
    try:
        for _ in range(width):
            kind = data[at]
            if kind == _TEXT:
                start = at + 5
                at = start + _LENGTH(data, at + 1)[0]
                append(data[start:at].decode())
                if at < start:
                    raise ValueError(f"a value has a length of {at - start}")
                continue
            at += 1
            if kind == _NULL:
                append(None)
            elif kind == _TOAST:
                append(UNCHANGED)
            else:
                raise DataError(f"A tuple has a value of the unknown kind {chr(kind)!r}; only text form is supported")
        if at > len(data):
            raise ValueError(f"its last value goes {at - len(data)} bytes beyond its end")
    except (ValueError, IndexError, struct.error) as error:
        raise DataError(f"A row of the replication stream cannot be read: {error}") from error
    return texts, at


def split_tuple(data: bytes, sent: int, width: int) -> list[Text] | None:
    """Return the texts of a TupleData that ends a message, by splitting at the marks of its values: about half the time of `read_tuple`.

    Args:
        data: the message after the number of columns.
        sent: how often `MARK` stands in it.
        width: the number of columns.

    Returns:
        The texts; None for a tuple that must be read value by value.

    Raises:
        ValueError, LookupError: as if None were returned.
    """
    if len(data) >= _SMALL_MESSAGE:
        return None
    if sent == width:
        return b"\0".join(_MARK_AND_LENGTH.split(data)).decode().split("\0")[1:]  # type: ignore[return-value]  # invariance of list
    if not data.isascii():
        return None
    head, *pieces = data.decode().split(SHORT_MARK)
    if len(pieces) != sent:
        return None
    texts: list[Text] = [_NOT_SENT[kind] for kind in head]
    append = texts.append
    for piece in pieces:
        size = ord(piece[0]) + 1
        if size == len(piece):
            append(piece[1:])
        else:
            append(piece[1:size])
            texts += [_NOT_SENT[kind] for kind in piece[size:]]
    return texts if len(texts) == width else None
