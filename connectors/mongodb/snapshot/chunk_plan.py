"""Where chunks of collections begin and end, for an initial snapshot's `ChunkPlan`.

Every collection is cut by `_id`. Boundaries are looked up in the index of `_id`, in BSON's order over all types of ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import bson

from connectors.engine.snapshot.chunks import Key
from connectors.engine.snapshot.initial.progress import KeyRange
from connectors.mongodb.namespaces import split_namespace
from connectors.mongodb.server.connection import Client
from connectors.mongodb.server.errors import translated
from connectors.mongodb.snapshot.id_order import text_of
from connectors.mongodb.snapshot.rows import queries, split_batch
from connectors.mongodb.values.documents import RAW


def read_counts(client: Client, namespaces: Sequence[str]) -> dict[str, int]:
    """How many documents collections have, from the server's statistics. Raises ServerError."""
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
        """See `Cuts`."""
        return self._counts.get(namespace, 0)

    def key(self, namespace: str) -> tuple[str, ...]:
        """See `Cuts`."""
        return ("_id",)

    def is_worth_cutting(self, namespace: str) -> bool:
        """See `Cuts`."""
        return True

    def boundary(self, namespace: str, span: KeyRange, rows: int) -> Key | None:
        """See `Cuts`. Raises ServerError."""
        database, collection = split_namespace(namespace)
        skip = rows - 1
        for query, _ in queries(span, {}):
            with translated(f"Cannot cut the collection {namespace}"):
                found = self._client[database][collection].find_raw_batches(query, {"_id": 1}, sort=[("_id", 1)], skip=skip, limit=1)
                raws = [raw for batch in found for raw in split_batch(batch)]
                if raws:
                    return (text_of(bson.decode(raws[0], RAW)["_id"]),)
                if skip:
                    # documents of one family of ids, and the next family follows
                    skip -= self._client[database][collection].count_documents(query, limit=skip)
        return None
