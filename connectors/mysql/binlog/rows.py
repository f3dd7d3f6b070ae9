"""Rows of a table, from an event's bytes to texts, by a function that is generated once for each table map and model of the table.

The texts are those of MySQL's text protocol, so that snapshot and binlog share one conversion for each type; bytes are texts of the
characters U+0000 to U+00FF, floating point numbers have all digits that tell them apart, and JSON is as the reference streams it. What the
event does not tell (signs, character sets, labels) comes from the model as `Meaning`s.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from connect_py.data.java_text import double_text, float_text
from connectors.engine.encode.tuples import UNCHANGED, Text
from connectors.mysql.binlog import temporal
from connectors.mysql.binlog.charsets import decoder
from connectors.mysql.binlog.codes import ColumnType
from connectors.mysql.binlog.compression import unpacked_value
from connectors.mysql.binlog.decimals import decimal_reader, stored_size
from connectors.mysql.binlog.errors import MalformedEventError
from connectors.mysql.binlog.json_text import json_text
from connectors.mysql.binlog.table_map import StoredColumn

_INTEGERS = {ColumnType.TINY: 1, ColumnType.SHORT: 2, ColumnType.INT24: 3, ColumnType.LONG: 4, ColumnType.LONGLONG: 8}
_BLOBS = (ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB, ColumnType.BLOB)
_BYTES_ONLY = (ColumnType.GEOMETRY, ColumnType.VECTOR)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a table's model knows of a column.

    Attributes:
        unsigned: whether an integer has no sign.
        charset: of character data; empty for bytes.
        labels: of an enum or a set, in order.
    """

    unsigned: bool = False
    charset: str = ""
    labels: tuple[str, ...] = ()


#: Rows of one image, from a place in the bytes on: the texts and the place behind the row.
Reader = Callable[[bytes, int], tuple[list[Text], int]]


def row_reader(columns: Sequence[StoredColumn], meanings: Sequence[Meaning], present: bytes) -> Reader:
    """Make the function that reads one row image.

    Args:
        present: bit map of the columns that images hold; texts of others are `UNCHANGED`.

    Returns:
        A function that raises MalformedEventError for bytes that are no such row.
    """
    if len(columns) != len(meanings):
        raise MalformedEventError(f"rows of {len(columns)} columns came for a table of {len(meanings)}")
    held = [i for i in range(len(columns)) if present[i >> 3] >> (i & 7) & 1]
    names: dict[str, object] = {
        "MalformedEventError": MalformedEventError,
        "UNCHANGED": UNCHANGED,
        "double_text": double_text,
        "float_text": float_text,
        "f4": struct.Struct("<f").unpack_from,
        "f8": struct.Struct("<d").unpack_from,
        "json_text": json_text,
        "set_text": _set_text,
        "t": temporal,
        "OCTETS": [str(value) for value in range(256)],
        "SIGNED_OCTETS": [str(value - 256 if value > 127 else value) for value in range(256)],
    }
    size = (len(held) + 7) // 8
    lines = [
        "def read(d, p):",
        "    end = len(d)",
        f"    nulls = int.from_bytes(d[p:p + {size}], 'little')",
        f"    p += {size}",
    ]
    for bit, index in enumerate(held):
        lines.append(f"    if nulls & {1 << bit}:")
        lines.append(f"        c{index} = None")
        lines.append("    else:")
        lines += [f"        {line}" for line in _column(index, columns[index], meanings[index], names)]
    texts = ", ".join(f"c{i}" if i in set(held) else "UNCHANGED" for i in range(len(columns)))
    lines += ["    if p > end:", "        raise MalformedEventError('a row is longer than its event')", f"    return [{texts}], p", ""]
    exec(compile("\n".join(lines), "<rows of a binlog>", "exec"), names)  # noqa: S102  # our own text; names are literals
    read: Reader = names["read"]  # type: ignore[assignment]

    def guarded(data: bytes, place: int) -> tuple[list[Text], int]:
        try:
            return read(data, place)
        except MalformedEventError:
            raise
        except (IndexError, struct.error, ValueError, OverflowError) as error:
            raise MalformedEventError(f"a row could not be decoded: {error}") from error

    return guarded


