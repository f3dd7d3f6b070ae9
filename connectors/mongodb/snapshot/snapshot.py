"""The initial snapshot, and blocking ones: collections, or ranges of their ids, as raw documents.

There is no consistent snapshot of all collections, nor of one. Changes that happen meanwhile come again from the stream, which begins at
the position that was noted before the first document was read. That is why a snapshot that was interrupted can resume: the same stream
follows what was read before and what is read now.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from connect_py.api import JsonEncoding
from connect_py.api.record import EncodedRow
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notifications import InitialEvents
from connectors.engine.snapshot.initial.plan import NEVER_CUT, ChunkPlan, chunk_rows
from connectors.engine.snapshot.initial.progress import Chunk, SnapshotProgress
from connectors.engine.snapshot.initial.run import ChunkedSnapshot, SnapshotReading, SnapshotRun
from connectors.engine.snapshot.parallel.pool import ParallelSnapshot, ReaderTable
from connectors.mongodb.collection import CollectionFactory
from connectors.mongodb.config import MongoConfig
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.server.connection import Client
from connectors.mongodb.snapshot import worker
from connectors.mongodb.snapshot.chunks import CollectionCuts, read_counts
from connectors.mongodb.snapshot.queries import parse_query
from connectors.mongodb.snapshot.rows import CollectionRows, encoder, range_queries
from connectors.mongodb.values.documents import Documents

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """What is to be read.

    Attributes:
        namespaces: the collections in the order of reading.
        base: the position where streaming begins afterwards; of a blocking snapshot the position where it was interrupted.
        filters: filters by namespace, in extended JSON or the shell's notation.
        is_blocking: whether a signal asked for it.
        progress: what is done already; it is updated.
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
        offset: what is stored with the rows that were given out last.
        after: the offset from which streaming continues.
        is_blocking: whether a signal asked for it.

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
        progress = request.progress
        self.is_blocking = request.is_blocking
        self.after = replace(request.base, in_snapshot=False, progress=None)
        names = list(request.namespaces)
        self._batch_size = config.number("snapshot.fetch.size") or config.number("max.batch.size")
        events.started()
        chunk = NEVER_CUT if self.is_blocking else chunk_rows(config.raw)
        counts = read_counts(client, names)
        readers = 1 if self.is_blocking else config.number("snapshot.max.threads")
        plan = ChunkPlan(
            names,
            CollectionCuts(client, counts),
            progress,
            whole=frozenset(request.filters),
            chunk_rows=chunk,
            readers=readers,
            chunks_each=config.number("snapshot.max.threads.multiplier"),
        )
        self._reading = SnapshotReading(
            names,
            names,
            progress,
            events,
            metrics,
            estimates=counts,
            keeps_progress=not self.is_blocking and config.snapshot_mode.streams,
            chunk_rows=chunk,
        )
        readers = min(readers, plan.count())
        self._reading.run = self._one_reader(plan, progress) if readers < 2 else self._several_readers(plan, progress, readers)
        self.offset = self.after if self.is_blocking else replace(request.base, in_snapshot=True, progress=self._reading.progress_text)
        resumes = any(progress.is_begun(name) for name in names)
        log.info("Snapshot of %d collections%s: %s", len(names), ", going on" if resumes else "", ", ".join(names))

    @property
    def finished(self) -> bool:
        """Whether the last row was given out."""
        return self._reading.run.finished

    @property
    def is_milestone(self) -> bool:
        return self._reading.is_milestone

    def next_rows(self) -> list[EncodedRow]:
        """Return the next records. Raises ServerError, DataError."""
        rows = self._reading.next_rows()
        if self.finished:
            self.offset = self.after
            self._reading.completed()
        elif not self.is_blocking and self.offset.progress != self._reading.progress_text:
            self.offset = replace(self.offset, progress=self._reading.progress_text)
        return rows

    def close(self) -> None:
        """End the reading, wherever it is; the client is the caller's."""
        self._reading.run.close()

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _one_reader(self, plan: ChunkPlan[str], progress: SnapshotProgress) -> SnapshotRun:
        return ChunkedSnapshot(plan.chunks(), self._open, progress, self._reading.table_ended)

    def _several_readers(self, plan: ChunkPlan[str], progress: SnapshotProgress, readers: int) -> SnapshotRun:
        log.info("The snapshot is read by %d processes", readers)
        return ParallelSnapshot(
            plan.chunks(),
            self._reader_table,
            lambda chunk: worker.describe(chunk.table, chunk.range, self._request.filters.get(chunk.table)),
            module=worker.MODULE,
            spec=lambda: worker.spec(self._config, self._encoding, self.after),
            readers=readers,
            progress=progress,
            table_ended=self._reading.table_ended,
            scanned=self._reading.scanned,
        )

    def _open(self, chunk: Chunk[str]) -> CollectionRows:
        namespace = chunk.table
        self._reading.begin_table(namespace)
        text = self._request.filters.get(namespace)
        condition = parse_query(text, f"The filter of a snapshot of {namespace}") if text else {}
        return CollectionRows(
            self._client,
            namespace,
            range_queries(chunk.range, condition),
            encoder(self._documents, self._collections.get(namespace), self.after.seconds, self.after.increment),
            batch_size=self._batch_size,
            scanned=lambda rows: self._reading.scanned(namespace, rows),
        )

    def _reader_table(self, chunk: Chunk[str]) -> ReaderTable:
        self._reading.begin_table(chunk.table)
        collection = self._collections.get(chunk.table)
        encode = encoder(self._documents, collection, self.after.seconds, self.after.increment)
        return ReaderTable(collection.route, encode, collection.key_head, collection.value_head)
