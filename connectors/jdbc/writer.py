"""Changes into statements, in transactions (`JdbcChangeEventSink.java`, `DefaultRecordWriter.java`, `RecordBuffer.java`).

What one `put` brings is one transaction, unless a table must be created or altered in between: MySQL ends a transaction there, so what is
before is committed first, and `Writer.applied` says up to where. The order of a table's changes is kept; tables do not wait for each other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from connect_py.errors import ConnectError, DataError, FatalTaskError
from connectors.jdbc.config import SinkConfig
from connectors.jdbc.dialects.base import Binder, Dialect
from connectors.jdbc.errors import StaleTableError, database_error
from connectors.jdbc.naming import TableId, table_id
from connectors.jdbc.records import Change, Column, Kind, Shape

log = logging.getLogger(__name__)

_MAX_PLANS = 2000
FAILURES = (SQLAlchemyError, OSError, OverflowError, ValueError, TypeError)


@dataclass
class _Buffer:
    """Changes of one table that wait, all of one kind and shape; by key where only the last one of a row counts."""

    kind: Kind
    shape: Shape
    changes: list[Change] = field(default_factory=list)
    by_key: dict[Any, Change] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.changes) + len(self.by_key)


@dataclass(frozen=True)
class _Plan:
    """The statement for one table, shape and kind, and what makes its parameters."""

    insertion: tuple[str, str, str] | None
    statement: str
    bind: Binder


class Writer:
    """Writes changes through one connection. The task's thread owns it.

    Attributes:
        applied: how many of the current `write`'s changes are committed.
    """

    def __init__(self, config: SinkConfig, dialect: Dialect, where: str) -> None:
        self._config = config
        self._dialect = dialect
        self._where = where
        self._columns: dict[TableId, frozenset[str]] = {}
        self._known: set[tuple[TableId, Shape]] = set()
        self._plans: dict[tuple[TableId, Shape, Kind], _Plan] = {}
        self._buffers: dict[TableId, list[_Buffer]] = {}
        self.applied = 0

    def forget_tables(self) -> None:
        """Look at the tables again before the next change."""
        self._columns.clear()
        self._known.clear()

    def write(self, connection: Connection, changes: Sequence[Change]) -> None:
        """Write changes and commit.

        Raises:
            RetriableError: the database does not accept them now; what is not in `applied` is rolled back.
            DataError: it refuses a value.
            FatalTaskError: it will not accept them.
        """
        self.applied = 0
        self._buffers.clear()
        try:
            for index, change in enumerate(changes):
                self._add(connection, change, index)
            self._commit(connection, len(changes))
        except FAILURES as error:
            raise database_error(error, f"{self._where} could not take changes") from error
        finally:
            self._buffers.clear()

    def _add(self, connection: Connection, change: Change, index: int) -> None:
        if change.kind is Kind.DELETE and not self._config.deletes:
            log.debug("Deletes are not enabled, skipping delete for topic '%s'", change.record.topic)
            return
        if change.kind is Kind.TRUNCATE and not self._config.truncates:
            log.debug("Truncates are not enabled, skipping truncate for topic '%s'", change.record.topic)
            return
        name = self._config.tables.of(change.record.topic, change.event)
        if name is None:
            record = change.record
            log.warning(
                "Ignored to write record from topic '%s' partition '%d' offset '%d'. No resolvable table name", *_coordinates(record)
            )
            return
        table = table_id(name)
        if change.kind is Kind.TRUNCATE:
            self._truncate(connection, table, index)
        elif self._has_table(connection, table, change, index):
            self._buffer(connection, table, change)

    # -- buffers -------------------------------------------------------------------------------------------------------------------

    def _buffer(self, connection: Connection, table: TableId, change: Change) -> None:
        buffers = self._buffers.setdefault(table, [])
        key = change.key if self._config.reduces and change.shape.keys else None
        if key is not None:
            for earlier in buffers:
                earlier.by_key.pop(_hashable(key), None)  # only the last change of a row counts
        last = buffers[-1] if buffers else None
        if last is None or last.kind is not change.kind or last.shape is not change.shape:
            if key is None:
                self._flush_table(connection, table)
            last = _Buffer(change.kind, change.shape)
            self._buffers.setdefault(table, []).append(last)
        if key is not None:
            last.by_key[_hashable(key)] = change
        else:
            last.changes.append(change)
        if sum(map(len, self._buffers[table])) >= self._config.batch_size:
            self._flush_table(connection, table)

    def _flush_table(self, connection: Connection, table: TableId) -> None:
        for buffer in self._buffers.pop(table, ()):
            if len(buffer):
                self._execute(connection, table, buffer)

    def _commit(self, connection: Connection, count: int) -> None:
        for table in list(self._buffers):
            self._flush_table(connection, table)
        connection.commit()
        self.applied = count

    def _execute(self, connection: Connection, table: TableId, buffer: _Buffer) -> None:
        plan = self._plan(table, buffer.shape, buffer.kind)
        keys = len(buffer.shape.keys)
        rows = []
        for change in [*buffer.changes, *buffer.by_key.values()]:
            if buffer.kind is Kind.DELETE:
                values = change.key
            elif plan.insertion is None:
                values = (*change.values[keys:], *change.key)
            else:
                values = change.values
            rows.append(plan.bind(values))
        if plan.insertion is not None:
            self._dialect.run(connection, plan.insertion, rows)
        else:
            connection.exec_driver_sql(plan.statement, rows)

    def _plan(self, table: TableId, shape: Shape, kind: Kind) -> _Plan:
        found = self._plans.get((table, shape, kind))
        if found is None:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            found = self._plans[(table, shape, kind)] = self._new_plan(table, shape, kind)
        return found

    def _new_plan(self, table: TableId, shape: Shape, kind: Kind) -> _Plan:
        dialect, mode = self._dialect, self._config.insert_mode
        if kind is Kind.DELETE:
            if not shape.keys:
                raise DataError(f"A record cannot be deleted from table {table.shown}: it has no key fields")
            return _Plan(None, dialect.delete(table, shape), dialect.binder(shape.keys))
        if mode == "update":
            if not shape.others:
                raise DataError(f"A record of table {table.shown} cannot be an update: it has no fields but those of its key")
            return _Plan(None, dialect.update(table, shape), dialect.binder((*shape.others, *shape.keys)))
        if mode == "upsert" and not shape.keys:
            raise FatalTaskError(f"Cannot write to table {table.shown} with no key fields defined.")
        made = dialect.upsert(table, shape) if mode == "upsert" else dialect.insert(table, shape)
        return _Plan(made, "", dialect.binder(shape.columns))

    # -- tables --------------------------------------------------------------------------------------------------------------------

    def _truncate(self, connection: Connection, table: TableId, index: int) -> None:
        self._commit(connection, index)
        if self._dialect.columns_of(connection, table) is None:
            log.warning("A truncate of table %s is ignored: there is no such table", table.shown)
            return
        connection.exec_driver_sql(self._dialect.truncate(table))
        self._commit(connection, index + 1)

    def _has_table(self, connection: Connection, table: TableId, change: Change, index: int) -> bool:
        """See to it that the table has the change's columns; False when there is no table to delete from."""
        shape = change.shape
        if (table, shape) in self._known:
            return True
        columns = self._columns.get(table)
        if columns is None:
            columns = self._dialect.columns_of(connection, table)
        if columns is None and not shape.others and change.kind is Kind.DELETE:
            return False
        if columns is None:
            columns = self._create(connection, table, shape, index)
        missing = self._dialect.missing(shape, columns)
        if missing:
            columns = self._alter(connection, table, shape, missing, index)
        self._columns[table] = columns
        if len(self._known) >= _MAX_PLANS:
            self._known.clear()
        self._known.add((table, shape))
        return True

    def _create(self, connection: Connection, table: TableId, shape: Shape, index: int) -> frozenset[str]:
        if not self._config.evolves:
            raise FatalTaskError(
                f"Cannot create table {table.shown} because schema evolution is disabled. Create it, or set schema.evolution=basic."
            )
        statement = self._dialect.create_table(table, shape)
        self._commit(connection, index)
        try:
            connection.exec_driver_sql(statement)
            connection.commit()
        except SQLAlchemyError as error:
            connection.rollback()
            found = self._dialect.columns_of(connection, table)
            if found is None:
                raise _refusal(error, f"Table {table.shown} could not be created") from error
            return found  # another task was quicker
        log.info("Table %s was created with the columns %s", table.shown, ", ".join(column.name for column in shape.columns))
        return self._read(connection, table)

    def _alter(self, connection: Connection, table: TableId, shape: Shape, missing: Sequence[Column], index: int) -> frozenset[str]:
        names = ", ".join(column.name for column in missing)
        for column in missing:
            if not column.schema.optional and column.schema.default is None:
                raise FatalTaskError(
                    f"Cannot ALTER table '{table.shown}' because field '{column.name}' is not optional but has no default value"
                )
        if not self._config.evolves:
            raise FatalTaskError(
                f"Cannot alter table {table.shown} because schema evolution is disabled. It lacks the columns {names}: add them, or set "
                "schema.evolution=basic."
            )
        statements = self._dialect.add_columns(table, missing)
        self._commit(connection, index)
        try:
            for statement in statements:
                connection.exec_driver_sql(statement)
            connection.commit()
        except SQLAlchemyError as error:
            connection.rollback()
            found = self._dialect.columns_of(connection, table) or frozenset()
            if self._dialect.missing(shape, found):
                raise _refusal(error, f"Table {table.shown} could not be given the columns {names}") from error
            return found  # another task was quicker
        log.info("Table %s was given the columns %s", table.shown, names)
        return self._read(connection, table)

    def _read(self, connection: Connection, table: TableId) -> frozenset[str]:
        found = self._dialect.columns_of(connection, table)
        if found is None:
            raise StaleTableError(f"Could not find table: {table.shown}")
        return found


def _refusal(error: Exception, what: str) -> ConnectError:
    """Return the error of a refused statement; one that changes a table is never one record's fault."""
    found = database_error(error, what)
    return FatalTaskError(str(found)) if isinstance(found, DataError) else found


def _coordinates(record: Any) -> tuple[str, int, int]:
    return record.topic, record.partition, record.offset


def _hashable(key: tuple[Any, ...]) -> Any:
    try:
        hash(key)
    except TypeError:
        return repr(key)
    return key
