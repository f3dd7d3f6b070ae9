"""The initial snapshot, and blocking ones: collections one after the other, as raw documents (mongodb.md §7).

There is no common moment for all collections, nor for one. Changes that happen meanwhile come again from the stream, which begins at the
place that was noted before the first document was read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py.api.record import EncodedRow
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notification.events import InitialEvents
from connectors.engine.snapshot.initial import InitialSnapshot
from connectors.engine.snapshot.markers import Marker
from connectors.mongodb.collections import Collection, CollectionFactory
from connectors.mongodb.config import MongoConfig
from connectors.mongodb.connection import Client
from connectors.mongodb.documents import Documents
from connectors.mongodb.namespaces import split_namespace
from connectors.mongodb.offset import MongoOffset
from connectors.mongodb.queries import parse_query
from connectors.mongodb.server_errors import translated

log = logging.getLogger(__name__)


def split_batch(batch: Any) -> list[bytes]:
    """The documents of an answer's bytes (which the driver's types do not know), one after the other."""
    found, at, end = [], 0, len(batch)
    while at < end:
        to = at + int.from_bytes(batch[at : at + 4], "little")
        found.append(batch[at:to])
        at = to
    return found


class CollectionRows:
    """One collection that is being read (`TableRows`)."""

    def __init__(self, snapshot: MongoSnapshot, collection: Collection, query: Mapping[str, object], fetch_size: int) -> None:
        self._snapshot = snapshot
        self.collection = collection
        self.rows = 0
        database, name = split_namespace(collection.namespace)
        self._what = f"Snapshotting of collection {collection.namespace} failed"
        self._is_open = True
        with translated(self._what):
            self._cursor = snapshot.client[database][name].find_raw_batches(dict(query), batch_size=fetch_size)

    def read(self) -> list[bytes] | None:
        """The documents of the next answer; None behind the last one. Raises ServerError."""
        while self._is_open:
            with translated(self._what):
                batch = next(self._cursor, None)
            if batch is None:
                self._is_open = False
                self._snapshot.collection_done(self)
            elif batch:
                found = split_batch(batch)
                self.rows += len(found)
                return found
        return None

    def encode(self, rows: Sequence[bytes], marker: Marker) -> list[EncodedRow]:
        """Records of documents. Raises DataError."""
        return self._snapshot.encode(self.collection, rows, marker)


class MongoSnapshot:
    """A snapshot under way; driven by the task's thread.

    Args:
        client: stays open while it runs.
        namespaces: what is read, in order.
        base: the place where streaming begins afterwards; of a blocking snapshot the place where it was interrupted.
        filters: filters in extended JSON, by namespace, in place of those of the configuration.
        is_blocking: whether a signal asked for it.

    Attributes:
        offset: to be stored with the rows that were given out last.
        after: the offset from which streaming goes on.
        finished: whether all rows have been given out.
    """

    def __init__(
        self,
        client: Client,
        config: MongoConfig,
        namespaces: Sequence[str],
        collections: CollectionFactory,
        documents: Documents,
        base: MongoOffset,
        *,
        events: InitialEvents,
        metrics: SnapshotMetrics,
        filters: Mapping[str, str] | None = None,
        is_blocking: bool = False,
    ) -> None:
        self.client = client
        self._config = config
        self._collections = collections
        self._documents = documents
        self._events = events
        self._metrics = metrics
        self._filters = config.overrides if filters is None else filters
        self.is_blocking = is_blocking
        self.after = base
        self._names = list(namespaces)
        self._fetch_size = config.number("snapshot.fetch.size") or config.number("max.batch.size")
        self._rows = InitialSnapshot(namespaces, self._open)
        metrics.begin(len(namespaces))
        events.started()
        log.info("Snapshot of %d collections: %s", len(namespaces), ", ".join(namespaces))

    @property
    def finished(self) -> bool:
        """See the class."""
        return self._rows.finished

    @property
    def offset(self) -> MongoOffset:
        """See the class."""
        return self.after if self.is_blocking or self.finished else replace(self.after, in_snapshot=True)

    def next_rows(self) -> list[EncodedRow]:
        """The next records. Raises ServerError, DataError."""
        rows = self._rows.next_rows()
        if rows:
            self._metrics.events(len(rows))
        if self.finished:
            self._metrics.end("completed")
            self._events.completed()
        return rows

    def encode(self, collection: Collection, raws: Sequence[bytes], marker: Marker) -> list[EncodedRow]:
        """Records of documents; but for the last one of all, each says of itself only that it was read."""
        now_ns = time.time_ns()
        shown = "last" if marker is Marker.LAST else "true"
        source = collection.block.read(shown, self.after.seconds, self.after.increment, now_ns)
        return self._documents.reads(raws, collection, collection.read_end(source, "r", now_ns // 1_000_000))

    def collection_done(self, rows: CollectionRows) -> None:
        """A collection was read to its end."""
        namespace = rows.collection.namespace
        self._metrics.scanned(namespace, rows.rows)
        self._metrics.table_done()
        self._events.scan_completed(namespace, self._names, rows.rows)

    def _open(self, namespace: str) -> CollectionRows:
        self._events.in_progress(namespace, self._names)
        text = self._filters.get(namespace)
        query = parse_query(text, f"The filter of a snapshot of {namespace}") if text else {}
        return CollectionRows(self, self._collections.get(namespace), query, self._fetch_size)
