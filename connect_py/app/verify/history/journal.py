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
from connect_py.errors import DataError

#: Its name, unless you choose another one.
JOURNAL = "connect_py_journal"
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
        digest: columns that digests are made of: integers, booleans and texts only, since other types look otherwise in events.
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
    """Return what stands for a row's values: MD5 of their texts, as both databases make it."""
    text = KEY_SEPARATOR.join(_NULL if value is None else _text(value) for value in values)
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def changes_of(lines: Iterable[Sequence[Any]]) -> list[Change]:
    """Return changes of lines, whose fields are those of `COLUMNS`; numbers may be texts. Raises DataError: a line is none."""
    found = []
    for line in lines:
        number, table, key, sequence, op, transaction, digest = line
        try:
            found.append(Change(int(number), table, key, int(sequence or 0), Op(op), transaction or "", digest or None))
        except ValueError as error:
            raise DataError(f"Line {number} of the journal is none: {error}. Was it written by other triggers?") from error
    return found


# -- PostgreSQL


def postgres_statements(table: Journalled, journal: str = JOURNAL) -> list[str]:
    """Return what makes the journal, unless it is there, and has it filled: rows that are there now come first."""
    name, place = _literal(table.name), f"{_quoted(table.schema)}.{_quoted(table.table)}"
    target, sequence = _quoted(journal), _quoted(table.sequence)
    suffix = hashlib.md5(table.name.encode(), usedforsecurity=False).hexdigest()[:8]
    number, note, cut = (_quoted(f"{journal}_{what}_{suffix}") for what in ("number", "note", "cut"))
    transaction = "pg_current_xact_id()::text"

    def key(row: str) -> str:
        return f" || {_postgres_character(KEY_SEPARATOR)} || ".join(f"{row}.{_quoted(column)}::text" for column in table.keys)

    def digest(row: str) -> str:
        if not table.digest:
            return "NULL"
        texts = (f"coalesce({row}.{_quoted(column)}::text, {_postgres_character(_NULL)})" for column in table.digest)
        return f"md5(concat_ws({_postgres_character(KEY_SEPARATOR)}, {', '.join(texts)}))"

    def following(row: str) -> str:
        return f"(SELECT coalesce(max(sequence), 0) + 1 FROM {target} WHERE table_name = {name} AND row_key = {key(row)})"  # noqa: S608

    into = f"INSERT INTO {target} (table_name, row_key, sequence, op, transaction, digest)"
    added = f"{into} VALUES ({name}, {key('NEW')}, NEW.{sequence}, %s, {transaction}, {digest('NEW')});"
    removed = f"{into} VALUES ({name}, {key('OLD')}, {following('OLD')}, 'd', {transaction}, NULL);"
    create, update = added.replace("%s", "'c'"), added.replace("%s", "'u'")
    return [
        f"CREATE TABLE IF NOT EXISTS {target} (line bigserial PRIMARY KEY, table_name text NOT NULL, row_key text,"
        " sequence bigint NOT NULL, op text NOT NULL, transaction text NOT NULL, digest text, UNIQUE (table_name, row_key, sequence))",
        f"CREATE OR REPLACE FUNCTION {number}() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN NEW.{sequence} := {following('NEW')}; RETURN NEW; END $$",
        f"CREATE OR REPLACE FUNCTION {note}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF TG_OP = 'INSERT' THEN {create} ELSIF TG_OP = 'DELETE' THEN {removed} "
        f"ELSIF {key('OLD')} = {key('NEW')} THEN {update} ELSE {removed} {create} END IF; RETURN NULL; END $$",
        f"CREATE OR REPLACE FUNCTION {cut}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "  # noqa: S608
        f"{into} VALUES ({name}, NULL, 0, 't', {transaction}, NULL); RETURN NULL; END $$",
        f"{into} SELECT {name}, {key('t')}, t.{sequence}, 'c', '', {digest('t')} FROM {place} t",  # noqa: S608
        f"CREATE TRIGGER {number} BEFORE INSERT OR UPDATE ON {place} FOR EACH ROW EXECUTE FUNCTION {number}()",
        f"CREATE TRIGGER {note} AFTER INSERT OR UPDATE OR DELETE ON {place} FOR EACH ROW EXECUTE FUNCTION {note}()",
        f"CREATE TRIGGER {cut} AFTER TRUNCATE ON {place} FOR EACH STATEMENT EXECUTE FUNCTION {cut}()",
    ]


