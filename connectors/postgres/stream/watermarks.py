"""Watermarks of PostgreSQL's incremental snapshot (postgres.md §16): rows of the signal table, or positions of the log.

`read.only=true`. Debezium compares transaction numbers of `pg_current_snapshot()` with those of the stream, and needs traffic or
heartbeats to get on. Here the high watermark is the log's position after the chunk: every transaction that the chunk can have seen has
committed before it, and the server tells a stream that has caught up how far it is, also when nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable

from connectors.engine.relational.table import TableId
from connectors.engine.snapshot.incremental.contract import Watermarks, WrittenWatermarks
from connectors.postgres.config import PostgresConfig
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.position.lsn import parse_lsn
from connectors.postgres.server.connection import Connection, quote_literal, quote_name


def watermarks_of(config: PostgresConfig, general: Callable[[], Connection], received: Callable[[], int]) -> Watermarks | None:
    """The way that the configuration asks for; None without any.

    Args:
        general: the connection of now.
        received: up to where the stream was read.
    """
    if config.choice("read.only") == "true":
        return LogPositions(general, received, user=config.user, database=config.database)
    if config.signal_table is None:
        return None
    table = SignalTable(general, config.signal_table, user=config.user, database=config.database)
    deletes = config.choice("incremental.snapshot.watermarking.strategy") == "insert_delete"
    return WrittenWatermarks(table.insert, table.delete if deletes else None)


class SignalTable:
    """Writes to the signal table, each time in a transaction of its own. Raises ConnectError."""

    def __init__(self, general: Callable[[], Connection], table: TableId, *, user: str, database: str) -> None:
        self._general = general
        self._name = f"{quote_name(table.schema)}.{quote_name(table.table)}"
        self._table = table
        self._user, self._database = user, database

    def insert(self, id_: str, type_: str, data: str) -> None:
        """Insert a row."""
        values = ", ".join(quote_literal(value) for value in (id_, type_, data))
        self._run(f"INSERT INTO {self._name} VALUES ({values})")

    def delete(self, id_: str) -> None:
        """Delete a row."""
        self._run(f"DELETE FROM {self._name} WHERE id = {quote_literal(id_)}")

    def _run(self, sql: str) -> None:
        try:
            self._general().query(sql)
        except ServerError as error:
            what = f"Cannot write to the signal table {self._table}"
            raise translate(error, what, user=self._user, database=self._database) from None


class LogPositions(Watermarks):
    """See the module."""

    open_at_once = True

    def __init__(self, general: Callable[[], Connection], received: Callable[[], int], *, user: str, database: str) -> None:
        self._general = general
        self._received = received
        self._user, self._database = user, database
        self._chunk = ""
        self._end: int | None = None

    def low(self, chunk: str) -> None:
        """See `Watermarks`."""
        self._chunk, self._end = chunk, None

    def high(self, chunk: str) -> None:
        """See `Watermarks`."""
        try:
            ((lsn,),) = self._general().query(
                "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END"
            )
        except ServerError as error:
            raise translate(error, "Cannot read the log's position", user=self._user, database=self._database) from None
        self._end = parse_lsn(str(lsn))

    def passed(self) -> str:
        """See `Watermarks`."""
        if self._end is None or self._received() < self._end:
            return ""
        chunk, self._chunk, self._end = self._chunk, "", None
        return chunk
