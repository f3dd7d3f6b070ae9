"""Rows of a table, from an event's bytes to texts, by a function that is generated once for each table map and table model.

It reads every row that lacks columns, updates with differences, and what the functions that read and write at once leave as unusual
(`columns.py`).

MariaDB's system-versioned tables (`WITH SYSTEM VERSIONING`) may name no columns for it. The log then has two columns after those of the
statement, from when and until when a row is current, and keeps each version that ends as an inserted row; a deleted row is updated to have
an end. Debezium's task fails at such rows. `RowImages.current_versions` returns what the table's readers see: the current rows and their
changes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from connect_py.rowcode import Code
from connectors.engine.encode.fused import write_texts
from connectors.engine.encode.plan import UNCHANGED, Text
from connectors.mysql.binlog.codes import ColumnType, MalformedEventError
from connectors.mysql.binlog.columns import Meaning, image_rows
from connectors.mysql.binlog.cursor import Cursor
from connectors.mysql.binlog.events import Rows
from connectors.mysql.binlog.json_text import patched
from connectors.mysql.binlog.table_map import StoredColumn, TableMap

#: Of `binlog_row_value_options`, as an update's second image has it.
_PARTIAL_JSON = 1

#: The end of a current row: the greatest `TIMESTAMP(6)`, of 32 bits with a sign or, since MariaDB 11.5, without.
_NEVER = ("2038-01-19 03:14:07.999999", "2106-02-07 06:28:15.999999", UNCHANGED)

#: Rows of one image, from a position in the bytes on: the texts and the position after the row.
Reader = Callable[[bytes, int], tuple[list[Text], int]]


#: The same for images in which JSON documents may be differences to those of the image before, whose texts are the last argument.
PartialReader = Callable[[bytes, int, list[Text]], tuple[list[Text], int]]


def row_reader(columns: Sequence[StoredColumn], meanings: Sequence[Meaning], present: bytes) -> Reader:
    """Make the function that reads one row image.

    Args:
        present: bit map of the columns that images hold; texts of others are `UNCHANGED`.

    Returns:
        A function that raises MalformedEventError for bytes that are no such row.
    """
    read = _compiled(columns, meanings, present, partial=False)

    def guarded(data: bytes, at: int) -> tuple[list[Text], int]:
        try:
            found: tuple[list[Text], int] = read(data, at)
            return found
        except MalformedEventError:
            raise
        except (IndexError, struct.error, ValueError, OverflowError) as error:
            raise MalformedEventError(f"a row could not be decoded: {error}") from error

    return guarded


def partial_row_reader(columns: Sequence[StoredColumn], meanings: Sequence[Meaning], present: bytes) -> PartialReader:
    """Return the same for second images of PARTIAL_UPDATE_ROWS; JSON documents are the result of applying their differences."""
    read = _compiled(columns, meanings, present, partial=True)

    def guarded(data: bytes, at: int, before: list[Text]) -> tuple[list[Text], int]:
        try:
            found: tuple[list[Text], int] = read(data, at, before)
            return found
        except MalformedEventError:
            raise
        except (IndexError, struct.error, ValueError, OverflowError) as error:
            raise MalformedEventError(f"a row could not be decoded: {error}") from error

    return guarded


def _compiled(columns: Sequence[StoredColumn], meanings: Sequence[Meaning], present: bytes, *, partial: bool) -> Callable[..., Any]:
    """Make `read_row(d, p, before)`."""
    if len(columns) != len(meanings):
        raise MalformedEventError(f"rows of {len(columns)} columns came for a table of {len(meanings)}")
    held = [i for i in range(len(columns)) if present[i >> 3] >> (i & 7) & 1]
    code = Code("rows of a binlog")
    code.bind_all({"MalformedEventError": MalformedEventError, "UNCHANGED": UNCHANGED})
    opening, differences = ["end = len(d)"], {}
    if partial:
        code.bind_all({"json_after": _json_after, "value_options": _value_options})
        documents = [i for i, column in enumerate(columns) if column.type is ColumnType.JSON]
        opening.append(f"parts, p = value_options(d, p, {(len(documents) + 7) // 8})")
        differences = {i: f"json_after(json_text, d[p:q], before[{i}], parts & {1 << bit})" for bit, i in enumerate(documents)}
    source = replace(image_rows(columns, meanings, held, differences), opening=opening, loop="True")
    texts = ", ".join(f"c{i}" if i in held else "UNCHANGED" for i in range(len(columns)))
    too_long = "if p > end: raise MalformedEventError('a row is longer than its event')"
    write_texts(code, source, "read_row", "d, p, before=None", [too_long, f"return [{texts}], p"])
    return code.make()["read_row"]


def _value_options(data: bytes, at: int, size: int) -> tuple[int, int]:
    """Read which documents of an image are differences, one bit for each JSON column of the table, and the position after it."""
    cursor = Cursor(data, at)
    if not cursor.packed() & _PARTIAL_JSON:
        return 0, cursor.at
    return cursor.number(size), cursor.at


def _json_after(read: Callable[[bytes], str], data: bytes, before: Text, partial: int) -> Text:
    """Return a document, or what becomes of the one before; where that is not known, neither is this one."""
    if not partial:
        return read(data)
    if before is UNCHANGED:
        return UNCHANGED
    if not isinstance(before, str):
        raise MalformedEventError("a difference of a JSON document came for NULL")
    return patched(before, data, read)


def read_images(reader: Reader, body: bytes) -> list[list[Text]]:
    """Return all rows of an insert's or delete's body. Raises MalformedEventError."""
    rows, at, end = [], 0, len(body)
    while at < end:
        row, after = reader(body, at)
        if after == at:
            raise MalformedEventError("a row takes no bytes")
        rows.append(row)
        at = after
    return rows


def read_pairs(before: Reader, after: Reader, body: bytes) -> list[tuple[list[Text], list[Text]]]:
    """Return all rows of an update's body, each before and after. Raises MalformedEventError."""
    rows, at, end = [], 0, len(body)
    while at < end:
        old, middle = before(body, at)
        new, at_after = after(body, middle)
        if at_after == at:
            raise MalformedEventError("a row takes no bytes")
        rows.append((old, new))
        at = at_after
    return rows