def postgres_script(table: Journalled, journal: str = JOURNAL) -> str:
    """Return the statements for psql."""
    return "\n".join(f"{statement};" for statement in postgres_statements(table, journal))


def postgres_query(journal: str = JOURNAL) -> str:
    """Return the statement that reads the lines; give its rows to `changes_of`."""
    return f"SELECT {', '.join(COLUMNS)} FROM {_quoted(journal)} ORDER BY line"  # noqa: S608


# -- MySQL and MariaDB


def mysql_statements(table: Journalled, journal: str = JOURNAL) -> list[str]:
    """Return the same for MySQL and MariaDB; the journal is in the table's database."""
    name = _literal(table.name.replace("\\", "\\\\"))
    place, target = f"{_ticked(table.schema)}.{_ticked(table.table)}", f"{_ticked(table.schema)}.{_ticked(journal)}"
    sequence = _ticked(table.sequence)
    suffix = hashlib.md5(table.name.encode(), usedforsecurity=False).hexdigest()[:8]

    def key(row: str) -> str:
        return f"CONCAT_WS({_mysql_character(KEY_SEPARATOR)}, {', '.join(f'{row}.{_ticked(column)}' for column in table.keys)})"

    def digest(row: str) -> str:
        if not table.digest:
            return "NULL"
        texts = (f"IFNULL(CONVERT({row}.{_ticked(column)} USING utf8mb4), {_mysql_character(_NULL)})" for column in table.digest)
        return f"MD5(CONCAT_WS({_mysql_character(KEY_SEPARATOR)}, {', '.join(texts)}))"

    def find(row: str) -> str:
        # a locking read: one of a snapshot may not see what another session has committed
        counted = f"SELECT COALESCE(MAX(sequence), 0) + 1 INTO @connect_py_next FROM {target}"  # noqa: S608
        return f"{counted} WHERE table_name = {name} AND row_key = {key(row)} FOR UPDATE;"

    def note(row: str, op: str, number: str, hashed: str) -> str:
        into = f"INSERT INTO {target} (table_name, row_key, sequence, op, `transaction`, digest)"
        return f"{into} VALUES ({name}, {key(row)}, {number}, '{op}', '', {hashed});"

    def trigger(when: str, body: str) -> str:
        title = _ticked(f"{journal}_{when.lower().replace(' ', '_')}_{suffix}")
        return f"CREATE TRIGGER {_ticked(table.schema)}.{title} {when} ON {place} FOR EACH ROW BEGIN {body} END"

    create, update = (note("NEW", op, f"NEW.{sequence}", digest("NEW")) for op in "cu")
    remove = f"{find('OLD')} {note('OLD', 'd', '@connect_py_next', 'NULL')}"
    number = f"{find('NEW')} SET NEW.{sequence} = @connect_py_next;"
    return [
        f"CREATE TABLE IF NOT EXISTS {target} (line BIGINT AUTO_INCREMENT PRIMARY KEY, table_name VARCHAR(130) NOT NULL,"
        " row_key VARCHAR(500), sequence BIGINT NOT NULL, op CHAR(1) NOT NULL, `transaction` VARCHAR(80) NOT NULL, digest CHAR(32),"
        " UNIQUE (table_name, row_key, sequence)) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        f"INSERT INTO {target} (table_name, row_key, sequence, op, `transaction`, digest) "  # noqa: S608
        f"SELECT {name}, {key('t')}, t.{sequence}, 'c', '', {digest('t')} FROM {place} t",
        trigger("BEFORE INSERT", number),
        trigger("BEFORE UPDATE", number),
        trigger("AFTER INSERT", create),
        trigger("AFTER UPDATE", f"IF {key('OLD')} = {key('NEW')} THEN {update} ELSE {remove} {create} END IF;"),
        trigger("AFTER DELETE", remove),
    ]


def mysql_script(table: Journalled, journal: str = JOURNAL) -> str:
    """Return the statements for the mysql client, whose delimiter has to be one that triggers do not have."""
    return "\n".join(["DELIMITER //", *(f"{statement} //" for statement in mysql_statements(table, journal))])


def mysql_query(database: str, journal: str = JOURNAL) -> str:
    """Return the statement that reads the lines; give its rows to `changes_of`."""
    columns = ", ".join(map(_ticked, COLUMNS))
    return f"SELECT {columns} FROM {_ticked(database)}.{_ticked(journal)} ORDER BY line"  # noqa: S608


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


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _postgres_character(character: str) -> str:
    return f"chr({ord(character)})"


def _mysql_character(character: str) -> str:
    return f"CHAR({ord(character)} USING utf8mb4)"