def _column(index: int, column: StoredColumn, meaning: Meaning, names: dict[str, object]) -> list[str]:
    """Statements that read one value at `p` into a variable and move `p` behind it."""
    c, type_ = f"c{index}", column.type
    if type_ in _INTEGERS:
        return _integer(c, _INTEGERS[type_], meaning.unsigned)
    if type_ in _BLOBS or type_ in _BYTES_ONLY or type_ is ColumnType.JSON:
        return _sized(c, index, column.size, "json" if type_ is ColumnType.JSON else meaning.charset, names)
    match type_:
        case ColumnType.VARCHAR_COMPRESSED | ColumnType.BLOB_COMPRESSED:
            length_size = column.size if type_ is ColumnType.BLOB_COMPRESSED else 2 if column.size > 255 else 1
            names["unpacked_value"], names[f"decode{index}"] = unpacked_value, decoder(meaning.charset or "binary")
            return _sized(c, index, length_size, "compressed", names)
        case ColumnType.VARCHAR | ColumnType.VAR_STRING | ColumnType.STRING:
            return _sized(c, index, 2 if column.size > 255 else 1, meaning.charset, names)
        case ColumnType.FLOAT:
            return [f"{c} = float_text(f4(d, p)[0])", "p += 4"]
        case ColumnType.DOUBLE:
            return [f"{c} = double_text(f8(d, p)[0])", "p += 8"]
        case ColumnType.NEWDECIMAL:
            names[f"decimal{index}"] = decimal_reader(column.size, column.scale)
            return _fixed(c, stored_size(column.size, column.scale), f"decimal{index}($)")
        case ColumnType.BIT:
            return _fixed(c, (column.size + 7) // 8, "$.decode('latin-1')")
        case ColumnType.YEAR:
            return [f"{c} = str(1900 + d[p]) if d[p] else '0000'", "p += 1"]
        case ColumnType.DATE | ColumnType.NEWDATE:
            return _fixed(c, 3, "t.date_text($)")
        case ColumnType.DATETIME2:
            return _fixed(c, 5 + (column.size + 1) // 2, f"t.datetime2_text($, {column.size})")
        case ColumnType.TIMESTAMP2:
            return _fixed(c, 4 + (column.size + 1) // 2, f"t.timestamp2_text($, {column.size})")
        case ColumnType.TIME2:
            return _fixed(c, 3 + (column.size + 1) // 2, f"t.time2_text($, {column.size})")
        case ColumnType.DATETIME:
            return _fixed(c, 8, "t.datetime_text($)")
        case ColumnType.TIMESTAMP:
            return _fixed(c, 4, "t.timestamp_text($)")
        case ColumnType.TIME:
            return _fixed(c, 3, "t.time_text($)")
        case ColumnType.ENUM:
            names[f"labels{index}"] = ("", *meaning.labels)
            return _fixed(c, column.size, f"labels{index}[int.from_bytes($, 'little')]")
        case ColumnType.SET:
            names[f"labels{index}"] = meaning.labels
            return _fixed(c, column.size, f"set_text(int.from_bytes($, 'little'), labels{index})")
    raise MalformedEventError(f"columns of the type {type_.name} have no form in rows")


def _integer(c: str, size: int, unsigned: bool) -> list[str]:
    if size == 1:
        return [f"{c} = {'OCTETS' if unsigned else 'SIGNED_OCTETS'}[d[p]]", "p += 1"]
    return _fixed(c, size, f"str(int.from_bytes($, 'little', signed={not unsigned}))")


def _fixed(c: str, size: int, expression: str) -> list[str]:
    """A value of so many bytes; `$` in the expression stands for them. Fewer raise where the row ends."""
    return [f"{c} = {expression.replace('$', f'd[p:p + {size}]')}", f"p += {size}"]


def _sized(c: str, index: int, length_size: int, charset: str, names: dict[str, object]) -> list[str]:
    """A value behind its length."""
    length = "d[p]" if length_size == 1 else f"int.from_bytes(d[p:p + {length_size}], 'little')"
    if charset == "json":
        shown = "json_text(d[p:q])"
    elif charset == "compressed":
        shown = f"decode{index}(unpacked_value(d[p:q]))"
    elif charset == "":
        shown = "d[p:q].decode('latin-1')"
    elif charset in ("utf8mb4", "utf8mb3", "utf8"):
        shown = "d[p:q].decode('utf-8', 'replace')"
    else:
        names[f"decode{index}"] = decoder(charset)
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
