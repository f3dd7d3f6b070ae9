"""Have lakehouse tables compared with their sources, because a client of this worker asks: one comparison at a time, each in a process.

The process reads the database and the table's files by itself (`connect_py.app.verify.served`), and is gone when it is done: neither a
driver that hangs nor a gigabyte of Arrow hurts the worker. The last outcome of each connector is kept in memory.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connect_py.errors import ConflictError, RestError
from connect_py.host.process import Event, Exited, TaskProcess

log = logging.getLogger(__name__)

#: What the process's command line shows.
VERIFICATION_PROCESS = "connect-py-verification"

#: Outcomes are kept of so many connectors; an older one goes.
_KEPT = 100

#: Starts the process: its ``start`` message but for what all processes get, and where its events go. Raises OSError.
Spawn = Callable[[Mapping[str, Any], Callable[[Event], None]], TaskProcess]


@dataclass(slots=True)
class _Verification:
    """One comparison; guarded by the lock of its owner. `state` is running, done, failed or cancelled."""

    began: float
    tables: Sequence[str]
    topics: bool
    state: str = "running"
    ended: float | None = None
    progress: Mapping[str, Any] | None = None
    results: list[Mapping[str, Any]] = field(default_factory=list)
    error: str | None = None
    process: TaskProcess | None = None

    def shown(self) -> Mapping[str, Any]:
        return {
            "state": self.state,
            "tables": list(self.tables),
            "topics": self.topics,
            "began": self.began,
            "ended": self.ended,
            "progress": self.progress,
            "results": list(self.results),
            "error": self.error,
        }


class Verifications:
    """Any thread may call its methods, which return at once.

    Args:
        clock: seconds since 1970.
    """

    def __init__(self, spawn: Spawn, clock: Callable[[], float] = time.time) -> None:
        self._spawn = spawn
        self._clock = clock
        self._lock = threading.Lock()
        self._last: dict[str, _Verification] = {}
        self._is_closed = False

    def begin(self, connector: str, tables: Sequence[str], start: Mapping[str, Any]) -> None:
        """Begin to compare the tables of a connector.

        Args:
            tables: names, for people; none means all.
            start: for the process.

        Raises:
            ConflictError: another comparison runs.
            RestError: 503, the process cannot be started.
        """
        with self._lock:
            running = next((name for name, each in self._last.items() if each.state == "running"), None)
            if running is not None:
                raise ConflictError(
                    f"The tables of connector {running} are being compared, and a worker compares one connector's tables at a time. "
                    "Nothing was begun; wait for the end of it, or cancel it."
                )
            if self._is_closed:
                raise RestError("The worker is ending. Nothing was begun.", 503)
            self._last.pop(connector, None)
            run = self._last[connector] = _Verification(self._clock(), tables, bool(start.get("topics")))
            while len(self._last) > _KEPT:
                del self._last[next(iter(self._last))]
            try:
                run.process = self._spawn(start, lambda event: self._on_event(run, event))
            except OSError as error:
                del self._last[connector]
                raise RestError(f"The process that compares tables could not be started: {error}. Nothing was begun.", 503) from error

    def cancel(self, connector: str) -> None:
        """End the comparison of a connector's tables, if one runs; what was found stays."""
        with self._lock:
            run = self._last.get(connector)
            if run is not None and run.state == "running":
                self._end(run, "cancelled", None)

    def of(self, connector: str) -> Mapping[str, Any] | None:
        """Return the last comparison of a connector's tables, as JSON; None when there was none since this worker started."""
        with self._lock:
            run = self._last.get(connector)
            return None if run is None else run.shown()

    def close(self) -> None:
        """End what runs, and begin nothing more."""
        with self._lock:
            self._is_closed = True
            for run in self._last.values():
                if run.state == "running":
                    self._end(run, "cancelled", None)

    def _end(self, run: _Verification, state: str, error: str | None) -> None:
        run.state, run.ended, run.progress, run.error = state, self._clock(), None, error
        if run.process is not None:
            run.process.kill()
            run.process = None

    def _on_event(self, run: _Verification, event: Event) -> None:
        """Called by the process's thread."""
        with self._lock:
            if run.state != "running":
                return
            if isinstance(event, Exited):
                died = (
                    None
                    if event.code == 0
                    else f"The process that compares tables has ended ({event.describe()}); the worker's log may say why."
                )
                self._end(run, "failed" if died else "done", died)
            elif event["type"] == "progress":
                run.progress = {name: event[name] for name in ("table", "phase", "rows", "expected")}
            elif event["type"] == "result":
                run.progress = None
                run.results.append({name: value for name, value in event.items() if name != "type"})
            elif event["type"] == "verification_failed":
                self._end(run, "failed", event["error"])
