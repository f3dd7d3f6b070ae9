"""Watermarks of PostgreSQL's incremental snapshot: rows of the signal table, or, where nothing may be written, positions of the log
(postgres.md §16; debezium-common §11.2).

`read.only=true`. Debezium compares transaction numbers of `pg_current_snapshot()` with those of the stream, and needs traffic or
heartbeats to get on. Here the high watermark is the log's position after the chunk: every transaction that the chunk can have seen has
committed before it, and the server tells a stream that has caught up how far it is, also when nothing happens. A window is open from the
moment the chunk is read; an event that is older than the chunk then drops its row too, which is right: the event's own row, and all that
follow it, are in the stream.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable

from connectors.engine.relational.table import TableId
from connectors.postgres.connection import Connection, quote_literal, quote_name
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.lsn import parse_lsn

OPEN, CLOSE = "snapshot-window-open", "snapshot-window-close"


class SignalTable:
    """Writes watermarks into the signal table, each in a transaction of its own.

    Args:
        general: the connection of now.
        deletes: ``incremental.snapshot.watermarking.strategy=insert_delete``: the high watermark is the deletion of the low one.
    """

    def __init__(self, general: Callable[[], Connection], table: TableId, *, deletes: bool, user: str, database: str) -> None:
        self._general = general
        self._name = f"{quote_name(table.schema)}.{quote_name(table.table)}"
        self._table = table
        self._deletes = deletes
        self._user, self._database = user, database
        self._opened = ""

    def low(self, chunk: str) -> None:
        """See `Watermarks`."""
        self._opened = _instant()
        self._insert(f"{chunk}-open", OPEN, {"openWindowTimestamp": self._opened})

    def high(self, chunk: str) -> None:
        """See `Watermarks`."""
        if self._deletes:
            self._run(f"DELETE FROM {self._name} WHERE id = {quote_literal(f'{chunk}-open')}")
        else:
            self._insert(f"{chunk}-close", CLOSE, {"openWindowTimestamp": self._opened, "closeWindowTimestamp": _instant()})

    def _insert(self, id_: str, type_: str, data: dict[str, str]) -> None:
        values = ", ".join(quote_literal(value) for value in (id_, type_, json.dumps(data)))
        self._run(f"INSERT INTO {self._name} VALUES ({values})")

    def _run(self, sql: str) -> None:
        try:
            self._general().query(sql)
        except ServerError as error:
            what = f"Cannot write to the signal table {self._table}"
            raise translate(error, what, user=self._user, database=self._database) from None


class LogPositions:
    """Positions of the log as watermarks.

    Attributes:
        chunk: the one whose window waits; empty when none does.
        position: where the window ends; None while the chunk is read.
    """

    def __init__(self, general: Callable[[], Connection], opened: Callable[[str], None], *, user: str, database: str) -> None:
        self._general = general
        self._opened = opened
        self._user, self._database = user, database
        self.chunk = ""
        self.position: int | None = None

    def low(self, chunk: str) -> None:
        """See `Watermarks`."""
        self.chunk, self.position = chunk, None

    def high(self, chunk: str) -> None:
        """See `Watermarks`."""
        try:
            ((lsn,),) = self._general().query(
                "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END"
            )
        except ServerError as error:
            raise translate(error, "Cannot read the log's position", user=self._user, database=self._database) from None
        self.position = parse_lsn(str(lsn))
        self._opened(chunk)

    def passed(self, received: int) -> str:
        """The chunk whose high watermark the stream has passed; empty for none."""
        if self.position is None or received < self.position:
            return ""
        chunk, self.chunk, self.position = self.chunk, "", None
        return chunk


def _instant() -> str:
    now = time.time_ns()
    seconds = datetime.datetime.fromtimestamp(now // 1_000_000_000, datetime.UTC)
    return f"{seconds:%Y-%m-%dT%H:%M:%S}.{now % 1_000_000_000:09d}Z"
