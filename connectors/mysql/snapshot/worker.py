"""A process that reads chunks of a MySQL snapshot in parallel to the task (`serve`).

It has its own connection, which begins its consistent snapshot while the task's holds the lock. Tables come in the structures that the task
has. It encodes without schemas: these are constants, which the task puts before each payload.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from connect_py.api import JsonEncoding
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.initial.run import ChunkRows, Encode
from connectors.engine.snapshot.parallel import worker
from connectors.mysql.config.config import MySqlConfig, parse_config
from connectors.mysql.model import MyColumn, MyTable
from connectors.mysql.position.offset import EventPosition
from connectors.mysql.schema.captured import CapturedTable, TableFactory
from connectors.mysql.server import queries
from connectors.mysql.snapshot.locks import begin_consistent_snapshot, prepare_session
from connectors.mysql.snapshot.rows import select_rows, snapshot_encoder

MODULE = __name__


def spec(config: MySqlConfig, encoding: JsonEncoding) -> dict[str, Any]:
    """Return the first message to a reader; it holds the password."""
    return {"config": dict(config.raw), "connector": config.connector, "encoding": asdict(encoding)}


def describe(model: MyTable, part: str, statement: str | None, position: EventPosition, ts_us: int) -> dict[str, Any]:
    """Return a chunk for a reader, as `select_rows` and `snapshot_encoder` take it."""
    table = {"model": asdict(model), "position": asdict(position), "ts_us": ts_us}
    return {"table": table, "part": part, "statement": statement}


class _Source:
    def __init__(self, message: Mapping[str, Any]) -> None:
        self._config = parse_config(message["config"], message["connector"])
        encoding = replace(JsonEncoding(**message["encoding"]), key_schemas=False, value_schemas=False)
        self._factory = TableFactory(self._config, encoding, ())
        self._connection = queries.open_connection(self._config)
        self._described: Mapping[str, Any] = {}
        self._table: tuple[CapturedTable, Encode[bytes]] | None = None

    def begin_consistent_snapshot(self) -> None:
        prepare_session(self._connection, self._config)
        begin_consistent_snapshot(self._connection)

    def open(self, chunk: Mapping[str, Any]) -> ChunkRows[bytes]:
        described = chunk["table"]
        if self._table is None or described != self._described:
            table = self._factory.build(_model(described["model"]))
            encode = snapshot_encoder(table, EventPosition(**described["position"]), described["ts_us"])
            self._described, self._table = described, (table, encode)
        table, encode = self._table
        return select_rows(self._connection, table, part=chunk["part"], statement=chunk["statement"], changes_pass=True), encode


def _model(described: Mapping[str, Any]) -> MyTable:
    columns = tuple(MyColumn(**{**column, "labels": tuple(column["labels"])}) for column in described["columns"])
    return MyTable(**{**described, "id": TableId(**described["id"]), "columns": columns, "key": tuple(described["key"])})


def main() -> int:
    """Read chunks until the task ends, or needs no more."""
    logging.basicConfig(level=logging.ERROR)
    return worker.serve(_Source, bytes)


if __name__ == "__main__":
    sys.exit(main())
