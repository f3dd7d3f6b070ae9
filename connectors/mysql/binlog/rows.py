"""Rows of a table, from an event's bytes to texts, by a function that is generated once for each table map and table model.

It reads every row that lacks columns, updates with differences, and what `fused.py` leaves as unusual. The generated statements read bytes
`d` at `p`, up to `end`. The texts are those of MySQL's text protocol, so that snapshot and binlog share one conversion for each type: bytes
are texts of the characters U+0000 to U+00FF, floating point numbers have all significant digits, and JSON is as Debezium streams it. What
the event does not contain (signs, character sets, labels) comes from the model as `Meaning`s.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.data.java_text import double_text, float_text
from connectors.engine.encode.names import Names
from connectors.engine.encode.plan import UNCHANGED, Text
from connectors.mysql.binlog import values
from connectors.mysql.binlog.charsets import decoder
from connectors.mysql.binlog.codes import ColumnType, MalformedEventError
from connectors.mysql.binlog.cursor import Cursor, unpacked_value
from connectors.mysql.binlog.json_text import json_text, patched, server_json_text
from connectors.mysql.binlog.table_map import StoredColumn
from connectors.mysql.binlog.values import decimal_reader, stored_size

INTEGERS = {ColumnType.TINY: 1, ColumnType.SHORT: 2, ColumnType.INT24: 3, ColumnType.LONG: 4, ColumnType.LONGLONG: 8}
BLOBS = (ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB, ColumnType.BLOB)
#: Character sets that are read as UTF-8.
UTF8 = ("utf8mb4", "utf8mb3", "utf8")
_BYTES_ONLY = (ColumnType.GEOMETRY, ColumnType.VECTOR)
_OCTETS = [str(value) for value in range(256)]
_SIGNED_OCTETS = [str(value - 256 if value > 127 else value) for value in range(256)]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a table's model knows of a column.

    Attributes:
        unsigned: whether an integer has no sign.
        charset: of character data; empty for bytes.
        labels: of an enum or a set, in order.
        server_json: whether dates and times inside of JSON are to have the server's digits.
    """

    unsigned: bool = False
    charset: str = ""
    labels: tuple[str, ...] = ()
    server_json: bool = False


def shared_names(meanings: Sequence[Meaning]) -> Names:
    """Return what the statements of all columns use."""
    given: dict[str, object] = {
        "LOG_CLOCKS": values.CLOCKS,
        "LOG_DATES": values.DATES,
        "LOG_DAYS": values.DAYS_OF_DATETIME,
        "LOG_EPOCH_DAYS": values.EPOCH_DAYS,
        "MalformedEventError": MalformedEventError,
        "OCTETS": _OCTETS,
        "LOG_SECONDS": values.SECONDS,
        "SIGNED_OCTETS": _SIGNED_OCTETS,
        "LOG_TIMES": values.TIMES,
        "ZERO_MOMENT": values.ZERO_MOMENT,
        "double_text": double_text,
        "float_text": float_text,
        "float_at": struct.Struct("<f").unpack_from,
        "double_at": struct.Struct("<d").unpack_from,
        "json_text": server_json_text if any(meaning.server_json for meaning in meanings) else json_text,
        "int_of": int.from_bytes,
        "set_text": _set_text,
        "log_moments": values,
    }
    return Names(given)


