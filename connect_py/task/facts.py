"""Read what the sources of a worker's connectors say of their logs: the inside of one process for all connectors of a worker.

A process of its own, so that a database that hangs, a driver that waits for a name server, or a crash in a C library cannot hurt the
worker. Standard input and output carry JSON, one message a line:

    worker → here   watch {connector, class, config, holds} · unwatch {connector} · offsets {connector, offsets}
    here → worker   facts {connector, facts, uses_offsets} · facts_failed {connector, error} · alive

A source is asked every `interval` seconds. One that does not answer is asked less often, up to once a minute. `holds` says whether the
session is kept between two looks: not that of a paused or stopped connector, whose database somebody may want to drop.

Threads: the main thread reads commands; one says who is due; up to `_READERS` ask, so that a source that hangs for its time limit holds up
no other. A reader is used by one of them at a time.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import orjson

from connect_py.api.facts import SourceFacts, SourceFactsReader, StoredOffsets
from connect_py.plugins.registry import Plugins

log = logging.getLogger(__name__)

#: Sources that may hang at once without a delay for others. A thread is started only when all are busy, and costs some 50 kB.
_READERS = 32

#: How often a source is asked at least that does not answer.
_LONGEST_PAUSE_SECONDS = 60.0

#: A connector that has just started is asked soon, and not before one that is changed in a hurry has settled.
_FIRST_SECONDS = 1.0

#: A source that answers the same twice is asked again after this many intervals.
_REST_INTERVALS = 3

#: How often it is looked who is due.
_TICK_SECONDS = 0.25


@dataclass(eq=False)
class _Watched:
    """One connector. `is_reading` and `due` are guarded by the lock of `FactsReading`; the reader is its reading thread's."""

    connector: str
    java_class: str
    config: Mapping[str, str]
    holds: bool
    due: float
    offsets: StoredOffsets = ()
    is_reading: bool = False
    is_over: bool = False
    failures: int = 0
    asked: float = 0.0
    told: Mapping[str, Any] | None = None
    rests: bool = False
    reader: SourceFactsReader | None = field(default=None)


