"""Watermarks of MySQL's incremental snapshot (mysql.md §17): rows of the signal table, or positions of the log.

`read.only=true`. Debezium compares sets of GTIDs: the transactions that were executed while the chunk was read, and needs events to notice
that they have passed. A transaction is visible a moment before it counts as executed, which such sets miss. Here the high watermark is the
place where the log ends after the chunk: every transaction that the chunk can have seen was written to the log before it, and the server's
heartbeats tell a stream that has caught up how far it is.
"""

from __future__ import annotations

from collections.abc import Callable

from connectors.engine.relational.table import TableId
from connectors.engine.snapshot.incremental.contract import Watermarks, WrittenWatermarks
from connectors.mysql.config import MySqlConfig
from connectors.mysql.position.log_place import LogPlace
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection, quote_name
from connectors.mysql.types.keys import text_literal


def watermarks_of(config: MySqlConfig, general: Callable[[], Connection], received: Callable[[], LogPlace | None]) -> Watermarks | None:
    """The way that the configuration asks for; None without any.

    Args:
        general: the connection of now.
        received: up to where the stream was read.
    """
    if config.read_only:
        return LogPositions(config, general, received)
    if config.signal_table is None:
        return None
    table = SignalTable(general, config.signal_table)
    deletes = config.choice("incremental.snapshot.watermarking.strategy") == "insert_delete"
    return WrittenWatermarks(table.insert, table.delete if deletes else None)


class SignalTable:
    """Writes to the signal table, each time in a transaction of its own. Raises ConnectError."""

    def __init__(self, general: Callable[[], Connection], table: TableId) -> None:
        self._general = general
        self._name = quote_name(table.schema, table.table)

    def insert(self, id_: str, type_: str, data: str) -> None:
        """Insert a row."""
        values = ", ".join(text_literal(value) for value in (id_, type_, data))
        self._general().execute(f"INSERT INTO {self._name} VALUES ({values})")  # noqa: S608  # literals without quotes of ours

    def delete(self, id_: str) -> None:
        """Delete a row."""
        self._general().execute(f"DELETE FROM {self._name} WHERE id = {text_literal(id_)}")  # noqa: S608  # as above


class LogPositions(Watermarks):
    """See the module."""

    open_at_once = True

    def __init__(self, config: MySqlConfig, general: Callable[[], Connection], received: Callable[[], LogPlace | None]) -> None:
        self._config = config
        self._general = general
        self._received = received
        self._chunk = ""
        self._end: LogPlace | None = None

    def low(self, chunk: str) -> None:
        """See `Watermarks`."""
        self._chunk, self._end = chunk, None

    def high(self, chunk: str) -> None:
        """See `Watermarks`."""
        status = queries.log_status(self._general(), self._config)
        self._end = LogPlace(status.file, status.position)

    def passed(self) -> str:
        """See `Watermarks`."""
        received = self._received()
        if self._end is None or received is None or received < self._end:
            return ""
        chunk, self._chunk, self._end = self._chunk, "", None
        return chunk
