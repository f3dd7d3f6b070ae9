"""Channels by which signals arrive other than in the source itself: `signal.enabled.channels` (`pipeline/signal/channels`).

The task's thread polls them, every `signal.poll.interval.ms`. `SignalInbox` repeats a signal until it was carried out: `poll` shows it,
`done` removes it. Its effect is part of the batches that are made from then on, so when the offsets topic holds the offset of one of these
(and not merely an offset that was on its way) `committed` lets the channels acknowledge. A task that resumes from its last batch has
forgotten what signals brought about since: `resumed` shows these once more.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from connect_py.api.permissions import allowed_file
from connect_py.errors import ConfigError
from connectors.engine.config import ParsedConfig
from connectors.engine.plugins.extensions import extensions
from connectors.engine.signal.records import SignalRecord, parse_document

log = logging.getLogger(__name__)


class SignalChannel(Protocol):
    """One way by which signals arrive."""

    def read(self) -> list[SignalRecord]:
        """Return what has arrived since the last time. Raises ConnectError."""
        ...

    def committed(self) -> None:
        """Note that everything that was read and carried out is durable."""
        ...

    def close(self) -> None:
        """Free what the channel holds."""
        ...


class FileChannel:
    """A file with one signal a line, which is emptied when it was read (`FileSignalChannel.java`)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told = ""

    def read(self) -> list[SignalRecord]:
        """Return the file's signals. The file is renamed first, so that a line that is written meanwhile is not lost."""
        aside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            if not self._path.stat().st_size:
                return []
            os.replace(self._path, aside)
            lines = aside.read_bytes().splitlines()
            self._path.touch()
            aside.unlink()
        except FileNotFoundError:
            return []
        except OSError as error:
            if str(error) != self._told:
                self._told = str(error)
                log.error("The signal file %s cannot be read: %s", self._path, error)
            return []
        found = []
        for line in filter(None, (line.strip() for line in lines)):
            try:
                found.append(parse_document(line.decode(), "file"))
            except ValueError as error:
                log.warning("Skipped a signal of the file %s, %s: %s", self._path, error, line.decode("utf-8", "replace"))
        return found

    def committed(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class InProcessChannel:
    """Signals from code in the same process; `send` puts them in, from any thread."""

    def __init__(self, connector: str) -> None:
        self._connector = connector
        self._queue: queue.SimpleQueue[SignalRecord] = queue.SimpleQueue()
        with _lock:
            _open[connector] = self

    def put(self, record: SignalRecord) -> None:
        """Add a signal, for the next `read`."""
        self._queue.put(record)

    def read(self) -> list[SignalRecord]:
        """Return what was added."""
        found = []
        while not self._queue.empty():
            found.append(self._queue.get())
        return found

    def committed(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Accept no more signals."""
        with _lock:
            if _open.get(self._connector) is self:
                del _open[self._connector]


#: The number of batches whose offsets are remembered until one of them is stored.
_MADE = 1000

_lock = threading.Lock()
_open: dict[str, InProcessChannel] = {}


def send(connector: str, type_: str, data: str | None = None, id_: str | None = None) -> bool:
    """Give a signal to a connector's task in this process.

    Args:
        data: JSON text.

    Returns:
        Whether there is such a task that takes signals.
    """
    with _lock:
        channel = _open.get(connector)
    if channel is None:
        return False
    channel.put(SignalRecord(id_ or str(uuid.uuid4()), type_, data, "in-process"))
    return True


class SignalInbox:
    """All channels of a task as one.

    Args:
        channels: polled in turn.
        interval: seconds between two polls.
    """

    def __init__(self, channels: Sequence[SignalChannel], interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._channels = channels
        self._interval = interval
        self._clock = clock
        self._next = 0.0
        self._waiting: deque[tuple[SignalRecord, Callable[[], None] | None]] = deque()
        self._processed = False
        self._undone: list[Callable[[], None]] = []
        # carried out since the last batch was made
        self._unmade: list[tuple[SignalRecord, Callable[[], None] | None]] = []
        self._made: deque[Mapping[str, Any]] = deque(maxlen=_MADE)

    def poll(self) -> SignalRecord | None:
        """Return the next signal, the same one until `done`; None when there is none. Raises ConnectError."""
        if not self._waiting and self._channels and self._clock() >= self._next:
            self._next = self._clock() + self._interval
            for channel in self._channels:
                self._waiting += [(record, None) for record in channel.read()]
        return self._waiting[0][0] if self._waiting else None

    @property
    def seconds_left(self) -> float:
        """Seconds until the channels are polled."""
        return max(0.0, self._next - self._clock())

    def put(self, record: SignalRecord, done: Callable[[], None]) -> None:
        """Add a signal that was handed to the task, for the next `poll`; `done` is called when its effect is stored."""
        self._waiting.append((record, done))

    def done(self, *, has_effect: bool = True, outlasts_failures: bool = False) -> None:
        """Note that the signal of the last `poll` was carried out.

        Args:
            has_effect: on batches; without, there is nothing to be stored.
            outlasts_failures: the task remembers the effect although it resumes from its last batch.
        """
        record, done = self._waiting.popleft()
        if not has_effect:
            if done is not None:
                done()
        elif not outlasts_failures:
            self._unmade.append((record, done))
        elif done is not None:
            self._undone.append(done)
        self._processed = True
        self._made.clear()

    def resumed(self) -> None:
        """Note that the task resumes from the last batch that it has made."""
        self._waiting.extendleft(reversed(self._unmade))
        self._unmade.clear()

    def made(self, offset: Mapping[str, Any]) -> bool:
        """Note a batch that was made, by its offset. Returns whether it is the first one after a signal: its offset should be stored at
        once."""
        if not self._processed:
            return False
        self._undone += [done for _, done in self._unmade if done is not None]
        self._unmade.clear()
        self._made.append(offset)
        return len(self._made) == 1

    def committed(self, offset: Mapping[str, Any]) -> None:
        """Note that the offsets topic holds an offset."""
        if self._processed and not self._waiting and offset in self._made:
            self._processed = False
            self._made.clear()
            for channel in self._channels:
                channel.committed()
            for done in self._undone:
                done()
            self._undone.clear()

    def close(self) -> None:
        """Close every channel."""
        for channel in self._channels:
            channel.close()


#: Entry points of packages that add channels: the name is the channel's, the value a function of the connector's properties and name that
#: opens one: `read` gives signals as objects ``{"id": …, "type": …, "data": {…}, "additional-data": {…}}``, `committed` and `close` are
#: those of `SignalChannel`.
ENTRY_POINTS = "connect_py.signal_channels"
#: Channels that need nothing to be opened: the stream itself, code of this process, the worker's REST API.
_OPEN = ("source", "in-process", "rest")


def accepts_rest(config: ParsedConfig) -> bool:
    """Return whether signals may come by the worker's REST API: when the list names `rest`, and when no channels are configured."""
    names = config.names("signal.enabled.channels")
    return "rest" in names or names == ["source"]


def open_channels(config: ParsedConfig, connector: str) -> list[SignalChannel]:
    """Open every channel that has to be polled. Code of the same process can always send.

    Raises:
        ConfigError: there is no such channel, or it cannot be opened.
    """
    found: list[SignalChannel] = [InProcessChannel(connector)]
    for name in config.names("signal.enabled.channels"):
        if name in _OPEN:
            continue
        if name == "file":
            # the channel empties the file, and what is no signal in it goes to the log
            found.append(FileChannel(Path(allowed_file("signal.file", config.raw.get("signal.file") or "file-signals.txt"))))
        elif name == "kafka":
            # the client is loaded only where it is wanted
            from connectors.engine.signal.kafka_channel import KafkaChannel

            found.append(KafkaChannel(config.raw, config.topic_prefix))
        elif name == "jmx":
            log.warning("signal.enabled.channels: there is no JMX here; use the channel rest, kafka, file or source instead of jmx")
        else:
            found.append(_custom(name, config, connector))
    return found


def _custom(name: str, config: ParsedConfig, connector: str) -> SignalChannel:
    for entry in extensions(ENTRY_POINTS):
        if entry.name.lower() == name:
            return _Foreign(name, entry.load()(dict(config.raw), connector))
    raise ConfigError(
        f"signal.enabled.channels: there is no channel '{name}'; choose of source, kafka, file, rest, in-process, or install the package "
        f"that adds it ({ENTRY_POINTS})"
    )


class _Foreign:
    """A package's channel. What it raises is logged, and stops neither other channels nor the source."""

    def __init__(self, name: str, channel: Any) -> None:
        self._name = name
        self._channel = channel

    def read(self) -> list[SignalRecord]:
        return [record for signal in self._call("read") or () if (record := self._record(signal)) is not None]

    def committed(self) -> None:
        self._call("committed")

    def close(self) -> None:
        self._call("close")

    def _call(self, method: str) -> Any:
        try:
            return getattr(self._channel, method)()
        except Exception:
            log.exception("The signal channel '%s' failed", self._name)
            return None

    def _record(self, signal: Mapping[str, Any]) -> SignalRecord | None:
        try:
            return parse_document(json.dumps(dict(signal)), self._name, default_id="")
        except (ValueError, TypeError) as error:
            log.warning("Skipped a signal of the channel '%s': %s", self._name, error)
            return None
