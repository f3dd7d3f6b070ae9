"""Data types in column definitions (mysql.md §12.2)."""

from __future__ import annotations

from dataclasses import dataclass

from connectors.mysql.ddl.reader import Reader
from connectors.mysql.model import JDBC

_MAX_LENGTH = 2_147_483_647
#: Types of two and three words, longest first.
_PHRASES = (
    ("NATIONAL", "CHARACTER", "VARYING"),
    ("NATIONAL", "CHAR", "VARYING"),
    ("NATIONAL", "CHARACTER"),
    ("NATIONAL", "CHAR"),
    ("NATIONAL", "VARCHARACTER"),
    ("NATIONAL", "VARCHAR"),
    ("NCHAR", "VARCHARACTER"),
    ("NCHAR", "VARCHAR"),
    ("NCHAR", "VARYING"),
    ("CHARACTER", "VARYING"),
    ("CHAR", "VARYING"),
    ("CHAR", "BYTE"),
    ("DOUBLE", "PRECISION"),
    ("LONG", "VARCHAR"),
    ("LONG", "VARBINARY"),
)
_CODES = {
    **dict.fromkeys(("CHAR", "CHARACTER", "ENUM", "SET"), "CHAR"),
    **dict.fromkeys(
        ("VARCHAR", "CHAR VARYING", "CHARACTER VARYING", "LONG VARCHAR", "LONG", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"), "VARCHAR"
    ),
    **dict.fromkeys(("NCHAR", "NATIONAL CHAR", "NATIONAL CHARACTER"), "NCHAR"),
    **dict.fromkeys(
        (
            *("NVARCHAR", "NATIONAL VARCHAR", "NATIONAL VARCHARACTER", "NCHAR VARCHAR", "NCHAR VARCHARACTER", "NCHAR VARYING"),
            *("NATIONAL CHAR VARYING", "NATIONAL CHARACTER VARYING"),
        ),
        "NVARCHAR",
    ),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT1", "INT2"), "SMALLINT"),
    **dict.fromkeys(("MEDIUMINT", "INT", "INTEGER", "YEAR", "INT3", "INT4", "MIDDLEINT"), "INTEGER"),
    **dict.fromkeys(("BIGINT", "INT8"), "BIGINT"),
    "REAL": "REAL",
    **dict.fromkeys(("DOUBLE", "DOUBLE PRECISION", "FLOAT8"), "DOUBLE"),
    **dict.fromkeys(("FLOAT", "FLOAT4"), "FLOAT"),
    **dict.fromkeys(("DECIMAL", "DEC", "FIXED"), "DECIMAL"),
    "NUMERIC": "NUMERIC",
    "BIT": "BIT",
    **dict.fromkeys(("BOOL", "BOOLEAN"), "BOOLEAN"),
    "DATE": "DATE",
    "TIME": "TIME",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMP_WITH_TIMEZONE",
    "BINARY": "BINARY",
    "VARBINARY": "VARBINARY",
    **dict.fromkeys(("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "LONG VARBINARY"), "BLOB"),
}
_CHARACTER_CODES = frozenset({"CHAR", "VARCHAR", "NCHAR", "NVARCHAR"})


@dataclass(frozen=True, slots=True)
class DataType:
    """A data type as a definition gives it.

    Attributes:
        name: in capitals with its modifiers.
        charset: what the definition says; `collation` likewise; None for nothing.
        holds_characters: whether a character set applies.
        serial: SERIAL, which stands for more than a type.
    """

    name: str
    jdbc_type: int
    length: int | None
    scale: int | None
    labels: tuple[str, ...]
    charset: str | None
    collation: str | None
    holds_characters: bool
    serial: bool = False


def read_type(reader: Reader) -> DataType:
    """A data type with its length, sign and character set. Raises DdlError."""
    name = _type_name(reader)
    if name == "SERIAL":
        return DataType("BIGINT UNSIGNED", JDBC["BIGINT"], None, None, (), None, None, False, serial=True)
    labels: tuple[str, ...] = ()
    length: int | None = None
    scale: int | None = None
    if reader.sees("("):
        if name in ("ENUM", "SET"):
            labels = _labels(reader)
        else:
            length, scale = _numbers(reader)
    if name == "CHAR BYTE":
        name = "BINARY"
    code = _CODES.get(name, "OTHER")
    length, scale = _sizes(name, length, scale, labels)
    suffix, charset, collation = _modifiers(reader)
    national = code in ("NCHAR", "NVARCHAR")
    characters = code in _CHARACTER_CODES
    return DataType(
        name + suffix, JDBC[code], length, scale, labels, "utf8" if national else charset, collation if characters else None, characters
    )


def _type_name(reader: Reader) -> str:
    for phrase in _PHRASES:
        if reader.takes(*phrase):
            return " ".join(phrase)
    token = reader.next()
    if token.kind != "word":
        raise reader.error("A data type was expected")
    return token.text


def _labels(reader: Reader) -> tuple[str, ...]:
    reader.expects("(")
    found = []
    while not reader.takes(")"):
        if reader.peek().kind == "word" and reader.peek().text.startswith("_"):
            reader.next()
        found.append(reader.string())
        reader.takes(",")
    return tuple(found)


def _numbers(reader: Reader) -> tuple[int | None, int | None]:
    reader.expects("(")
    found: list[int] = []
    while not reader.takes(")"):
        token = reader.next()
        if token.kind == "number":
            found.append(min(int(float(token.raw)), _MAX_LENGTH))
    return (found[0] if found else None), (found[1] if len(found) > 1 else None)


def _sizes(name: str, length: int | None, scale: int | None, labels: tuple[str, ...]) -> tuple[int | None, int | None]:
    if _CODES.get(name) in ("DECIMAL", "NUMERIC"):
        return length or 10, scale or 0
    if name == "ENUM":
        return 1, None
    if name == "SET":
        return max(0, 2 * len(labels) - 1), None
    if name in ("BIT", "NCHAR", "NATIONAL CHAR", "NATIONAL CHARACTER"):
        return length or 1, None
    return length, scale


def _modifiers(reader: Reader) -> tuple[str, str | None, str | None]:
    """Sign, zeros, BINARY, and the character set; in any order, the last sign counts."""
    sign = ""
    zerofill = binary = False
    charset: str | None = None
    collation: str | None = None
    while True:
        if found := reader.takes_any("UNSIGNED", "SIGNED"):
            sign = f" {found}"
        elif reader.takes("ZEROFILL"):
            zerofill, sign = True, " UNSIGNED"
        elif reader.takes("BINARY"):
            binary = True
        elif reader.takes("ASCII"):
            charset = "latin1"
        elif reader.takes("BYTE"):
            charset = "binary"
        elif reader.takes("UNICODE"):
            charset = "ucs2"
        elif reader.takes_charset():
            charset = reader.name().lower()
        elif reader.takes("COLLATE"):
            collation = reader.name().lower()
        else:
            suffix = sign + (" ZEROFILL" if zerofill else "") + (" BINARY" if binary else "")
            return suffix, charset, collation
