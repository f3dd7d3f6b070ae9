"""Column definitions: data types, attributes and defaults (MySQL reference manual, "CREATE TABLE Statement" and "Data Types")."""

from __future__ import annotations

from dataclasses import dataclass

from connectors.mysql.ddl.lexer import Reader
from connectors.mysql.model import JDBC, MyColumn

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
    """Return a data type with its length, sign and character set. Raises DdlError."""
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
        if reader.accept(*phrase):
            return " ".join(phrase)
    token = reader.next()
    if token.kind != "word":
        raise reader.error("A data type was expected")
    return token.text


def _labels(reader: Reader) -> tuple[str, ...]:
    reader.expects("(")
    found = []
    while not reader.accept(")"):
        if reader.peek().kind == "word" and reader.peek().text.startswith("_"):
            reader.next()
        found.append(reader.string())
        reader.accept(",")
    return tuple(found)


def _numbers(reader: Reader) -> tuple[int | None, int | None]:
    reader.expects("(")
    found: list[int] = []
    while not reader.accept(")"):
        token = reader.next()
        if token.kind == "number":
            found.append(int(min(float(token.raw), _MAX_LENGTH)))
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
    """Read sign, zeros, BINARY and the character set; in any order, the last sign counts."""
    sign = ""
    zerofill = binary = False
    charset: str | None = None
    collation: str | None = None
    while True:
        if found := reader.accept_any("UNSIGNED", "SIGNED"):
            sign = f" {found}"
        elif reader.accept("ZEROFILL"):
            zerofill, sign = True, " UNSIGNED"
        elif reader.accept("BINARY"):
            binary = True
        elif reader.accept("ASCII"):
            charset = "latin1"
        elif reader.accept("BYTE"):
            charset = "binary"
        elif reader.accept("UNICODE"):
            charset = "ucs2"
        elif reader.accept_charset():
            charset = reader.name().lower()
        elif reader.accept("COLLATE"):
            collation = reader.name().lower()
        else:
            suffix = sign + (" ZEROFILL" if zerofill else "") + (" BINARY" if binary else "")
            return suffix, charset, collation


_NOW = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")
#: Of MariaDB, which takes them without parentheses around them. Debezium keeps the text of the first two, which no column has as a value,
#: and sees an expression in the others (MariaDB's `DefaultValueParserListener`).
_CLOCKS = ("CURDATE", "CURTIME")
_EXPRESSIONS = ("CURRENT_DATE", "CURRENT_TIME", "UTC_TIMESTAMP", "UTC_DATE", "UTC_TIME")
_EPOCH = "1970-01-01 00:00:00"
_ENDS = (",", ")", "FIRST", "AFTER")
#: Attributes that are followed by one word or string, sometimes after `=`.
_WITH_WORD = ("COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "SRID")


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
    """Return a column's type and attributes, up to the next comma, parenthesis or position. Raises DdlError.

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
    """Return what the column says, else what its collation belongs to, else the table's."""
    if not data_type.holds_characters:
        return None
    named = data_type.collation or collation
    if data_type.charset and data_type.charset != "default":
        return data_type.charset
    if named and not data_type.charset:
        return charset_of_collation(named) or table_charset
    return table_charset


def charset_of_collation(name: str) -> str | None:
    """Return the character set that a collation's name begins with; None for one of MariaDB's for all Unicode sets (`uca1400_ai_ci`)."""
    charset = name.partition("_")[0]
    return None if charset.startswith("uca") else charset


def _read_attribute(reader: Reader, found: _Attributes) -> None:
    if reader.accept("NOT", "NULL"):
        found.nullable = False
    elif reader.accept("NULL"):
        found.nullable = True
    elif reader.accept("DEFAULT"):
        found.has_default, found.default = read_default(reader)
    elif reader.accept("SERIAL", "DEFAULT", "VALUE"):
        found.nullable, found.auto_increment, found.unique = False, True, True
    elif reader.accept("AUTO_INCREMENT"):
        found.auto_increment = True
    elif reader.accept("ON", "UPDATE"):
        reader.next()
        if reader.sees("("):
            reader.skip_parentheses()
        found.auto_increment = True
    elif reader.accept("UNIQUE"):
        reader.accept("KEY")
        found.unique = True
    elif reader.accept("PRIMARY", "KEY") or reader.accept("PRIMARY") or reader.accept("KEY"):
        found.primary = True
    elif reader.accept("COMMENT"):
        found.comment = reader.comment()
    elif reader.accept("COLLATE"):
        found.collation = reader.name().lower()
    elif reader.accept("CONSTRAINT"):
        if not reader.sees("CHECK", "PRIMARY", "UNIQUE", "REFERENCES"):
            reader.name()
    elif reader.sees("AS", "CHECK") and reader.peek(1).text == "(":
        reader.next()
        reader.skip_parentheses()
    elif reader.accept("REFERENCES"):
        _skip_reference(reader)
    elif reader.accept_any(*_WITH_WORD):
        reader.accept("=")
        reader.next()
    elif reader.sees("("):
        reader.skip_parentheses()
    else:
        reader.next()


def _skip_reference(reader: Reader) -> None:
    reader.qualified_name()
    if reader.sees("("):
        reader.skip_parentheses()
    while reader.accept("MATCH") or reader.accept("ON", "DELETE") or reader.accept("ON", "UPDATE"):
        word = reader.next().text
        if word in ("SET", "NO"):
            reader.next()


def read_default(reader: Reader) -> tuple[bool, str | None]:
    """Return whether there is a default, and its text; None for NULL and for what only the server can compute. Raises DdlError."""
    if reader.accept("NULL"):
        return True, None
    if reader.sees("("):
        reader.skip_parentheses()
        return True, None
    sign = "-" if reader.accept("-") else "+" if reader.accept("+") else ""
    token = reader.next()
    if token.kind == "word" and token.text.startswith("_") and reader.peek().kind in ("string", "bits"):
        token = reader.next()
    if token.kind == "word" and token.text in _NOW:
        if reader.sees("("):
            reader.skip_parentheses()
        return True, _EPOCH
    if token.kind == "word":
        if token.text in _CLOCKS and reader.sees("("):
            reader.skip_parentheses()
            return True, f"{token.raw}()"
        if token.text in _EXPRESSIONS:
            if reader.sees("("):
                reader.skip_parentheses()
            return True, None
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
