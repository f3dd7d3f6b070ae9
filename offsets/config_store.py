"""Connector and task configurations on the configuration topic (`KafkaConfigBackingStore.java`).

What its records mean is pure: functions write them, `ConfigFold` folds them into a `ClusterConfig`. Task configurations wait until their
connector's commit record, because a worker may stop between two of them and because compaction may remove an older one; a commit that
doesn't find them all makes the connector inconsistent, that is, without tasks until a full set is published. Records of older workers are
read too (`state` without `state.v2`).

`KafkaConfigStore`: the log's reader thread feeds the fold and calls the listener under the lock; everybody else takes snapshots under it. A
write returns after it has been read back, within 30 seconds.
"""

from __future__ import annotations

import enum
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.api.storage import ClusterConfig, ConfigListener, RestartRequest, TargetState
from connect_py.errors import ConnectError, DataError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import ExactlyOnceSupport
from connect_py.kafka.shared_log import LogRecord
from offsets.keys import decode_json, encode_json
from offsets.leader_writer import LeaderWriter
from offsets.topics import CONFIG_TOPIC, READ_WRITE_SECONDS, TopicLog

log = logging.getLogger(__name__)


TARGET_STATE = "target-state-"
CONNECTOR = "connector-"
TASK = "task-"
COMMIT = "commit-"
RESTART = "restart-connector-"
TASK_COUNT = "tasks-fencing-"
SESSION_KEY = "session-key"
LOGGER = "logger-cluster-"

#: A key and a value; None is a tombstone.
Record = tuple[bytes, bytes | None]


# -- writing


def connector_record(connector: str, config: Mapping[str, str]) -> Record:
    """Return a connector's configuration."""
    return (CONNECTOR + connector).encode(), encode_json({"properties": config})


def target_state_record(connector: str, state: TargetState) -> Record:
    """Return a target state; `state` is for workers older than 3.5, which know no STOPPED."""
    old = TargetState.PAUSED if state is TargetState.STOPPED else state
    return (TARGET_STATE + connector).encode(), encode_json({"state": old.value, "state.v2": state.value})


def removal_records(connector: str) -> list[Record]:
    """Tombstones of a connector's configuration and target state."""
    return [((CONNECTOR + connector).encode(), None), ((TARGET_STATE + connector).encode(), None)]


def task_records(connector: str, configs: Sequence[Mapping[str, str]]) -> list[Record]:
    """Configurations of tasks 0 to n-1."""
    return [(f"{TASK}{connector}-{number}".encode(), encode_json({"properties": config})) for number, config in enumerate(configs)]


def commit_record(connector: str, tasks: int) -> Record:
    """Makes the task configurations before it valid."""
    return (COMMIT + connector).encode(), encode_json({"tasks": tasks})


def restart_record(request: RestartRequest) -> Record:
    """Return a request to restart."""
    value = {"include-tasks": request.include_tasks, "only-failed": request.only_failed}
    return (RESTART + request.connector).encode(), encode_json(value)


def logger_record(namespace: str, level: str) -> Record:
    """Return a cluster-wide log level."""
    return (LOGGER + namespace).encode(), encode_json({"level": level})


def task_count_record(connector: str, tasks: int) -> Record:
    """Return how many tasks a round of fencing has covered."""
    return (TASK_COUNT + connector).encode(), encode_json({"task-count": tasks})


def session_key_record(key: str, algorithm: str, creation_timestamp: int) -> Record:
    """Return the session key: base64, algorithm, epoch milliseconds."""
    return SESSION_KEY.encode(), encode_json({"key": key, "algorithm": algorithm, "creation-timestamp": creation_timestamp})


# -- reading


class Change(enum.Enum):
    """What a record changed, as a listener is notified of it."""

    CONNECTOR = enum.auto()
    REMOVED = enum.auto()
    TASKS = enum.auto()
    TARGET_STATE = enum.auto()
    RESTART = enum.auto()
    LOGGER = enum.auto()


