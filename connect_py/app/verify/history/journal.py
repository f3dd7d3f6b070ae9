"""The journal: a table of the source's database in which each transaction notes its own changes.

A line is committed together with the change that it notes, or not at all; so when the database is quiet the journal is the truth. In
PostgreSQL, MySQL and MariaDB triggers write it, and number the rows: a table needs one integer column for that, which counts the changes of
its key. MongoDB has no triggers; there, a program that changes a document inserts `line_of_document` in the same transaction. The
journal's table must not be captured by the connector.

Triggers do not see what a server does without them: MySQL's TRUNCATE and cascades of foreign keys. Note a TRUNCATE by hand, as `op` t.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.app.verify.history.records import KEY_SEPARATOR, Change, Op
from connect_py.errors import ConfigError, DataError

#: Its name, unless you choose another one.
JOURNAL = "connect_py_journal"
#: Where it is in PostgreSQL, unless you say it.
POSTGRES_SCHEMA = "public"
COLUMNS = ("line", "table_name", "row_key", "sequence", "op", "transaction", "digest")
#: What stands for NULL in a digest.
_NULL = "\x1e"


@dataclass(frozen=True, slots=True)
class Journalled:
    """A table whose changes are noted.

    Attributes:
        schema: the schema, in MySQL the database.
        keys: columns of the key, in the order of the events' keys.
        sequence: the integer column that triggers set: NOT NULL DEFAULT 1.
        digest: columns that digests are made of: integers, booleans and texts only, since other types look otherwise in events, as do
            nulls of a column with a default (`value.converter.replace.null.with.default`).
    """

    schema: str
    table: str
    keys: Sequence[str]
    sequence: str
    digest: Sequence[str] = ()

    @property
    def name(self) -> str:
        """As lines and events name the table."""
        return f"{self.schema}.{self.table}"


def key_text(values: Iterable[Any]) -> str:
    """Return a row's key as the journal has it."""
    return KEY_SEPARATOR.join(_text(value) for value in values)


def digest_of(values: Iterable[Any]) -> str:
    """Return what stands for a row's values: SHA-256 of their texts, as both databases make it (MySQL 9.6 has no MD5 any more)."""
    text = KEY_SEPARATOR.join(_NULL if value is None else _text(value) for value in values)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def changes_of(lines: Iterable[Sequence[Any]]) -> list[Change]:
    """Return changes of lines, whose fields are those of `COLUMNS`; numbers may be texts. Raises DataError: one is no line of a journal."""
    found = []
    for line in lines:
        number, table, key, sequence, op, transaction, digest = line
        try:
            found.append(Change(int(number), table, key, int(sequence or 0), Op(op), transaction or "", digest or None))
        except ValueError as error:
            raise DataError(f"Line {number} of the journal cannot be used: {error}. Was it written by other triggers?") from error
    return found


def journal_place(journal: str, default: str | None) -> tuple[str, str]:
    """Return the schema (in MySQL and MongoDB the database) and the name of a journal.

    Args:
        journal: `TABLE` or `SCHEMA.TABLE`.
        default: the schema of one that names none.

    Raises:
        ConfigError: none is named, and there is no default.
    """
    schema, _, table = journal.rpartition(".")
    if not (schema or default) or not table:
        raise ConfigError(f"--journal {journal} names no database: write DATABASE.TABLE")
    return schema or str(default), table


# -- PostgreSQL


