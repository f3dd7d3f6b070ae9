"""Chunks of collections: where those of an initial snapshot begin and end, and the documents of those of an incremental one.

Initial snapshot (`CollectionCuts`). Every collection is cut by `_id`. Boundaries are looked up in the index of `_id`, in BSON's order over
all types of ids.

Incremental snapshot (`MongoChunks`). A chunk must not be older than what the stream has shown. The stream shows what a majority of the
members has; a member that is asked for a chunk could lag behind it, where the connection string prefers secondaries. So chunks are read in
a session that knows the time of the last event that was shown (`session_at`): the member waits until it has reached it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bson

from connect_py.api.record import EncodedRow
from connect_py.errors import ConfigError
from connectors.engine.java_object import StoredKey
from connectors.engine.snapshot.chunks import Key
from connectors.engine.snapshot.incremental.contract import Chunk, UnknownCollectionError
from connectors.engine.snapshot.incremental.offset import WantedCollection
from connectors.engine.snapshot.initial.progress import KeyRange
from connectors.mongodb.capture import split_namespace
from connectors.mongodb.collection import Collection, CollectionFactory
from connectors.mongodb.config import MongoConfig
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.server.connection import Client, captured_namespaces, session_at, translated
from connectors.mongodb.shell_notation import parse_query
from connectors.mongodb.snapshot.queries import Bound, Query, from_stored, ranges, text_of, to_stored
from connectors.mongodb.snapshot.rows import range_queries, split_batch
from connectors.mongodb.values.documents import RAW, Documents


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A document that waits for its position in the stream."""

    collection: Collection
    key: bytes
    document: bytes


class MongoChunks:
    """`ChunkReader`; used by the task's thread.

    Args:
        client: returns the task's open client, which is replaced after a reconnect.
        position: returns the position of the stream.
    """

    #: schemas of collections are constant
    structure: object = None
    accepts_surrogate_keys = False

    def __init__(
        self,
        client: Callable[[], Client],
        config: MongoConfig,
        collections: CollectionFactory,
        documents: Documents,
        position: Callable[[], MongoOffset],
    ) -> None:
        self._client = client
        self._config = config
        self._collections = collections
        self._documents = documents
        self._position = position

    def names(self) -> Sequence[str]:
        """Return the captured collections that exist now."""
        return captured_namespaces(self._client(), self._config)

    def maximum(self, wanted: WantedCollection) -> StoredKey | None:
        found = self._find(wanted, _condition(wanted), 1, {"_id": 1}, descending=True)
        return to_stored(bson.decode(found[0], RAW)["_id"]) if found else None

    def estimate(self, wanted: WantedCollection) -> int | None:
        return read_counts(self._client(), [wanted.id]).get(wanted.id)

    def read(self, wanted: WantedCollection, after: StoredKey | None, until: StoredKey, limit: int) -> Chunk[ChunkRow]:
        condition = _condition(wanted)
        found: list[bytes] = []
        for query in ranges(None if after is None else _bound(after), _bound(until)):
            both = {"$and": [query, condition]} if condition else query
            found += self._find(wanted, both, limit - len(found))
            if len(found) >= limit:
                break
        collection = self._collections.get(wanted.id)
        rows = []
        for raw in found:
            key = self._documents.key(raw, collection)
            rows.append((key, ChunkRow(collection, key, self._documents.quoted(raw, collection.changes))))
        return Chunk(rows, to_stored(bson.decode(found[-1], RAW)["_id"]) if found else None)

    def rows(self, rows: Sequence[ChunkRow]) -> list[EncodedRow]:
        """Return the records of documents whose position in the stream is reached."""
        if not rows:
            return []
        collection, position, now_ns = rows[0].collection, self._position(), time.time_ns()
        end = collection.read_end(
            collection.block.read("incremental", position.seconds, position.increment, now_ns), "r", now_ns // 1_000_000
        )
        return [(collection.route, row.key, b"".join((collection.read_start, row.document, end))) for row in rows]

    def _find(
        self, wanted: WantedCollection, query: Query, limit: int, projection: Query | None = None, *, descending: bool = False
    ) -> list[bytes]:
        if not self._config.namespaces.is_captured(wanted.id):
            raise UnknownCollectionError(
                f"The collection '{wanted.id}' is not captured (database.include.list, collection.include.list and the other filters)"
            )
        client = self._client()
        database, collection = split_namespace(wanted.id)
        with translated(f"Cannot read a chunk of {wanted.id}"), session_at(client, self._position().time) as session:
            cursor = client[database][collection].find_raw_batches(
                query, projection, sort=[("_id", -1 if descending else 1)], limit=limit, batch_size=limit, session=session
            )
            return [raw for batch in cursor for raw in split_batch(batch)]


def _condition(wanted: WantedCollection) -> dict[str, Any]:
    """Return a signal's filter: a query in the language of the database's shell or in extended JSON. Raises ConfigError."""
    return parse_query(wanted.condition, f"The condition of the collection {wanted.id}") if wanted.condition else {}


def _bound(key: StoredKey) -> Bound:
    try:
        return Bound(from_stored(key))
    except ValueError as error:
        raise ConfigError(f"The stored offset's incremental snapshot is at {error}, which no document's id has here") from None


def read_counts(client: Client, namespaces: Sequence[str]) -> dict[str, int]:
    """Return how many documents collections have, from the server's statistics. Raises ServerError."""
    with translated("Cannot count documents"):
        return {name: client[database][collection].estimated_document_count() for name, database, collection in _parts(namespaces)}


def _parts(namespaces: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for name in namespaces:
        yield (name, *split_namespace(name))


class CollectionCuts:
    """`Cuts` of the snapshot engine.

    Args:
        counts: documents by namespace.
    """

    def __init__(self, client: Client, counts: Mapping[str, int]) -> None:
        self._client = client
        self._counts = counts

    def rows(self, namespace: str) -> int:
        return self._counts.get(namespace, 0)

    def key(self, namespace: str) -> tuple[str, ...]:
        return ("_id",)

    def is_worth_cutting(self, namespace: str) -> bool:
        return True

    def boundary(self, namespace: str, span: KeyRange, rows: int) -> Key | None:
        database, collection = split_namespace(namespace)
        skip = rows - 1
        for query, _ in range_queries(span, {}):
            with translated(f"Cannot cut the collection {namespace}"):
                found = self._client[database][collection].find_raw_batches(query, {"_id": 1}, sort=[("_id", 1)], skip=skip, limit=1)
                raws = [raw for batch in found for raw in split_batch(batch)]
                if raws:
                    return (text_of(bson.decode(raws[0], RAW)["_id"]),)
                if skip:
                    # documents of one family of ids, and the next family follows
                    skip -= self._client[database][collection].count_documents(query, limit=skip)
        return None
