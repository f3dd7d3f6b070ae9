"""Have the facts of this worker's sources read, by one process for all of them (`connect_py.task.facts`).

The process starts with the first connector that has facts, and again when it has died or has not answered for a minute. Only the worker
that has a connector asks its source. Everything is done on a thread of this module: no other one ever waits for the process or for Kafka.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from connect_py.api import SourceConnector, SourceOffset, SourcePartition
from connect_py.api.storage import TargetState
from connect_py.config.connector import CONNECTOR_CLASS
from connect_py.errors import ConnectError
from connect_py.host.process import Event, Exited, TaskProcess
from connect_py.metrics.worker import WorkerMetrics
from connect_py.plugins.registry import Plugins

log = logging.getLogger(__name__)

#: What the process's command line shows.
FACTS_PROCESS = "connect-py-source-facts"

_TICK_SECONDS = 1.0

#: How long the process may say nothing before it is taken for stuck.
_SILENT_SECONDS = 60.0

#: How long after its end the process is started again.
_RESTART_SECONDS = 10.0

#: How often the stored offsets of a connector without a running task are read: they change only when somebody alters them.
_OFFSETS_SECONDS = 60.0


class FactsHost:
    """Any thread may call its methods, which return at once.

    Args:
        spawn: starts the process, given where its events go. Raises OSError.
        read_offsets: reads the stored offsets of a connector within a few seconds. Raises ConnectError.
        is_off: nothing is read.
    """

    def __init__(
        self,
        plugins: Plugins,
        metrics: WorkerMetrics,
        *,
        spawn: Callable[[Callable[[Event], None]], TaskProcess],
        read_offsets: Callable[[str], Iterable[tuple[SourcePartition, SourceOffset]]],
        is_off: bool = False,
    ) -> None:
        self._plugins = plugins
        self._metrics = metrics
        self._spawn = spawn
        self._read_offsets = read_offsets
        self._is_off = is_off
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._watched: dict[str, dict[str, Any]] = {}
        self._offsets_at: dict[str, float] = {}
        self._process: TaskProcess | None = None
        self._not_before = 0.0
        self._heard = 0.0
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The process; None while there is none."""
        process = self._process
        return None if process is None else process.pid

    def watch(self, connector: str, config: Mapping[str, str], target: TargetState) -> None:
        """Read the facts of a connector from now on; of one without facts nothing happens."""
        if self._is_off:
            return
        java_class = config.get(CONNECTOR_CLASS, "")
        try:
            made = self._plugins.connector(java_class)
        except ConnectError:
            return
        if not issubclass(made, SourceConnector) or made.facts_reader is SourceConnector.facts_reader:
            return
        message = {
            "type": "watch",
            "connector": connector,
            "class": made.java_name,
            "config": dict(config),
            "holds": target is TargetState.STARTED,
        }
        self._post(lambda: self._on_watch(connector, message))

    def unwatch(self, connector: str) -> None:
        """Read no longer."""
        self._post(lambda: self._on_unwatch(connector))

    def close(self) -> None:
        """End the process."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._is_off = True
        process = self._process
        if process is not None:
            process.kill()
        if thread is not None:
            self._jobs.put(None)

    def _post(self, job: Callable[[], None]) -> None:
        with self._lock:
            if self._is_off:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="facts", daemon=True)
                self._thread.start()
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_TICK_SECONDS)
                if job is None:
                    break
                job()
            except queue.Empty:
                self._tick()
            except Exception:
                log.exception("The facts of sources are not read just now")
        if self._process is not None:
            self._process.kill()

    def _on_watch(self, connector: str, message: dict[str, Any]) -> None:
        self._watched[connector] = message
        self._offsets_at.pop(connector, None)
        if self._process is None:
            self._launch()
        else:
            self._process.send(message)

    def _on_unwatch(self, connector: str) -> None:
        if self._watched.pop(connector, None) is not None and self._process is not None:
            self._process.send({"type": "unwatch", "connector": connector})
        self._offsets_at.pop(connector, None)
        self._metrics.facts_gone(connector)

    def _launch(self) -> None:
        if time.monotonic() < self._not_before or self._is_off:
            return
        self._not_before = time.monotonic() + _RESTART_SECONDS
        try:
            self._process = self._spawn(self._on_event)
        except OSError as error:
            log.warning("The process that reads the facts of sources could not be started: %s", error)
            return
        self._heard = time.monotonic()
        self._offsets_at.clear()
        for message in self._watched.values():
            self._process.send(message)

    def _tick(self) -> None:
        now = time.monotonic()
        if self._process is None:
            if self._watched:
                self._launch()
            return
        if now - self._heard > _SILENT_SECONDS:
            log.warning("The process that reads the facts of sources has said nothing for %g s, and is started again", _SILENT_SECONDS)
            self._process.kill()
            self._heard = now
        for connector in [name for name in self._watched if self._metrics.wants_offsets(name)]:
            if now - self._offsets_at.get(connector, float("-inf")) >= _OFFSETS_SECONDS:
                self._offsets_at[connector] = now
                try:
                    offsets = [(dict(partition), dict(offset)) for partition, offset in self._read_offsets(connector)]
                except ConnectError as error:
                    log.debug("The offsets of %s cannot be read just now: %s", connector, error)
                    break  # Kafka does not answer: the others would wait in vain, too
                self._process.send({"type": "offsets", "connector": connector, "offsets": offsets})

    def _on_event(self, event: Event) -> None:
        """Called by the process's thread."""
        self._heard = time.monotonic()
        if isinstance(event, Exited):
            self._jobs.put(self._on_exit)
        elif event["type"] == "facts":
            self._metrics.facts_reported(event["connector"], event["facts"], uses_offsets=event["uses_offsets"])
        elif event["type"] == "facts_failed":
            self._metrics.facts_failed(event["connector"], event["error"])

    def _on_exit(self) -> None:
        self._process = None
