"""Keys by which chunks of MySQL tables are cut: how a column is ordered, compared and stored in offsets. Pure.

MySQL compares by a column's type and collation, so a boundary must be written such that it is compared as the column is sorted. Numbers
are bare digits (a quoted one is compared as a floating point number), bytes and texts are hexadecimal, preceded by their character set (no
mode of the session changes what they mean), and a label of an ENUM or SET is its number, by which the server sorts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from connect_py.errors import DataError
from connectors.engine.java_object import DURATION, LOCAL_DATE, STRING, JavaValue
from connectors.mysql.model import MyColumn, quote_name
from connectors.mysql.types.columns import is_octets, is_text

#: Precedes the digits of bytes that came out of an offset.
_HEX_SIGN = "\\x"
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE).fullmatch
#: A date as Java can hold it: none of its parts is zero.
_DATE = re.compile(r"(?!0000)\d{4}-(?!00)\d\d-(?!00)\d\d([ T].*)?").fullmatch
_ZEROS = re.compile(r"0000-|\d{4}-(00-|\d\d-00)").match
_LONGS = frozenset(("BIGINT", "INT8", "SERIAL"))
_INTEGERS = _LONGS | {
    "TINYINT",
    "SMALLINT",
    "MEDIUMINT",
    "INT",
    "INTEGER",
    "BOOL",
    "BOOLEAN",
    "INT1",
    "INT2",
    "INT3",
    "INT4",
    "MIDDLEINT",
}
_REALS = frozenset(("FLOAT", "DOUBLE", "DOUBLE PRECISION", "REAL", "FLOAT4", "FLOAT8"))
_DECIMALS = frozenset(("DECIMAL", "NUMERIC", "DEC", "FIXED"))
_JAVA_TIMES = {"DATE": LOCAL_DATE, "DATETIME": "java.sql.Timestamp", "TIMESTAMP": "java.sql.Timestamp", "TIME": DURATION}
_BYTES = frozenset(("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "LONG VARBINARY"))
#: MariaDB's. A text that is compared with one of these is first made a value of its type, in whose order they are kept.
_ADDRESSES = frozenset(("UUID", "INET4", "INET6"))


@dataclass(frozen=True, slots=True)
class ChunkKey:
    """A column by which chunks are cut.

    Attributes:
        column: of the table's model.
        shown: the expression that is read for its value; the column itself, but for floating point numbers, of which the text protocol
            shows too few digits.
        compared: the expression that is compared with a literal.
        literal: a value's text to the literal. Raises DataError.
        java_class: what offsets hold the value as.
    """

    column: MyColumn
    shown: str
    compared: str
    literal: Callable[[str], str]
    java_class: str = STRING

    def stored(self, text: str) -> JavaValue:
        """Return the value as offsets hold it. Texts are as the server sent them; of bytes the hexadecimal digits."""
        if self.java_class == "java.sql.Date":
            return JavaValue(STRING, text) if text == "0000" else JavaValue(self.java_class, f"{text}-01-01")
        if self.java_class in (LOCAL_DATE, "java.sql.Timestamp") and not _DATE(text):
            return JavaValue(STRING, text)
        return JavaValue(self.java_class, text)


def chunk_key(column: MyColumn) -> ChunkKey | None:
    """Return the key by which a column cuts chunks; None for a type that has no order."""
    name = quote_name(column.name)
    kind = column.base_type
    if kind == "YEAR":
        return ChunkKey(column, name, name, _year, "java.sql.Date")
    if kind in _INTEGERS:
        return ChunkKey(column, name, name, _number, _java_integer(column))
    if kind in _DECIMALS:
        return ChunkKey(column, name, name, _number, "java.math.BigDecimal")
    if kind in _REALS:
        return ChunkKey(column, f"{name} + 0e0", name, _number, "java.lang.Double")
    if kind in _JAVA_TIMES:
        return ChunkKey(column, name, name, _quoted, _JAVA_TIMES[kind])
    if kind == "BIT":
        return ChunkKey(column, f"{name} + 0", name, _number)
    if kind in _BYTES or is_octets(column):
        return ChunkKey(column, f"HEX({name})", name, _octets, "[B")
    if kind == "ENUM":
        return ChunkKey(column, name, f"{name} + 0", lambda text: str(_enum_number(column, text)))
    if kind == "SET":
        return ChunkKey(column, name, f"{name} + 0", lambda text: str(_set_number(column, text)))
    if kind in _ADDRESSES or (is_text(column) and kind != "JSON"):
        return ChunkKey(column, name, name, text_literal)
    return None


def cut_key(column: MyColumn, charset: str) -> ChunkKey | None:
    """Return the key by which a column cuts chunks of an initial snapshot, whose boundaries must be found again exactly, and in an index.

    Characters are therefore bytes of the column's own character set, since some have no counterpart in another; and no column is taken
    whose comparison keeps the server from its index (ENUM, SET), or that may compare otherwise than it sorts (YEAR 0, digits of FLOAT), or
    that another release of the server sorts otherwise (UUID: MDEV-29959).

    Args:
        charset: of the column's characters, empty for other types.
    """
    kind = column.base_type
    if kind in {"YEAR", "ENUM", "SET", *_REALS, *_ADDRESSES}:
        return None
    found = chunk_key(column)
    if found is None or not is_text(column):
        return found
    name = quote_name(column.name)
    return ChunkKey(column, f"HEX({name})", name, lambda text: f"_{charset} {_octets(text)}") if charset.isalnum() else None


def text_literal(text: str) -> str:
    """Return characters as a literal that means the same in every mode of the session."""
    return f"_utf8mb4 x'{text.encode().hex()}'"


def _java_integer(column: MyColumn) -> str:
    """Return the class that Debezium's driver has: what an int cannot hold is a long. Half of BIGINT UNSIGNED is more than a long holds."""
    if column.base_type in _LONGS:
        return "java.math.BigDecimal" if column.unsigned or column.base_type == "SERIAL" else "java.lang.Long"
    return "java.lang.Long" if column.unsigned and column.base_type in ("INT", "INTEGER", "INT4") else "java.lang.Integer"


def _number(text: str) -> str:
    if not _NUMBER(text):
        raise DataError(f"{text!r} is no number by which a chunk can begin")
    return text


def _quoted(text: str) -> str:
    if "'" in text or "\\" in text:
        raise DataError(f"{text!r} is no time by which a chunk can begin")
    return f"'{text}'"


def is_zero_date(text: str) -> bool:
    """Return whether a date has a part that is zero, which the server may refuse to compare with."""
    return bool(_ZEROS(text))


def _year(text: str) -> str:
    """Return the year of the first of January, by which Debezium holds a year."""
    return _number(text[:4])


def _octets(text: str) -> str:
    return f"x'{bytes.fromhex(text.removeprefix(_HEX_SIGN)).hex()}'"


def _enum_number(column: MyColumn, text: str) -> int:
    # the empty label stands for a value that was none
    return column.labels.index(text) + 1 if text in column.labels else 0


def _set_number(column: MyColumn, text: str) -> int:
    chosen = set(filter(None, text.split(",")))
    return sum(1 << bit for bit, label in enumerate(column.labels) if label in chosen)
