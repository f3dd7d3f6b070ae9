"""The stores without Kafka: configurations and statuses of a standalone worker in memory, its source offsets in a file
(`MemoryConfigBackingStore.java`, `MemoryStatusBackingStore.java`, `FileOffsetBackingStore.java`), and all of them in memory for tests.

The stores in memory keep the same records and fold them with the same rules as those on Kafka, so they differ in nothing but durability.
Listeners are called on the thread that wrote.

Java's offset file is a serialized `HashMap`, which nothing but that class reads; ours is text, one line a source partition, in the format
of the offsets topic::

    {"format":"connect-py offsets","version":1}
    ["C",{"filename":"test.txt"}]<TAB>{"position":30}

Keys and values are JSON without raw control characters, so neither holds a tab or a line break. A change writes the whole file next to the
old one and renames it, so that a crash leaves the one or the other. A missing or empty file is an empty store; any other content is
refused, because overwriting what cannot be read may lose somebody's offsets.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from connect_py.api.record import SourceOffset, SourcePartition
from connect_py.api.storage import ClusterConfig, ConfigListener, OffsetStore, RestartRequest, Status, TargetState
from connect_py.errors import ConfigError, ConnectError, DataError
from offsets import config_store, status_store
from offsets.cache import OffsetCache, offset_records
from offsets.keys import encode_json
from offsets.status_store import StatusLookups


class MemoryConfigStore:
    """A `connect_py.api.storage.ConfigStore` that forgets."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._fold = config_store.ConfigFold()
        self._offset = 0
        self._listener: ConfigListener | None = None

    def start(self, listener: ConfigListener) -> None:
        """Notify the listener of what is written from now on."""
        self._listener = listener

    def stop(self) -> None:
        """Notify no listener any more."""
        self._listener = None

    def snapshot(self) -> ClusterConfig:
        """Return what has been written."""
        with self._lock:
            return self._fold.snapshot()

    def refresh(self, timeout: float) -> None:
        """Do nothing: there is nothing to wait for."""

    def put_connector(self, connector: str, config: Mapping[str, str], state: TargetState | None = None) -> None:
        """Store a configuration, and the target state before it."""
        before = [config_store.target_state_record(connector, state)] if state is not None else []
        self._write([*before, config_store.connector_record(connector, config)])

    def remove_connector(self, connector: str) -> None:
        """Forget the configuration and the target state."""
        self._write(config_store.removal_records(connector))

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Publish a full task set."""
        self._write([*config_store.task_records(connector, configs), config_store.commit_record(connector, len(configs))])

    def put_target_state(self, connector: str, state: TargetState) -> None:
        """Store what the connector should do."""
        self._write([config_store.target_state_record(connector, state)])

    def put_restart_request(self, request: RestartRequest) -> None:
        """Pass a restart request on."""
        self._write([config_store.restart_record(request)])

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Pass a log level on."""
        self._write([config_store.logger_record(namespace, level)])

    def put_session_key(self, key: str, algorithm: str, creation_timestamp: int) -> None:
        """Store the session key."""
        self._write([config_store.session_key_record(key, algorithm, creation_timestamp)])

    def claim(self) -> None:
        """Nobody else writes."""

    def release(self) -> None:
        """Nobody else writes."""

    def put_task_count_record(self, connector: str, tasks: int) -> None:
        """Store how many tasks a round of fencing has covered."""
        self._write([config_store.task_count_record(connector, tasks)])

    def _write(self, found: Sequence[config_store.Record]) -> None:
        for key, value in found:
            with self._lock:
                notice = self._fold.apply(key, value, self._offset)
                self._offset += 1
                listener = self._listener
            if notice is not None and listener is not None:
                notice.notify(listener)