@dataclass(frozen=True, slots=True)
class Notice:
    """One change; `name` is the connector or the logger."""

    change: Change
    name: str
    restart: RestartRequest | None = None
    level: str = ""

    def notify(self, listener: ConfigListener) -> None:
        """Call the listener's method for it."""
        match self.change:
            case Change.CONNECTOR:
                listener.on_connector_config(self.name)
            case Change.REMOVED:
                listener.on_connector_removed(self.name)
            case Change.TASKS:
                listener.on_task_configs(self.name)
            case Change.TARGET_STATE:
                listener.on_target_state(self.name)
            case Change.RESTART if self.restart is not None:
                listener.on_restart_request(self.restart)
            case Change.LOGGER:
                listener.on_logger_level(self.name, self.level)


class ConfigFold:
    """The configuration topic's records, folded in order. Not thread-safe."""

    def __init__(self) -> None:
        self._offset = -1
        self._connectors: dict[str, Mapping[str, str]] = {}
        self._target_states: dict[str, TargetState] = {}
        self._task_counts: dict[str, int] = {}
        self._task_configs: dict[tuple[str, int], Mapping[str, str]] = {}
        self._max_tasks: dict[str, int] = {}
        self._deferred: dict[str, dict[int, Mapping[str, str]]] = {}
        self._inconsistent: set[str] = set()
        self._applied: dict[str, Mapping[str, str]] = {}
        self._task_count_records: dict[str, int] = {}
        self._session_key: Mapping[str, object] | None = None
        self._fenced: set[str] = set()
        self._uncommitted: set[str] = set()
        self._task_generations: dict[str, int] = {}

    def snapshot(self) -> ClusterConfig:
        """Return what has been folded so far; later records don't change it."""
        return ClusterConfig(
            offset=self._offset,
            connectors=dict(self._connectors),
            target_states=dict(self._target_states),
            task_counts=dict(self._task_counts),
            task_configs=dict(self._task_configs),
            max_tasks=dict(self._max_tasks),
            inconsistent=frozenset(self._inconsistent),
            unfinished=frozenset(self._deferred) | self._uncommitted,
            applied=dict(self._applied),
            task_count_records=dict(self._task_count_records),
            session_key=self._session_key,
            fenced=frozenset(self._fenced),
            task_generations=dict(self._task_generations),
        )

    def apply(self, key: bytes | None, value: bytes | None, offset: int) -> Notice | None:
        """Take the next record.

        Returns:
            What a listener must be notified of, None for a record that changes nothing.

        Raises:
            DataError: the record means nothing; it is skipped, only the offset has moved on.
        """
        try:
            name = (key or b"").decode()
        except UnicodeDecodeError:
            raise DataError("Discarding config update record with a key that is no UTF-8") from None
        found = None if value is None else decode_json(value)
        self._offset = offset + 1
        # the order in which Connect tests the prefixes
        if name.startswith(TARGET_STATE):
            return self._target_state(name[len(TARGET_STATE) :], found)
        if name.startswith(CONNECTOR):
            return self._connector(name[len(CONNECTOR) :], found)
        if name.startswith(TASK):
            self._task(name, found)
            return None
        if name.startswith(COMMIT):
            return self._commit(name[len(COMMIT) :], found)
        if name.startswith(RESTART):
            return self._restart(name[len(RESTART) :], found)
        if name.startswith(TASK_COUNT):
            self._task_count_records[name[len(TASK_COUNT) :]] = _integer(_object(name, found), "task-count", name)
            self._fenced.add(name[len(TASK_COUNT) :])
            return None
        if name == SESSION_KEY:
            self._take_session_key(_object(name, found))
            return None
        if name.startswith(LOGGER):
            return Notice(Change.LOGGER, name[len(LOGGER) :], level=_string(_object(name, found), "level", name))
        raise DataError(f"Discarding config update record with invalid key: {name}")

    def _target_state(self, connector: str, found: Any) -> Notice | None:
        if found is None:
            self._target_states.pop(connector, None)
            return None
        entry = _object(TARGET_STATE + connector, found)
        text = entry.get("state.v2")
        if not isinstance(text, str):
            text = entry.get("state")
        try:
            state = TargetState(text)
        except ValueError:
            raise DataError(f"Invalid target state for connector '{connector}': {text}") from None
        before = self._target_states.get(connector, TargetState.STARTED)
        self._target_states[connector] = state
        if state is before or connector not in self._connectors:
            return None
        return Notice(Change.TARGET_STATE, connector)

    def _connector(self, connector: str, found: Any) -> Notice:
        if found is None:
            self._remove(connector)
            return Notice(Change.REMOVED, connector)
        self._connectors[connector] = _properties(CONNECTOR + connector, found)
        self._uncommitted.add(connector)
        return Notice(Change.CONNECTOR, connector)

    def _remove(self, connector: str) -> None:
        self._connectors.pop(connector, None)
        self._task_counts.pop(connector, None)
        self._max_tasks.pop(connector, None)
        self._forget_tasks(connector, 0)
        self._deferred.pop(connector, None)
        self._uncommitted.discard(connector)
        self._applied.pop(connector, None)

    def _forget_tasks(self, connector: str, start: int) -> None:
        for task in [task for task in self._task_configs if task[0] == connector and task[1] >= start]:
            del self._task_configs[task]

    def _task(self, key: str, found: Any) -> None:
        connector, dash, number = key[len(TASK) :].rpartition("-")
        if not dash or not connector or not number.isascii() or not number.isdigit():
            raise DataError(f"Ignoring task configuration because {key} couldn't be parsed as a task config key")
        self._deferred.setdefault(connector, {})[int(number)] = _properties(key, found)

    def _commit(self, connector: str, found: Any) -> Notice | None:
        config = self._connectors.get(connector)
        if config is None:
            # it was deleted, and compaction took the tombstone as well
            self._remove(connector)
            return None
        count = _integer(_object(COMMIT + connector, found), "tasks", COMMIT + connector)
        deferred = self._deferred.pop(connector, {})
        self._uncommitted.discard(connector)
        self._task_counts[connector] = count
        self._fenced.discard(connector)
        if all(number in deferred for number in range(count)):
            self._task_configs |= {(connector, number): deferred[number] for number in range(count)}
            self._forget_tasks(connector, count)
            self._max_tasks[connector] = max(count, self._max_tasks.get(connector, 0))
            self._inconsistent.discard(connector)
            self._applied[connector] = config
            self._task_generations[connector] = self._task_generations.get(connector, -1) + 1
        else:
            self._inconsistent.add(connector)
        return Notice(Change.TASKS, connector)

    def _restart(self, connector: str, found: Any) -> Notice:
        entry = _object(RESTART + connector, found)
        request = RestartRequest(connector, include_tasks=entry.get("include-tasks") is True, only_failed=entry.get("only-failed") is True)
        return Notice(Change.RESTART, connector, restart=request)

    def _take_session_key(self, entry: Mapping[str, Any]) -> None:
        _string(entry, "key", SESSION_KEY)
        _string(entry, "algorithm", SESSION_KEY)
        _integer(entry, "creation-timestamp", SESSION_KEY)
        self._session_key = entry


