"""Write to the configuration topic as the leader of the group, in transactions (KIP-618; `KafkaConfigBackingStore.claimWritePrivileges`).

All leaders of a group have one transactional id, `connect-cluster-G`. One that begins fences the one before, so a leader that was cut off,
and does not know that another leads, cannot write any more. A writer that has failed once is given up, and must claim the id again.

Requests and the herder's thread write; the lock lets one transaction be open at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from connect_py.errors import ConnectError
from connect_py.kafka.client import TRANSACTION_MS, internal_properties
from connect_py.kafka.transactions import TransactionalProducer
from offsets.topics import TopicLog

#: `DistributedHerder.writeToConfigTopicAsLeader`.
_NOT_WRITTEN = "Failed to write to config topic; this may be due to a transient error and the request can be safely retried"


class LeaderWriter:
    """The leader's way to a topic.

    Args:
        worker: worker properties.
        topic: the configuration topic's name.
        log: reads the topic.
    """

    def __init__(self, worker: Mapping[str, str], topic: str, log: TopicLog) -> None:
        self._worker = worker
        self._topic = topic
        self._log = log
        self._lock = threading.Lock()
        self._producer: TransactionalProducer | None = None

    def claim(self) -> None:
        """Fence the leader before, unless this worker has done so already. Raises ConfigError, RetriableError, FatalTaskError."""
        if not self._lock.acquire(blocking=False):  # it writes just now, so it has
            return
        try:
            if self._producer is not None:
                return
            properties = {**internal_properties(self._worker, "configs-leader"), "acks": "all", "enable.idempotence": "true"}
            for name in ("max.in.flight.requests.per.connection", "retries"):
                properties.pop(name, None)
            properties["transactional.id"] = f"connect-cluster-{self._worker.get('group.id', '')}"
            properties["delivery.timeout.ms"] = properties.get("transaction.timeout.ms", TRANSACTION_MS)
            producer = TransactionalProducer(properties)
            deadline = time.monotonic() + self._log.write_seconds
            producer.begin(lambda: time.monotonic() < deadline)
            self._producer = producer
        finally:
            self._lock.release()

    def release(self) -> None:
        """Another worker leads."""
        with self._lock:
            self._producer = None

    def write(self, records: Sequence[tuple[bytes, bytes | None]], failure: str) -> None:
        """Write in one transaction and read back.

        Raises:
            ConnectError: the records were not written, or with the text `failure` not read back; the cause says more.
        """
        deadline = time.monotonic() + self._log.write_seconds
        try:
            with self._lock:
                self._commit(records, deadline)
        except ConnectError as error:
            raise ConnectError(_NOT_WRITTEN) from error
        try:
            self._log.read_to_end(max(0.1, deadline - time.monotonic()))
        except ConnectError as error:
            raise ConnectError(f"{failure}: {error}") from error

    def _commit(self, records: Sequence[tuple[bytes, bytes | None]], deadline: float) -> None:
        producer, self._producer = self._producer, None
        if producer is None:
            raise ConnectError("This worker does not lead the group, or has not fenced the leader before it yet.")
        for key, value in records:
            producer.produce(self._topic, value, key)
        producer.commit(deadline)
        self._producer = producer