def postgres_statements(table: Journalled, journal: str = JOURNAL) -> list[str]:
    """Return what makes the journal, unless it is there, and has it filled: rows that are there now come first.

    Functions run with the rights and the search path of their owner: users that may change the table need none to the journal.
    """
    schema, name = journal_place(journal, POSTGRES_SCHEMA)
    text, place = _postgres_literal(table.name), f"{_quoted(table.schema)}.{_quoted(table.table)}"
    target, sequence = f"{_quoted(schema)}.{_quoted(name)}", _quoted(table.sequence)
    titles = {what: _quoted(f"connect_py_{what}_{_suffix(table)}") for what in ("number", "note", "cut")}
    transaction = "txid_current()::text"

    def key(row: str) -> str:
        # one collation: columns may have several, and some of these take different texts for equal
        return f" || {_postgres_character(KEY_SEPARATOR)} || ".join(f'{row}.{_quoted(column)}::text COLLATE "C"' for column in table.keys)

    def digest(row: str) -> str:
        if not table.digest:
            return "NULL"
        texts = (f"coalesce({row}.{_quoted(column)}::text, {_postgres_character(_NULL)})" for column in table.digest)
        return f"encode(sha256(convert_to(concat_ws({_postgres_character(KEY_SEPARATOR)}, {', '.join(texts)}), 'UTF8')), 'hex')"

    def following(row: str) -> str:
        return f"(SELECT coalesce(max(sequence), 0) + 1 FROM {target} WHERE table_name = {text} AND row_key = {key(row)})"  # noqa: S608

    def function(what: str, body: str) -> str:
        made = f"CREATE OR REPLACE FUNCTION {_quoted(schema)}.{titles[what]}() RETURNS trigger LANGUAGE plpgsql"
        return f"{made} SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $connect_py$ BEGIN {body} END $connect_py$"

    def trigger(what: str, when: str) -> str:
        return f"CREATE TRIGGER {titles[what]} {when} EXECUTE FUNCTION {_quoted(schema)}.{titles[what]}()"

    into = f"INSERT INTO {target} (table_name, row_key, sequence, op, transaction, digest)"
    create, update = (f"{into} VALUES ({text}, {key('NEW')}, NEW.{sequence}, '{op}', {transaction}, {digest('NEW')});" for op in "cu")
    remove = f"{into} VALUES ({text}, {key('OLD')}, {following('OLD')}, 'd', {transaction}, NULL);"
    return [
        f"CREATE TABLE IF NOT EXISTS {target} (line bigserial PRIMARY KEY, table_name text NOT NULL,"
        ' row_key text COLLATE "C",'
        " sequence bigint NOT NULL, op text NOT NULL, transaction text NOT NULL, digest text, UNIQUE (table_name, row_key, sequence))",
        function("number", f"NEW.{sequence} := {following('NEW')}; RETURN NEW;"),
        function(
            "note",
            f"IF TG_OP = 'INSERT' THEN {create} ELSIF TG_OP = 'DELETE' THEN {remove} "
            f"ELSIF {key('OLD')} = {key('NEW')} THEN {update} ELSE {remove} {create} END IF; RETURN NULL;",
        ),
        function("cut", f"{into} VALUES ({text}, NULL, 0, 't', {transaction}, NULL); RETURN NULL;"),
        f"{into} SELECT {text}, {key('t')}, t.{sequence}, 'c', '', {digest('t')} FROM {place} t",  # noqa: S608
        trigger("number", f"BEFORE INSERT OR UPDATE ON {place} FOR EACH ROW"),
        trigger("note", f"AFTER INSERT OR UPDATE OR DELETE ON {place} FOR EACH ROW"),
        trigger("cut", f"AFTER TRUNCATE ON {place} FOR EACH STATEMENT"),
    ]


def postgres_script(table: Journalled, journal: str = JOURNAL) -> str:
    """Return the statements for psql, in a transaction in which nobody else writes, and how to undo them in comments."""
    schema, name = journal_place(journal, POSTGRES_SCHEMA)
    lock = f"LOCK TABLE {_quoted(table.schema)}.{_quoted(table.table)} IN SHARE ROW EXCLUSIVE MODE"
    functions = (f"{_quoted(schema)}.{_quoted(f'connect_py_{what}_{_suffix(table)}')}()" for what in ("number", "note", "cut"))
    undo = [f"DROP FUNCTION {', '.join(functions)} CASCADE", f"DROP TABLE {_quoted(schema)}.{_quoted(name)}"]
    statements = ["BEGIN", lock, *postgres_statements(table, journal), "COMMIT"]
    return "\n".join([*(f"{statement};" for statement in statements), *(f"-- to undo it: {statement};" for statement in undo)])


def postgres_query(journal: str = JOURNAL) -> str:
    """Return the statement that reads the lines; give its rows to `changes_of`."""
    schema, name = journal_place(journal, POSTGRES_SCHEMA)
    return f"SELECT {', '.join(map(_quoted, COLUMNS))} FROM {_quoted(schema)}.{_quoted(name)} ORDER BY line"  # noqa: S608


# -- MySQL and MariaDB


