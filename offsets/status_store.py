"""States of connectors and tasks, and the topics they use, on the status topic (`KafkaStatusBackingStore.java`).

The topic is the truth: a report shows up once it has come back from the topic, some milliseconds after it was put. Writes return at once;
one that failed for a passing reason is sent again unless a newer report about the same thing was put meanwhile. Records have a field
`version` since Kafka 4.2 (KIP-891), null when it isn't known; older records have none.

Records and the rules on which report wins are pure functions; `StatusCache` folds the records, not thread-safe; `StatusLookups` answers
from it under a lock, for every status store. The log's reader thread fills the cache.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.api.storage import Status
from connect_py.errors import ConnectError, DataError, RetriableError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.shared_log import LogRecord
from offsets.keys import decode_json, encode_json
from offsets.topics import READ_WRITE_SECONDS, STATUS_TOPIC, TopicLog

log = logging.getLogger(__name__)


CONNECTOR = "status-connector-"
TASK = "status-task-"
TOPIC = "status-topic-"
TOPIC_SEPARATOR = ":connector-"

STATES = frozenset({"UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED", "DESTROYED"})


@dataclass(frozen=True, slots=True)
class ConnectorKey:
    """Whose status a record holds: a connector's."""

    connector: str

    def encode(self) -> bytes:
        """Return the record's key."""
        return (CONNECTOR + self.connector).encode()


@dataclass(frozen=True, slots=True)
class TaskKey:
    """Whose status a record holds: a task's."""

    connector: str
    task: int

    def encode(self) -> bytes:
        """Return the record's key."""
        return f"{TASK}{self.connector}-{self.task}".encode()


@dataclass(frozen=True, slots=True)
class TopicKey:
    """A topic that a connector uses."""

    connector: str
    topic: str

    def encode(self) -> bytes:
        """Return the record's key."""
        return f"{TOPIC}{self.topic}{TOPIC_SEPARATOR}{self.connector}".encode()


StatusKey = ConnectorKey | TaskKey

#: Key and value; None is a tombstone.
Record = tuple[bytes, bytes | None]


def parse_key(key: bytes | None) -> ConnectorKey | TaskKey | TopicKey:
    """Return what a record is about. Raises DataError."""
    try:
        name = (key or b"").decode()
    except UnicodeDecodeError:
        raise DataError("Discarding status record with a key that is no UTF-8") from None
    if name.startswith(CONNECTOR) and len(name) > len(CONNECTOR):
        return ConnectorKey(name[len(CONNECTOR) :])
    if name.startswith(TASK):
        connector, _, number = name[len(TASK) :].rpartition("-")
        if connector and number.isascii() and number.isdigit():
            return TaskKey(connector, int(number))
    if name.startswith(TOPIC):
        # topic names hold no colon, connector names may
        topic, colon, connector = name[len(TOPIC) :].partition(TOPIC_SEPARATOR)
        if colon and topic and connector:
            return TopicKey(connector, topic)
    raise DataError(f"Discarding record with invalid key {name}")


def encode_status(status: Status) -> bytes | None:
    """Return a status record's value; DESTROYED is a tombstone."""
    if status.state == "DESTROYED":
        return None
    fields: dict[str, object] = {
        "state": status.state,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
    }
    if status.restarts is not None:  # not Connect's, which passes over what it does not know
        fields["restarts"] = status.restarts
    return encode_json(fields)


def decode_status(value: bytes) -> Status:
    """Return a status from a record's value. Raises DataError."""
    found = decode_json(value)
    if not isinstance(found, dict) or found.get("state") not in STATES:
        raise DataError("Failed to deserialize status: no known state")
    worker_id, generation = found.get("worker_id"), found.get("generation")
    if not isinstance(worker_id, str) or not isinstance(generation, int):
        raise DataError("Failed to deserialize status: worker_id or generation is missing")
    restarts = found.get("restarts")
    return Status(
        found["state"],
        worker_id,
        generation,
        _optional(found, "trace"),
        _optional(found, "version"),
        restarts if isinstance(restarts, dict) else None,
    )


def encode_topic(connector: str, task: int, topic: str, discovered_ms: int) -> bytes:
    """Value of a topic record."""
    return encode_json({"topic": {"name": topic, "connector": connector, "task": task, "discoverTimestamp": discovered_ms}})


def check_topic(value: bytes) -> None:
    """Raise DataError for a value that is no topic record."""
    found = decode_json(value)
    if not isinstance(found, dict) or not isinstance(found.get("topic"), dict):
        raise DataError("Failed to deserialize topic status")


def may_write_safely(known: Status | None, status: Status) -> bool:
    """Return whether a "safe" report (UNASSIGNED, FAILED) may go out, or gives way to a newer one of another worker."""
    return known is None or known.worker_id == status.worker_id or known.generation <= status.generation


def is_stale(known: Status | None, status: Status) -> bool:
    """Return whether a read task report must be ignored: UNASSIGNED of a worker that lost the task to one that already runs it."""
    return status.state == "UNASSIGNED" and known is not None and known.state == "RUNNING" and known.generation >= status.generation


