"""A process that reads chunks of a PostgreSQL snapshot for the task (`connectors.engine.snapshot.parallel.worker`).

It has a connection of its own, in a transaction with the snapshot that the task's transaction exports, and finds every table's structure as
of that snapshot. It encodes without schemas: these are constants, which the task puts before each payload.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from connect_py.api import JsonEncoding
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.initial.run import ChunkRows
from connectors.engine.snapshot.parallel import worker
from connectors.postgres.config import PostgresConfig, parse_config
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.preparation import open_general
from connectors.postgres.server.catalog import read_tables
from connectors.postgres.server.connection import Connection, quote_literal
from connectors.postgres.snapshot.rows import ConsistentSnapshot, copy_rows, snapshot_encoder
from connectors.postgres.tables import CapturedTable, TableFactory

MODULE = __name__


def spec(config: PostgresConfig, encoding: JsonEncoding, exported: str, snapshot: ConsistentSnapshot) -> dict[str, Any]:
    """Return what a reader receives first; it holds the password."""
    return {"config": dict(config.raw), "encoding": asdict(encoding), "exported": exported, "snapshot": asdict(snapshot)}


def describe(table: TableId, where: str, statement: str | None) -> dict[str, Any]:
    """Return a chunk for a reader, as `copy_rows` expects it."""
    return {"schema": table.schema, "table": table.table, "where": where, "statement": statement}


class _Source:
    def __init__(self, received: Mapping[str, Any]) -> None:
        self._config = parse_config(received["config"])
        encoding = replace(JsonEncoding(**received["encoding"]), key_schemas=False, value_schemas=False)
        self._factory = TableFactory(self._config, encoding, ())
        self._consistent = ConsistentSnapshot(**received["snapshot"])
        self._tables: dict[TableId, CapturedTable] = {}
        with self._translated("A process cannot begin to read the snapshot"):
            self._connection = _connect(self._config, received["exported"])

    def open(self, chunk: Mapping[str, Any]) -> ChunkRows[bytes]:
        id_ = TableId(chunk["schema"], chunk["table"])
        with self._translated(f"Cannot read the table {id_}"):
            if id_ not in self._tables:
                self._tables[id_] = self._factory.build(read_tables(self._connection, [id_])[id_])
        table = self._tables[id_]
        return self._read(table, chunk["where"], chunk["statement"]), snapshot_encoder(table, self._consistent)

    def _read(self, table: CapturedTable, where: str, statement: str | None) -> Iterator[list[bytes]]:
        with self._translated(f"Cannot read the table {table.id}"):
            yield from copy_rows(self._connection, table, where=where, statement=statement)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except ServerError as error:
            raise translate(error, what, user=self._config.user, database=self._config.database) from None


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
