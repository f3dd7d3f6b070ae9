"""What the records of the configuration topic mean (`KafkaConfigBackingStore.java`). Pure: records in, a `ClusterConfig` out.

Task configurations wait until their connector's commit record, because a worker may stop between two of them and because compaction may
take an older one away; a commit that doesn't find them all makes the connector inconsistent, that is, without tasks until a full set is
published. Records of older workers are read too (`state` without `state.v2`).
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.api.storage import ClusterConfig, ConfigListener, RestartRequest, TargetState
from connect_py.errors import DataError
from offsets.keys import decode_json, encode_json

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
    """A connector's configuration."""
    return (CONNECTOR + connector).encode(), encode_json({"properties": config})


def target_state_record(connector: str, state: TargetState) -> Record:
    """A target state; `state` is for workers older than 3.5, which know no STOPPED."""
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
    """A wish to restart."""
    value = {"include-tasks": request.include_tasks, "only-failed": request.only_failed}
    return (RESTART + request.connector).encode(), encode_json(value)


def logger_record(namespace: str, level: str) -> Record:
    """A cluster-wide log level."""
    return (LOGGER + namespace).encode(), encode_json({"level": level})


def task_count_record(connector: str, tasks: int) -> Record:
    """How many tasks a round of fencing has covered."""
    return (TASK_COUNT + connector).encode(), encode_json({"task-count": tasks})


def session_key_record(key: str, algorithm: str, creation_timestamp: int) -> Record:
    """The session key: base64, algorithm, epoch milliseconds."""
    return SESSION_KEY.encode(), encode_json({"key": key, "algorithm": algorithm, "creation-timestamp": creation_timestamp})


# -- reading


class Change(enum.Enum):
    """What a record changed, as a listener hears it."""

    CONNECTOR = enum.auto()
    REMOVED = enum.auto()
    TASKS = enum.auto()
    TARGET_STATE = enum.auto()
    RESTART = enum.auto()
    LOGGER = enum.auto()


@dataclass(frozen=True, slots=True)
class Notice:
    """One piece of news; `name` is the connector or the logger."""

    change: Change
    name: str
    restart: RestartRequest | None = None
    level: str = ""

    def tell(self, listener: ConfigListener) -> None:
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
        self._most_tasks: dict[str, int] = {}
        self._deferred: dict[str, dict[int, Mapping[str, str]]] = {}
        self._inconsistent: set[str] = set()
        self._applied: dict[str, Mapping[str, str]] = {}
        self._task_count_records: dict[str, int] = {}
        self._session_key: Mapping[str, object] | None = None

    def snapshot(self) -> ClusterConfig:
        """What has been folded so far; later records don't change it."""
        return ClusterConfig(
            offset=self._offset,
            connectors=dict(self._connectors),
            target_states=dict(self._target_states),
            task_counts=dict(self._task_counts),
            task_configs=dict(self._task_configs),
            most_tasks=dict(self._most_tasks),
            inconsistent=frozenset(self._inconsistent),
            applied=dict(self._applied),
            task_count_records=dict(self._task_count_records),
            session_key=self._session_key,
        )

    def apply(self, key: bytes | None, value: bytes | None, offset: int) -> Notice | None:
        """Take the next record.

        Returns:
            What a listener must hear, None for a record that is no news.

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
        return Notice(Change.CONNECTOR, connector)

    def _remove(self, connector: str) -> None:
        self._connectors.pop(connector, None)
        self._task_counts.pop(connector, None)
        self._most_tasks.pop(connector, None)
        self._forget_tasks(connector, 0)
        self._deferred.pop(connector, None)
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
        self._task_counts[connector] = count
        if all(number in deferred for number in range(count)):
            self._task_configs |= {(connector, number): deferred[number] for number in range(count)}
            self._forget_tasks(connector, count)
            self._most_tasks[connector] = max(count, self._most_tasks.get(connector, 0))
            self._inconsistent.discard(connector)
            self._applied[connector] = config
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