def read_partial_pairs(before: Reader, after: PartialReader, body: bytes) -> list[tuple[list[Text], list[Text]]]:
    """Return all rows of a PARTIAL_UPDATE_ROWS' body, each before and after. Raises MalformedEventError."""
    rows, at, end = [], 0, len(body)
    while at < end:
        old, middle = before(body, at)
        new, at = after(body, middle, old)
        rows.append((old, new))
    return rows


class RowImages:
    """Reads the rows of one table's events. One function is made for each set of columns that images hold.

    Args:
        map_: the table map before the events.
        meanings: of its columns.

    Raises:
        MalformedEventError: by each method: the event holds no such rows.
    """

    __slots__ = ("_map", "_meanings", "_partial_readers", "_readers")

    def __init__(self, map_: TableMap, meanings: Sequence[Meaning]) -> None:
        self._map = map_
        self._meanings = meanings
        self._readers: dict[bytes, Reader] = {}
        self._partial_readers: dict[bytes, PartialReader] = {}

    def images(self, event: Rows) -> list[list[Text]]:
        """Return the rows of an insert or a delete."""
        return read_images(self._reader(event.present), event.body)

    def pairs(self, event: Rows) -> list[tuple[list[Text], list[Text]]]:
        """Return the rows of an update, before and after; what the second image lacks has not changed."""
        before = self._reader(event.present)
        if event.partial:
            pairs = read_partial_pairs(before, self._partial_reader(event.present_after), event.body)
        else:
            pairs = read_pairs(before, self._reader(event.present_after), event.body)
        if self._map.is_whole(event.present_after):
            return pairs
        return [(old, [was if text is UNCHANGED else text for was, text in zip(old, new, strict=True)]) for old, new in pairs]

    def current_versions(self, event: Rows) -> list[tuple[Rows, int]]:
        """Return an event without the rows of old versions, in parts of one kind each, with their numbers of rows."""
        read, read_after = self._reader(event.present), self._reader(event.present_after)
        parts: list[tuple[Rows, int]] = []
        at, body = 0, event.body
        while at < len(body):
            begin = at
            texts, at = read(body, at)
            was_current = _is_current(texts)
            kind, end = event.kind, at
            if kind == "u":
                texts, at = read_after(body, at)
                if _is_current(texts):
                    end = at
                else:
                    kind = "d"
            if not was_current:
                continue
            if parts and parts[-1][0].kind == kind:
                part, count = parts[-1]
                parts[-1] = (replace(part, body=part.body + body[begin:end]), count + 1)
            else:
                parts.append((replace(event, kind=kind, body=body[begin:end]), 1))
        return parts

    def _reader(self, present: bytes) -> Reader:
        found = self._readers.get(present)
        if found is None:
            found = self._readers[present] = row_reader(self._map.columns, self._meanings, present)
        return found

    def _partial_reader(self, present: bytes) -> PartialReader:
        found = self._partial_readers.get(present)
        if found is None:
            found = self._partial_readers[present] = partial_row_reader(self._map.columns, self._meanings, present)
        return found


def _is_current(texts: list[Text]) -> bool:
    return texts[-1] in _NEVER