class FactsReading:
    """Asks each watched source when it is due.

    Args:
        make: makes a connector's reader of its class and configuration; None where there is nothing to ask. Raises ConnectError.
        report: sends a message to the worker; any thread.
        describe: makes a text of an error, without secrets.
        interval: seconds between two looks.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        make: Callable[[str, Mapping[str, str]], SourceFactsReader | None],
        report: Callable[[Mapping[str, Any]], None],
        describe: Callable[[Exception], str],
        interval: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._make = make
        self._report = report
        self._describe = describe
        self._interval = interval
        self._lock = threading.Lock()
        self._watched: dict[str, _Watched] = {}
        self._pool = ThreadPoolExecutor(_READERS, "facts")
        self._told = 0.0

    def watch(self, connector: str, java_class: str, config: Mapping[str, str], *, holds: bool) -> None:
        """Ask a connector's source from now on."""
        with self._lock:
            known = self._watched.get(connector)
            if known is not None and known.config == config and known.java_class == java_class:
                known.holds = holds
                return
            self._end(known)
            self._watched[connector] = _Watched(connector, java_class, config, holds, self._clock() + _FIRST_SECONDS)

    def unwatch(self, connector: str) -> None:
        """Ask no longer."""
        with self._lock:
            self._end(self._watched.pop(connector, None))

    def offsets(self, connector: str, offsets: StoredOffsets) -> None:
        """Note the committed offsets of a connector."""
        with self._lock:
            watched = self._watched.get(connector)
            if watched is None or watched.offsets == offsets:
                return
            watched.offsets = offsets
            if watched.rests:
                watched.due = min(watched.due, watched.asked + self._interval)

    def tick(self) -> list[str]:
        """Have the sources asked that are due. Returns their connectors."""
        now = self._clock()
        with self._lock:
            due = [watched for watched in self._watched.values() if watched.due <= now and not watched.is_reading]
            for watched in due:
                watched.is_reading = True
                self._pool.submit(self._read, watched)
        if now - self._told >= self._interval:
            self._told = now
            self._report({"type": "alive"})
        return [watched.connector for watched in due]

    def _end(self, watched: _Watched | None) -> None:
        if watched is not None:
            watched.is_over = True
            if not watched.is_reading:
                watched.is_reading = True
                self._pool.submit(self._close, watched)

    def _read(self, watched: _Watched) -> None:
        with self._lock:
            watched.asked, offsets = self._clock(), watched.offsets
        told: Mapping[str, Any] = {}
        try:
            if watched.reader is None:
                watched.reader = self._make(watched.java_class, watched.config)
            if watched.reader is None:
                watched.is_over = True
                return
            facts = watched.reader.read(offsets)
            watched.failures = 0
            told = {"type": "facts", "facts": as_message(facts), "uses_offsets": watched.reader.uses_offsets}
        except Exception as error:  # noqa: BLE001  # whatever a driver raises, the source has not answered
            watched.failures += 1
            told = {"type": "facts_failed", "error": self._describe(error)}
        finally:
            if not watched.holds or watched.is_over:
                self._close(watched)
            pause = min(max(_LONGEST_PAUSE_SECONDS, self._interval), self._interval * 2 ** max(0, min(watched.failures, 10) - 1))
            with self._lock:
                watched.rests = not watched.failures and told == watched.told and watched.offsets == offsets
                watched.told = told
                watched.due = watched.asked + pause * (_REST_INTERVALS if watched.rests else 1)
                watched.is_reading = False
                is_over = watched.is_over
            if is_over:
                self._close(watched)
        self._tell(watched, told)

    def _tell(self, watched: _Watched, message: Mapping[str, Any]) -> None:
        with self._lock:
            if watched.is_over:
                return
        self._report({**message, "connector": watched.connector})

    @staticmethod
    def _close(watched: _Watched) -> None:
        try:
            if watched.reader is not None:
                watched.reader.close()
        except Exception:
            log.debug("The session of the facts of %s was not ended in order", watched.connector, exc_info=True)


def as_message(facts: SourceFacts) -> dict[str, Any]:
    """Return what the worker receives."""
    return {
        "head": facts.head,
        "position": facts.position,
        "unit": facts.unit,
        "segments": {str(number): start for number, start in facts.segments.items()},
        "groups": [(group.domain, group.type, dict(group.tags), dict(group.values)) for group in facts.groups],
    }


def serve(
    start: Mapping[str, Any],
    commands: BinaryIO,
    plugins: Plugins,
    resolve: Callable[[Mapping[str, str]], Mapping[str, str]],
    report: Callable[[Mapping[str, Any]], None],
    describe: Callable[[Exception], str],
) -> None:
    """Follow the worker's commands until it is gone; then the process ends at once.

    Args:
        start: the first message: ``interval``.
        resolve: replaces the variables of a configuration and notes its secrets. Raises ConfigError.
    """
    logging.getLogger("connectors").setLevel(logging.ERROR)  # a login every few seconds is no news, and what fails is reported

    def make(java_class: str, config: Mapping[str, str]) -> SourceFactsReader | None:
        made: Any = plugins.load(java_class)
        reader: SourceFactsReader | None = made().facts_reader(resolve(config))
        return reader

    reading = FactsReading(make, report, describe, start["interval"])

    def run() -> None:
        while True:
            reading.tick()
            time.sleep(_TICK_SECONDS)

    threading.Thread(target=run, name="facts-due", daemon=True).start()
    try:
        for line in commands:
            if not line.endswith(b"\n"):
                break
            message = orjson.loads(line)
            match message["type"]:
                case "watch":
                    reading.watch(message["connector"], message["class"], message["config"], holds=message["holds"])
                case "unwatch":
                    reading.unwatch(message["connector"])
                case "offsets":
                    reading.offsets(message["connector"], [(partition, offset) for partition, offset in message["offsets"]])
                case "log_level":
                    logging.getLogger(message["logger"]).setLevel(message["level"])
                case "stop":
                    break
    finally:
        os._exit(0)
