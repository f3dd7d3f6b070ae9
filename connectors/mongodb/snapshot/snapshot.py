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
from connectors.engine.snapshot.initial.plan import ChunkPlan
from connectors.engine.snapshot.initial.progress import BEGUN, Chunk, SnapshotProgress
from connectors.engine.snapshot.initial.run import ChunkRows, SnapshotPipeline, SnapshotSource, in_order
from connectors.engine.snapshot.parallel.pool import ReaderPool, ReaderTable
from connectors.mongodb.collection import CollectionFactory
from connectors.mongodb.config import MongoConfig
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.server.connection import Client, cluster_time
from connectors.mongodb.shell_notation import parse_query
from connectors.mongodb.snapshot import worker
from connectors.mongodb.snapshot.chunks import CollectionCuts, read_counts
from connectors.mongodb.snapshot.rows import collection_rows, encoder, range_queries
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


class MongoSnapshot(SnapshotSource[MongoOffset]):
    """A snapshot under way; driven by the task's thread. It has no transaction.

    Args:
        client: lent; stays open while it runs.

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
        self._after = replace(request.base, in_snapshot=False, progress=None)
        self._batch_size = config.number("snapshot.fetch.size") or config.number("max.batch.size")
        self.is_blocking = request.is_blocking
        progress, names = request.progress, list(request.namespaces)
        events.started()
        counts = read_counts(client, names)
        cuts = CollectionCuts(client, counts)
        plan = ChunkPlan.from_config(config, names, cuts, progress, whole=frozenset(request.filters), is_blocking=self.is_blocking)
        self._pool = self._reader_pool(plan.readers) if plan.readers > 1 else None
        self.pipeline = SnapshotPipeline(
            self,
            self._pool or in_order(self._open),
            plan.chunks(),
            names=names,
            captured=names,
            progress=progress,
            events=events,
            metrics=metrics,
            estimates=counts,
            keeps_progress=not self.is_blocking and config.snapshot_mode.streams,
            chunk_rows=plan.chunk_rows,
        )
        self._begun = BEGUN if config.snapshot_mode.streams else None
        progress_text = self.pipeline.progress_text or self._begun
        self.offset = self._after if self.is_blocking else replace(request.base, in_snapshot=True, progress=progress_text)
        resumes = any(progress.is_begun(name) for name in names)
        log.info("Snapshot of %d collections%s: %s", len(names), ", going on" if resumes else "", ", ".join(names))

    @property
    def after(self) -> MongoOffset:
        return self._after

    def stored(self, progress: str | None) -> None:
        self.offset = replace(self.offset, progress=progress or self._begun)

    def finish(self) -> list[EncodedRow]:
        self.offset = self._after
        return []

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _open(self, chunk: Chunk[str]) -> ChunkRows[bytes]:
        namespace = chunk.table
        text = self._request.filters.get(namespace)
        condition = parse_query(text, f"The filter of a snapshot of {namespace}") if text else {}
        wanted = range_queries(chunk.range, condition)
        rows = collection_rows(self._client, namespace, wanted, since=self._after.time, batch_size=self._batch_size)
        return rows, encoder(self._documents, self._collections.get(namespace), self._after.seconds, self._after.increment)

    def _reader_pool(self, readers: int) -> ReaderPool[str]:
        log.info("The snapshot is read by %d processes", readers)
        return ReaderPool(
            self._reader_table,
            lambda chunk: worker.describe(chunk.table, chunk.range, self._request.filters.get(chunk.table)),
            module=worker.MODULE,
            spec=lambda: worker.spec(self._config, self._encoding, self._after, cluster_time(self._client)),
            readers=readers,
        )

    def _reader_table(self, chunk: Chunk[str]) -> ReaderTable:
        collection = self._collections.get(chunk.table)
        encode = encoder(self._documents, collection, self._after.seconds, self._after.increment)
        return ReaderTable(collection.route, encode, collection.key_head, collection.value_head)
