"""A snapshot while its rows are read: what is told of it to metrics, notifications and the log, and what of it is done. Knows no database.

A connector makes the run that reads (`initial.py`, `parallel.py`), tells it of `begin_table`, `scanned` and `table_ended`, and puts
`progress_text` into its offset after each `next_rows`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from connect_py.api.record import EncodedRow
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notification.events import InitialEvents
from connectors.engine.snapshot.initial.progress import SnapshotProgress
from connectors.engine.snapshot.initial.run import SnapshotRun

log = logging.getLogger(__name__)

REPORT_SECONDS = 10.0


class SnapshotReading:
    """See the module; used by the task's thread.

    Args:
        names: of the tables, in the order in which they are read.
        captured: all that are captured, for notifications.
        progress: of earlier attempts; the run tells it of more.
        estimates: rows of the tables; None where nothing is known.
        keeps_progress: whether offsets tell what is done: without a stream behind it, chunks of several moments would never become one
            state, and a blocking snapshot is not taken again.
        chunk_rows: rows of a chunk.

    Attributes:
        run: what reads; to be set before the first row is asked for.
        current: what is read now, for messages.
        is_milestone: whether the last rows that were given out ended a chunk, and so much was read since the last time.
    """

    run: SnapshotRun

    def __init__(
        self,
        names: Sequence[str],
        captured: Sequence[str],
        progress: SnapshotProgress,
        events: InitialEvents,
        metrics: SnapshotMetrics,
        *,
        estimates: Mapping[str, int | None],
        keeps_progress: bool,
        chunk_rows: int,
    ) -> None:
        self._names = names
        self._captured = captured
        self._progress = progress
        self._events = events
        self._metrics = metrics
        self._keeps = keeps_progress
        self._chunk_rows = chunk_rows
        self._counts: dict[str, int] = {}
        self._stored_rows = 0
        self._started = self._reported = time.monotonic()
        self.current = "the tables"
        self.is_milestone = False
        self.progress_text = progress.text if keeps_progress else None
        done = {name: rows for name in names if (rows := progress.rows(name))}
        ended = [name for name in names if progress.is_done(name)]
        metrics.begin(len(names) - len(ended), estimates, done, ended)

    def begin_table(self, name: str) -> None:
        """A chunk of a table begins to be read."""
        self.current = f"the table {name}"
        if name not in self._counts:
            self._counts[name] = self._progress.rows(name)
            self._events.in_progress(name, self._names)

    def scanned(self, name: str, rows: int) -> None:
        """So many further rows of a table were read."""
        self._counts[name] += rows
        self._metrics.scanned(name, rows)

    def table_ended(self, name: str) -> None:
        """Everything of a table was read."""
        self._metrics.table_done(name)
        self._events.scan_completed(name, self._captured, self._counts.get(name, 0))

    def next_rows(self) -> list[EncodedRow]:
        """See `SnapshotRun.next_rows`."""
        rows = self.run.next_rows()
        if rows:
            self._metrics.events(len(rows))
        text = self._progress.text if self._keeps else None
        self.is_milestone = text != self.progress_text and self.run.rows_sent - self._stored_rows >= self._chunk_rows // 2
        self.progress_text = text
        if self.is_milestone:
            self._stored_rows = self.run.rows_sent
        if time.monotonic() - self._reported > REPORT_SECONDS and not self.run.finished:
            self._reported = time.monotonic()
            log.info("Snapshot: %d rows so far, now reading %s", self.run.rows_sent, self.current)
        return rows

    def completed(self) -> None:
        """The last row was given out, and all that follows the rows has been done."""
        self._metrics.end("completed")
        self._events.completed()
        log.info("Snapshot finished: %d rows in %.1f s", self.run.rows_sent, time.monotonic() - self._started)