def _optional(found: dict[str, Any], name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) else None


class StatusCache:
    """Last accepted report of everything.

    Attributes:
        connectors: by name.
        tasks: by connector, then number.
        topics: used topics by connector, in the order of their discovery.
    """

    def __init__(self) -> None:
        self.connectors: dict[str, Status] = {}
        self.tasks: dict[str, dict[int, Status]] = {}
        self.topics: dict[str, dict[str, None]] = {}

    def known(self, key: StatusKey) -> Status | None:
        """Return the report about a connector or task."""
        if isinstance(key, ConnectorKey):
            return self.connectors.get(key.connector)
        return self.tasks.get(key.connector, {}).get(key.task)

    def apply(self, key: bytes | None, value: bytes | None) -> StatusKey | TopicKey:
        """Take the next record; returns what it is about. Raises DataError for one that means nothing; it is skipped."""
        place = parse_key(key)
        match place:
            case TopicKey(connector, topic):
                self._topic(connector, topic, value)
            case ConnectorKey(connector):
                if value is None:
                    # as Connect's cache does, a connector's tombstone takes its tasks' entries along
                    self.connectors.pop(connector, None)
                    self.tasks.pop(connector, None)
                else:
                    self.connectors[connector] = decode_status(value)
            case TaskKey(connector, task):
                self._task(connector, task, value)
        return place

    def _topic(self, connector: str, topic: str, value: bytes | None) -> None:
        if value is None:
            self.topics.get(connector, {}).pop(topic, None)
        else:
            check_topic(value)
            self.topics.setdefault(connector, {})[topic] = None

    def _task(self, connector: str, task: int, value: bytes | None) -> None:
        if value is None:
            self.tasks.get(connector, {}).pop(task, None)
            return
        status = decode_status(value)
        if not is_stale(self.tasks.get(connector, {}).get(task), status):
            self.tasks.setdefault(connector, {})[task] = status


class OwnReports:
    """What this worker said last of each thing that it runs. Not thread-safe.

    A worker that was frozen or cut off sends what it still had to say when it is back; by then another one may run the task. Kafka Connect
    shows such a late report until the state of the task changes. Here the worker that runs the task says again how it is. A late tombstone
    looks like that of a task that is really gone: whether it is answered is for the one to say who knows what is configured.
    """

    def __init__(self) -> None:
        self._reports: dict[StatusKey, _OwnReport] = {}

    def put(self, key: StatusKey, status: Status, known: Status | None = None) -> Record | None:
        """Take a report of this worker; returns the record to send. What it gives up or destroys is no longer its own.

        Args:
            known: what a "safe" report gives way to if it is a newer one of another worker; None is returned then.
        """
        if not may_write_safely(known, status):
            self.forget(key)
            return None
        value = encode_status(status)
        if value is None or status.state == "UNASSIGNED":
            self._reports.pop(key, None)
        else:
            self._reports[key] = _OwnReport(status.generation, value)
        return key.encode(), value

    def forget(self, key: StatusKey) -> Record:
        """Note that the thing is gone; returns its tombstone."""
        self._reports.pop(key, None)
        return key.encode(), None

    def is_forgotten_by_others(self, key: StatusKey | TopicKey, value: bytes | None) -> bool:
        """Return whether the next record, not taken yet, is another worker's tombstone of what this worker reported last; that of a
        connector forgets its tasks, too."""
        if value is not None or isinstance(key, TopicKey):
            return False
        if isinstance(key, TaskKey):
            return key in self._reports and self._reports[key].has_arrived
        return any(own.has_arrived for its, own in self._reports.items() if its.connector == key.connector)

    def read(self, key: StatusKey | TopicKey, value: bytes | None) -> bytes | None:
        """Take the next record of the topic; returns what to send again if it is an older one than this worker's. Raises DataError."""
        if isinstance(key, TopicKey) or (own := self._reports.get(key)) is None:
            return None
        if value == own.value:
            own.has_arrived = True
        elif own.has_arrived:  # or else it is still to come, and covers this record
            if value is not None and decode_status(value).generation < own.generation:
                own.has_arrived = False
                return own.value
            del self._reports[key]
        return None


@dataclass(slots=True)
class _OwnReport:
    generation: int
    value: bytes
    has_arrived: bool = False


class StatusLookups:
    """The reading half of `StatusStore`, for any thread.

    Attributes:
        _cache: written by the store that inherits this, under `_lock`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cache = StatusCache()

    def connectors(self) -> list[str]:
        """Connectors with a status."""
        with self._lock:
            return list(self._cache.connectors)

    def connector(self, name: str) -> Status | None:
        """Return a connector's last report."""
        with self._lock:
            return self._cache.connectors.get(name)

    def task(self, connector: str, task: int) -> Status | None:
        """Return a task's last report."""
        with self._lock:
            return self._cache.tasks.get(connector, {}).get(task)

    def tasks(self, connector: str) -> Mapping[int, Status]:
        """Last reports of a connector's tasks, by number."""
        with self._lock:
            return dict(sorted(self._cache.tasks.get(connector, {}).items()))

    def topics(self, connector: str) -> Sequence[str]:
        """Topics that the connector has used since they were last reset."""
        with self._lock:
            return list(self._cache.topics.get(connector, ()))


