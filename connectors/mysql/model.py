"""The model of a table as DDL builds it (mysql.md §12.1; `io.debezium.relational.Column`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connectors.engine.relational.table import TableId

_SYNONYMS: Final = {
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    "INT3": "MEDIUMINT",
    "INT4": "INT",
    "INT8": "BIGINT",
    "MIDDLEINT": "MEDIUMINT",
    "INTEGER": "INT",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
}
#: `java.sql.Types`, which schema history records hold; a TINYINT is a SMALLINT there.
JDBC: Final = {
    "BIT": -7,
    "BIGINT": -5,
    "VARBINARY": -3,
    "BINARY": -2,
    "CHAR": 1,
    "NUMERIC": 2,
    "DECIMAL": 3,
    "INTEGER": 4,
    "SMALLINT": 5,
    "FLOAT": 6,
    "REAL": 7,
    "DOUBLE": 8,
    "VARCHAR": 12,
    "BOOLEAN": 16,
    "DATE": 91,
    "TIME": 92,
    "TIMESTAMP": 93,
    "OTHER": 1111,
    "BLOB": 2004,
    "TIMESTAMP_WITH_TIMEZONE": 2014,
    "NCHAR": -15,
    "NVARCHAR": -9,
}


@dataclass(frozen=True, slots=True)
class MyColumn:
    """A column.

    Attributes:
        type_name: in capitals, with modifiers: `INT UNSIGNED`.
        jdbc_type: one of `JDBC`'s numbers.
        length: in characters, digits or bits; None where the statement gives none.
        scale: digits of a fraction.
        charset: of character data, None for other types.
        labels: of an enum or a set, without quotes.
        nullable: whether NULL is a value.
        auto_increment: also of columns with ON UPDATE; `generated` as schema history has it.
        has_default: whether there is one, which may be NULL.
        default: its text without quotes; None for NULL and for expressions.
        comment: of the column.
    """

    name: str
    type_name: str
    jdbc_type: int
    length: int | None = None
    scale: int | None = None
    charset: str | None = None
    labels: tuple[str, ...] = ()
    nullable: bool = True
    auto_increment: bool = False
    generated: bool = False
    has_default: bool = False
    default: str | None = None
    comment: str | None = None

    @property
    def base_type(self) -> str:
        """The type without `UNSIGNED`, `ZEROFILL` and `BINARY`, by its usual name."""
        words = self.type_name.split()
        while len(words) > 1 and words[-1] in ("UNSIGNED", "ZEROFILL", "SIGNED", "BINARY"):
            words.pop()
        name = " ".join(words)
        return _SYNONYMS.get(name, name)

    @property
    def unsigned(self) -> bool:
        """Whether an integer has no sign."""
        words = self.type_name.split()
        return "UNSIGNED" in words or "ZEROFILL" in words


@dataclass(frozen=True, slots=True)
class MyTable:
    """A table.

    Attributes:
        key: names of the primary key's columns in key order, or of the unique key that stands for one.
        charset: of new columns.
        unique_is_key: whether the key is a unique key's, which a primary key would replace.
        versioned: whether MariaDB keeps old versions of rows, by two more columns that the statement does not name.
    """

    id: TableId
    columns: tuple[MyColumn, ...]
    key: tuple[str, ...] = ()
    charset: str | None = None
    comment: str | None = None
    unique_is_key: bool = False
    versioned: bool = False

    @property
    def width(self) -> int:
        """How many columns the log has of a row."""
        return len(self.columns) + (2 if self.versioned else 0)

    def index_of(self, name: str) -> int:
        """The place of a column, in any case of its letters; -1 for none."""
        wanted = name.lower()
        return next((i for i, column in enumerate(self.columns) if column.name.lower() == wanted), -1)
