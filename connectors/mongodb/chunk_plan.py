"""How a snapshot of MongoDB is cut: which collections are read in one go, and the ranges of ids of the others.

A collection is cut when it has more documents than two chunks, by the server's own count. Boundaries are looked up one at a time, when a
chunk is wanted: the n-th id behind the last boundary, in the index of `_id`, in BSON's order over all types of ids. They stay what they
are: a restart reads the ranges that are left, with the documents that they hold then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import bson

from connectors.engine.snapshot.chunks import Key
from connectors.engine.snapshot.progress import Chunk, KeyRange, SnapshotProgress
from connectors.mongodb.collection_rows import queries, split_batch
from connectors.mongodb.connection import Client
from connectors.mongodb.documents import RAW
from connectors.mongodb.id_order import text_of
from connectors.mongodb.namespaces import split_namespace
from connectors.mongodb.server_errors import translated

#: Documents of a chunk: some seconds of reading, so that little is read twice and looking for boundaries costs little.
CHUNK_DOCUMENTS = 100_000
#: No smaller ones are made for several readers: handing one out takes a few milliseconds.
LEAST_DOCUMENTS = 10_000
_KEY = ("_id",)


def read_counts(client: Client, namespaces: Sequence[str]) -> dict[str, int]:
    """How many documents collections have, from the server's statistics. Raises ServerError."""
    with translated("Cannot count documents"):
        return {name: client[database][collection].estimated_document_count() for name, database, collection in _parts(namespaces)}


def _parts(namespaces: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for name in namespaces:
        yield (name, *split_namespace(name))


class ChunkPlan:
    """Gives the chunks of a snapshot, in order.

    Args:
        counts: documents by namespace, in the order in which collections are read.
        progress: what is done already.
        whole: collections of which a filter of the user's chooses documents: they are read in one go.
        chunk_documents: as `CHUNK_DOCUMENTS`.
        readers: how many chunks are read beside each other, for `chunks_each` of a collection each where it is not larger.
    """

    def __init__(
        self,
        client: Client,
        counts: Mapping[str, int],
        progress: SnapshotProgress,
        *,
        whole: frozenset[str] = frozenset(),
        chunk_documents: int = CHUNK_DOCUMENTS,
        readers: int = 1,
        chunks_each: int = 1,
    ) -> None:
        self._client = client
        self._counts = counts
        self._progress = progress
        self._whole = whole
        self._most = chunk_documents
        self._readers = readers
        self._parts = readers * chunks_each

    def chunks(self) -> Iterator[Chunk[str]]:
        """The chunks; every one that follows asks the server. Raises ServerError."""
        for namespace in self._counts:
            if not self._progress.is_done(namespace):
                yield from self._chunks_of(namespace)

    def size(self, namespace: str) -> int:
        """How many documents a chunk of the collection should have."""
        if self._readers == 1:
            return self._most
        return max(min(LEAST_DOCUMENTS, self._most), min(self._most, self._counts[namespace] // self._parts))

    def count(self) -> int:
        """About how many chunks there will be, as far as they could be read beside each other."""
        return sum(1 + count // self.size(name) for name, count in self._counts.items() if not self._progress.is_done(name))

    def _chunks_of(self, namespace: str) -> Iterator[Chunk[str]]:
        key = _KEY if self._is_cut(namespace) else ()
        left = self._progress.left(namespace, key)
        if not left:
            self._progress.table_done(namespace)
        elif not key:
            yield Chunk(namespace)
        for span in left if key else ():
            after = span.after
            while (until := self._boundary(namespace, after, span.until)) is not None and until != span.until:
                yield Chunk(namespace, KeyRange(after, until), key, is_last=False)
                after = until
            yield Chunk(namespace, KeyRange(after, span.until), key, is_last=span is left[-1])

    def _is_cut(self, namespace: str) -> bool:
        if namespace in self._whole:
            return False
        if self._progress.is_begun(namespace):
            return True
        return self._counts[namespace] >= self.size(namespace) * (2 if self._readers == 1 else 1)

    def _boundary(self, namespace: str, after: Key | None, until: Key | None) -> Key | None:
        """The id of a chunk's last document; None when fewer are left."""
        database, collection = split_namespace(namespace)
        skip = self.size(namespace) - 1
        for query, _ in queries(KeyRange(after, until), {}):
            with translated(f"Cannot cut the collection {namespace}"):
                found = self._client[database][collection].find_raw_batches(query, {"_id": 1}, sort=[("_id", 1)], skip=skip, limit=1)
                raws = [raw for batch in found for raw in split_batch(batch)]
                if raws:
                    return (text_of(bson.decode(raws[0], RAW)["_id"]),)
                if skip:
                    # documents of one family of ids, and the next family follows
                    skip -= self._client[database][collection].count_documents(query, limit=skip)
        return None
