"""CREATE TABLE and ALTER TABLE (MySQL reference manual)."""

from __future__ import annotations

from dataclasses import replace

from connectors.engine.relational.tables import TableId
from connectors.mysql.ddl.columns import charset_of_collation, read_default, read_definition
from connectors.mysql.ddl.lexer import DdlError, Reader
from connectors.mysql.model import Change, MyColumn, MyTable, Tables, placed, with_key, with_unique_key

#: Finds the columns that say from when and until when a row is current (MariaDB).
NAMED_VERSIONS = ("PERIOD", "FOR", "SYSTEM_TIME")
_KEYS = ("PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "PERIOD", "VECTOR")


def create_table(reader: Reader, tables: Tables, database: str, *, replaces: bool = False) -> list[Change]:
    """Read the rest of a statement after CREATE TABLE. Raises DdlError.

    Args:
        replaces: MariaDB's OR REPLACE: a table of the name is dropped.
    """
    reader.accept("IF", "NOT", "EXISTS")
    schema, name = reader.qualified_name()
    id_ = tables.named(schema or database, name)
    if id_ in tables.tables and not replaces:
        return []
    if reader.accept("LIKE") or reader.accept("(", "LIKE"):
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
    if reader.accept("("):
        table = _with_definitions(reader, table)
        reader.at = end
    return [_put(tables, table)] if table.columns else []


def _put(tables: Tables, table: MyTable) -> Change:
    tables.tables[table.id] = table
    return Change("CREATE", table.id, table)


def read_options(reader: Reader, default: str | None) -> tuple[str | None, str | None]:
    """Read a table's character set and comment, and skip other options. Raises DdlError."""
    charset, comment, collation = None, None, None
    while not reader.ended:
        reader.accept("DEFAULT")
        if reader.accept_charset():
            reader.accept("=")
            named = reader.name().lower()
            charset = default if named == "default" else named
        elif reader.accept("COLLATE"):
            reader.accept("=")
            collation = reader.name().lower()
        elif reader.accept("COMMENT"):
            reader.accept("=")
            comment = reader.comment()
        elif reader.sees("PARTITION", "AS", "SELECT", "REPLACE", "IGNORE", "WITH"):
            break
        else:
            reader.next()
    return charset or (charset_of_collation(collation) if collation else None) or default, comment


def _with_definitions(reader: Reader, table: MyTable) -> MyTable:
    """Add columns first, and keys when all columns are known."""
    primary: list[str] = []
    uniques: list[list[str]] = []
    while not reader.accept(")"):
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
        reader.accept(",")
    if primary:
        return with_key(table, primary, unique=False)
    for names in uniques:
        table = with_unique_key(table, names)
    return table


def is_key(reader: Reader) -> bool:
    """Return whether a key or constraint comes next; a column may be called like one of those words if it has a type."""
    if not reader.sees(*_KEYS):
        return False
    following = reader.peek(1)
    if reader.sees("PRIMARY", "FOREIGN", "CHECK", "FULLTEXT", "SPATIAL", "CONSTRAINT", "UNIQUE"):
        return following.kind != "word" or following.text not in ("INT", "VARCHAR", "CHAR", "TEXT", "BIGINT", "DATE")
    if reader.sees("VECTOR", "PERIOD"):
        return following.text in ("KEY", "INDEX", "FOR", "(")
    return True


def read_key(reader: Reader) -> tuple[str, list[str]]:
    """Return a key's kind, PRIMARY, UNIQUE or another word, and its columns; none for keys over expressions. Raises DdlError."""
    if reader.accept("CONSTRAINT") and not reader.sees("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        reader.name()
    kind = reader.next().text
    reader.accept_any("KEY", "INDEX")
    while not reader.ended and not reader.sees("(", ",", ")"):
        reader.next()
    names = read_key_columns(reader) if kind in ("PRIMARY", "UNIQUE") and reader.sees("(") else []
    reader.skip_to(",", ")")
    return kind, names


def read_key_columns(reader: Reader) -> list[str]:
    """Read `(a, b(10) DESC)`; nothing where a part is an expression. Raises DdlError."""
    reader.expects("(")
    names: list[str] = []
    plain = True
    while not reader.accept(")"):
        if reader.sees("("):
            reader.skip_parentheses()
            plain = False
        else:
            names.append(reader.name())
            if reader.sees("("):
                reader.skip_parentheses()
        reader.accept_any("ASC", "DESC")
        reader.accept(",")
    return names if plain else []


#: What an action on columns, keys or partitions begins with; all else is an option of the table.
_ACTIONS = ("ADD", "CHANGE", "MODIFY", "DROP", "ALTER", "RENAME", "CONVERT", "ORDER", "PARTITION", "REORGANIZE", "EXCHANGE", "COALESCE")

#: Before the name of a column whose name another has taken, until the statement gives it a new one: MySQL takes all renames at once.
_ASIDE = "\0"


def alter_table(reader: Reader, tables: Tables, database: str, sql: str) -> list[Change]:
    """Read the rest of a statement after ALTER TABLE. Raises DdlError."""
    schema, name = reader.qualified_name()
    id_ = tables.named(schema or database, name)
    table = tables.tables.get(id_)
    if table is None:
        return []
    default = _default_charset(reader)
    names_versions = reader.holds(*NAMED_VERSIONS)
    if default is not None:
        table = replace(table, charset=default)
    converted: str | None = None
    own = tables.charset_of(id_.schema)
    before = frozenset(table.columns)
    while not reader.ended:
        if reader.accept("CONVERT", "TO"):
            converted = _read_charset(reader, own)
        else:
            table = _act(reader, table, database, sql)
        reader.skip_to(",")
        reader.accept(",")
    if names_versions:
        table = replace(table, versioned=False)
    if converted is not None:
        # also columns that the statement itself adds, wherever it stands in it
        columns = tuple(
            replace(column, charset=converted) if column.charset and (column in before or not _is_binary(column, default)) else column
            for column in table.columns
        )
        table = replace(table, charset=default or converted, columns=columns)
    if table.id != id_:
        table = replace(table, id=tables.named(table.id.schema, table.id.table))
        # in the history the old name stays, as in Debezium's, which does not name the previous table
        del tables.tables[id_]
        tables.tables[table.id] = table
        return [Change("ALTER", table.id, table)]
    tables.tables[id_] = table
    return [Change("ALTER", id_, table)]


def _is_binary(column: MyColumn, default: str | None) -> bool:
    """Return whether a column was defined as BINARY alone: with the binary collation of the table's new default, which MariaDB takes for a
    collation of its own that CONVERT TO leaves alone. MySQL refuses CONVERT TO one character set next to another default."""
    return default is not None and column.charset == default and column.type_name.endswith(" BINARY")


def _default_charset(reader: Reader) -> str | None:
    """Return the table's new character set, which counts for columns of the same statement wherever it stands in it. Reads nothing."""
    start, found = reader.at, None
    while not reader.ended:
        if not reader.accept_any(*_ACTIONS):
            while not reader.ended and not reader.sees(","):
                if reader.accept_charset():
                    reader.accept("=")
                    found = reader.name().lower()
                elif reader.sees("("):
                    reader.skip_parentheses()
                else:
                    reader.next()
        reader.skip_to(",")
        reader.accept(",")
    reader.at = start
    return None if found == "default" else found


def _act(reader: Reader, table: MyTable, database: str, sql: str) -> MyTable:
    if reader.accept("ADD"):
        return _add(reader, table)
    if reader.accept("CHANGE"):
        reader.accept("COLUMN")
        reader.accept("IF", "EXISTS")
        return _change(reader, table, reader.name(), sql, renames=True)
    if reader.accept("MODIFY"):
        reader.accept("COLUMN")
        reader.accept("IF", "EXISTS")
        return _change(reader, table, reader.name(), sql, renames=False)
    if reader.accept("DROP"):
        return _drop(reader, table)
    if reader.accept("ALTER"):
        return _alter_column(reader, table)
    if reader.accept("RENAME"):
        return _rename(reader, table, database, sql)
    if reader.accept("COMMENT"):
        reader.accept("=")
        return replace(table, comment=reader.comment())
    return table


def _read_charset(reader: Reader, own: str | None) -> str | None:
    """Return the character set that CONVERT TO names; DEFAULT is the database's own."""
    if not reader.accept_charset():
        raise reader.error("CHARACTER SET was expected")
    named = reader.name().lower()
    return own if named == "default" else named


def _add(reader: Reader, table: MyTable) -> MyTable:
    if reader.accept("SYSTEM", "VERSIONING"):
        return replace(table, versioned=True)
    if reader.sees("PARTITION"):
        return table
    if is_key(reader):
        return _add_key(reader, table)
    reader.accept("COLUMN")
    reader.accept("IF", "NOT", "EXISTS")
    if reader.accept("("):
        while not reader.accept(")"):
            table = _add_key(reader, table) if is_key(reader) else _add_column(reader, table)
            reader.accept(",")
        return table
    return _add_column(reader, table)


def _add_key(reader: Reader, table: MyTable) -> MyTable:
    kind, names = read_key(reader)
    if kind == "PRIMARY":
        return with_key(table, names, unique=False)
    return with_unique_key(table, names) if kind == "UNIQUE" else table


def _add_column(reader: Reader, table: MyTable) -> MyTable:
    found = read_definition(reader, reader.name(), table.charset)
    position = _position(reader)
    at = table.index_of(found.column.name)
    present = (*table.columns[:at], found.column, *table.columns[at + 1 :])
    columns = present if at >= 0 else placed(table.columns, found.column, position)
    return _with_own_key(replace(table, columns=columns), found.column.name, found.primary, found.unique)


def _with_own_key(table: MyTable, name: str, primary: bool, unique: bool) -> MyTable:
    if primary:
        return with_key(table, [name], unique=False)
    return with_unique_key(table, [name]) if unique else table


def _position(reader: Reader) -> str | None:
    """Read a position: "" for FIRST, a column's name for AFTER, None for neither."""
    if reader.accept("FIRST"):
        return ""
    return reader.name() if reader.accept("AFTER") else None


def _change(reader: Reader, table: MyTable, old_name: str, sql: str, *, renames: bool) -> MyTable:
    """Apply CHANGE and MODIFY: a new definition at the old index, or at the given one."""
    at = _index_before(table, old_name)
    if at < 0:
        raise DdlError(f"Trying to change column {old_name} in {table.id} table, which does not exist. Query: {sql}")
    name = reader.name() if renames else old_name if table.columns[at].name.startswith(_ASIDE) else table.columns[at].name
    table = _without_clash(table, at, name)
    found = read_definition(reader, name, table.charset)
    position = _position(reader)
    column = found.column
    if renames and column.comment is None:
        column = replace(column, comment=table.columns[at].comment)
    in_key = table.columns[at].name in table.key
    if in_key and not table.unique_is_key:
        column = replace(column, nullable=False)
    columns = (*table.columns[:at], column, *table.columns[at + 1 :])
    if position is not None:
        columns = placed((*table.columns[:at], *table.columns[at + 1 :]), column, position)
    key = tuple(column.name if part == table.columns[at].name else part for part in table.key)
    return _with_own_key(replace(table, columns=columns, key=key), column.name, found.primary, found.unique)


def _index_before(table: MyTable, name: str) -> int:
    """Return the index of the column that had this name before the statement."""
    at = table.index_of(_ASIDE + name)
    return at if at >= 0 else table.index_of(name)


def _without_clash(table: MyTable, at: int, name: str) -> MyTable:
    """Return the table with this name free for the column at this index: another of the name is set aside, to be renamed or dropped."""
    other = table.index_of(name)
    if other in (-1, at):
        return table
    taken = table.columns[other].name
    columns = (*table.columns[:other], replace(table.columns[other], name=_ASIDE + taken), *table.columns[other + 1 :])
    return replace(table, columns=columns, key=tuple(_ASIDE + part if part == taken else part for part in table.key))


def _drop(reader: Reader, table: MyTable) -> MyTable:
    if reader.accept("PRIMARY", "KEY"):
        return replace(table, key=(), unique_is_key=False)
    if reader.accept("SYSTEM", "VERSIONING"):
        return replace(table, versioned=False)
    if reader.sees("INDEX", "KEY", "FOREIGN", "CONSTRAINT", "CHECK", "PARTITION") and reader.peek(1).kind in ("word", "name"):
        return table
    reader.accept("COLUMN")
    reader.accept("IF", "EXISTS")
    at = _index_before(table, reader.name())
    if at < 0:
        return table
    gone = table.columns[at].name
    return replace(table, columns=(*table.columns[:at], *table.columns[at + 1 :]), key=tuple(part for part in table.key if part != gone))


def _alter_column(reader: Reader, table: MyTable) -> MyTable:
    if reader.sees("INDEX", "CHECK", "CONSTRAINT"):
        return table
    reader.accept("COLUMN")
    at = table.index_of(reader.name())
    if at < 0:
        return table
    column = table.columns[at]
    if reader.accept("SET", "DEFAULT"):
        has_default, default = read_default(reader)
        column = replace(column, has_default=has_default, default=default)
    elif reader.accept("DROP", "DEFAULT"):
        column = replace(column, has_default=column.nullable, default=None)
    return replace(table, columns=(*table.columns[:at], column, *table.columns[at + 1 :]))


def _rename(reader: Reader, table: MyTable, database: str, sql: str) -> MyTable:
    if reader.accept("COLUMN"):
        old = reader.name()
        reader.expects("TO")
        new = reader.name()
        at = _index_before(table, old)
        if at < 0:
            raise DdlError(f"Trying to rename column {old} in {table.id} table, which does not exist. Query: {sql}")
        table = _without_clash(table, at, new)
        column: MyColumn = replace(table.columns[at], name=new)
        key = tuple(new if part == table.columns[at].name else part for part in table.key)
        return replace(table, columns=(*table.columns[:at], column, *table.columns[at + 1 :]), key=key)
    if reader.accept_any("INDEX", "KEY"):
        return table
    reader.accept_any("TO", "AS", "=")
    schema, name = reader.qualified_name()
    return replace(table, id=TableId(schema or database, name))