def column_statements(c: str, index: int, column: StoredColumn, meaning: Meaning, names: Names) -> list[str]:
    """Return statements that read one value at `p` into a variable, as a text, and move `p` after it.

    Args:
        c: the variable.
        index: of the column, for the names that its statements add.

    Raises:
        MalformedEventError: values of the type have no form in rows.
    """
    type_ = column.type
    if type_ in INTEGERS:
        return _integer(c, INTEGERS[type_], meaning.unsigned)
    if type_ in BLOBS or type_ in _BYTES_ONLY or type_ is ColumnType.JSON:
        return _sized(c, index, column.size, "json" if type_ is ColumnType.JSON else meaning.charset, names)
    match type_:
        case ColumnType.VARCHAR_COMPRESSED | ColumnType.BLOB_COMPRESSED:
            length_size = column.size if type_ is ColumnType.BLOB_COMPRESSED else 2 if column.size > 255 else 1
            names.add("unpacked_value", unpacked_value)
            names.add(f"decode{index}", decoder(meaning.charset or "binary"))
            return _sized(c, index, length_size, "compressed", names)
        case ColumnType.VARCHAR | ColumnType.VAR_STRING | ColumnType.STRING:
            return _sized(c, index, 2 if column.size > 255 else 1, meaning.charset, names)
        case ColumnType.FLOAT:
            return [f"{c} = float_text(float_at(d, p)[0])", "p += 4"]
        case ColumnType.DOUBLE:
            return [f"{c} = double_text(double_at(d, p)[0])", "p += 8"]
        case ColumnType.NEWDECIMAL:
            names.add(f"decimal{index}", decimal_reader(column.size, column.scale))
            return _fixed(c, stored_size(column.size, column.scale), f"decimal{index}($)")
        case ColumnType.BIT:
            return _fixed(c, (column.size + 7) // 8, "$.decode('latin-1')")
        case ColumnType.YEAR:
            return [f"{c} = str(1900 + d[p]) if d[p] else '0000'", "p += 1"]
        case ColumnType.ENUM:
            names.add(f"labels{index}", ("", *meaning.labels))
            return _fixed(c, column.size, f"labels{index}[int_of($, 'little')]")
        case ColumnType.SET:
            names.add(f"labels{index}", meaning.labels)
            return _fixed(c, column.size, f"set_text(int_of($, 'little'), labels{index})")
    return _time_statements(c, column)


def _time_statements(c: str, column: StoredColumn) -> list[str]:
    """Return statements for dates and times."""
    match column.type:
        case ColumnType.DATE | ColumnType.NEWDATE:
            return _fixed(c, 3, "LOG_DATES[int_of($, 'little')]")
        case ColumnType.DATETIME2:
            return [
                f"v = int_of(d[p:p + 5], 'big') - {values.DATETIME_OFFSET}",
                f"{c} = LOG_DAYS[v >> 17] + LOG_CLOCKS[v & 0x1FFFF]{_fraction(column.size, 5)}",
                f"p += {5 + (column.size + 1) // 2}",
            ]
        case ColumnType.TIMESTAMP2:
            fraction = _fraction(column.size, 4)
            return [
                "v = int_of(d[p:p + 4], 'big')",
                f"{c} = (LOG_EPOCH_DAYS[v // 86400] + LOG_SECONDS[v % 86400] if v else ZERO_MOMENT){fraction}",
                f"p += {4 + (column.size + 1) // 2}",
            ]
        case ColumnType.TIME2 if column.size == 0:
            return _fixed(c, 3, "LOG_TIMES[int_of($, 'big')]")
        case ColumnType.TIME2:
            return _fixed(c, 3 + (column.size + 1) // 2, f"log_moments.time2_text($, {column.size})")
        case ColumnType.DATETIME:
            return _fixed(c, 8, "log_moments.datetime_text($)")
        case ColumnType.TIMESTAMP:
            return _fixed(c, 4, "log_moments.timestamp_text($)")
        case ColumnType.TIME:
            return _fixed(c, 3, "log_moments.time_text($)")
    raise MalformedEventError(f"columns of the type {column.type.name} have no form in rows")


def _fraction(digits: int, at: int) -> str:
    """Return statements that read the hundredths, ten-thousandths or millionths after a time, and show some of their digits."""
    if not digits:
        return ""
    size = (digits + 1) // 2
    octets = f"int_of(d[p + {at}:p + {at + size}], 'big')"
    return f" + '.%0{digits}d' % ({octets}{' // 10' if digits % 2 else ''})"


def _integer(c: str, size: int, unsigned: bool) -> list[str]:
    if size == 1:
        return [f"{c} = {'OCTETS' if unsigned else 'SIGNED_OCTETS'}[d[p]]", "p += 1"]
    return _fixed(c, size, f"str(int_of($, 'little', signed={not unsigned}))")


def _fixed(c: str, size: int, expression: str) -> list[str]:
    """Return statements for a value of a fixed size; `$` in the expression stands for its bytes. Fewer bytes raise where the row ends."""
    return [f"{c} = {expression.replace('$', f'd[p:p + {size}]')}", f"p += {size}"]


def _sized(c: str, index: int, length_size: int, charset: str, names: Names) -> list[str]:
    """Return statements for a value that follows its length."""
    length = "d[p]" if length_size == 1 else f"int_of(d[p:p + {length_size}], 'little')"
    if charset == "json":
        shown = "json_text(d[p:q])"
    elif charset == "compressed":
        shown = f"decode{index}(unpacked_value(d[p:q]))"
    elif charset == "":
        shown = "d[p:q].decode('latin-1')"
    elif charset in UTF8:
        shown = "d[p:q].decode('utf-8', 'replace')"
    else:
        names.add(f"decode{index}", decoder(charset))
        shown = f"decode{index}(d[p:q])"
    return [
        f"q = p + {length_size} + {length}",
        f"p += {length_size}",
        "if q > end: raise MalformedEventError('a value is longer than its event')",
        f"{c} = {shown}",
        "p = q",
    ]


def _set_text(bits: int, labels: Sequence[str]) -> str:
    if bits >> len(labels):
        raise MalformedEventError(f"a set of {len(labels)} members has bits {bits:b}")
    return ",".join(label for position, label in enumerate(labels) if bits >> position & 1)


#: Of `binlog_row_value_options`, as an update's second image has it.
_PARTIAL_JSON = 1


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
    """Compile `read(d, p)` or `read(d, p, before)`: with one way for rows without NULLs, in which adjacent fixed-size columns are read at
    once."""
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


#: Letters of `struct` for what can be read together with adjacent columns.
_LETTERS = {ColumnType.TINY: "b", ColumnType.SHORT: "h", ColumnType.LONG: "i", ColumnType.LONGLONG: "q", ColumnType.DOUBLE: "d"}


def _runs(held: Sequence[int], columns: Sequence[StoredColumn], meanings: Sequence[Meaning]) -> list[list[int]]:
    """Group adjacent columns that one `struct` reads; all others stay by themselves."""
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
