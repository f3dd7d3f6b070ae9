"""PostgreSQL's tables as they are now; see `connectors.engine.present`."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api.record import EncodedRow
from connect_py.errors import ConnectError
from connectors.engine.present import PRESENT
from connectors.engine.snapshot.incremental_offset import StoredKey, WantedCollection
from connectors.engine.snapshot.reader import BusyError
from connectors.engine.topic_naming import TopicNaming
from connectors.postgres.chunk_reader import PostgresChunks
from connectors.postgres.config import parse_config
from connectors.postgres.preparation import open_general
from connectors.postgres.tables import TableFactory


class PostgresPresentTables:
    """`PresentTables`. Raises ConnectError."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = parse_config(config)
        self._naming = TopicNaming.from_config(self._config.raw)
        self._connection = open_general(self._config, lambda: False)
        self._chunks = PostgresChunks(
            lambda: self._connection,
            self._config,
            TableFactory(self._config, PRESENT, ()),
            while_waiting=lambda: None,
            streamed=lambda: frozenset(),
        )

    def names(self) -> list[str]:
        """See `PresentTables`."""
        return [name for name in self._chunks.names() if name != str(self._config.signal_table)]

    def topic(self, name: str) -> str:
        """See `PresentTables`."""
        id_ = self._chunks.table(name)
        return self._naming.data_topic(id_.schema, id_.table) if id_ is not None else name

    def source(self, name: str) -> Mapping[str, str]:
        """See `PresentTables`."""
        id_ = self._chunks.table(name)
        found = {"name": self._config.topic_prefix, "db": self._config.database}
        return found if id_ is None else found | {"schema": id_.schema, "table": id_.table}

    def maximum(self, name: str) -> StoredKey | None:
        """See `PresentTables`."""
        return self._chunks.maximum(WantedCollection(name))

    def read(self, name: str, after: StoredKey | None, until: StoredKey, limit: int) -> tuple[list[EncodedRow], StoredKey | None]:
        """See `PresentTables`."""
        try:
            chunk = self._chunks.read(WantedCollection(name), after, until, limit)
        except BusyError as error:
            raise ConnectError(f"Table {name} cannot be read now: {error}") from error
        return self._chunks.rows([row for _, row in chunk.rows], None, None), chunk.last

    def close(self) -> None:
        """See `PresentTables`."""
        self._connection.close()
