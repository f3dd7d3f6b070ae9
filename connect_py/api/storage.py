"""What the runtime asks of its stores (`org.apache.kafka.connect.storage.{Config,Offset,Status}BackingStore`).

The runtime is handed its stores; `offsets/` has them on compacted topics and in memory. Records and their rules are in
docs/design.md and in the stores' docstrings. A write returns when Kafka holds it and the store has read it back, unless said otherwise.
Every method may be called from any thread; listeners are called from the store's own reader thread and must only pass the news on.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from connect_py.api.record import SourceOffset, SourcePartition

#: The property by which a source connector names a topic of its own for its offsets (KIP-618).
OWN_OFFSETS_TOPIC = "offsets.storage.topic"


class TargetState(enum.Enum):
    """What a connector should do."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A request to restart a connector (KIP-745)."""

    connector: str
    include_tasks: bool = False
    only_failed: bool = False


@dataclass(frozen=True)
class ClusterConfig:
    """The configuration topic as read so far; an immutable snapshot.

    Attributes:
        offset: the next offset of the topic, -1 when it is empty. Travels in membership messages.
        connectors: raw configurations by connector name.
        target_states: of connectors that have one on record; the rest are STARTED.
        task_counts: number of tasks by the connector's last commit record.
        task_configs: (connector, task) → configuration, of the last *complete* set.
        max_tasks: number of tasks of the connector's largest complete set so far.
        inconsistent: connectors whose last task set was incomplete; they have no tasks until the next full set.
        unfinished: connectors with task configurations behind their last commit record, as the leader leaves them that dies before it has
            committed them, or with a configuration behind it, also the same once more. Compaction may take those before it: who reads the
            topic then finds the set incomplete, or a commit of what looks like a deleted connector (KAFKA-17719).
        applied: the connector configuration in force when the last task set was committed.
        task_count_records: number of tasks by the connector's last fencing record (`tasks-fencing-C`).
        session_key: the session key record's value, if any.
        fenced: connectors whose last fencing record is newer than their last commit record.
        task_generations: number of complete task sets that this worker has read, by connector. Other workers count otherwise.
    """

    offset: int = -1
    connectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    target_states: Mapping[str, TargetState] = field(default_factory=dict)
    task_counts: Mapping[str, int] = field(default_factory=dict)
    task_configs: Mapping[tuple[str, int], Mapping[str, str]] = field(default_factory=dict)
    max_tasks: Mapping[str, int] = field(default_factory=dict)
    inconsistent: frozenset[str] = frozenset()
    unfinished: frozenset[str] = frozenset()
    applied: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    task_count_records: Mapping[str, int] = field(default_factory=dict)
    session_key: Mapping[str, object] | None = None
    fenced: frozenset[str] = frozenset()
    task_generations: Mapping[str, int] = field(default_factory=dict)

    def target_state(self, connector: str) -> TargetState:
        """Return the wanted state."""
        return self.target_states.get(connector, TargetState.STARTED)

    def tasks(self, connector: str) -> list[int]:
        """Return numbers of the connector's tasks; empty while its task set is inconsistent."""
        if connector in self.inconsistent:
            return []
        return list(range(self.task_counts.get(connector, 0)))


class ConfigListener(Protocol):
    """Hears what the configuration topic says, in order, after start-up has read what was there."""

    def on_connector_config(self, connector: str) -> None: ...
    def on_connector_removed(self, connector: str) -> None: ...
    def on_task_configs(self, connector: str) -> None: ...
    def on_target_state(self, connector: str) -> None: ...
    def on_restart_request(self, request: RestartRequest) -> None: ...
    def on_logger_level(self, namespace: str, level: str) -> None: ...


