"""Statements, each applied to the tables that came before it. Pure: `Tables` is the only state."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Protocol

from connectors.engine.relational.tables import TableId
from connectors.mysql.ddl.columns import charset_of_collation
from connectors.mysql.ddl.lexer import NAME_CHARACTER, DdlError, Reader, tokens_of, without_surroundings
from connectors.mysql.ddl.tables import alter_table, create_table, read_key_columns
from connectors.mysql.model import Change, Tables, with_unique_key

#: MySQL's `MODE_ANSI_QUOTES` and `MODE_NO_BACKSLASH_ESCAPES`.
ANSI_QUOTES = 4
NO_BACKSLASH_ESCAPES = 1 << 20


class Parser(Protocol):
    """Applies a statement to tables, as `apply` does."""

    def __call__(self, sql: str, tables: Tables, database: str, *, sql_mode: int = 0) -> list[Change]:
        """Return what changed. Raises DdlError."""
        ...


def apply(sql: str, tables: Tables, database: str, *, sql_mode: int = 0) -> list[Change]:
    """Apply a statement.

    Args:
        database: the default one.
        sql_mode: the session's bits.

    Returns:
        What changed, in order; nothing for statements that concern no table's structure, and for tables that are not known.

    Raises:
        DdlError: it concerns tables and cannot be understood; nothing was changed.
    """
    tokens = tokens_of(sql, ansi_quotes=bool(sql_mode & ANSI_QUOTES), escapes=not sql_mode & NO_BACKSLASH_ESCAPES)
    reader = Reader(tokens, sql, keeps_comments=tables.keeps_comments)
    if reader.accept("SET", "STATEMENT"):
        while not reader.ended and not reader.accept("FOR"):
            reader.next()
    match reader.accept_any("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "USE", "SET"):
        case "CREATE":
            return _create(reader, tables, database)
        case "ALTER":
            return _alter(reader, tables, database, sql)
        case "DROP":
            return _drop(reader, tables, database)
        case "RENAME" if reader.accept_any("TABLE", "TABLES"):
            return _rename(reader, tables, database)
        case "TRUNCATE":
            reader.accept("TABLE")
            schema, name = reader.qualified_name()
            return [Change("TRUNCATE", tables.named(schema or database, name))]
        case "SET":
            _set(reader, tables, database)
    return []


def _create(reader: Reader, tables: Tables, database: str) -> list[Change]:
    replaces = reader.accept("OR", "REPLACE")
    reader.accept("TEMPORARY")
    if reader.accept("TABLE"):
        return create_table(reader, tables, database, replaces=replaces)
    if reader.accept_any("DATABASE", "SCHEMA"):
        reader.accept("IF", "NOT", "EXISTS")
        return _database(reader, tables, reader.name())
    if reader.accept("UNIQUE", "INDEX"):
        return _unique_index(reader, tables, database)
    return []


def _unique_index(reader: Reader, tables: Tables, database: str) -> list[Change]:
    reader.accept("IF", "NOT", "EXISTS")
    while not reader.accept("ON"):
        reader.next()
    schema, name = reader.qualified_name()
    table = tables.tables.get(tables.named(schema or database, name))
    names = read_key_columns(reader)
    if table is None or table.key or not names or any(table.index_of(column) < 0 for column in names):
        return []
    # one of columns that may be NULL is reported too, and changes nothing
    tables.tables[table.id] = changed = with_unique_key(table, names)
    return [Change("ALTER", table.id, changed)]


def _alter(reader: Reader, tables: Tables, database: str, sql: str) -> list[Change]:
    reader.accept_any("ONLINE", "IGNORE")
    if reader.accept("TABLE"):
        reader.accept("IF", "EXISTS")
        return alter_table(reader, tables, database, sql)
    if reader.accept_any("DATABASE", "SCHEMA"):
        named = not reader.sees("DEFAULT", "CHARACTER", "CHAR", "CHARSET", "COLLATE", "READ", "ENCRYPTION")
        return _database(reader, tables, reader.name() if named else database)
    return []


def _database(reader: Reader, tables: Tables, name: str) -> list[Change]:
    charset, collation = None, None
    while not reader.ended:
        if reader.accept_charset():
            reader.accept("=")
            charset = reader.name().lower()
        elif reader.accept("COLLATE"):
            reader.accept("=")
            collation = reader.name().lower()
        else:
            reader.next()
    if charset is None and collation and name not in tables.charsets:
        charset = charset_of_collation(collation)
    if charset and charset != "default":
        tables.charsets[name] = charset
    return [Change("DATABASE", TableId(name, ""))]


def _drop(reader: Reader, tables: Tables, database: str) -> list[Change]:
    if reader.accept_any("DATABASE", "SCHEMA"):
        reader.accept("IF", "EXISTS")
        name = reader.name()
        name = name.lower() if tables.lower_case_table_names == 1 else name
        for id_ in [id_ for id_ in tables.tables if id_.schema == name]:
            del tables.tables[id_]
        tables.charsets.pop(name, None)
        return [Change("DATABASE", TableId(name, ""))]
    reader.accept("TEMPORARY")
    if not reader.accept_any("TABLE", "TABLES"):
        return []
    reader.accept("IF", "EXISTS")
    found = []
    while True:
        schema, name = reader.qualified_name()
        found.append(Change("DROP", tables.named(schema or database, name)))
        if not reader.accept(","):
            break
    for change in found:
        tables.tables.pop(change.id, None)
    return found


def _rename(reader: Reader, tables: Tables, database: str) -> list[Change]:
    found = []
    renamed = dict(tables.tables)  # a statement that cannot be understood further on must change nothing
    verb = reader.written(0, reader.at)
    while True:
        begin = reader.at
        schema, name = reader.qualified_name()
        if not reader.accept("TO"):
            raise reader.error("TO was expected")
        new_schema, new_name = reader.qualified_name()
        old, new = tables.named(schema or database, name), tables.named(new_schema or database, new_name)
        table = renamed.pop(old, None)
        if table is not None:
            renamed[new] = replace(table, id=new)
            found.append(
                Change("ALTER", new, renamed[new], previous=old, written=verb + without_surroundings(reader.written(begin, reader.at)))
            )
        if not reader.accept(","):
            break
    tables.tables.clear()
    tables.tables.update(renamed)
    return found


def _set(reader: Reader, tables: Tables, database: str) -> None:
    """Read variables of the session; user variables are skipped."""
    while not reader.ended:
        if reader.accept("NAMES"):
            charset = reader.name().lower()
            for variable in ("client", "results", "connection"):
                tables.variables[f"character_set_{variable}"] = charset
        else:
            reader.accept_any("GLOBAL", "SESSION", "LOCAL", "PERSIST")
            name = reader.next().raw.lower().removeprefix("@@")
            while reader.accept("."):
                name = reader.name().lower()
            if reader.accept_any("=", ":=") and not name.startswith("@"):
                value = reader.next().text.lower()
                tables.variables[name] = value
                if name == "character_set_database" and database:
                    tables.charsets[database] = value
        reader.skip_to(",")
        reader.accept(",")


_NAME = rf"(`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|{NAME_CHARACTER}+)"
#: A comment is taken once and for all: tried again in longer forms, thirty of them would take minutes.
_OF_TABLE = re.compile(
    r"\s*(?>/\*.*?\*/\s*)*+(?:CREATE|ALTER|DROP|RENAME)\s+(?:(?:OR\s+REPLACE|TEMPORARY|ONLINE|IGNORE)\s+)*TABLES?\s+"
    rf"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?{_NAME}(?:\s*\.\s*{_NAME})?",
    re.IGNORECASE | re.DOTALL,
)


def concerned_table(sql: str, database: str) -> TableId | None:
    """Return the table that a statement which cannot be understood is about, as far as its first words say."""
    found = _OF_TABLE.match(sql)
    if found is None:
        return None
    first, second = (_unquoted(part) if part else "" for part in found.groups())
    return TableId(first, second) if second else TableId(database, first)


def _unquoted(name: str) -> str:
    quote = name[0]
    return name[1:-1].replace(quote * 2, quote) if quote in '`"' else name


__all__ = ["ANSI_QUOTES", "DdlError", "apply", "concerned_table"]
