"""The snapshots of a task: the initial one, the rest of one that was interrupted, and those that signals ask for.

An initial snapshot that was interrupted resumes after its last finished chunk. Its exported snapshot S0 is gone by then; what is left is
read in a later snapshot S1. The rows read so far are of S0 (or of an earlier one), and the slot gives every change since. So the next
attempt

1. takes a snapshot S1 by a temporary slot, whose consistent point H is exact: S1 holds the transactions that committed before H, no other;
2. streams from the stored position up to H, and stops there between two transactions;
3. reads the chunks that are left, in S1;
4. streams on from H.

Why the result is right. Whatever is sent of a row is in the order of its history: rows of S0, then changes up to H, then rows of S1, which
is the state at H, then changes after H. No row ever follows a newer one, so nothing goes back in time, and what a topic holds at last
for a key is its last state:

- a key of a finished chunk has its row of S0 and every change after it;
- a key of a chunk that is left may have changes, and rows of an attempt that was cut off in the chunk, and has its row of S1 after them;
  one that was deleted before H has its delete in the stream, and no row in S1;
- a row that moved to another key before H is deleted and created in the stream, whatever chunks the two keys fall into, and one whose new
  key is left to read comes again in S1;
- a truncate is in the stream, before S1 or after it;
- of a table without a key, rows that were sent before are sent again, as after any interruption. It has no chunks.

One thing a stream cannot give: a large value that an update left as it was, unless the table's replica identity is FULL. It arrives with
S1 where the row's key is left to read; for a key in a finished chunk it was sent before; only a row that moved from a key that is left to
one that is finished lacks it.

The offset says "unfinished" from the first row to the last, through the streaming of step 2 too, so that Debezium, which does not know our
field, starts over from it. An interruption of the second attempt is no other case: the position is then at H or before it.

Without room for a temporary slot there is no H. Then S1 is a transaction's own snapshot, the chunks are read at once, and streaming
continues from the stored position: changes between the two follow rows that are newer, and lead to the same end, but a reader sees such a
row go back and come again. The same happens when an attempt starts over (`slot/slot.py`).

Owned by the task's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from connect_py.api.record import EncodedRow
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notifications import InitialEvents
from connectors.engine.relational.tables import TableId, compile_java_regex
from connectors.engine.signal.actions import BlockingRequest
from connectors.engine.snapshot.initial.progress import SnapshotProgress
from connectors.engine.stored_offsets import BLOCKING, INITIAL
from connectors.postgres.config import PostgresConfig
from connectors.postgres.position.offset import PostgresOffset, format_lsn
from connectors.postgres.preparation import Start, open_general
from connectors.postgres.server.connection import Connection
from connectors.postgres.snapshot.snapshot import PostgresSnapshot, SnapshotRequest
from connectors.postgres.tables import TableFactory

log = logging.getLogger(__name__)


class SnapshotLifecycle:
    """Begins, resumes and ends the snapshots of a task.

    Args:
        events: receives notifications.
        metrics: where rows and tables are counted.
        while_waiting: called a few times a second while the server works.

    Attributes:
        running: the current snapshot; None when there is none. Before it is read, the stream may have to reach `catch_up_to`.
        has_begun: whether there was one since the task was started.
        catch_up_to: step 2: where the stream has to be before `running` is read; None when it is read now.
    """

    def __init__(
        self,
        config: PostgresConfig,
        factory: TableFactory,
        *,
        events: InitialEvents,
        metrics: SnapshotMetrics,
        while_waiting: Callable[[], None],
        should_stop: Callable[[], bool],
    ) -> None:
        self._config = config
        self._factory = factory
        self._events = events
        self._metrics = metrics
        self._while_waiting = while_waiting
        self._should_stop = should_stop
        self._own: Connection | None = None
        self.running: PostgresSnapshot | None = None
        self.has_begun = False
        self.catch_up_to: int | None = None

    def begin(self, general: Connection, start: Start) -> PostgresSnapshot:
        """Begin the snapshot that a start asks for. Raises ConnectError and ServerError."""
        position = start.position
        filters, tables = self._config.filters, start.to_read or []
        exported = start.exported
        progress = SnapshotProgress(position.progress if position is not None and start.resumes_snapshot else None)
        request = SnapshotRequest(
            tables,
            [*tables, *(table for table in start.tables if str(table) in filters.forced and filters.snapshot(str(table)))],
            exported.name if exported is not None else None,
            start.snapshot_lsn,
            statements=self._config.statements,
            progress=progress,
        )
        if start.resumes_snapshot and position is not None:
            # the stream is read at the same time
            general = self._own = open_general(self._config, self._should_stop)
            request = replace(request, base=streaming_part(position))
        self.running = self._start(general, request)
        self.has_begun = True
        if start.resumes_snapshot and exported is not None:
            self.catch_up_to = exported.lsn
            log.info(
                "The snapshot goes on where it was interrupted: changes up to %s come first, then what is left of %s",
                format_lsn(exported.lsn),
                ", ".join(str(table) for table in tables if not progress.is_done(str(table))) or "nothing",
            )
        return self.running

    def begin_blocking(self, general: Connection, request: BlockingRequest, base: PostgresOffset, captured: Sequence[TableId]) -> None:
        """Begin a snapshot that a signal asked for, while the stream waits. Raises ConnectError."""
        tables = self._config.filters.snapshot_order(captured, [compile_java_regex(name) for name in request.collections])
        if not tables:
            log.warning("The blocking snapshot '%s' matches no captured table: %s", request.signal, ", ".join(request.collections))
        wanted = SnapshotRequest(tables, lsn=base.lsn, kind=BLOCKING, statements=dict(request.statements), base=streaming_part(base))
        self.running = self._start(general, wanted)

    def _start(self, connection: Connection, request: SnapshotRequest) -> PostgresSnapshot:
        return PostgresSnapshot(
            connection,
            self._config,
            self._factory,
            request,
            events=self._events,
            metrics=self._metrics,
            while_waiting=self._while_waiting,
        )

    def caught_up(self, position: PostgresOffset, quiet: PostgresOffset | None) -> PostgresOffset:
        """Begin step 3: the stream is where it has to be; what is left is read now.

        Args:
            position: the offset of the last batch.
            quiet: the stream's position, as far as it is known.

        Returns:
            The offset that holds from here.
        """
        assert self.running is not None
        self.catch_up_to = None
        if quiet is not None and quiet.start_lsn > position.start_lsn:
            position = replace(quiet, more=position.more)
        self.running.interrupt(streaming_part(position))
        return self.running.offset

    def mark(self, offset: PostgresOffset) -> PostgresOffset:
        """Return an offset of the stream; before the snapshot is read, one that says that it did not end."""
        if self.running is None or self.catch_up_to is None:
            return offset
        return replace(offset, snapshot=INITIAL, snapshot_completed=False, progress=self.running.offset.progress)

    def next_rows(self) -> list[EncodedRow]:
        assert self.running is not None
        return self.running.next_rows()

    def end(self) -> None:
        """Close the snapshot, in whatever way it ended."""
        if self.running is not None:
            self.running.close()
        if self._own is not None:
            self._own.close()
        self.running = self._own = self.catch_up_to = None


def streaming_part(offset: PostgresOffset) -> PostgresOffset:
    """Return an offset without what it says of a snapshot."""
    return replace(offset, snapshot=None, snapshot_completed=False, last_snapshot_record=False, progress=None)