class KafkaStatusStore(StatusLookups):
    """A `connect_py.api.storage.StatusStore` on a compacted topic.

    Args:
        worker: worker properties (`status.storage.topic`, `.partitions`, `.replication.factor`, client settings).
        admin: to be shared; the store makes its own otherwise.
        write_seconds: what one request may spend on the topic.

    Raises:
        ConfigError: no topic is named, or a client property cannot be used.
    """

    def __init__(self, worker: Mapping[str, str], admin: KafkaAdmin | None = None, *, write_seconds: float = READ_WRITE_SECONDS) -> None:
        super().__init__()
        self._log = TopicLog(worker, STATUS_TOPIC, "statuses", self._take, admin, write_seconds=write_seconds)
        self._own = OwnReports()
        self._newest: dict[bytes, int] = {}
        self._puts = 0
        self._stopping = False
        self._on_topics_reset: Callable[[str], None] = lambda connector: None
        self._on_forgotten: Callable[[str, int | None], None] = lambda connector, task: None

    def on_topics_reset(self, listener: Callable[[str], None]) -> None:
        """Have the reader's thread call something with the connector of which any worker forgets the topics, from now on."""
        self._on_topics_reset = listener

    def on_forgotten(self, listener: Callable[[str, int | None], None]) -> None:
        """Have the reader's thread call something with a connector (and None) or a task of which another worker forgets the state that this
        worker has reported."""
        self._on_forgotten = listener

    def start(self) -> None:
        """Create the topic if it is missing, read it to the end, then follow it. Raises ConfigError, RetriableError."""
        self._log.start()

    def stop(self) -> None:
        """Wait briefly for what was put, then stop following."""
        self._stopping = True
        self._log.stop()

    def flush(self, timeout: float) -> None:
        """Wait until Kafka holds what was put. Raises RetriableError after `timeout` seconds."""
        self._log.flush(timeout)

    def refresh(self, timeout: float) -> None:
        """Read to the present end. Raises RetriableError after `timeout` seconds."""
        self._log.read_to_end(timeout)

    def put_connector(self, name: str, status: Status, *, safe: bool = False) -> None:
        """Store a report; a `safe` one yields to a newer report of another worker."""
        self._put(ConnectorKey(name), status, safe)

    def put_task(self, connector: str, task: int, status: Status, *, safe: bool = False) -> None:
        """Store a report; a `safe` one yields to a newer report of another worker."""
        self._put(TaskKey(connector, task), status, safe)

    def delete_connector(self, name: str) -> None:
        """Forget a connector's state."""
        self._forget(ConnectorKey(name))

    def delete_task(self, connector: str, task: int) -> None:
        """Forget a task's state."""
        self._forget(TaskKey(connector, task))

    def put_topic(self, connector: str, task: int, topic: str) -> None:
        """Note that a task uses a topic, with the present time; a known one is left as it is."""
        with self._lock:
            if topic in self._cache.topics.get(connector, ()):
                return
        value = encode_topic(connector, task, topic, time.time_ns() // 1_000_000)
        self._send(TopicKey(connector, topic).encode(), value)

    def delete_topics(self, connector: str) -> None:
        """Forget the topics that the connector has used."""
        for topic in self.topics(connector):
            self._send(TopicKey(connector, topic).encode(), None)

    def _put(self, key: StatusKey, status: Status, safe: bool) -> None:
        with self._lock:
            record = self._own.put(key, status, self._cache.known(key) if safe else None)
        if record is not None:
            self._send(*record)

    def _forget(self, key: StatusKey) -> None:
        with self._lock:
            record = self._own.forget(key)
        self._send(*record)

    def _send(self, key: bytes, value: bytes | None) -> None:
        with self._lock:
            self._puts += 1
            number = self._newest[key] = self._puts

        def done(error: ConnectError | None) -> None:
            with self._lock:
                newest = self._newest.get(key) == number
                if newest and error is None:
                    del self._newest[key]
            if error is None or not newest:
                return
            if isinstance(error, RetriableError) and not self._stopping:
                log.warning("%s; sending it again", error)
                self._log.send(key, value, done)
            else:
                log.error("Failed to write status update '%s': %s", key.decode(), error)

        self._log.send(key, value, done)

    def _take(self, record: LogRecord) -> None:
        try:
            with self._lock:
                place = self._cache.apply(record.key, record.value)
                is_forgotten = self._own.is_forgotten_by_others(place, record.value)
                again = self._own.read(place, record.value)
            if record.value is None and isinstance(place, TopicKey):
                self._on_topics_reset(place.connector)
            if is_forgotten:
                self._on_forgotten(place.connector, place.task if isinstance(place, TaskKey) else None)
            if again is not None and not self._stopping:
                log.info("Another worker's old report about %s came late; sending this worker's again", place.encode().decode())
                self._send(place.encode(), again)
        except DataError as error:
            log.error("%s (offset %d of partition %d of the status topic)", error, record.offset, record.partition)
