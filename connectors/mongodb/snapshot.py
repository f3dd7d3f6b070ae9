"""The initial snapshot, and blocking ones: collections, or ranges of their ids, as raw documents (mongodb.md §7).

There is no common moment for all collections, nor for one. Changes that happen meanwhile come again from the stream, which begins at the
place that was noted before the first document was read. That is why a snapshot that was interrupted can go on: what was read before and
what is read now have the same stream behind them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from connect_py.api import JsonEncoding
from connect_py.api.record import EncodedRow
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notification.events import InitialEvents
from connectors.engine.snapshot.initial import ChunkedSnapshot, SnapshotRun
from connectors.engine.snapshot.parallel import ParallelSnapshot, ReaderTable
from connectors.engine.snapshot.progress import Chunk, SnapshotProgress
from connectors.mongodb import snapshot_reader
from connectors.mongodb.chunk_plan import CHUNK_DOCUMENTS, ChunkPlan, read_counts
from connectors.mongodb.collection_rows import CollectionRows, encoder, queries
from connectors.mongodb.collections import CollectionFactory
from connectors.mongodb.config import MongoConfig
from connectors.mongodb.connection import Client
from connectors.mongodb.documents import Documents
from connectors.mongodb.offset import MongoOffset
from connectors.mongodb.queries import parse_query

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """What is to be read.

    Attributes:
        namespaces: in order.
        base: the place where streaming begins afterwards; of a blocking snapshot the place where it was interrupted.
        filters: filters by namespace, in extended JSON or the shell's notation.
        is_blocking: whether a signal asked for it.
        progress: what is done already; is told of more.
    """

    namespaces: Sequence[str]
    base: MongoOffset
    filters: Mapping[str, str] = field(default_factory=dict)
    is_blocking: bool = False
    progress: SnapshotProgress = field(default_factory=SnapshotProgress)


class MongoSnapshot:
    """A snapshot under way; driven by the task's thread.

    Args:
        client: stays open while it runs.

    Attributes:
        offset: to be stored with the rows that were given out last.
        after: the offset from which streaming goes on.
        is_blocking: whether a signal asked for it.
        is_milestone: whether the last rows that were given out ended a chunk, and so much was read since the last time.

    Raises:
        ServerError: the collections cannot be counted.
    """

    def __init__(
        self,
        client: Client,
        config: MongoConfig,
        request: SnapshotRequest,
        collections: CollectionFactory,
        documents: Documents,
        encoding: JsonEncoding,
        *,
        events: InitialEvents,
        metrics: SnapshotMetrics,
    ) -> None:
        self._client = client
        self._config = config
        self._request = request
        self._collections = collections
        self._documents = documents
        self._encoding = encoding
        self._events = events
        self._metrics = metrics
        self._progress = request.progress
        self._counts: dict[str, int] = {}
        self._stored_rows = 0
        self.is_blocking = request.is_blocking
        self.is_milestone = False
        self.after = replace(request.base, in_snapshot=False, progress=None)
        self._names = list(request.namespaces)
        self._batch_size = config.number("snapshot.fetch.size") or config.number("max.batch.size")
        events.started()
        # a blocking snapshot is not taken again, so that nothing is gained by cutting collections
        chunk = 1 << 62 if self.is_blocking else int(config.raw.get("internal.snapshot.chunk.rows") or CHUNK_DOCUMENTS)
        self._chunk_rows = chunk
        counts = read_counts(client, self._names)
        readers = 1 if self.is_blocking else config.number("snapshot.max.threads")
        plan = ChunkPlan(
            client,
            counts,
            self._progress,
            whole=frozenset(request.filters),
            chunk_documents=chunk,
            readers=readers,
            chunks_each=config.number("snapshot.max.threads.multiplier"),
        )
        readers = min(readers, plan.count())
        self._run = self._one_reader(plan) if readers < 2 else self._several_readers(plan, readers)
        done = {name: rows for name in self._names if (rows := self._progress.rows(name))}
        ended = [name for name in self._names if self._progress.is_done(name)]
        metrics.begin(len(self._names) - len(ended), counts, done, ended)
        self.offset = self.after if self.is_blocking else replace(request.base, in_snapshot=True, progress=self._progress.text)
        log.info("Snapshot of %d collections%s: %s", len(self._names), ", going on" if ended or done else "", ", ".join(self._names))

    @property
    def finished(self) -> bool:
        """Whether the last row was given out."""
        return self._run.finished

    def next_rows(self) -> list[EncodedRow]:
        """The next records. Raises ServerError, DataError."""
        rows = self._run.next_rows()
        if rows:
            self._metrics.events(len(rows))
        self._note_progress()
        if self.finished:
            self.offset = self.after
            self._metrics.end("completed")
            self._events.completed()
        return rows

    def close(self) -> None:
        """End the reading, wherever it is; the client is the caller's."""
        self._run.close()

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _one_reader(self, plan: ChunkPlan) -> SnapshotRun:
        return ChunkedSnapshot(plan.chunks(), self._open, self._progress, self._ended)

    def _several_readers(self, plan: ChunkPlan, readers: int) -> SnapshotRun:
        log.info("The snapshot is read by %d processes", readers)
        return ParallelSnapshot(
            plan.chunks(),
            self._reader_table,
            lambda chunk: snapshot_reader.describe(chunk.table, chunk.range, self._request.filters.get(chunk.table)),
            module=snapshot_reader.MODULE,
            spec=lambda: snapshot_reader.spec(self._config, self._encoding, self.after),
            readers=readers,
            progress=self._progress,
            table_ended=self._ended,
            scanned=self._scanned,
        )

    def _open(self, chunk: Chunk[str]) -> CollectionRows:
        namespace = chunk.table
        self._begin(namespace)
        text = self._request.filters.get(namespace)
        condition = parse_query(text, f"The filter of a snapshot of {namespace}") if text else {}
        return CollectionRows(
            self._client,
            namespace,
            queries(chunk.range, condition),
            encoder(self._documents, self._collections.get(namespace), self.after.seconds, self.after.increment),
            batch_size=self._batch_size,
            scanned=lambda rows: self._scanned(namespace, rows),
        )

    def _reader_table(self, chunk: Chunk[str]) -> ReaderTable:
        self._begin(chunk.table)
        collection = self._collections.get(chunk.table)
        encode = encoder(self._documents, collection, self.after.seconds, self.after.increment)
        return ReaderTable(collection.route, encode, collection.key_head, collection.value_head)

    def _begin(self, namespace: str) -> None:
        if namespace not in self._counts:
            self._counts[namespace] = self._progress.rows(namespace)
            self._events.in_progress(namespace, self._names)

    def _scanned(self, namespace: str, rows: int) -> None:
        self._counts[namespace] += rows
        self._metrics.scanned(namespace, rows)

    def _ended(self, namespace: str) -> None:
        self._metrics.table_done(namespace)
        self._events.scan_completed(namespace, self._names, self._counts.get(namespace, 0))

    def _note_progress(self) -> None:
        # without a stream behind it, chunks of several moments would never become one state
        if self.is_blocking or not self._config.snapshot_mode.streams or self._progress.text == self.offset.progress:
            self.is_milestone = False
            return
        self.is_milestone = self._run.rows_sent - self._stored_rows >= self._chunk_rows // 2
        self.offset = replace(self.offset, progress=self._progress.text)
        if self.is_milestone:
            self._stored_rows = self._run.rows_sent