def _object(key: str, found: Any) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise DataError(f"Ignoring the record '{key}' because the value is not a map but {type(found).__name__}")
    return found


def _properties(key: str, found: Any) -> dict[str, str]:
    properties = _object(key, found).get("properties")
    if not isinstance(properties, dict):
        raise DataError(f"Invalid data for '{key}': 'properties' field should be a map but is {type(properties).__name__}")
    return {
        name: value if isinstance(value, str) else encode_json(value).decode() for name, value in properties.items() if value is not None
    }


def _string(entry: Mapping[str, Any], name: str, key: str) -> str:
    found = entry.get(name)
    if not isinstance(found, str):
        raise DataError(f"Invalid data for '{key}': '{name}' field should be a string but is {type(found).__name__}")
    return found


def _integer(entry: Mapping[str, Any], name: str, key: str) -> int:
    found = entry.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise DataError(f"Invalid data for '{key}': '{name}' field should be an integer but is {type(found).__name__}")
    return found


_WRITING_CONNECTOR = "Error writing connector configuration to Kafka"
_REMOVING_CONNECTOR = "Error removing connector configuration from Kafka"
_WRITING_TASKS = "Error writing root configuration to Kafka"
_WRITING_STATE = "Error writing target state to Kafka"


class KafkaConfigStore:
    """A `connect_py.api.storage.ConfigStore` on a compacted topic with one partition.

    Args:
        worker: worker properties (`config.storage.topic`, `config.storage.replication.factor`, client settings).
        admin: to be shared; the store makes its own otherwise.
        write_seconds: what one request may spend on the topic.

    Raises:
        ConfigError: no topic is named, or a client property cannot be used.
    """

    def __init__(self, worker: Mapping[str, str], admin: KafkaAdmin | None = None, *, write_seconds: float = READ_WRITE_SECONDS) -> None:
        support = ExactlyOnceSupport.of(worker)
        committed = support is ExactlyOnceSupport.ENABLED
        self._log = TopicLog(worker, CONFIG_TOPIC, "configs", self._take, admin, read_committed=committed, write_seconds=write_seconds)
        self._leader = None
        if support.has_transactional_leader:
            self._leader = LeaderWriter(worker, CONFIG_TOPIC.name(worker), self._log)
        self._write_as_leader = self._log.write if self._leader is None else self._leader.write
        self._lock = threading.Lock()
        self._fold = ConfigFold()
        self._snapshot: ClusterConfig | None = None
        self._listener: ConfigListener | None = None

    def start(self, listener: ConfigListener) -> None:
        """Create the topic if it is missing, read it to the end, then follow it; the listener is notified only of what comes after that.

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
        """Return what has been read so far."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = self._fold.snapshot()
            return self._snapshot

    def refresh(self, timeout: float) -> None:
        """Read to the present end. Raises RetriableError after `timeout` seconds."""
        self._log.read_to_end(timeout)

    def claim(self) -> None:
        """Become the writer of what only the leader writes. Raises ConnectError."""
        if self._leader is not None:
            self._leader.claim()

    def release(self) -> None:
        """Another worker leads."""
        if self._leader is not None:
            self._leader.release()

    def put_connector(self, connector: str, config: Mapping[str, str], state: TargetState | None = None) -> None:
        """Store a configuration; a target state goes before it, so that no worker starts what is created paused (KIP-980)."""
        before = [target_state_record(connector, state)] if state is not None else []
        self._write_as_leader([*before, connector_record(connector, config)], _WRITING_CONNECTOR)

    def remove_connector(self, connector: str) -> None:
        """Tombstones for the configuration and the target state; nothing else is removed."""
        self._write_as_leader(removal_records(connector), _REMOVING_CONNECTOR)

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Publish a full task set: every task, read back, then the commit record, so that no commit is seen without its tasks."""
        try:
            self.refresh(self._log.write_seconds)
        except ConnectError as error:
            raise ConnectError(f"{_WRITING_TASKS}: {error}") from error
        if configs:
            self._write_as_leader(task_records(connector, configs), _WRITING_TASKS)
        self._write_as_leader([commit_record(connector, len(configs))], _WRITING_TASKS)

    def put_target_state(self, connector: str, state: TargetState) -> None:
        """Store what the connector should do."""
        self._log.write([target_state_record(connector, state)], _WRITING_STATE)

    def put_restart_request(self, request: RestartRequest) -> None:
        """Ask every worker for its share of a restart."""
        self._write_as_leader([restart_record(request)], f"Error writing restart request for connector {request.connector} to Kafka")

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Ask every running worker for a log level."""
        self._log.write([logger_record(namespace, level)], "Error writing logger level to Kafka")

    def put_session_key(self, key: str, algorithm: str, creation_timestamp: int) -> None:
        """Store the session key: base64, algorithm, epoch milliseconds."""
        self._write_as_leader([session_key_record(key, algorithm, creation_timestamp)], "Error writing session key to Kafka")

    def put_task_count_record(self, connector: str, tasks: int) -> None:
        """Store how many tasks a round of fencing has covered."""
        self._write_as_leader([task_count_record(connector, tasks)], "Error writing task count record to Kafka")

    def _take(self, record: LogRecord) -> None:
        try:
            with self._lock:
                self._snapshot = None
                notice = self._fold.apply(record.key, record.value, record.offset)
                # nobody sees a snapshot of which the listener does not know
                if notice is not None and self._listener is not None:
                    notice.notify(self._listener)
        except DataError as error:
            log.error("%s (offset %d of the configuration topic)", error, record.offset)
