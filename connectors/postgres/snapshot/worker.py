"""A process that reads chunks of a PostgreSQL snapshot for the task (`connectors.engine.snapshot.parallel.worker`).

It has a connection of its own, in a transaction with the snapshot that the task's transaction exports, and finds every table's structure as
of that snapshot. It encodes without schemas: these are constants, which the task puts before each payload.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from connect_py.api import JsonEncoding
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.parallel import worker
from connectors.postgres.config import PostgresConfig, parse_config
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.preparation import open_general
from connectors.postgres.server.catalog import read_tables
from connectors.postgres.server.connection import Connection, quote_literal
from connectors.postgres.snapshot.rows import ConsistentSnapshot, CopyRows
from connectors.postgres.tables import CapturedTable, TableFactory

MODULE = __name__


def spec(config: PostgresConfig, encoding: JsonEncoding, exported: str, snapshot: ConsistentSnapshot) -> dict[str, Any]:
    """Return what a reader receives first; it holds the password."""
    return {"config": dict(config.raw), "encoding": asdict(encoding), "exported": exported, "snapshot": asdict(snapshot)}


def describe(table: TableId, where: str, statement: str | None) -> dict[str, Any]:
    """Return a chunk for a reader, as `CopyRows` expects it."""
    return {"schema": table.schema, "table": table.table, "where": where, "statement": statement}


class _Source:
    def __init__(self, received: Mapping[str, Any]) -> None:
        self._config = parse_config(received["config"])
        encoding = replace(JsonEncoding(**received["encoding"]), key_schemas=False, value_schemas=False)
        self._factory = TableFactory(self._config, encoding, ())
        self._consistent = ConsistentSnapshot(**received["snapshot"])
        self._tables: dict[TableId, CapturedTable] = {}
        try:
            self._connection = _connect(self._config, received["exported"])
        except ServerError as error:
            raise self._translated(error, "A process cannot begin to read the snapshot") from None

    def open(self, chunk: Mapping[str, Any]) -> _Rows:
        id_ = TableId(chunk["schema"], chunk["table"])
        try:
            if id_ not in self._tables:
                self._tables[id_] = self._factory.build(read_tables(self._connection, [id_])[id_])
            rows = CopyRows(self._connection, self._tables[id_], self._consistent, where=chunk["where"], statement=chunk["statement"])
        except ServerError as error:
            raise self._translated(error, f"Cannot read the table {id_}") from None
        return _Rows(rows, lambda error: self._translated(error, f"Cannot read the table {id_}"))

    def _translated(self, error: ServerError, what: str) -> Exception:
        return translate(error, what, user=self._config.user, database=self._config.database)


class _Rows:
    def __init__(self, rows: CopyRows, translated: Any) -> None:
        self._rows = rows
        self._translated = translated
        self.encode = rows.encode

    def read(self) -> list[bytes] | None:
        try:
            return self._rows.read()
        except ServerError as error:
            raise self._translated(error) from None


def _connect(config: PostgresConfig, exported: str) -> Connection:
    connection = open_general(config, lambda: False)
    connection.query(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT {quote_literal(exported)}")
    return connection


def main() -> int:
    """Read chunks until the task is gone, or has had enough."""
    logging.basicConfig(level=logging.ERROR)
    return worker.serve(_Source, bytes)


if __name__ == "__main__":
    sys.exit(main())
