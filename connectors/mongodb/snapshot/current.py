"""The current documents of MongoDB's collections (`TableScan`)."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from connect_py.api.record import EncodedRow
from connectors.engine.java_object import StoredKey
from connectors.engine.snapshot.current_rows import SCAN_ENCODING
from connectors.engine.snapshot.incremental.offset import WantedCollection
from connectors.engine.topic_naming import TopicNaming
from connectors.mongodb.capture import split_namespace
from connectors.mongodb.collection import CollectionFactory
from connectors.mongodb.config import parse_config
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.server.connection import open_client
from connectors.mongodb.snapshot.chunks import MongoChunks
from connectors.mongodb.values.documents import Documents

#: Documents of a read.
_SCAN_ROWS = 5_000


class MongoTableScan:
    """Reads the current documents of the captured collections (`TableScan`). Raises ConnectError."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = parse_config(config)
        self._naming = TopicNaming.from_config(self._config.raw, "default")
        self._client = open_client(self._config)
        documents = Documents(self._config.choice("json.serialization.mode"))
        collections = CollectionFactory(self._config, SCAN_ENCODING, ())
        self._chunks = MongoChunks(lambda: self._client, self._config, collections, documents, MongoOffset)

    def names(self) -> list[str]:
        return [name for name in self._chunks.names() if name != self._config.signal_collection]

    def topic(self, name: str) -> str:
        return self._naming.data_topic(*split_namespace(name))

    def source(self, name: str) -> Mapping[str, str]:
        database, collection = split_namespace(name)
        return {"name": self._config.topic_prefix, "db": database, "collection": collection}

    def maximum(self, name: str) -> StoredKey | None:
        return self._chunks.maximum(WantedCollection(name))

    def read(self, name: str, after: StoredKey | None, until: StoredKey, limit: int) -> tuple[list[EncodedRow], StoredKey | None]:
        chunk = self._chunks.read(WantedCollection(name), after, until, limit)
        return self._chunks.rows([row for _, row in chunk.rows]), chunk.last

    def scan(self, name: str) -> Generator[list[EncodedRow]]:
        """Read all documents by their ids, each page in a snapshot of its own."""
        after, end = None, self.maximum(name)
        while end is not None:
            rows, after = self.read(name, after, end, _SCAN_ROWS)
            yield rows
            if after is None or len(rows) < _SCAN_ROWS:
                return

    def close(self) -> None:
        self._client.close()
