"""What a statement changes, and the tables that it changes (mysql.md §11.2, §12.5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from connectors.engine.relational.table import TableId
from connectors.mysql.model import MyColumn, MyTable


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    Attributes:
        kind: CREATE, ALTER, DROP or TRUNCATE of a table; DATABASE for everything about one.
        id: of the table as it is called afterwards; of a database with an empty name of a table.
        table: afterwards; None for a table that is gone.
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
    """All tables that statements have told of, and what decides on character sets. Changed by `statements.apply` only.

    Attributes:
        tables: by name.
        charsets: of databases.
        variables: session variables, names in small letters.
        letters: the server's ``lower_case_table_names``: 0 names differ by their case, 1 they are stored in small letters, 2 they keep
            their case and do not differ by it.
        keeps_comments: whether comments of tables and columns are read.
    """

    tables: dict[TableId, MyTable] = field(default_factory=dict)
    charsets: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    letters: int = 0
    keeps_comments: bool = True

    def named(self, database: str, table: str) -> TableId:
        """A table's name as this server knows it."""
        if self.letters == 1:
            return TableId(database.lower(), table.lower())
        id_ = TableId(database, table)
        if self.letters == 2 and id_ not in self.tables:
            wanted = (database.lower(), table.lower())
            return next((known for known in self.tables if (known.schema.lower(), known.table.lower()) == wanted), id_)
        return id_

    def charset_of(self, database: str) -> str | None:
        """Of new tables of a database."""
        return self.charsets.get(database) or self.variables.get("character_set_database") or self.variables.get("character_set_server")


def with_key(table: MyTable, names: Iterable[str], *, unique: bool) -> MyTable:
    """The table with these columns as its key, which so may not be null; columns that it does not have are left out."""
    places = [table.index_of(name) for name in names]
    key = tuple(table.columns[place].name for place in places if place >= 0)
    columns = tuple(_required(column) if column.name in key else column for column in table.columns)
    return replace(table, key=key, columns=columns, unique_is_key=unique)


def _required(column: MyColumn) -> MyColumn:
    """A key's column has no DEFAULT NULL."""
    keeps = column.has_default and column.default is not None
    return replace(column, nullable=False, has_default=keeps) if column.nullable else column


def with_unique_key(table: MyTable, names: Iterable[str]) -> MyTable:
    """A unique key of columns that may not be null stands for a primary key where there is none."""
    wanted = list(names)
    places = [table.index_of(name) for name in wanted]
    if table.key or not wanted or any(place < 0 or table.columns[place].nullable for place in places):
        return table
    return with_key(table, wanted, unique=True)


def placed(columns: tuple[MyColumn, ...], column: MyColumn, position: str | None) -> tuple[MyColumn, ...]:
    """A column at its place: "" is first, a name is after that column, None is last."""
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
