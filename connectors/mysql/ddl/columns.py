"""Column definitions and their defaults (mysql.md §12.2, §12.3, §12.6)."""

from __future__ import annotations

from dataclasses import dataclass

from connectors.mysql.ddl.reader import Reader
from connectors.mysql.ddl.types import DataType, read_type
from connectors.mysql.model import MyColumn

_NOW = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_DATE", "CURDATE", "CURRENT_TIME", "CURTIME", "UTC_TIMESTAMP")
_EPOCH = "1970-01-01 00:00:00"
_ENDS = (",", ")", "FIRST", "AFTER")
#: Attributes that are followed by one word or string, sometimes behind `=`.
_WITH_WORD = ("COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "SRID")
_WITHOUT = ("VISIBLE", "INVISIBLE", "VIRTUAL", "STORED", "PERSISTENT", "KEY", "ENFORCED", "NOT", "ALWAYS", "GENERATED")


@dataclass(frozen=True, slots=True)
class Definition:
    """A column as a statement defines it, with what it says of keys."""

    column: MyColumn
    primary: bool
    unique: bool


@dataclass(slots=True)
class _Attributes:
    nullable: bool = True
    auto_increment: bool = False
    primary: bool = False
    unique: bool = False
    has_default: bool = False
    default: str | None = None
    comment: str | None = None
    collation: str | None = None


def read_definition(reader: Reader, name: str, table_charset: str | None) -> Definition:
    """A column's type and attributes, up to the next comma, parenthesis or position. Raises DdlError.

    Args:
        table_charset: of columns that do not name theirs.
    """
    data_type = read_type(reader)
    found = _Attributes()
    if data_type.serial:
        found.nullable, found.auto_increment, found.unique = False, True, True
    while not reader.ended and not reader.sees(*_ENDS):
        _read_attribute(reader, found)
    if found.primary:
        found.nullable = False
        if found.default is None:
            found.has_default = False
    elif found.nullable:
        found.has_default = True  # NULL, where the statement names none
    column = MyColumn(
        name=name,
        type_name=data_type.name,
        jdbc_type=data_type.jdbc_type,
        length=data_type.length,
        scale=data_type.scale,
        charset=charset_of(data_type, found.collation, table_charset),
        labels=data_type.labels,
        nullable=found.nullable,
        auto_increment=found.auto_increment,
        generated=found.auto_increment,
        has_default=found.has_default,
        default=found.default,
        comment=found.comment,
    )
    return Definition(column, found.primary, found.unique)


def charset_of(data_type: DataType, collation: str | None, table_charset: str | None) -> str | None:
    """What the column says, else what its collation belongs to, else the table's."""
    if not data_type.holds_characters:
        return None
    named = data_type.collation or collation
    if data_type.charset and data_type.charset != "default":
        return data_type.charset
    if named and not data_type.charset:
        return named.partition("_")[0]
    return table_charset


def _read_attribute(reader: Reader, found: _Attributes) -> None:
    if reader.takes("NOT", "NULL"):
        found.nullable = False
    elif reader.takes("NULL"):
        found.nullable = True
    elif reader.takes("DEFAULT"):
        found.has_default, found.default = read_default(reader)
    elif reader.takes("SERIAL", "DEFAULT", "VALUE"):
        found.nullable, found.auto_increment, found.unique = False, True, True
    elif reader.takes("AUTO_INCREMENT"):
        found.auto_increment = True
    elif reader.takes("ON", "UPDATE"):
        reader.next()
        if reader.sees("("):
            reader.skip_parentheses()
        found.auto_increment = True
    elif reader.takes("UNIQUE"):
        reader.takes("KEY")
        found.unique = True
    elif reader.takes("PRIMARY", "KEY") or reader.takes("PRIMARY") or reader.takes("KEY"):
        found.primary = True
    elif reader.takes("COMMENT"):
        found.comment = reader.comment()
    elif reader.takes("COLLATE"):
        found.collation = reader.name().lower()
    elif reader.takes("CONSTRAINT"):
        if not reader.sees("CHECK", "PRIMARY", "UNIQUE", "REFERENCES"):
            reader.name()
    elif reader.sees("AS", "CHECK") and reader.peek(1).text == "(":
        reader.next()
        reader.skip_parentheses()
    elif reader.takes("REFERENCES"):
        _skip_reference(reader)
    elif reader.takes_any(*_WITH_WORD):
        reader.takes("=")
        reader.next()
    elif reader.sees("("):
        reader.skip_parentheses()
    else:
        reader.next()


def _skip_reference(reader: Reader) -> None:
    reader.qualified_name()
    if reader.sees("("):
        reader.skip_parentheses()
    while reader.takes("MATCH") or reader.takes("ON", "DELETE") or reader.takes("ON", "UPDATE"):
        word = reader.next().text
        if word in ("SET", "NO"):
            reader.next()


def read_default(reader: Reader) -> tuple[bool, str | None]:
    """Whether there is a default, and its text; None for NULL and for what only the server can compute. Raises DdlError."""
    if reader.takes("NULL"):
        return True, None
    if reader.sees("("):
        reader.skip_parentheses()
        return True, None
    sign = "-" if reader.takes("-") else "+" if reader.takes("+") else ""
    token = reader.next()
    if token.kind == "word" and token.text.startswith("_") and reader.peek().kind in ("string", "bits"):
        token = reader.next()
    if token.kind == "word" and token.text in _NOW:
        if reader.sees("("):
            reader.skip_parentheses()
        return True, _EPOCH
    if token.kind == "word":
        if token.text in ("TRUE", "FALSE"):
            return True, token.raw
        if reader.sees("("):
            reader.skip_parentheses()
            return True, None
        return True, token.raw
    text = token.raw
    while token.kind == "string" and reader.peek().kind == "string":
        text += reader.next().raw
    return True, sign + text
