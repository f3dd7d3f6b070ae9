"""The model of tables as DDL builds it (`io.debezium.relational.Column`), the set of all tables, and the changes that statements make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from connectors.engine.relational.tables import TableId

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
        """Return the index of a column, whatever its case; -1 for none."""
        wanted = name.lower()
        return next((i for i, column in enumerate(self.columns) if column.name.lower() == wanted), -1)


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    Attributes:
        kind: CREATE, ALTER, DROP or TRUNCATE of a table; DATABASE for everything about one.
        id: of the table as it is called afterwards; of a database with an empty name of a table.
        table: afterwards; None for a dropped table.
        previous: what it was called before.
        written: the statement for this table alone, where several are renamed by one.
    """

    kind: str
    id: TableId
    table: MyTable | None = None
    previous: TableId | None = None
    written: str = ""


@dataclass(slots=True)
class Tables:
    """All tables that statements have made, and what decides on character sets. Changed by `statements.apply` only.

    Attributes:
        tables: by name.
        charsets: of databases.
        variables: session variables, names in lower case.
        lower_case_table_names: the server's variable: 0 names differ by their case, 1 they are stored in lower case, 2 they keep their case
            and do not differ by it.
        keeps_comments: whether comments of tables and columns are read.
    """

    tables: dict[TableId, MyTable] = field(default_factory=dict)
    charsets: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    lower_case_table_names: int = 0
    keeps_comments: bool = True

    def named(self, database: str, table: str) -> TableId:
        """Return a table's name as this server knows it."""
        if self.lower_case_table_names == 1:
            return TableId(database.lower(), table.lower())
        id_ = TableId(database, table)
        if self.lower_case_table_names == 2 and id_ not in self.tables:
            wanted = (database.lower(), table.lower())
            return next((known for known in self.tables if (known.schema.lower(), known.table.lower()) == wanted), id_)
        return id_

    def charset_of(self, database: str) -> str | None:
        """Return the character set of new tables of a database."""
        return self.charsets.get(database) or self.variables.get("character_set_database") or self.variables.get("character_set_server")


def with_key(table: MyTable, names: Iterable[str], *, unique: bool) -> MyTable:
    """Return the table with these columns as its key, which so may not be null; columns that it does not have are left out."""
    indexes = [table.index_of(name) for name in names]
    key = tuple(table.columns[index].name for index in indexes if index >= 0)
    columns = tuple(_required(column) if column.name in key else column for column in table.columns)
    return replace(table, key=key, columns=columns, unique_is_key=unique)


def _required(column: MyColumn) -> MyColumn:
    """Return a key's column, which has no DEFAULT NULL."""
    keeps = column.has_default and column.default is not None
    return replace(column, nullable=False, has_default=keeps) if column.nullable else column


def with_unique_key(table: MyTable, names: Iterable[str]) -> MyTable:
    """Use a unique key of columns that may not be null as the primary key where there is none."""
    wanted = list(names)
    indexes = [table.index_of(name) for name in wanted]
    if table.key or not wanted or any(index < 0 or table.columns[index].nullable for index in indexes):
        return table
    return with_key(table, wanted, unique=True)


def placed(columns: tuple[MyColumn, ...], column: MyColumn, position: str | None) -> tuple[MyColumn, ...]:
    """Insert a column at its position: "" is first, a name is after that column, None is last."""
    if position == "":
        return (column, *columns)
    if position is None:
        return (*columns, column)
    wanted = position.lower()
    found: list[MyColumn] = []
    for other in columns:
        found.append(other)
        if other.name.lower() == wanted:
            found.append(column)
    return tuple(found) if len(found) > len(columns) else (*columns, column)


def quote_name(*parts: str) -> str:
    """Return a name as statements have it: `` `db`.`table` ``."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)