class MemoryStatusStore(StatusLookups):
    """A `connect_py.api.storage.StatusStore` that forgets."""

    def on_topics_reset(self, listener: Callable[[str], None]) -> None:
        """Do nothing: there is no other worker."""

    def on_forgotten(self, listener: Callable[[str, int | None], None]) -> None:
        """Do nothing: there is no other worker."""

    def start(self) -> None:
        """Do nothing: there is nothing to read."""

    def stop(self) -> None:
        """Do nothing: there is nothing to close."""

    def flush(self, timeout: float) -> None:
        """Do nothing: there is nothing to wait for."""

    def refresh(self, timeout: float) -> None:
        """Do nothing: there is nothing to wait for."""

    def put_connector(self, name: str, status: Status, *, safe: bool = False) -> None:
        """Store a report; a `safe` one yields to a newer report of another worker."""
        self._put(status_store.ConnectorKey(name), status, safe)

    def put_task(self, connector: str, task: int, status: Status, *, safe: bool = False) -> None:
        """Store a report; a `safe` one yields to a newer report of another worker."""
        self._put(status_store.TaskKey(connector, task), status, safe)

    def delete_connector(self, name: str) -> None:
        """Forget a connector's state."""
        self._apply(status_store.ConnectorKey(name), None)

    def delete_task(self, connector: str, task: int) -> None:
        """Forget a task's state."""
        self._apply(status_store.TaskKey(connector, task), None)

    def put_topic(self, connector: str, task: int, topic: str) -> None:
        """Note that a task uses a topic."""
        value = status_store.encode_topic(connector, task, topic, time.time_ns() // 1_000_000)
        self._apply(status_store.TopicKey(connector, topic), value)

    def delete_topics(self, connector: str) -> None:
        """Forget the topics that the connector has used."""
        for topic in self.topics(connector):
            self._apply(status_store.TopicKey(connector, topic), None)

    def _put(self, key: status_store.StatusKey, status: Status, safe: bool) -> None:
        with self._lock:
            if safe and not status_store.may_write_safely(self._cache.known(key), status):
                return
        self._apply(key, status_store.encode_status(status))

    def _apply(self, key: status_store.StatusKey | status_store.TopicKey, value: bytes | None) -> None:
        with self._lock:
            self._cache.apply(key.encode(), value)


class MemoryOffsetStore:
    """A `connect_py.api.storage.OffsetStore` that forgets."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cache = OffsetCache()

    def start(self) -> None:
        """Do nothing: there is nothing to read."""

    def stop(self) -> None:
        """Do nothing: there is nothing to close."""

    def read(self, connector: str, config: Mapping[str, str], timeout: float) -> list[tuple[SourcePartition, SourceOffset]]:
        """Return everything known of one connector."""
        with self._lock:
            return self._cache.of_connector(connector)

    def put(
        self, connector: str, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]], config: Mapping[str, str] | None = None
    ) -> None:
        """Store offsets; None forgets one. Raises DataError; nothing is stored then."""
        found = offset_records(connector, offsets)
        with self._lock:
            for key, value in found:
                self._cache.apply(key, value)


class DirectOffsetWriter:
    """A `connect_py.api.storage.OffsetWriter` over a store in the same process.

    Args:
        store: where offsets go, e.g. a MemoryOffsetStore or a FileOffsetStore.
        connector: the connector's name.
    """

    def __init__(self, store: OffsetStore, connector: str) -> None:
        self._store = store
        self._connector = connector
        self._finished: list[tuple[Callable[[Exception | None], None], Exception | None]] = []

    def write(
        self,
        offsets: Sequence[tuple[SourcePartition, SourceOffset]],
        done: Callable[[Exception | None], None],
    ) -> None:
        """Store offsets now; `done` is called from `serve`."""
        try:
            self._store.put(self._connector, offsets)
        except ConnectError as error:
            self._finished.append((done, error))
        else:
            self._finished.append((done, None))

    def serve(self, timeout: float = 0.0) -> None:
        """Call what is done."""
        finished, self._finished = self._finished, []
        for done, error in finished:
            done(error)

    def release(self) -> None:
        """There are no connections."""

    def close(self, timeout: float) -> None:
        """Call what is done."""
        self.serve()


FILENAME = "offset.storage.file.filename"

_HEADER = encode_json({"format": "connect-py offsets", "version": 1})


class FileOffsetStore:
    """A `connect_py.api.storage.OffsetStore` in one file; only one worker may use it.

    Args:
        worker: worker properties, with `offset.storage.file.filename`.

    Raises:
        ConfigError: no file is named.
    """

    def __init__(self, worker: Mapping[str, str]) -> None:
        name = worker.get(FILENAME, "").strip()
        if not name:
            raise ConfigError(f'Missing required configuration "{FILENAME}" which has no default value.')
        self._path = Path(name)
        self._lock = threading.Lock()
        self._cache = OffsetCache()

    def start(self) -> None:
        """Read the file.

        Raises:
            ConfigError: it holds something else, a Java worker's offsets for instance; it is left as it is.
        """
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise ConfigError(f"The offset file '{self._path}' ({FILENAME}) cannot be read: {error.strerror}") from error
        if not data:
            return
        header, *lines = data.rstrip(b"\n").split(b"\n")
        if header != _HEADER:
            kind = "was written by a Java worker" if data.startswith(b"\xac\xed") else "is no offset file"
            raise ConfigError(f"'{self._path}' ({FILENAME}) {kind}; it was left as it is. Name another file, or move this one away.")
        with self._lock:
            for number, line in enumerate(lines, 2):
                key, tab, value = line.partition(b"\t")
                try:
                    self._cache.apply(key, value if tab else b"")
                except DataError as error:
                    raise ConfigError(f"Line {number} of '{self._path}' ({FILENAME}) is damaged: {error}. It was left as it is.") from error

    def stop(self) -> None:
        """Do nothing: the file is always complete."""

    def read(self, connector: str, config: Mapping[str, str], timeout: float) -> list[tuple[SourcePartition, SourceOffset]]:
        """Return everything known of one connector."""
        with self._lock:
            return self._cache.of_connector(connector)

    def put(
        self, connector: str, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]], config: Mapping[str, str] | None = None
    ) -> None:
        """Store offsets (None forgets one); returns when the file system holds them.

        Raises:
            DataError: a partition or offset that is no flat map of strings to primitives; nothing was written.
            ConnectError: the file cannot be written; it holds the offsets before these, and so does the store.
        """
        found = offset_records(connector, offsets)
        if not found:
            return
        with self._lock:
            changed = self._cache.copy()
            for key, value in found:
                changed.apply(key, value)
            self._save(changed)
            self._cache = changed

    def _save(self, cache: OffsetCache) -> None:
        lines = [_HEADER, *(key + b"\t" + value for key, value in cache.records())]
        pending = self._path.with_name(self._path.name + ".new")
        try:
            with open(pending, "wb") as file:
                file.write(b"\n".join(lines) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(pending, self._path)
        except OSError as error:
            raise ConnectError(
                f"Offsets could not be written to '{self._path}' ({FILENAME}): {error.strerror}. It holds those of the last write that "
                "succeeded."
            ) from error
