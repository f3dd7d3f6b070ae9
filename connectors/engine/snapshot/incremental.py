"""The incremental snapshot: collections read in chunks by key while streaming goes on (debezium-common §11;
`AbstractIncrementalSnapshotChangeEventSource.java`). Knows no database; a connector gives it a `ChunkReader` and `Watermarks`.

    begin() ──> queue ──advance()──> low watermark, chunk, high watermark ──stream──> window_opened, event…, window_closed ──> rows
                  ^──────────────────────────────────────────────────────────────────────────────────────────────┘

All calls are made on the task's thread, most of them while the stream makes a batch: rows and notifications that are handed to `emit` and
`tell` become part of that batch, and `offset` is part of its offset. The next chunk is read at once, as Debezium does, so the order of
everything is Debezium's. A failure in the middle loses the batch that is being made and nothing else: the task goes on from the offset of
its last batch by `restore`, and the stream shows the same events again.

A failing collection never stops the stream: what cannot be read is logged, told, and left out; what passes (a lost connection) is raised.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError, ConnectError, RetriableError
from connectors.engine.notification.events import IncrementalEvents, ScanStatus
from connectors.engine.snapshot.hooks import SnapshotHooks
from connectors.engine.snapshot.incremental_offset import IncrementalOffset, StoredKey, WantedCollection
from connectors.engine.snapshot.reader import BusyError, ChunkReader, NoKeyError, UnknownCollectionError
from connectors.engine.snapshot.watermarks import Watermarks
from connectors.engine.snapshot.window import Window

log = logging.getLogger(__name__)

R = TypeVar("R")

#: A chunk whose statement the server refuses is read once more, with the table's structure as it is then: a column may just have gone.
CHUNK_ATTEMPTS = 2


class IncrementalSnapshot(Generic[R]):
    """The state machine; see the module.

    Args:
        reader: reads chunks.
        watermarks: marks the log.
        chunk_size: rows of a chunk at most.
        emit: takes the rows of a window that has closed.
        watch: told of the collection whose events must be shown to `event` from now on; None for none.
        tell: takes notifications.
        hooks: see `SnapshotHooks`.
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
    ) -> None:
        self._watch = watch
        self._reader = reader
        self._watermarks = watermarks
        self._chunk_size = chunk_size
        self._emit = emit
        self._tell = tell
        self._hooks = hooks or SnapshotHooks()
        self._window: Window[R] = Window()
        self._queue: deque[WantedCollection] = deque()
        self._sent: StoredKey | None = None
        self._end: StoredKey | None = None
        self._maximum: StoredKey | None = None
        self._correlation: str | None = None
        self._scanned = 0
        self._stops: list[str] = []
        self._offset: Mapping[str, str | None] = {}
        self.is_paused = False

    # -- state -------------------------------------------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether collections are left to read."""
        return bool(self._queue)

    @property
    def watched(self) -> str | None:
        """The collection whose events `event` must be told of now; None when no window waits."""
        return self._queue[0].id if self._queue and self._window.chunk else None

    @property
    def chunk(self) -> str:
        """The chunk whose window waits for its high watermark; empty when none does."""
        return self._window.chunk

    @property
    def collections(self) -> list[str]:
        """What is left, the current one first."""
        return [wanted.id for wanted in self._queue]

    def offset(self) -> Mapping[str, str | None]:
        """The fields of the source offset; empty when nothing runs."""
        return self._offset

    def restore(self, stored: Mapping[str, object]) -> None:
        """Go on from an offset: the chunk behind the last sent key is read anew, watermarks of before mean nothing.

        Raises:
            ConfigError: the fields cannot be read.
        """
        found = IncrementalOffset.load(stored)
        self._clear_window()
        self._queue = deque(found.collections)
        self._sent = self._end = found.sent
        self._maximum = found.maximum
        self._correlation = found.correlation_id
        self._stops.clear()
        self._changed()

    def _changed(self) -> None:
        self._offset = IncrementalOffset(tuple(self._queue), self._sent, self._maximum, self._correlation).dump()

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
            ConfigError: a regex is malformed.
            ConnectError: the names cannot be looked up.
        """
        rules = [(compile_java_regex(f"(?i){name}"), condition) for name, condition in conditions]
        idle = not self._queue
        for name in self._expanded(collections):
            condition = next((condition for pattern, condition in rules if pattern.fullmatch(name)), None)
            self._queue.append(WantedCollection(name, condition or None, surrogate_key or None))
        self._correlation = signal or None
        self._changed()
        log.info("Incremental snapshot '%s': %s %s", signal, "of" if idle else "now also of", ", ".join(self.collections))
        if idle:
            self._sent = self._end = self._maximum = None
            self._changed()
            self._tell.started(self._correlation, self.collections)
            self.advance()

    def pause(self) -> None:
        """Read no further chunk; one whose window waits is finished."""
        if self._queue and not self.is_paused:
            self.is_paused = True
            log.info("The incremental snapshot pauses")
            self._tell.paused(self._correlation, self.collections)

    def resume(self) -> None:
        """Undo `pause`."""
        if self._queue and self.is_paused:
            self.is_paused = False
            log.info("The incremental snapshot goes on")
            self._tell.resumed(self._correlation, self.collections)
            self.advance()

    def stop(self, collections: Sequence[str] = ()) -> None:
        """Take collections out of the queue, all of them when none is named; the window that waits is finished before."""
        if self._queue:
            self._stops += collections or [".*"]

    def _expanded(self, patterns: Iterable[str]) -> list[str]:
        names = self._reader.names()
        found: dict[str, None] = {}
        for text in patterns:
            try:
                pattern = compile_java_regex(text)
            except ConfigError as error:
                raise ConfigError(f"'{text}' in data-collections is no regular expression: {error}") from None
            found.update(dict.fromkeys([name for name in names if pattern.fullmatch(name)] or [text]))
        return list(found)

    # -- the stream --------------------------------------------------------------------------------------------------------------------

    def window_opened(self, watermark: str) -> None:
        """The stream is at a low watermark."""
        if not self._window.opens(watermark):
            log.info("Received request to open window with id = '%s', expected = '%s', request ignored", watermark, self._window.chunk)

    def window_closed(self, watermark: str) -> None:
        """The stream is at a high watermark: the window's rows go out."""
        if not self._window.closes(watermark):
            log.info("Received request to close window with id = '%s', expected = '%s', request ignored", watermark, self._window.chunk)
            return
        rows = self._window.take()
        if rows:
            self._emit(rows)
        # what was dropped is in the stream, before this place
        self._sent = self._end
        self._changed()
        self._watch(None)
        self.advance()

    def stream_read(self) -> None:
        """The stream was read for a while: close a window that ends at a position of the log."""
        chunk = self._watermarks.passed()
        if chunk:
            self.window_closed(chunk)

    def structure_seen(self, structure: object) -> None:
        """The stream uses a structure of the watched collection from here on: a chunk that was read in another one is read again."""
        if structure != self._reader.structure:
            log.info("The structure of %s changed while a chunk of it was read; the chunk is read again", self.watched)
            self._clear_window()
            self._end = self._sent

    def event(self, key: bytes | None) -> None:
        """The stream shows a change of this key in the watched collection."""
        self._window.drop(key)

    def truncated(self) -> None:
        """The stream shows a truncate of the watched collection."""
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
        if self._stops:
            self._apply_stops()
            return True
        if self.is_paused:
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
        except RetriableError:
            raise
        except BusyError as error:
            log.info("A chunk waits: %s", error)
            self._clear_window()
        except ConnectError as error:
            self._clear_window()
            if self._queue:
                self._skip(ScanStatus.SQL_EXCEPTION, f"The watermarks of a chunk cannot be written: {error}")
        return True

    def _fill(self) -> None:
        """Rows of the first collection that has some; those before it are finished."""
        attempts = 0
        while self._queue:
            wanted = self._queue[0]
            try:
                if self._maximum is None:
                    self._maximum = self._reader.maximum(wanted)
                    self._changed()
                if self._maximum is None:
                    log.info("Incremental snapshot of %s: it is empty", wanted.id)
                    self._finish(ScanStatus.EMPTY)
                    continue
                self._hooks.reached("before_chunk")
                chunk = self._reader.read(wanted, self._end, self._maximum, self._chunk_size)
                self._hooks.reached("after_chunk")
            except (RetriableError, BusyError):
                raise
            except UnknownCollectionError as error:
                self._skip(ScanStatus.UNKNOWN_SCHEMA, str(error))
            except NoKeyError as error:
                self._skip(ScanStatus.NO_PRIMARY_KEY, str(error))
            except ConnectError as error:
                attempts += 1
                if attempts < CHUNK_ATTEMPTS:
                    log.warning("A chunk of %s could not be read and is tried again: %s", wanted.id, error)
                    continue
                self._skip(ScanStatus.SQL_EXCEPTION, str(error))
            else:
                if chunk.last is not None:
                    self._window.fill(chunk.rows)
                    self._end = chunk.last
                    self._scanned += len(chunk.rows)
                    self._tell.in_progress(self._correlation, self.collections, self._maximum, chunk.last)
                    return
                log.info("Incremental snapshot of %s: %d rows read", wanted.id, self._scanned)
                self._finish(ScanStatus.SUCCEEDED)
            attempts = 0

    def _skip(self, status: ScanStatus, reason: str) -> None:
        log.error("The incremental snapshot leaves out %s; streaming goes on. %s", self._queue[0].id, reason)
        self._finish(status)

    def _finish(self, status: ScanStatus) -> None:
        """The first collection is done with."""
        self._tell.scan_completed(self._correlation, self.collections, self._scanned, status)
        self._next()

    def _next(self) -> None:
        self._queue.popleft()
        self._sent = self._end = self._maximum = None
        self._scanned = 0
        if not self._queue:
            self._tell.completed(self._correlation)
            self._correlation = None
            self.is_paused = False
        self._changed()

    def _apply_stops(self) -> None:
        named, self._stops = self._expanded(self._stops), []
        current = self._queue[0].id
        stopped = []
        for name in named:
            if name != current and any(wanted.id == name for wanted in self._queue):
                stopped.append(name)
        self._queue = deque(wanted for wanted in self._queue if wanted.id == current or wanted.id not in stopped)
        if current in named:
            stopped.append(current)
            self._next()
        self._changed()
        log.info("The incremental snapshot of %s was stopped by a signal", ", ".join(stopped) or "nothing that was under way")
        self._tell.aborted(self._correlation, stopped)
