"""Rows of a table, from an event's bytes to texts, by a function that is generated once for each table map and model of the table.

The way of every row whose columns are not all there, of updates with differences, and of what `fused.py` leaves as unusual.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connectors.engine.encode.names import Names
from connectors.engine.encode.texts import UNCHANGED, Text
from connectors.mysql.binlog.codes import ColumnType
from connectors.mysql.binlog.columns import Meaning, column_statements, shared_names
from connectors.mysql.binlog.cursor import Cursor
from connectors.mysql.binlog.errors import MalformedEventError
from connectors.mysql.binlog.json_patch import patched
from connectors.mysql.binlog.table_map import StoredColumn

#: Of `binlog_row_value_options`, as an update's second image has it.
_PARTIAL_JSON = 1


#: Rows of one image, from a place in the bytes on: the texts and the place behind the row.
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

    def guarded(data: bytes, place: int) -> tuple[list[Text], int]:
        try:
            found: tuple[list[Text], int] = read(data, place)
            return found
        except MalformedEventError:
            raise
        except (IndexError, struct.error, ValueError, OverflowError) as error:
            raise MalformedEventError(f"a row could not be decoded: {error}") from error

    return guarded


def partial_row_reader(columns: Sequence[StoredColumn], meanings: Sequence[Meaning], present: bytes) -> PartialReader:
    """The same for second images of PARTIAL_UPDATE_ROWS; JSON documents are the result of applying their differences."""
    read = _compiled(columns, meanings, present, partial=True)

    def guarded(data: bytes, place: int, before: list[Text]) -> tuple[list[Text], int]:
        try:
            found: tuple[list[Text], int] = read(data, place, before)
            return found
        except MalformedEventError:
            raise
        except (IndexError, struct.error, ValueError, OverflowError) as error:
            raise MalformedEventError(f"a row could not be decoded: {error}") from error

    return guarded


def _compiled(columns: Sequence[StoredColumn], meanings: Sequence[Meaning], present: bytes, *, partial: bool) -> Callable[..., Any]:
    """`read(d, p)` or `read(d, p, before)`: with one way for rows without NULLs, in which neighbours of fixed size are read at once."""
    if len(columns) != len(meanings):
        raise MalformedEventError(f"rows of {len(columns)} columns came for a table of {len(meanings)}")
    held = [i for i in range(len(columns)) if present[i >> 3] >> (i & 7) & 1]
    names = shared_names(meanings)
    names.update({"UNCHANGED": UNCHANGED, "json_after": _json_after})
    size = (len(held) + 7) // 8
    lines = ["def read(d, p, before=None):", "    end = len(d)"]
    documents = [i for i, column in enumerate(columns) if column.type is ColumnType.JSON]
    if partial:
        names.add("value_options", _value_options)
        lines.append(f"    parts, p = value_options(d, p, {(len(documents) + 7) // 8})")
    lines += [f"    nulls = int_of(d[p:p + {size}], 'little')", f"    p += {size}"]
    bodies = {i: column_statements(f"c{i}", i, columns[i], meanings[i], names) for i in held}
    if partial:
        for bit, i in enumerate(documents):
            if i in bodies:
                shown = [
                    line.replace("json_text(d[p:q])", f"json_after(json_text, d[p:q], before[{i}], parts & {1 << bit})")
                    for line in bodies[i]
                ]
                bodies[i] = shown
    lines.append("    if not nulls:")
    for run in _runs(held, columns, meanings):
        if len(run) > 1:
            lines += [f"        {line}" for line in _run(run, columns, meanings, names)]
        else:
            lines += [f"        {line}" for line in bodies[run[0]]]
    lines += ["        pass", "    else:"]
    for bit, index in enumerate(held):
        lines += [f"        if nulls & {1 << bit}:", f"            c{index} = None", "        else:"]
        lines += [f"            {line}" for line in bodies[index]]
    lines.append("        pass")
    texts = ", ".join(f"c{i}" if i in bodies else "UNCHANGED" for i in range(len(columns)))
    lines += ["    if p > end:", "        raise MalformedEventError('a row is longer than its event')", f"    return [{texts}], p", ""]
    functions: Mapping[str, Any] = names.run("\n".join(lines), "<rows of a binlog>")
    read: Callable[..., Any] = functions["read"]
    return read


#: Letters of `struct` for what can be read together with its neighbours.
_LETTERS = {ColumnType.TINY: "b", ColumnType.SHORT: "h", ColumnType.LONG: "i", ColumnType.LONGLONG: "q", ColumnType.DOUBLE: "d"}


def _runs(held: Sequence[int], columns: Sequence[StoredColumn], meanings: Sequence[Meaning]) -> list[list[int]]:
    """Neighbours that one `struct` reads; all others by themselves."""
    found: list[list[int]] = []
    for index in held:
        joins = columns[index].type in _LETTERS
        if joins and found and columns[found[-1][-1]].type in _LETTERS:
            found[-1].append(index)
        else:
            found.append([index])
    return found


def _run(run: Sequence[int], columns: Sequence[StoredColumn], meanings: Sequence[Meaning], names: Names) -> list[str]:
    letters = ""
    for index in run:
        letter = _LETTERS[columns[index].type]
        letters += letter.upper() if meanings[index].unsigned and letter != "d" else letter
    form = struct.Struct("<" + letters)
    name = f"run{run[0]}"
    names.add(name, form.unpack_from)
    shown = [f"c{i} = {'double_text' if columns[i].type is ColumnType.DOUBLE else 'str'}(c{i})" for i in run]
    return [f"{', '.join(f'c{i}' for i in run)} = {name}(d, p)", f"p += {form.size}", *shown]


def _value_options(data: bytes, place: int, size: int) -> tuple[int, int]:
    """Which documents of an image are differences, one bit for each JSON column of the table; and the place behind."""
    cursor = Cursor(data, place)
    if not cursor.packed() & _PARTIAL_JSON:
        return 0, cursor.at
    return cursor.number(size), cursor.at


def _json_after(read: Callable[[bytes], str], data: bytes, before: Text, partial: int) -> Text:
    """A document, or what becomes of the one before; where that is not known, neither is this one."""
    if not partial:
        return read(data)
    if before is UNCHANGED:
        return UNCHANGED
    if not isinstance(before, str):
        raise MalformedEventError("a difference of a JSON document came for NULL")
    return patched(before, data, read)


def read_images(reader: Reader, body: bytes) -> list[list[Text]]:
    """All rows of an insert's or delete's body. Raises MalformedEventError."""
    rows, place, end = [], 0, len(body)
    while place < end:
        row, after = reader(body, place)
        if after == place:
            raise MalformedEventError("a row takes no bytes")
        rows.append(row)
        place = after
    return rows


def read_pairs(before: Reader, after: Reader, body: bytes) -> list[tuple[list[Text], list[Text]]]:
    """All rows of an update's body, each before and after. Raises MalformedEventError."""
    rows, place, end = [], 0, len(body)
    while place < end:
        old, middle = before(body, place)
        new, place_after = after(body, middle)
        if place_after == place:
            raise MalformedEventError("a row takes no bytes")
        rows.append((old, new))
        place = place_after
    return rows


def read_partial_pairs(before: Reader, after: PartialReader, body: bytes) -> list[tuple[list[Text], list[Text]]]:
    """All rows of a PARTIAL_UPDATE_ROWS' body, each before and after. Raises MalformedEventError."""
    rows, place, end = [], 0, len(body)
    while place < end:
        old, middle = before(body, place)
        new, place = after(body, middle, old)
        rows.append((old, new))
    return rows