class ConfigStore(Protocol):
    """Connector and task configurations, target states, restart requests."""

    def start(self, listener: ConfigListener) -> None:
        """Create the topic if it is missing, read it to the end, then follow it. Raises ConfigError, RetriableError."""
        ...

    def stop(self) -> None: ...

    def snapshot(self) -> ClusterConfig:
        """Return what has been read so far."""
        ...

    def refresh(self, timeout: float) -> None:
        """Read to the present end. Raises RetriableError after `timeout` seconds."""
        ...

    def put_connector(self, connector: str, config: Mapping[str, str], state: TargetState | None = None) -> None:
        """Store a configuration; with `state`, the target state is written first, in the same batch (KIP-980)."""
        ...

    def remove_connector(self, connector: str) -> None:
        """Tombstones for the configuration and the target state; nothing else is removed."""
        ...

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Publish a full task set: every task, then the commit record."""
        ...

    def claim(self) -> None:
        """Become the writer of what only the leader writes: the leader before cannot write any more. Raises ConnectError."""
        ...

    def release(self) -> None:
        """Another worker leads."""
        ...

    def put_task_count_record(self, connector: str, tasks: int) -> None:
        """Note how many tasks a round of fencing has covered."""
        ...

    def put_target_state(self, connector: str, state: TargetState) -> None: ...
    def put_restart_request(self, request: RestartRequest) -> None: ...
    def put_logger_level(self, namespace: str, level: str) -> None: ...
    def put_session_key(self, key: str, algorithm: str, creation_timestamp: int) -> None:
        """The key that signs requests of workers to each other: base64, algorithm, epoch milliseconds."""
        ...


@dataclass(frozen=True, slots=True)
class Status:
    """State of a connector or task as someone reported it (`AbstractStatus.java`).

    Attributes:
        state: UNASSIGNED, RUNNING, PAUSED, FAILED, RESTARTING, STOPPED (DESTROYED is a tombstone).
        worker_id: host:port of the worker that reported it.
        generation: of the group when it was reported, 0 without a group.
        trace: of a FAILED one.
        version: of the plugin that runs.
        restarts: what became of a task's failures, where the worker restarts failed tasks; None otherwise.
    """

    state: str
    worker_id: str
    generation: int = 0
    trace: str | None = None
    version: str | None = None
    restarts: Mapping[str, Any] | None = None


class StatusStore(Protocol):
    """Reported states and active topics. Writes return at once; failures are retried and logged."""

    def on_topics_reset(self, listener: Callable[[str], None]) -> None:
        """Have something called with the connector of which any worker forgets the topics, from now on."""
        ...

    def on_forgotten(self, listener: Callable[[str, int | None], None]) -> None:
        """Have something called with a connector (and None) or a task of which another worker forgets the state that this worker has
        reported, from now on."""
        ...

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def flush(self, timeout: float) -> None:
        """Wait until Kafka holds what was put."""
        ...

    def refresh(self, timeout: float) -> None:
        """Read to the present end. Raises RetriableError after `timeout` seconds."""
        ...

    def connectors(self) -> Sequence[str]:
        """Return the connectors with a status."""
        ...

    def connector(self, name: str) -> Status | None: ...
    def task(self, connector: str, task: int) -> Status | None: ...
    def tasks(self, connector: str) -> Mapping[int, Status]: ...
    def put_connector(self, name: str, status: Status, *, safe: bool = False) -> None:
        """Report; `safe` gives way to a newer report of another worker."""
        ...

    def put_task(self, connector: str, task: int, status: Status, *, safe: bool = False) -> None: ...
    def delete_connector(self, name: str) -> None: ...
    def delete_task(self, connector: str, task: int) -> None: ...
    def topics(self, connector: str) -> Sequence[str]: ...
    def put_topic(self, connector: str, task: int, topic: str) -> None:
        """Note that a task uses a topic, with the present time."""
        ...

    def delete_topics(self, connector: str) -> None: ...


class OffsetStore(Protocol):
    """Source offsets of all connectors, as the worker sees them."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def read(self, connector: str, config: Mapping[str, str], timeout: float) -> list[tuple[SourcePartition, SourceOffset]]:
        """Return everything that is stored of a connector with this configuration, which has no variables any more.

        Raises:
            ConfigError: the connector's own topic cannot be used.
            RetriableError: after `timeout` seconds.
        """
        ...

    def put(
        self, connector: str, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]], config: Mapping[str, str] | None = None
    ) -> None:
        """Store offsets (None is a tombstone) in the name of a connector with this configuration; returns when Kafka holds them."""
        ...


class OffsetWriter(Protocol):
    """A source task's own way to the offsets topic. Used by the task's thread only."""

    def write(
        self,
        offsets: Sequence[tuple[SourcePartition, SourceOffset]],
        done: Callable[[Exception | None], None],
    ) -> None:
        """Send offsets; `done` is called from `serve` once Kafka holds all of them, or with the first failure."""
        ...

    def serve(self, timeout: float = 0.0) -> None:
        """Let callbacks run."""
        ...

    def release(self) -> None:
        """Let connections go until the next `write`; called while nothing is under way."""
        ...

    def close(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for what is under way."""
        ...
