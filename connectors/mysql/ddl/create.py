"""CREATE TABLE (mysql.md §12.5)."""

from __future__ import annotations

from dataclasses import replace

from connectors.mysql.changes import Change, Tables, with_key, with_unique_key
from connectors.mysql.ddl.columns import read_definition
from connectors.mysql.ddl.reader import Reader
from connectors.mysql.model import MyTable

#: Tells the columns that say from when and until when a row is the present one (MariaDB).
NAMED_VERSIONS = ("PERIOD", "FOR", "SYSTEM_TIME")
_KEYS = ("PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "PERIOD", "VECTOR")


def create_table(reader: Reader, tables: Tables, database: str, *, replaces: bool = False) -> list[Change]:
    """The rest of a statement after CREATE TABLE. Raises DdlError.

    Args:
        replaces: MariaDB's OR REPLACE: a table of the name is gone.
    """
    reader.takes("IF", "NOT", "EXISTS")
    schema, name = reader.qualified_name()
    id_ = tables.named(schema or database, name)
    if id_ in tables.tables and not replaces:
        return []
    if reader.takes("LIKE") or reader.takes("(", "LIKE"):
        source_schema, source_name = reader.qualified_name()
        source = tables.tables.get(tables.named(source_schema or database, source_name))
        if source is None:
            return []
        return [_put(tables, replace(source, id=id_, comment=None))]
    default = tables.charset_of(id_.schema)
    definitions = reader.at
    versioned = reader.holds("WITH", "SYSTEM", "VERSIONING") and not reader.holds(*NAMED_VERSIONS)
    if reader.sees("("):
        reader.skip_parentheses()
    charset, comment = read_options(reader, default)
    table = MyTable(id_, (), charset=charset, comment=comment, versioned=versioned)
    end = reader.at
    reader.at = definitions
    if reader.takes("("):
        table = _with_definitions(reader, table)
        reader.at = end
    return [_put(tables, table)] if table.columns else []


def _put(tables: Tables, table: MyTable) -> Change:
    tables.tables[table.id] = table
    return Change("CREATE", table.id, table)


def read_options(reader: Reader, default: str | None) -> tuple[str | None, str | None]:
    """A table's character set and comment; other options are read over. Raises DdlError."""
    charset, comment, collation = None, None, None
    while not reader.ended:
        reader.takes("DEFAULT")
        if reader.takes_charset():
            reader.takes("=")
            named = reader.name().lower()
            charset = default if named == "default" else named
        elif reader.takes("COLLATE"):
            reader.takes("=")
            collation = reader.name().lower()
        elif reader.takes("COMMENT"):
            reader.takes("=")
            comment = reader.comment()
        elif reader.sees("PARTITION", "AS", "SELECT", "REPLACE", "IGNORE", "WITH"):
            break
        else:
            reader.next()
    return charset or (collation.partition("_")[0] if collation else default), comment


def _with_definitions(reader: Reader, table: MyTable) -> MyTable:
    """Columns first; keys when all columns are known."""
    primary: list[str] = []
    uniques: list[list[str]] = []
    while not reader.takes(")"):
        if is_key(reader):
            kind, names = read_key(reader)
            if kind == "PRIMARY":
                primary = names
            elif kind == "UNIQUE":
                uniques.append(names)
        else:
            found = read_definition(reader, reader.name(), table.charset)
            table = replace(table, columns=(*table.columns, found.column))
            if found.primary:
                primary = [found.column.name]
            elif found.unique:
                uniques.append([found.column.name])
        reader.takes(",")
    if primary:
        return with_key(table, primary, unique=False)
    for names in uniques:
        table = with_unique_key(table, names)
    return table


def is_key(reader: Reader) -> bool:
    """Whether a key or constraint comes next; a column may be called like one of those words if it has a type."""
    if not reader.sees(*_KEYS):
        return False
    following = reader.peek(1)
    if reader.sees("PRIMARY", "FOREIGN", "CHECK", "FULLTEXT", "SPATIAL", "CONSTRAINT", "UNIQUE"):
        return following.kind != "word" or following.text not in ("INT", "VARCHAR", "CHAR", "TEXT", "BIGINT", "DATE")
    if reader.sees("VECTOR", "PERIOD"):
        return following.text in ("KEY", "INDEX", "FOR", "(")
    return True


def read_key(reader: Reader) -> tuple[str, list[str]]:
    """A key's kind, PRIMARY, UNIQUE or another word, and its columns; none for keys over expressions. Raises DdlError."""
    if reader.takes("CONSTRAINT") and not reader.sees("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        reader.name()
    kind = reader.next().text
    reader.takes_any("KEY", "INDEX")
    while not reader.ended and not reader.sees("(", ",", ")"):
        reader.next()
    names = read_key_columns(reader) if kind in ("PRIMARY", "UNIQUE") and reader.sees("(") else []
    reader.skip_to(",", ")")
    return kind, names


def read_key_columns(reader: Reader) -> list[str]:
    """`(a, b(10) DESC)`; nothing where a part is an expression. Raises DdlError."""
    reader.expects("(")
    names: list[str] = []
    plain = True
    while not reader.takes(")"):
        if reader.sees("("):
            reader.skip_parentheses()
            plain = False
        else:
            names.append(reader.name())
            if reader.sees("("):
                reader.skip_parentheses()
        reader.takes_any("ASC", "DESC")
        reader.takes(",")
    return names if plain else []
