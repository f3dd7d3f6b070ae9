"""Connector and task configurations on the configuration topic (`KafkaConfigBackingStore.java`; records: `config_records`).

The log's reader thread feeds the fold under the lock and calls the listener; everybody else takes snapshots under the lock. A write
returns after it has been read back, within 30 seconds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from connect_py.api.storage import ClusterConfig, ConfigListener, RestartRequest, TargetState
from connect_py.errors import ConnectError, DataError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.shared_log import LogRecord
from offsets import config_records as records
from offsets.topic_log import READ_WRITE_SECONDS, TopicLog
from offsets.topics import CONFIG_TOPIC

log = logging.getLogger(__name__)

_WRITING_CONNECTOR = "Error writing connector configuration to Kafka"
_REMOVING_CONNECTOR = "Error removing connector configuration from Kafka"
_WRITING_TASKS = "Error writing root configuration to Kafka"
_WRITING_STATE = "Error writing target state to Kafka"


class KafkaConfigStore:
    """A `connect_py.api.storage.ConfigStore` on a compacted topic with one partition.

    Args:
        worker: worker properties (`config.storage.topic`, `config.storage.replication.factor`, client settings).
        admin: to be shared; the store makes its own otherwise.

    Raises:
        ConfigError: no topic is named, or a client property cannot be used.
    """

    def __init__(self, worker: Mapping[str, str], admin: KafkaAdmin | None = None) -> None:
        committed = worker.get("exactly.once.source.support", "disabled").strip() == "enabled"
        self._log = TopicLog(worker, CONFIG_TOPIC, "configs", self._take, admin, read_committed=committed)
        self._lock = threading.Lock()
        self._fold = records.ConfigFold()
        self._snapshot: ClusterConfig | None = None
        self._listener: ConfigListener | None = None

    def start(self, listener: ConfigListener) -> None:
        """Create the topic if it is missing, read it to the end, then follow it; the listener hears only what comes after that.

        Raises:
            ConfigError: the topic has several partitions or is not compacted.
            RetriableError: Kafka does not answer.
        """
        self._log.start()
        self._listener = listener

    def stop(self) -> None:
        """Stop following; the snapshot stays readable."""
        self._log.stop()

    def snapshot(self) -> ClusterConfig:
        """What has been read so far."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = self._fold.snapshot()
            return self._snapshot

    def refresh(self, timeout: float) -> None:
        """Read to the present end. Raises RetriableError after `timeout` seconds."""
        self._log.read_to_end(timeout)

    def put_connector(self, connector: str, config: Mapping[str, str], state: TargetState | None = None) -> None:
        """Store a configuration; a target state goes before it, so that no worker starts what shall be created paused (KIP-980)."""
        before = [records.target_state_record(connector, state)] if state is not None else []
        self._log.write([*before, records.connector_record(connector, config)], _WRITING_CONNECTOR)

    def remove_connector(self, connector: str) -> None:
        """Tombstones for the configuration and the target state; nothing else is removed."""
        self._log.write(records.removal_records(connector), _REMOVING_CONNECTOR)

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Publish a full task set: every task, read back, then the commit record, so that no commit is seen without its tasks."""
        try:
            self.refresh(READ_WRITE_SECONDS)
        except ConnectError as error:
            raise ConnectError(f"{_WRITING_TASKS}: {error}") from error
        if configs:
            self._log.write(records.task_records(connector, configs), _WRITING_TASKS)
        self._log.write([records.commit_record(connector, len(configs))], _WRITING_TASKS)

    def put_target_state(self, connector: str, state: TargetState) -> None:
        """Store what the connector should do."""
        self._log.write([records.target_state_record(connector, state)], _WRITING_STATE)

    def put_restart_request(self, request: RestartRequest) -> None:
        """Ask every worker for its share of a restart."""
        self._log.write([records.restart_record(request)], f"Error writing restart request for connector {request.connector} to Kafka")

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Ask every running worker for a log level."""
        self._log.write([records.logger_record(namespace, level)], "Error writing logger level to Kafka")

    def put_session_key(self, key: str, algorithm: str, creation_timestamp: int) -> None:
        """Store the session key: base64, algorithm, epoch milliseconds."""
        self._log.write([records.session_key_record(key, algorithm, creation_timestamp)], "Error writing session key to Kafka")

    def put_task_count_record(self, connector: str, tasks: int) -> None:
        """Store how many tasks a round of fencing has covered."""
        self._log.write([records.task_count_record(connector, tasks)], "Error writing task count record to Kafka")

    def _take(self, record: LogRecord) -> None:
        try:
            with self._lock:
                self._snapshot = None
                notice = self._fold.apply(record.key, record.value, record.offset)
        except DataError as error:
            log.error("%s (offset %d of the configuration topic)", error, record.offset)
            return
        if notice is not None and self._listener is not None:
            notice.tell(self._listener)
