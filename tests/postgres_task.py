"""A source task without a worker (PostgreSQL's, unless a subclass says another): the test is its runtime. Batches are kept in order, each
is committed at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import orjson

from connect_py.api import EncodedBatch, JsonEncoding, SourceOffset, SourcePartition
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from connectors.engine.snapshot.incremental.contract import SnapshotHooks
from connectors.postgres.task import PostgresConnectorTask

Event = tuple[str, Any, Any]


class Context:
    """`SourceTaskContext` over one stored offset."""

    connector, task = "direct", 0
    encoding = JsonEncoding(key_schemas=False, value_schemas=False)

    def __init__(self, offset: SourceOffset | None) -> None:
        self._offset = offset
        self.notifications: list[dict[str, Any]] = []

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        return self._offset

    def notify(self, notification: Mapping[str, Any]) -> None:
        self.notifications.append(dict(notification))


class DirectTask:
    """Runs a task in the test's thread.

    Attributes:
        events: (topic, key, value) of every record, values and keys without schema.
        batches: the same rows in their batches, with the batches' offsets.
    """

    encoding = Context.encoding

    def __init__(
        self,
        config: Mapping[str, str],
        offset: SourceOffset | None = None,
        hooks: SnapshotHooks | None = None,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self.task = self.make(hooks, tuning)
        self.events: list[Event] = []
        self.batches: list[tuple[list[Event], SourceOffset]] = []
        self.offset = offset
        self.context = Context(offset)
        self.context.encoding = self.encoding
        self.task.start(config, self.context)

    def make(self, hooks: SnapshotHooks | None, tuning: Tuning) -> Any:
        """The task."""
        return PostgresConnectorTask(hooks=hooks, tuning=tuning)

    def poll(self) -> list[Event]:
        """One poll; returns its events."""
        batch = self.task.poll()
        if not isinstance(batch, EncodedBatch):
            return []
        found = [(route.topic, _load(key), _load(value)) for route, key, value in batch.rows]
        self.events += found
        self.offset = batch.source_offset
        self.batches.append((found, batch.source_offset))
        self.task.offsets_committed([(batch.source_partition, batch.source_offset)])
        return found

    def poll_until(self, condition: Callable[[], object], seconds: float = 60, what: str = "it") -> None:
        """Poll until a condition holds. Raises AssertionError after the time."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
            self.poll()

    def ask_for_snapshot(self, table: str) -> None:
        """Send the signal for a blocking snapshot, as by REST."""
        data = {"data-collections": [table], "type": "blocking"}
        self.task.take_signal({"id": "s", "type": "execute-snapshot", "data": data, "additional-data": {}}, lambda: None)

    def is_streaming(self) -> bool:
        """Whether the log is followed, and not only up to where the rest of a snapshot is read."""
        return bool(self.task.is_streaming)

    def is_snapshotting(self) -> bool:
        """Whether an incremental snapshot runs, or its last window is open."""
        return self.task.incremental.is_running or bool(self.task.incremental.chunk)

    def of(self, topic: str) -> list[tuple[Any, Any]]:
        """Keys and values of a topic's events."""
        return [(key, value) for found, key, value in self.events if found == topic]

    def close(self) -> None:
        """Stop and close the task."""
        self.task.stop()
        self.task.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _load(data: bytes | None) -> Any:
    return None if data is None else orjson.loads(data)


def fold_events(events: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """The rows that are left when a topic's events are applied in order; keys as sorted tuples of their fields."""
    rows: dict[Any, Any] = {}
    for key, value in events:
        if value is not None and value["op"] == "t":
            rows.clear()
            continue
        id_ = tuple(sorted(key.items(), key=lambda item: item[0]))
        if value is None or value["op"] == "d":
            rows.pop(id_, None)
        else:
            rows[id_] = value["after"]
    return rows
