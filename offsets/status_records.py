"""Records of the status topic (`KafkaStatusBackingStore.java`) and the rules on which report wins. Pure.

`version` came with Kafka 4.2 (KIP-891) and is always written, null when it isn't known; older records have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from connect_py.api.storage import Status
from connect_py.errors import DataError
from offsets.keys import decode_json, encode_json

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
        """The record's key."""
        return (CONNECTOR + self.connector).encode()


@dataclass(frozen=True, slots=True)
class TaskKey:
    """Whose status a record holds: a task's."""

    connector: str
    task: int

    def encode(self) -> bytes:
        """The record's key."""
        return f"{TASK}{self.connector}-{self.task}".encode()


@dataclass(frozen=True, slots=True)
class TopicKey:
    """A topic that a connector uses."""

    connector: str
    topic: str

    def encode(self) -> bytes:
        """The record's key."""
        return f"{TOPIC}{self.topic}{TOPIC_SEPARATOR}{self.connector}".encode()


StatusKey = ConnectorKey | TaskKey


def parse_key(key: bytes | None) -> ConnectorKey | TaskKey | TopicKey:
    """What a record is about. Raises DataError."""
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
    """A status record's value; DESTROYED is a tombstone."""
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
    """A status from a record's value. Raises DataError."""
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
    """Raises DataError for a value that is no topic record."""
    found = decode_json(value)
    if not isinstance(found, dict) or not isinstance(found.get("topic"), dict):
        raise DataError("Failed to deserialize topic status")


def may_write_safely(known: Status | None, status: Status) -> bool:
    """Whether a "safe" report (UNASSIGNED, FAILED) may go out, or gives way to a newer one of another worker."""
    return known is None or known.worker_id == status.worker_id or known.generation <= status.generation


def is_stale(known: Status | None, status: Status) -> bool:
    """Whether a read task report must be ignored: UNASSIGNED of a worker that lost the task to one that already runs it."""
    return status.state == "UNASSIGNED" and known is not None and known.state == "RUNNING" and known.generation >= status.generation


def _optional(found: dict[str, Any], name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) else None
