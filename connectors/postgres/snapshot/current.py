"""The current rows of PostgreSQL's tables (`TableScan`)."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping

from connect_py.api.record import EncodedRow
from connect_py.errors import ConnectError
from connectors.engine.java_object import StoredKey
from connectors.engine.snapshot.current_rows import SCAN_ENCODING
from connectors.engine.snapshot.incremental.contract import BusyError
from connectors.engine.snapshot.incremental.offset import WantedCollection
from connectors.engine.snapshot.initial.run import Marker
from connectors.engine.topic_naming import TopicNaming
from connectors.postgres.config import parse_config
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.preparation import open_general
from connectors.postgres.server.catalog import read_tables
from connectors.postgres.snapshot.chunks import PostgresChunks
from connectors.postgres.snapshot.rows import ConsistentSnapshot, copy_rows, snapshot_encoder
from connectors.postgres.tables import TableFactory


class PostgresTableScan:
    """Reads the current rows of the captured tables (`TableScan`). Raises ConnectError."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = parse_config(config)
        self._naming = TopicNaming.from_config(self._config.raw)
        self._connection = open_general(self._config, lambda: False)
        self._factory = TableFactory(self._config, SCAN_ENCODING, ())
        self._chunks = PostgresChunks(
            lambda: self._connection,
            self._config,
            self._factory,
            while_waiting=lambda: None,
            streamed=lambda: frozenset(),
        )

    def names(self) -> list[str]:
        return [name for name in self._chunks.names() if name != str(self._config.signal_table)]

    def topic(self, name: str) -> str:
        id_ = self._chunks.table(name)
        return self._naming.data_topic(id_.schema, id_.table) if id_ is not None else name

    def source(self, name: str) -> Mapping[str, str]:
        id_ = self._chunks.table(name)
        found = {"name": self._config.topic_prefix, "db": self._config.database}
        return found if id_ is None else found | {"schema": id_.schema, "table": id_.table}

    def maximum(self, name: str) -> StoredKey | None:
        return self._chunks.maximum(WantedCollection(name))

    def read(self, name: str, after: StoredKey | None, until: StoredKey, limit: int) -> tuple[list[EncodedRow], StoredKey | None]:
        try:
            chunk = self._chunks.read(WantedCollection(name), after, until, limit)
        except BusyError as error:
            raise ConnectError(f"Table {name} cannot be read now: {error}") from error
        return self._chunks.rows([row for _, row in chunk.rows], None, None), chunk.last

    def scan(self, name: str) -> Generator[list[EncodedRow]]:
        connection = open_general(self._config, lambda: False)
        try:
            # one snapshot for the structure and the rows
            connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            wanted = [id_] if (id_ := self._chunks.table(name)) is not None else []
            structure = next(iter(read_tables(connection, wanted, with_generated=False).values()), None)
            if structure is None:
                raise ConnectError(f"The table {name} is gone")
            table = self._factory.build(structure)
            encode = snapshot_encoder(table, ConsistentSnapshot(0, None, time.time_ns() // 1000))
            for rows in copy_rows(connection, table):
                yield encode(rows, Marker.MIDDLE)
        except ServerError as error:
            raise translate(error, f"Cannot read {name}", user=self._config.user, database=self._config.database) from None
        finally:
            connection.close()

    def close(self) -> None:
        self._connection.close()
