"""What MongoDB adds to the services of a source (signals, incremental snapshots, transaction metadata). Owned by the task's thread.

Watermarks of an incremental snapshot are documents of the signal collection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from connect_py.api import SourceTaskContext
from connect_py.api.record import EncodedRow
from connectors.engine import services
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from connectors.engine.signal.records import CLOSE, OPEN
from connectors.engine.snapshot.incremental.contract import SnapshotHooks, Watermarks
from connectors.engine.snapshot.incremental.offset import PREFIX
from connectors.mongodb.capture import split_namespace
from connectors.mongodb.collection import CollectionFactory
from connectors.mongodb.config import MongoConfig
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.server.connection import Client, translated
from connectors.mongodb.snapshot.chunks import ChunkRow, MongoChunks
from connectors.mongodb.stream.stream import EventStream
from connectors.mongodb.values.documents import Documents

#: The field of the offset that lists collections, and what of each entry is not of this connector.
COLLECTIONS = f"{PREFIX}collections"
_NO_SURROGATE = f',"{COLLECTIONS}_surrogate_key":null'


class SignalCollection(Watermarks):
    """Documents of the signal collection as watermarks.

    Args:
        client: returns the task's open client, which is replaced after a reconnect.
        deletes: ``incremental.snapshot.watermarking.strategy=insert_delete``: the end of a window deletes the document of its begin. The
            stream cannot be asked for that deletion where the user's pipeline or `skipped.operations` hides deletes, so that the window
            closes after the stream's next answer, as it does in the reference. It is open as soon as the chunk is there; see
            `connectors.engine.snapshot.incremental.contract`.
    """

    def __init__(self, client: Callable[[], Client], namespace: str, *, deletes: bool) -> None:
        self._client = client
        self._namespace = namespace
        self._deletes = deletes
        self._passed = ""
        self.open_at_once = deletes

    def low(self, chunk: str) -> None:
        self._passed = ""
        self._insert(f"{chunk}-open", OPEN)

    def high(self, chunk: str) -> None:
        if not self._deletes:
            self._insert(f"{chunk}-close", CLOSE)
            return
        database, collection = split_namespace(self._namespace)
        with translated(f"Cannot write to the signal collection {self._namespace}"):
            self._client()[database][collection].delete_one({"_id": f"{chunk}-open"})
        self._passed = chunk

    def passed(self) -> str:
        chunk, self._passed = self._passed, ""
        return chunk

    def _insert(self, id_: str, type_: str) -> None:
        database, collection = split_namespace(self._namespace)
        with translated(f"Cannot write to the signal collection {self._namespace}"):
            self._client()[database][collection].insert_one({"_id": id_, "type": type_, "payload": ""})


class MongoServices(services.SourceServices[ChunkRow]):
    """The services of a MongoDB source.

    Args:
        client: returns the task's open client, which is replaced after a reconnect.
        context: the task's context.
        position: returns where the source stands.
        hooks: where tests provoke races.
        tuning: sizes and delays.
    """

    def __init__(
        self,
        config: MongoConfig,
        context: SourceTaskContext,
        collections: CollectionFactory,
        documents: Documents,
        client: Callable[[], Client],
        position: Callable[[], MongoOffset | None],
        hooks: SnapshotHooks | None = None,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self._position = position
        self._stream: EventStream | None = None
        self._chunks = MongoChunks(client, config, collections, documents, self._stream_position)
        marks = None
        if config.signal_collection is not None:
            marks = SignalCollection(client, config.signal_collection, deletes=config.deletes_close_windows)
        super().__init__(config, context, self._chunks, marks, hooks, tuning)
        self.events.whole = False

    def fields(self) -> services.Fields:
        """Return the fields of the offset; Debezium's MongoDB connector knows no surrogate keys, and stores no field for them."""
        found = super().fields()
        listed = found.get(COLLECTIONS)
        return {**found, COLLECTIONS: listed.replace(_NO_SURROGATE, "")} if isinstance(listed, str) else found

    def attach(self, stream: EventStream | None) -> None:
        """Set the current stream; None when there is none."""
        self._stream = stream
        if stream is not None and self.incremental is not None:
            stream.on_event = self.incremental.event
            stream.on_first_use = self.new_tables.seen
            stream.watched = self.incremental.watched

    def records(self, rows: list[ChunkRow]) -> list[EncodedRow]:
        return self._chunks.rows(rows)

    def watch(self, collection: str | None) -> None:
        if self._stream is not None:
            self._stream.watched = collection

    def position(self) -> Mapping[str, Any]:
        found = self._position()
        return found.dump() if found else {}

    def execute(self, statement: str) -> None:
        """Do nothing: MongoDB has no statements; a warning at the start says so."""

    def _stream_position(self) -> MongoOffset:
        if self._stream is not None:
            return self._stream.offset
        return self._position() or MongoOffset()
