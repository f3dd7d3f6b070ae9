"""States of connectors and tasks, and the topics they use, on the status topic (`KafkaStatusBackingStore.java`).

What is read is the truth: a report shows up once it has come back from the topic, some milliseconds after it was put. Writes return at
once; one that failed for a passing reason is sent again unless a newer report about the same thing was put meanwhile.

Which of two workers that report RUNNING has the work is told by a number that each start of a worker raises, in a header that Kafka
Connect passes over: the one that started later, wherever their records lie. A worker without the number (Java's) is always the later one.
The lock guards the cache; the log's reader thread fills it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence

from connect_py.api.storage import Status
from connect_py.errors import ConnectError, DataError, RetriableError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.shared_log import LogRecord
from offsets import status_records as records
from offsets.status_lookups import StatusLookups
from offsets.topic_log import TopicLog
from offsets.topics import STATUS_TOPIC

log = logging.getLogger(__name__)

#: The header with the number of a worker's start.
START_HEADER = "connect-py.start"


class KafkaStatusStore(StatusLookups):
    """A `connect_py.api.storage.StatusStore` on a compacted topic.

    Args:
        worker: worker properties (`status.storage.topic`, `.partitions`, `.replication.factor`, client settings).
        admin: to be shared; the store makes its own otherwise.
        worker_id: the name of the worker whose store this is. A live report by another one that started later takes the work from it,
            see `watch`: until workers of a group share their work, the last one has all of it.

    Raises:
        ConfigError: no topic is named, or a client property cannot be used.
    """

    def __init__(self, worker: Mapping[str, str], admin: KafkaAdmin | None = None, *, worker_id: str | None = None) -> None:
        super().__init__()
        self._log = TopicLog(worker, STATUS_TOPIC, "statuses", self._take, admin)
        self._newest: dict[bytes, int] = {}
        self._puts = 0
        self._stopping = False
        self._worker_id = worker_id
        self._superseded: Callable[[str], None] | None = None
        self._looks_for_others = False
        self._starts = 0
        self._headers: list[tuple[str, bytes]] = []

    def watch(self, superseded: Callable[[str], None]) -> None:
        """Have something called, once, by the reader's thread, with the id of a worker that runs what this one does and started later."""
        self._superseded = superseded

    def start(self) -> None:
        """Create the topic if it is missing, read it to the end, then follow it. Raises ConfigError, RetriableError."""
        self._log.start()
        self._starts += 1
        self._headers = [(START_HEADER, str(self._starts).encode())]
        self._looks_for_others = self._worker_id is not None  # what was there before may be a dead worker's

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
        """Report; `safe` gives way to a newer report of another worker."""
        self._put(records.ConnectorKey(name), status, safe)

    def put_task(self, connector: str, task: int, status: Status, *, safe: bool = False) -> None:
        """Report; `safe` gives way to a newer report of another worker."""
        self._put(records.TaskKey(connector, task), status, safe)

    def delete_connector(self, name: str) -> None:
        """Forget a connector's state."""
        self._send(records.ConnectorKey(name).encode(), None)

    def delete_task(self, connector: str, task: int) -> None:
        """Forget a task's state."""
        self._send(records.TaskKey(connector, task).encode(), None)

    def put_topic(self, connector: str, task: int, topic: str) -> None:
        """Note that a task uses a topic, with the present time; a known one is left as it is."""
        with self._lock:
            if topic in self._cache.topics.get(connector, ()):
                return
        value = records.encode_topic(connector, task, topic, time.time_ns() // 1_000_000)
        self._send(records.TopicKey(connector, topic).encode(), value)

    def delete_topics(self, connector: str) -> None:
        """Forget the topics that the connector has used."""
        for topic in self.topics(connector):
            self._send(records.TopicKey(connector, topic).encode(), None)

    def _put(self, key: records.StatusKey, status: Status, safe: bool) -> None:
        if safe:
            with self._lock:
                if not records.may_write_safely(self._cache.known(key), status):
                    return
        self._send(key.encode(), records.encode_status(status))

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
                self._log.send(key, value, done, self._headers)
            else:
                log.error("Failed to write status update '%s': %s", key.decode(), error)

        self._log.send(key, value, done, self._headers)

    def _take(self, record: LogRecord) -> None:
        start = _start_of(record.headers)
        if self._looks_for_others:
            self._look_for_others(record.key, record.value, math.inf if start is None else start)
        else:
            self._starts = max(self._starts, start or 0)
        try:
            with self._lock:
                self._cache.apply(record.key, record.value)
        except DataError as error:
            log.error("%s (offset %d of partition %d of the status topic)", error, record.offset, record.partition)

    def _look_for_others(self, key: bytes | None, value: bytes | None, start: float) -> None:
        """RUNNING is what only a living worker says; one that has just been replaced may still say its last words."""
        try:
            if value is None or isinstance(records.parse_key(key), records.TopicKey):
                return
            status = records.decode_status(value)
        except DataError:
            return
        if status.state != "RUNNING" or status.worker_id == self._worker_id or self._worker_id is None:
            return
        if (start, status.worker_id) > (self._starts, self._worker_id) and self._superseded is not None:
            superseded, self._superseded = self._superseded, None
            superseded(status.worker_id)


def _start_of(headers: Sequence[tuple[str, bytes | None]]) -> int | None:
    """The number of the start of the worker that wrote a record; None for another kind of worker."""
    for name, value in headers:
        if name == START_HEADER and value is not None and value.isdigit():
            return int(value)
    return None
