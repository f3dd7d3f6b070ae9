"""Structures of tables as the server and the log know them: where statements do not say, and where rows are read outside the stream.

`structure_at`: a statement could not be understood, or the history lacks one. The log itself describes tables where
``binlog_row_metadata=FULL`` is set. Otherwise the server is asked. Its answer is the current structure, so it counts only if the log has
columns of the same kinds at the position in question. What was done is logged and kept in the history; nothing is guessed.

`StructureCheck`: rows of a snapshot during streaming are read as the table is now and sent with the stream's model, which may be older: the
rows wait until the stream has passed a change of the structure. A model that still differs when the stream has passed the position where
the log ended will not become equal (the statement was skipped, or the history has it in other words): then only the columns' names must
agree.

`read_statements`: the current structures as the statements that would create them. It only reads, so that locks can be released before
anything is made of the answer.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from connect_py.errors import ConnectError, FatalTaskError
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.incremental.contract import BusyError, UnknownCollectionError
from connectors.mysql import errors
from connectors.mysql.binlog.charsets import decoder
from connectors.mysql.binlog.codes import ColumnType
from connectors.mysql.binlog.table_map import DescribedColumn, TableMap, described_columns
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.ddl.lexer import DdlError
from connectors.mysql.ddl.statements import apply
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.model import JDBC, MyColumn, MyTable, Tables, quote_name
from connectors.mysql.position.offset import BinlogPosition
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection

log = logging.getLogger(__name__)


_BINARY = 63
#: How each type stands in the log.
_STORED: dict[str, tuple[ColumnType, ...]] = {
    **dict.fromkeys(("TINYINT", "BOOL", "BOOLEAN"), (ColumnType.TINY,)),
    "SMALLINT": (ColumnType.SHORT,),
    "MEDIUMINT": (ColumnType.INT24,),
    **dict.fromkeys(("INT", "INTEGER"), (ColumnType.LONG,)),
    "BIGINT": (ColumnType.LONGLONG,),
    "FLOAT": (ColumnType.FLOAT, ColumnType.DOUBLE),
    **dict.fromkeys(("DOUBLE", "DOUBLE PRECISION", "REAL"), (ColumnType.DOUBLE, ColumnType.FLOAT)),
    **dict.fromkeys(("DECIMAL", "DEC", "FIXED", "NUMERIC"), (ColumnType.NEWDECIMAL,)),
    "BIT": (ColumnType.BIT,),
    "YEAR": (ColumnType.YEAR,),
    "DATE": (ColumnType.DATE, ColumnType.NEWDATE),
    "TIME": (ColumnType.TIME2, ColumnType.TIME),
    "DATETIME": (ColumnType.DATETIME2, ColumnType.DATETIME),
    "TIMESTAMP": (ColumnType.TIMESTAMP2, ColumnType.TIMESTAMP),
    "ENUM": (ColumnType.ENUM,),
    "SET": (ColumnType.SET,),
    "JSON": (ColumnType.JSON, ColumnType.BLOB),
    "VECTOR": (ColumnType.VECTOR,),
    **dict.fromkeys(("CHAR", "NCHAR", "BINARY", "UUID", "INET4", "INET6"), (ColumnType.STRING,)),
    **dict.fromkeys(("VARCHAR", "NVARCHAR", "VARBINARY"), (ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED)),
    **dict.fromkeys(
        ("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
        (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED),
    ),
}
_NAMES = {
    ColumnType.TINY: "TINYINT",
    ColumnType.SHORT: "SMALLINT",
    ColumnType.INT24: "MEDIUMINT",
    ColumnType.LONG: "INT",
    ColumnType.LONGLONG: "BIGINT",
    ColumnType.FLOAT: "FLOAT",
    ColumnType.DOUBLE: "DOUBLE",
    ColumnType.NEWDECIMAL: "DECIMAL",
    ColumnType.BIT: "BIT",
    ColumnType.YEAR: "YEAR",
    ColumnType.JSON: "JSON",
    ColumnType.VECTOR: "VECTOR",
    ColumnType.DATE: "DATE",
    ColumnType.NEWDATE: "DATE",
    ColumnType.TIME: "TIME",
    ColumnType.TIME2: "TIME",
    ColumnType.DATETIME: "DATETIME",
    ColumnType.DATETIME2: "DATETIME",
    ColumnType.TIMESTAMP: "TIMESTAMP",
    ColumnType.TIMESTAMP2: "TIMESTAMP",
    ColumnType.ENUM: "ENUM",
    ColumnType.SET: "SET",
}
_SHAPES = ("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION")
_CODES = {"INT": "INTEGER", "MEDIUMINT": "INTEGER", "YEAR": "INTEGER", "DATETIME": "TIMESTAMP", "TIMESTAMP": "TIMESTAMP_WITH_TIMEZONE"}


def structure_at(config: MySqlConfig, id_: TableId, map_: TableMap, why: str) -> tuple[MyTable, str]:
    """Return a table's structure at a position of the log.

    Args:
        map_: of the table there.
        why: why the statements do not say it, for messages.

    Returns:
        The structure, and a statement that makes it.

    Raises:
        FatalTaskError: neither the log nor the server says it.
        LostConnectionError: the server cannot be asked now.
    """
    described = described_columns(map_)
    connection = queries.open_connection(config)
    try:
        if described is not None:
            hidden = _hides_versions(connection, id_, described)
            table = _from_log(connection, id_, described[:-2] if hidden else described)
            table = replace(table, versioned=hidden)
            log.warning("%s: its structure was taken from the log's row metadata", why)
            return table, _statement(table)
        return _from_server(connection, id_, map_, why)
    finally:
        connection.close()


def _hides_versions(connection: Connection, id_: TableId, described: list[DescribedColumn]) -> bool:
    """Return whether the last two columns are MariaDB's own, which the log describes like a table's that is versioned by columns of such
    names."""
    if [column.name for column in described[-2:]] != ["row_start", "row_end"]:
        return False
    found = read_structure(connection, id_)
    return found is not None and found[0].versioned


def read_structure(connection: Connection, id_: TableId) -> tuple[MyTable, str] | None:
    """Return a table as the server has it now, and its statement; None for one that does not exist. Raises ServerError, DdlError."""
    try:
        ((_, statement, *_),) = connection.texts(f"SHOW CREATE TABLE {quote_name(id_.schema, id_.table)}")
    except ServerError as error:
        if error.code in errors.GONE:
            return None
        raise
    tables = Tables()
    apply(statement, tables, id_.schema)
    table = tables.tables.get(id_)
    return None if table is None else (table, statement)


def _from_server(connection: Connection, id_: TableId, map_: TableMap, why: str) -> tuple[MyTable, str]:
    try:
        found = read_structure(connection, id_)
    except LostConnectionError:
        raise
    except (ServerError, DdlError) as error:
        raise FatalTaskError(f"{why}, and the server does not tell its structure: {error}") from error
    if found is None or not fits(found[0], map_):
        raise FatalTaskError(
            f"{why}, and the table's structure on the server is {'gone' if found is None else 'another one by now'}. Nothing of the table "
            "was read from there on. Set binlog_row_metadata=FULL on the server, so that the log describes its tables, and take a new "
            "snapshot of this table; or send its structure by a signal schema-changes"
        )
    log.warning("%s: its structure was read from the server, whose columns are of the kinds that the log has at this place", why)
    return found


def fits(table: MyTable, map_: TableMap) -> bool:
    """Return whether rows of a map can be rows of this structure."""
    if table.width != len(map_.columns):
        return False
    for column, stored in zip(table.columns, map_.columns, strict=False):
        kind = column.base_type
        if kind in _SHAPES or kind == "GEOMCOLLECTION":
            known: tuple[ColumnType, ...] = (ColumnType.GEOMETRY,)
        else:
            known = _STORED.get(kind, ())
        if stored.type not in known:
            return False
        if stored.type is ColumnType.NEWDECIMAL and (column.length or 10, column.scale or 0) != (stored.size, stored.scale):
            return False
        if stored.type is ColumnType.BIT and (column.length or 1) != stored.size:
            return False
    return True


def _from_log(connection: Connection, id_: TableId, described: list[DescribedColumn]) -> MyTable:
    rows = connection.texts("SELECT id, character_set_name FROM information_schema.collations WHERE id IS NOT NULL")
    charsets = {int(number): charset for number, charset in rows if number}
    columns = tuple(_column(column, charsets.get(column.collation, "utf8mb4")) for column in described)
    key = [column.name for column in sorted(described, key=lambda column: column.in_key) if column.in_key]
    return MyTable(id_, columns, tuple(key))


def _column(column: DescribedColumn, charset: str) -> MyColumn:
    stored, code = column.stored, column.stored.type
    length: int | None = None
    scale: int | None = None
    labels: tuple[str, ...] = ()
    holds_characters = column.collation not in (0, _BINARY)
    if code is ColumnType.GEOMETRY:
        name = _SHAPES[column.geometry] if 0 <= column.geometry < len(_SHAPES) else "GEOMETRY"
    elif code in (ColumnType.STRING, ColumnType.VAR_STRING, ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED):
        fixed = code is ColumnType.STRING
        name = ("CHAR" if fixed else "VARCHAR") if holds_characters else ("BINARY" if fixed else "VARBINARY")
        length = stored.size
    elif code in (ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB, ColumnType.BLOB, ColumnType.BLOB_COMPRESSED):
        name = ("", "TINY", "", "MEDIUM", "LONG")[min(stored.size, 4)] + ("TEXT" if holds_characters else "BLOB")
    else:
        name = _NAMES.get(code, code.name)
    if code is ColumnType.NEWDECIMAL:
        length, scale = stored.size, stored.scale
    elif code in (ColumnType.BIT, ColumnType.TIME2, ColumnType.DATETIME2, ColumnType.TIMESTAMP2):
        length = stored.size or None
    elif code in (ColumnType.ENUM, ColumnType.SET):
        decode = decoder(charset)
        labels = tuple(decode(label) for label in column.labels)
        length = 1 if code is ColumnType.ENUM else max(0, 2 * len(labels) - 1)
        holds_characters = True
    type_name = f"{name} UNSIGNED" if column.unsigned else name
    if name.endswith("TEXT"):
        jdbc = "VARCHAR"
    elif name in ("ENUM", "SET"):
        jdbc = "CHAR"
    elif name.endswith("BLOB"):
        jdbc = "BLOB"
    else:
        jdbc = _CODES.get(name, "SMALLINT" if name == "TINYINT" else name if name in JDBC else "OTHER")
    return MyColumn(
        name=column.name,
        type_name=type_name,
        jdbc_type=JDBC[jdbc],
        length=length,
        scale=scale,
        charset=charset if holds_characters else None,
        labels=labels,
        nullable=column.nullable,
        has_default=column.nullable,
    )


def _statement(table: MyTable) -> str:
    """Return what the history shows; its readers use the structure, which is in the same record."""
    columns = ", ".join(f"{quote_name(column.name)} {column.type_name}" for column in table.columns)
    return f"CREATE TABLE {quote_name(table.id.schema, table.id.table)} ({columns}) /* from row metadata */"


_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")
_WITH_LENGTH = frozenset(("CHAR", "VARCHAR", "BINARY", "VARBINARY", "DECIMAL", "NUMERIC", "BIT", "DATETIME", "TIMESTAMP", "TIME"))


@dataclass(frozen=True, slots=True)
class _Dispute:
    """A structure and a model that differ. `end` is where the log ended when the difference was seen."""

    statement: str
    model: MyTable
    end: BinlogPosition


class StructureCheck:
    """Remembers what was compared; used by the task's thread.

    Args:
        config: of the connector.
        received: up to where the stream has been read; None without a stream.
    """

    def __init__(self, config: MySqlConfig, received: Callable[[], BinlogPosition | None]) -> None:
        self._config = config
        self._received = received
        self._agreed: dict[TableId, tuple[str, MyTable]] = {}
        self._disputes: dict[TableId, _Dispute] = {}

    def __call__(self, connection: Connection, model: MyTable) -> None:
        """Compare. Inside of a transaction that has read the table, the answer is that of its rows.

        Raises:
            BusyError: the stream has to reach a change of the table first.
            UnknownCollectionError: the table does not exist.
            ConnectError: the two stay different.
            ServerError: the server cannot be asked.
        """
        id_ = model.id
        try:
            ((_, statement, *_),) = connection.texts(f"SHOW CREATE TABLE {quote_name(id_.schema, id_.table)}")
        except ServerError as error:
            if error.code in errors.GONE:
                raise UnknownCollectionError(f"The table '{id_}' is gone") from None
            raise
        statement = _COUNTER.sub("", statement, count=1)
        agreed = self._agreed.get(id_)
        if agreed is not None and agreed[0] == statement and agreed[1] is model:
            return
        present = _parsed(statement, id_)
        if not are_alike(present, model):
            self._settle(connection, statement, present, model)
        self._agreed[id_] = (statement, model)
        self._disputes.pop(id_, None)

    def _settle(self, connection: Connection, statement: str, present: MyTable | None, model: MyTable) -> None:
        id_ = model.id
        dispute = self._disputes.get(id_)
        if dispute is None or dispute.statement != statement or dispute.model is not model:
            status = queries.log_status(connection, self._config)
            dispute = self._disputes[id_] = _Dispute(statement, model, BinlogPosition(status.file, status.position))
        received = self._received()
        if received is None or received < dispute.end:
            raise BusyError(f"the structure of {id_} has changed, and the stream has not come to that yet")
        if present is not None and [column.name.lower() for column in present.columns] != [column.name.lower() for column in model.columns]:
            raise ConnectError(
                f"The table {id_} has other columns than the schema history tells of. Streaming goes on. To mend it, send a signal "
                "schema-changes, or restart with snapshot.mode=recovery"
            )
        log.info("The schema history remembers %s in other words than the server; its columns are the same", id_)


def _parsed(statement: str, id_: TableId) -> MyTable | None:
    tables = Tables()
    try:
        apply(statement, tables, id_.schema)
    except DdlError as error:
        log.warning("The server's own statement for %s could not be understood: %s", id_, error)
        return None
    return tables.tables.get(id_)


def are_alike(present: MyTable | None, model: MyTable) -> bool:
    return present is not None and present.key == model.key and list(map(facts, present.columns)) == list(map(facts, model.columns))


def facts(column: MyColumn) -> tuple[object, ...]:
    """Return what rows depend on."""
    kind = column.base_type
    length = (column.length, column.scale) if kind in _WITH_LENGTH else None
    return column.name.lower(), kind, column.unsigned, length, column.charset, column.labels, column.nullable


#: The database for which a statement runs, and the statement.
Statement = tuple[str, str]


def read_statements(connection: Connection, tables: Sequence[TableId], *, recreate: bool) -> list[Statement]:
    """Return statements in the order in which they are recorded.

    Args:
        recreate: with what comes before the tables: the server's character set, drops, and the databases.

    Raises:
        ServerError: the server cannot be asked.
    """
    found: list[Statement] = []
    if recreate:
        found.append(("", queries.charset_statement(connection)))
        found += _drops(tables)
    databases = sorted({table.schema for table in tables})
    made = queries.database_statements(connection, databases)
    for database in databases:
        found += [(database, statement) for statement in (made[database] if recreate else made[database][-1:])]
        found += _tables(connection, [table for table in tables if table.schema == database])
    return found


def recreate_statements(connection: Connection, tables: Sequence[TableId]) -> list[Statement]:
    """Return statements that drop tables and make them again as they are. Raises ServerError: the server cannot be asked."""
    return [*_drops(tables), *_tables(connection, sorted(tables, key=lambda table: table.schema))]


def _drops(tables: Sequence[TableId]) -> list[Statement]:
    return [(table.schema, f"DROP TABLE IF EXISTS {quote_name(table.schema, table.table)}") for table in tables]


def _tables(connection: Connection, tables: Sequence[TableId]) -> Iterator[Statement]:
    for table in tables:
        try:
            ((_, statement, *_),) = connection.texts(f"SHOW CREATE TABLE {quote_name(table.schema, table.table)}")
        except ServerError as error:
            if error.code not in errors.GONE:
                raise
            log.warning("The table %s was dropped before its structure could be read", table)
            continue
        yield table.schema, statement
