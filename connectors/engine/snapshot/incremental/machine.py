"""The incremental snapshot: collections read in chunks by key while streaming continues
(`AbstractIncrementalSnapshotChangeEventSource.java`). Knows no database; a connector provides a `ChunkReader` and `Watermarks`.

    begin() ──> queue ──advance()──> low watermark, chunk, high watermark ──stream──> window_opened, event…, window_closed ──> rows
                  ^──────────────────────────────────────────────────────────────────────────────────────────────┘

All calls are made on the task's thread, most of them while the stream makes a batch: rows and notifications that are handed to `emit` and
`tell` become part of that batch, and `offset` is part of its offset. The next chunk is read at once, as Debezium does, so the order of
everything is Debezium's. A failure in the middle loses the batch that is being made and nothing else: the task resumes from the offset of
its last batch by `restore`, and the stream shows the same events again.

Failures never stop the stream. What passes (a lost connection) is raised. A collection that cannot be read at all (unknown, without a key,
a condition that is no SQL) is logged, reported in a notification, and left out: nothing of it was sent. A chunk that the server refuses is
read again, at once and after growing pauses; if it still fails the snapshot *pauses* where it is, says so in the log and in a notification,
and resumes at the signal `resume-snapshot`, or without the collection after `stop-snapshot`. A collection is never left half read for the
next one.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from connect_py.errors import ConfigError, ConnectError, RetriableError
from connectors.engine.batches import CHUNK_PAUSES
from connectors.engine.java_object import StoredKey
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notifications import IncrementalEvents, ScanStatus
from connectors.engine.signal.records import DEFECTS
from connectors.engine.snapshot.incremental.contract import (
    BusyError,
    ChunkReader,
    NoKeyError,
    SnapshotHooks,
    UnknownCollectionError,
    Watermarks,
)
from connectors.engine.snapshot.incremental.offset import IncrementalQueue, WantedCollection
from connectors.engine.snapshot.incremental.window import Window

log = logging.getLogger(__name__)


#: A chunk grows to at most this multiple of its configured size, and shrinks to this part of it: its rows are held in memory.
WIDEST = 32
#: By how much one chunk's size may differ from the next one's.
_STEP = 2.0


class ChunkSize:
    """Rows of the next chunk.

    Args:
        rows: to begin with, and always when `seconds` is 0.
        seconds: how long a chunk should take to read (``incremental.snapshot.chunk.time.ms``); 0 for chunks of one size.

    Attributes:
        rows: of the next chunk.
    """

    def __init__(self, rows: int, seconds: float = 0.0) -> None:
        self.rows = rows
        self._seconds = seconds
        self._least, self._most = max(1, rows // WIDEST), rows * WIDEST

    def took(self, seconds: float, rows: int) -> None:
        """Note how long a chunk took; one that came back with fewer rows than wanted says nothing about the time that many take."""
        if not self._seconds or rows < self.rows:
            return
        factor = min(_STEP, max(1 / _STEP, self._seconds / max(seconds, 1e-6)))
        self.rows = min(self._most, max(self._least, round(self.rows * factor)))


class Retries:
    """Attempts at a chunk.

    Args:
        clock: monotonic seconds.
        pauses: seconds before each further attempt.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, pauses: Sequence[float] = CHUNK_PAUSES) -> None:
        self._clock = clock
        self._pauses = pauses
        self._failures = 0
        self._not_before = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether the next attempt is not due yet."""
        return self._failures > 0 and self._clock() < self._not_before

    def failed(self) -> bool:
        """Note that an attempt failed. Returns whether there is another one; the count starts over when there is none."""
        if self._failures >= len(self._pauses):
            self.reset()
            return False
        self._not_before = self._clock() + self._pauses[self._failures]
        self._failures += 1
        return True

    def reset(self) -> None:
        """Forget earlier failures."""
        self._failures = 0


R = TypeVar("R")
#: After this many lost connections in a row, each with a chunk under a condition, the snapshot pauses.
MAX_LOSSES = 5


class IncrementalSnapshot(Generic[R]):
    """The state machine of an incremental snapshot.

    Args:
        reader: reads chunks.
        watermarks: marks the log.
        chunk_size: rows of a chunk.
        emit: takes the rows of a window that has closed.
        watch: called with the collection whose events must be shown to `event` from now on; None for none.
        tell: receives notifications.
        hooks: points for races, in tests.
        chunk_seconds: how long a chunk should take; 0 leaves chunks at one size.
        clock: monotonic seconds.
        pauses: seconds before each further attempt at a chunk that the server refuses.

    Attributes:
        progress: is shown how far it is.
    """

    def __init__(
        self,
        reader: ChunkReader[R],
        watermarks: Watermarks,
        *,
        chunk_size: int,
        emit: Callable[[list[R]], None],
        tell: IncrementalEvents,
        watch: Callable[[str | None], None] = lambda _: None,
        hooks: SnapshotHooks | None = None,
        chunk_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        pauses: Sequence[float] = CHUNK_PAUSES,
    ) -> None:
        self._watch = watch
        self._reader = reader
        self._watermarks = watermarks
        self._emit = emit
        self._tell = tell
        self._hooks = hooks or SnapshotHooks()
        self._clock = clock
        self._size = ChunkSize(chunk_size, chunk_seconds)
        self._retries = Retries(clock, pauses)
        self._window: Window[R] = Window()
        self._queue = IncrementalQueue(reader.names)
        self._losses = 0
        self.is_paused = False
        self._why_paused = ""
        self._holds_stops = False
        self.progress = SnapshotMetrics("", "", clock=clock)

    # -- state -------------------------------------------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether collections are left to read."""
        return bool(self._queue)

    @property
    def watched(self) -> str | None:
        """The collection whose events must be shown to `event`; None when no window waits."""
        return self._queue.first.id if self._queue and self._window.chunk else None

    @property
    def chunk(self) -> str:
        """The chunk whose window waits for its high watermark; empty when none does."""
        return self._window.chunk

    @property
    def has_sent(self) -> bool:
        """Whether rows of the current collection went out."""
        return self._queue.sent is not None

    @property
    def awaits_position(self) -> bool:
        """Whether a window waits for the stream to pass a position, which no event shows."""
        return bool(self._window.chunk) and self._watermarks.open_at_once

    @property
    def collections(self) -> list[str]:
        """What is left, the current one first."""
        return self._queue.ids

    def offset(self) -> Mapping[str, str | None]:
        """Return the fields of the source offset; empty when nothing runs."""
        return self._queue.offset()

    def restore(self, stored: Mapping[str, object]) -> None:
        """Resume from an offset: the chunk after the last sent key is read again, earlier watermarks mean nothing.

        Raises:
            ConfigError: the fields cannot be read.
        """
        self._clear_window()
        self._queue.restore(stored)
        if self._queue:
            self.progress.begin_incremental(self._queue.ids, again=True)
            if self.is_paused:
                self.progress.paused(self._why_paused)

    # -- signals -----------------------------------------------------------------------------------------------------------------------

    def begin(
        self,
        signal: str,
        collections: Sequence[str],
        conditions: Sequence[tuple[str, str]] = (),
        surrogate_key: str | None = None,
    ) -> None:
        """Append collections to the queue.

        Args:
            signal: its id, which notifications bear.
            collections: regexes of whole names; one that matches none is taken as a name.
            conditions: regex of a name, in any case, and condition; the first that matches counts.

        Raises:
            ConfigError: a regex is malformed, or the reader cuts chunks by the key alone.
            ConnectError: the names cannot be looked up.
        """
        if surrogate_key and not self._reader.accepts_surrogate_keys:
            raise ConfigError("a surrogate key is not supported for this kind of database; chunks are cut by the key")
        idle = not self._queue
        added = self._queue.add(signal, collections, conditions, surrogate_key)
        log.info("Incremental snapshot '%s': %s %s", signal, "of" if idle else "now also of", ", ".join(self.collections))
        if not idle:
            self.progress.added([wanted.id for wanted in added])
        else:
            self._retries.reset()
            self.progress.begin_incremental(self._queue.ids)
            self._tell.started(self._queue.correlation, self.collections)
            self.advance()

    def pause(self) -> None:
        """Read no further chunk; one whose window waits is finished."""
        if self._queue and not self.is_paused:
            self.is_paused = self._holds_stops = True
            log.info("The incremental snapshot pauses")
            self._why_paused = "the signal pause-snapshot asked for it"
            self.progress.paused(self._why_paused)
            self._tell.paused(self._queue.correlation, self.collections)

    def resume(self) -> None:
        """Undo `pause`."""
        if self._queue and self.is_paused:
            self.is_paused = self._holds_stops = False
            log.info("The incremental snapshot goes on")
            self.progress.resumed()
            self._tell.resumed(self._queue.correlation, self.collections)
            self.advance()

    def stop(self, collections: Sequence[str] = (), signal: str = "") -> None:
        """Take collections out of the queue, all of them when none is named; the window that waits is finished before.

        As in Debezium, collections of a snapshot that a signal has paused leave it when it is resumed, unless a window is still open.

        Args:
            signal: the id of the signal, which the notification of a refusal bears.

        Raises:
            ConfigError: a regex is malformed. A notification says so, and the snapshot continues.
            ConnectError: the names cannot be looked up.
        """
        if not self._queue:
            return
        try:
            self._queue.want_stop(collections)
            self._holds_stops = self._holds_stops and not self._window.chunk
        except ConfigError as error:
            self._tell.rejected(signal or None, self.collections, str(error))
            raise

    # -- the stream --------------------------------------------------------------------------------------------------------------------

    def window_opened(self, watermark: str) -> None:
        """Note that the stream is at a low watermark."""
        if not self._window.opens(watermark):
            log.info("Received request to open window with id = '%s', expected = '%s', request ignored", watermark, self._window.chunk)

    def window_closed(self, watermark: str) -> None:
        """Emit the window's rows: the stream is at a high watermark."""
        if not self._window.closes(watermark):
            log.info("Received request to close window with id = '%s', expected = '%s', request ignored", watermark, self._window.chunk)
            return
        rows = self._window.take()
        if rows:
            self._emit(rows)
        # what was dropped is in the stream, before this position
        self._queue.sent_all()
        self._watch(None)
        self.advance()

    def stream_read(self) -> None:
        """Close a window that ends at a position of the log; called after each read of the stream."""
        chunk = self._watermarks.passed()
        if chunk:
            self.window_closed(chunk)

    def structure_seen(self, structure: object) -> None:
        """Note the structure that the stream uses for the watched collection from here on: a chunk with another one is read again."""
        if structure != self._reader.structure:
            log.info("The structure of %s changed while a chunk of it was read; the chunk is read again", self.watched)
            self._clear_window()
            self._queue.end = self._queue.sent

    def event(self, key: bytes | None) -> None:
        """Drop the row of this key: the stream shows a change of it in the watched collection."""
        self._window.drop(key)

    def truncated(self) -> None:
        """Drop all rows: the stream shows a truncate of the watched collection."""
        self._window.drop_all()

    def _clear_window(self) -> None:
        self._window.begin("")
        self._watch(None)

    # -- reading -----------------------------------------------------------------------------------------------------------------------

    def advance(self) -> bool:
        """Read the next chunk when it is time to. Returns whether anything was done.

        Raises:
            RetriableError: nothing was lost; `restore`, then call again.
            Exception: as the reader's and the watermarks' that are no ConnectError (a stop).
        """
        if not self._queue or self._window.chunk:
            return False
        if self._queue.has_stops and not self._holds_stops:
            self._apply_stops()
            return True
        if self.is_paused or self._retries.is_waiting:
            return False
        chunk = str(uuid.uuid4())
        try:
            self._hooks.reached("before_low")
            self._watermarks.low(chunk)
            self._hooks.reached("after_low")
            self._window.begin(chunk)
            self._fill()
            if self._watermarks.open_at_once:
                self._window.opens(chunk)
            self._watch(self.watched)
            self._hooks.reached("before_high")
            self._watermarks.high(chunk)
            self._hooks.reached("after_high")
            self._retries.reset()
            self._losses = 0
        except RetriableError as error:
            self._lost(error)
            raise
        except BusyError as error:
            log.info("A chunk waits: %s", error)
            self._clear_window()
        except ConnectError as error:
            self._clear_window()
            self._queue.end = self._queue.sent
            if self._queue:
                self._failed(error)
        except DEFECTS as error:
            log.exception("A chunk of %s could not be read, by a defect of the connector", self._queue.ids[:1])
            self._clear_window()
            self._queue.end = self._queue.sent
            if self._queue:
                self._failed(ConnectError(f"{type(error).__name__}: {error}"))
        return True

    def _fill(self) -> None:
        """Read rows of the first collection that has some; those before it are finished."""
        queue = self._queue
        while queue:
            if queue.maximum is None:
                queue.maximum = self._maximum()
                if queue.maximum is None:
                    continue
            self._hooks.reached("before_chunk")
            began, limit = self._clock(), self._size.rows
            try:
                chunk = self._reader.read(queue.first, queue.end, queue.maximum, limit)
            except UnknownCollectionError as error:
                self._skip(ScanStatus.UNKNOWN_SCHEMA, error)
                continue
            except NoKeyError as error:
                self._skip(ScanStatus.NO_PRIMARY_KEY, error)
                continue
            self._size.took(self._clock() - began, len(chunk.rows))
            self._hooks.reached("after_chunk")
            if chunk.last is None:
                log.info("Incremental snapshot of %s: %d rows read", queue.first.id, queue.scanned)
                self._finish(ScanStatus.SUCCEEDED)
                continue
            self._window.fill(chunk.rows)
            queue.end = chunk.last
            queue.scanned += len(chunk.rows)
            self.progress.scanned(queue.first.id, len(chunk.rows))
            self._tell.in_progress(queue.correlation, self.collections, queue.maximum, chunk.last)
            return

    def _maximum(self) -> StoredKey | None:
        """Return the largest key of the first collection; None when it is done: it is empty, unknown, without a key, or the signal asks for
        what cannot be read (its condition or its surrogate key is refused).

        Raises:
            ConnectError: the server refuses what the signal is not to blame for: as with a chunk, it is tried again, and then the snapshot
                pauses. (The reference's `AbstractIncrementalSnapshotChangeEventSource` leaves the collection out.)
        """
        wanted = self._queue.first
        for attempt in (1, 2):
            try:
                found = self._reader.maximum(wanted)
            except (RetriableError, BusyError):
                raise
            except UnknownCollectionError as error:
                self._skip(ScanStatus.UNKNOWN_SCHEMA, error)
                return None
            except NoKeyError as error:
                self._skip(ScanStatus.NO_PRIMARY_KEY, error)
                return None
            except ConnectError as error:
                if not (wanted.condition or wanted.surrogate_key):
                    raise
                if attempt == 2:
                    self._skip(ScanStatus.SQL_EXCEPTION, error)
                    return None
                log.warning("The largest key of %s could not be read and is asked for again: %s", wanted.id, error)
            else:
                if found is None:
                    log.info("Incremental snapshot of %s: it is empty", wanted.id)
                    self._finish(ScanStatus.EMPTY)
                elif not wanted.condition:
                    self._estimate(wanted)
                return found
        return None

    def _estimate(self, wanted: WantedCollection) -> None:
        """Show about how many rows there are; without an answer the snapshot does as well."""
        try:
            self.progress.estimated(wanted.id, self._reader.estimate(wanted))
        except ConnectError as error:
            log.debug("The number of rows of %s is not known: %s", wanted.id, error)

    def _lost(self, error: ConnectError) -> None:
        """Pause where a condition may be what ends the connection each time (`pg_terminate_backend`), as it would after every restart."""
        if self._queue and self._queue.first.condition:
            self._losses += 1
            if self._losses >= MAX_LOSSES:
                self._losses = 0
                self._pause_at(error)

    def _failed(self, error: ConnectError) -> None:
        """Plan another attempt at a chunk that was refused, or whose watermarks were; pause when there is none left."""
        if self._retries.failed():
            log.warning("A chunk of %s could not be read and is tried again: %s", self._queue.first.id, error)
            return
        self._pause_at(error)

    def _pause_at(self, error: ConnectError) -> None:
        self.is_paused, self._holds_stops = True, False
        self._why_paused = f"a chunk of {self._queue.first.id} could not be read: {error}"
        log.error(
            "The incremental snapshot pauses in %s, since a chunk of it could not be read; streaming goes on, and nothing is lost. Send "
            "the signal resume-snapshot when the cause is gone, or stop-snapshot to do without the rest of it. %s",
            self._queue.first.id,
            error,
        )
        self.progress.paused(self._why_paused)
        self._tell.paused(self._queue.correlation, self.collections, str(error))

    def _skip(self, status: ScanStatus, error: ConnectError) -> None:
        log.error("The incremental snapshot leaves out %s; streaming goes on. %s", self._queue.first.id, error)
        self._finish(status)

    def _finish(self, status: ScanStatus) -> None:
        """Report that the first collection is done, and take the next one."""
        self.progress.table_done(self._queue.first.id)
        self._tell.scan_completed(self._queue.correlation, self.collections, self._queue.scanned, status)
        self._next()

    def _next(self) -> None:
        correlation = self._queue.correlation
        self._queue.next()
        self._retries.reset()
        if not self._queue:
            self.progress.end("completed")
            self._tell.completed(correlation)
            self.is_paused = self._holds_stops = False

    def _apply_stops(self) -> None:
        current = self._queue.first.id
        stopped = self._queue.apply_stops()
        if current in stopped:
            self._next()
        for name in stopped:
            self.progress.table_done(name)
        if stopped and not self._queue:
            self.progress.end("aborted")
        log.info("The incremental snapshot of %s was stopped by a signal", ", ".join(stopped) or "nothing that was under way")
        self._tell.aborted(self._queue.correlation, stopped)
