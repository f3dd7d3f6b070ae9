"""One collection, or a range of its ids, that a snapshot reads: raw documents, as the server's answers hold them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from connect_py.api.record import EncodedRow
from connectors.engine.snapshot.initial.progress import WHOLE, KeyRange
from connectors.engine.snapshot.initial.run import Encode, Marker
from connectors.mongodb.capture import split_namespace
from connectors.mongodb.collection import Collection
from connectors.mongodb.server.connection import Client, session_at, translated
from connectors.mongodb.snapshot.queries import Bound, Query, id_of, ranges
from connectors.mongodb.values.documents import Documents


def split_batch(batch: Any) -> list[bytes]:
    """Return the documents of an answer's bytes (which the driver's types do not know), one after the other."""
    found, at, end = [], 0, len(batch)
    while at < end:
        to = at + int.from_bytes(batch[at : at + 4], "little")
        found.append(batch[at:to])
        at = to
    return found


def range_queries(span: KeyRange, condition: Query) -> list[tuple[Query, bool]]:
    """Return what finds the documents of a range, and whether it has to be sorted by `_id`: a whole collection comes in its own order."""
    if span == WHOLE:
        return [(condition, False)]
    after, until = (None if bound is None else Bound(id_of(str(bound[0]))) for bound in (span.after, span.until))
    return [({"$and": [query, condition]} if condition else query, True) for query in ranges(after, until)]


def encoder(documents: Documents, collection: Collection, seconds: int, increment: int) -> Encode[bytes]:
    """Return the function that makes records of documents that were read when the stream was at a position; but for the last one of all,
    each says of itself only that it was read."""

    def encode(raws: Sequence[bytes], marker: Marker) -> list[EncodedRow]:
        now_ns = time.time_ns()
        source = collection.block.read("last" if marker is Marker.LAST else "true", seconds, increment, now_ns)
        return documents.reads(raws, collection, collection.read_end(source, "r", now_ns // 1_000_000))

    return encode


def collection_rows(
    client: Client, namespace: str, wanted: Sequence[tuple[Query, bool]], *, since: tuple[int, int] | None, batch_size: int
) -> Iterator[list[bytes]]:
    """Yield the documents of some queries, one query after the other, as many as the server's answers hold.

    Args:
        wanted: what `range_queries` returns.
        since: the time of the stream that follows; what came before is read (`session_at`).
        batch_size: maximum number of documents of an answer.

    Raises:
        ServerError: the server refused, or it or the connection failed.
    """
    database, name = split_namespace(namespace)
    with translated(f"Snapshotting of collection {namespace} failed"), session_at(client, since) as session:
        for query, is_sorted in wanted:
            sort = [("_id", 1)] if is_sorted else None
            for batch in client[database][name].find_raw_batches(query, batch_size=batch_size, sort=sort, session=session):
                if batch:
                    yield split_batch(batch)