def mysql_statements(table: Journalled, journal: str = JOURNAL) -> list[str]:
    """Return the same for MySQL and MariaDB; the journal is in the table's database, unless it names another one."""
    database, journal_name = journal_place(journal, table.schema)
    name = _mysql_literal(table.name)
    place, target = f"{_ticked(table.schema)}.{_ticked(table.table)}", f"{_ticked(database)}.{_ticked(journal_name)}"
    sequence = _ticked(table.sequence)

    def key(row: str) -> str:
        # one collation: texts that a column's own takes for equal are different keys
        columns = ", ".join(f"CONVERT({row}.{_ticked(column)} USING utf8mb4)" for column in table.keys)
        return f"CONCAT_WS({_mysql_character(KEY_SEPARATOR)}, {columns}) COLLATE utf8mb4_bin"

    def digest(row: str) -> str:
        if not table.digest:
            return "NULL"
        texts = (f"IFNULL(CONVERT({row}.{_ticked(column)} USING utf8mb4), {_mysql_character(_NULL)})" for column in table.digest)
        return f"SHA2(CONCAT_WS({_mysql_character(KEY_SEPARATOR)}, {', '.join(texts)}), 256)"

    def find(row: str) -> str:
        # a locking read: one of a snapshot may not see what another session has committed
        counted = f"SELECT COALESCE(MAX(sequence), 0) + 1 INTO @connect_py_next FROM {target}"  # noqa: S608
        return f"{counted} WHERE table_name = {name} AND row_key = {key(row)} FOR UPDATE;"

    def note(row: str, op: str, number: str, hashed: str) -> str:
        into = f"INSERT INTO {target} (table_name, row_key, sequence, op, `transaction`, digest)"
        return f"{into} VALUES ({name}, {key(row)}, {number}, '{op}', '', {hashed});"

    def trigger(when: str, body: str) -> str:
        return f"CREATE TRIGGER {_mysql_trigger(table, when)} {when} ON {place} FOR EACH ROW BEGIN {body} END"

    create, update = (note("NEW", op, f"NEW.{sequence}", digest("NEW")) for op in "cu")
    remove = f"{find('OLD')} {note('OLD', 'd', '@connect_py_next', 'NULL')}"
    number = f"{find('NEW')} SET NEW.{sequence} = @connect_py_next;"
    bodies = (number, number, create, f"IF {key('OLD')} = {key('NEW')} THEN {update} ELSE {remove} {create} END IF;", remove)
    return [
        f"CREATE TABLE IF NOT EXISTS {target} (line BIGINT AUTO_INCREMENT PRIMARY KEY, table_name VARCHAR(130) NOT NULL,"
        " row_key VARCHAR(500), sequence BIGINT NOT NULL, op CHAR(1) NOT NULL, `transaction` VARCHAR(80) NOT NULL, digest CHAR(64),"
        " UNIQUE (table_name, row_key, sequence)) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        f"INSERT INTO {target} (table_name, row_key, sequence, op, `transaction`, digest) "  # noqa: S608
        f"SELECT {name}, {key('t')}, t.{sequence}, 'c', '', {digest('t')} FROM {place} t",
        *(trigger(when, body) for when, body in zip(_MYSQL_EVENTS, bodies, strict=True)),
    ]


_MYSQL_EVENTS = ("BEFORE INSERT", "BEFORE UPDATE", "AFTER INSERT", "AFTER UPDATE", "AFTER DELETE")


def _mysql_trigger(table: Journalled, when: str) -> str:
    title = f"connect_py_{when.lower().replace(' ', '_')}_{_suffix(table)}"
    return f"{_ticked(table.schema)}.{_ticked(title)}"


def mysql_script(table: Journalled, journal: str = JOURNAL) -> str:
    """Return the statements for the mysql client, whose delimiter has to be one that triggers do not have, and how to undo them."""
    database, name = journal_place(journal, table.schema)
    statements = ["DELIMITER //", *(f"{statement} //" for statement in mysql_statements(table, journal)), "DELIMITER ;"]
    undo = [f"DROP TRIGGER {_mysql_trigger(table, when)}" for when in _MYSQL_EVENTS]
    undo.append(f"DROP TABLE {_ticked(database)}.{_ticked(name)}")
    return "\n".join([*statements, *(f"-- to undo it: {statement};" for statement in undo)])


def mysql_query(journal: str) -> str:
    """Return the statement that reads the lines of `DATABASE.TABLE`; give its rows to `changes_of`. Raises ConfigError."""
    database, name = journal_place(journal, None)
    return f"SELECT {', '.join(map(_ticked, COLUMNS))} FROM {_ticked(database)}.{_ticked(name)} ORDER BY line"  # noqa: S608


# -- MongoDB


def line_of_document(change: Change) -> dict[str, Any]:
    """Return the document that notes a change; `line` is its `_id`. Insert it in the transaction of the change."""
    values = (change.line, change.table, change.key, change.sequence, str(change.op), change.transaction, change.digest)
    return dict(zip(("_id", *COLUMNS[1:]), values, strict=True))


def changes_of_documents(documents: Iterable[Mapping[str, Any]]) -> list[Change]:
    """Return changes of such documents. Raises DataError."""
    return changes_of([document.get(name) for name in ("_id", *COLUMNS[1:])] for document in documents)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _ticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _suffix(table: Journalled) -> str:
    """Return what tells the triggers of tables apart: names may be too long to be a part of a name."""
    return hashlib.md5(table.name.encode(), usedforsecurity=False).hexdigest()[:8]


def _postgres_literal(text: str) -> str:
    quoted = text.replace("'", "''")
    return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in quoted else f"'{quoted}'"


def _mysql_literal(text: str) -> str:
    # what a backslash means depends on the session's sql_mode
    return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)" if "\\" in text else "'" + text.replace("'", "''") + "'"


def _postgres_character(character: str) -> str:
    return f"chr({ord(character)})"


def _mysql_character(character: str) -> str:
    return f"CHAR({ord(character)} USING utf8mb4)"
