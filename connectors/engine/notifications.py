"""Notifications: what a connector reports of its snapshots (`IncrementalSnapshotNotificationService.java`,
`InitialSnapshotNotificationService.java`), and where the reports go: `notification.enabled.channels` (`SinkNotificationChannel.java`,
`LogNotificationChannel.java`).

The order of a body's fields is Java's hash order, which readers of the topic see.
"""

from __future__ import annotations

import enum
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.api import JsonEncoding, SourceTaskContext
from connect_py.api.record import EncodedRow
from connect_py.data.java_text import double_text, duration_text, float_text
from connect_py.data.schema import INT64, STRING, map_of, struct
from connectors.engine.config import ParsedConfig
from connectors.engine.java_object import JavaValue, StoredKey, seconds_of_time
from connectors.engine.metadata_records import MetadataRecords
from connectors.engine.plugins.extensions import extensions

log = logging.getLogger(__name__)


#: Texts of PostgreSQL's, as Java shows them.
_BOOLEANS = {"t": "true", "f": "false"}

#: As java.util.HashMap of 16 buckets lists them.
_ORDER = (
    "scanned_collection",
    "current_collection_in_progress",
    "connector_name",
    "maximum_key",
    "total_rows_scanned",
    "data_collections",
    "last_processed_key",
    "status",
    "error",
)


class ScanStatus(enum.Enum):
    """How the scan of a collection ended."""

    EMPTY = "EMPTY"
    NO_PRIMARY_KEY = "NO_PRIMARY_KEY"
    SKIPPED = "SKIPPED"
    SQL_EXCEPTION = "SQL_EXCEPTION"
    SUCCEEDED = "SUCCEEDED"
    UNKNOWN_SCHEMA = "UNKNOWN_SCHEMA"


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification; `timestamp_ms` since 1970."""

    id: str
    aggregate_type: str
    type: str
    additional_data: Mapping[str, str]
    timestamp_ms: int


#: Takes a notification; never raises.
Tell = Callable[[Notification], None]


class _Events:
    aggregate_type = ""

    def __init__(self, connector: str, tell: Tell) -> None:
        self._connector = connector
        self._tell = tell

    def _send(self, id_: str | None, type_: str, **more: str) -> None:
        data = {"connector_name": self._connector, **more}
        ordered = {name: data[name] for name in _ORDER if name in data}
        self._tell(Notification(id_ or str(uuid.uuid4()), self.aggregate_type, type_, ordered, time.time_ns() // 1_000_000))


def _joined(names: Sequence[str]) -> str:
    return ",".join(names)


def _key(key: StoredKey) -> str:
    return ",".join("<null>" if part is None else _shown(part) for part in key)


def _shown(part: JavaValue) -> str:
    """Return a part of a key as Java's `toString` shows it."""
    match part.java_class:
        case "java.lang.Boolean":
            return _BOOLEANS.get(part.text, part.text)
        case "java.lang.Double":
            return double_text(float(part.text))
        case "java.lang.Float":
            return float_text(float(part.text))
        case "java.sql.Timestamp":
            moment, _, fraction = part.text.partition(".")
            return f"{moment}.{fraction.rstrip('0') or '0'}"
        case "java.time.Duration":
            return duration_text(*seconds_of_time(part.text))
    return part.text


class IncrementalEvents(_Events):
    """Notifications of an incremental snapshot; each bears the id of the signal that asked for it.

    Args:
        connector: `topic.prefix`.
        tell: receives them.
    """

    aggregate_type = "Incremental Snapshot"

    def started(self, signal: str | None, collections: Sequence[str]) -> None:
        """Report that collections were asked for."""
        self._send(signal, "STARTED", data_collections=_joined(collections))

    def paused(self, signal: str | None, collections: Sequence[str], error: str | None = None) -> None:
        """Report that no chunk is read for now; `error` (ours) says why when no signal asked for it."""
        more = {} if error is None else {"error": error}
        self._send(signal, "PAUSED", data_collections=_joined(collections), **more)

    def resumed(self, signal: str | None, collections: Sequence[str]) -> None:
        """Report that chunks are read again."""
        self._send(signal, "RESUMED", data_collections=_joined(collections))

    def in_progress(self, signal: str | None, collections: Sequence[str], maximum: StoredKey, last: StoredKey) -> None:
        """Report that a chunk of the first collection was read."""
        self._send(
            signal,
            "IN_PROGRESS",
            data_collections=_joined(collections),
            current_collection_in_progress=collections[0],
            maximum_key=_key(maximum),
            last_processed_key=_key(last),
        )

    def scan_completed(self, signal: str | None, collections: Sequence[str], rows: int, status: ScanStatus) -> None:
        """Report that the first collection is done."""
        self._send(
            signal,
            "TABLE_SCAN_COMPLETED",
            data_collections=_joined(collections),
            scanned_collection=collections[0],
            total_rows_scanned=str(rows),
            status=status.value,
        )

    def aborted(self, signal: str | None, collections: Sequence[str]) -> None:
        """Report that a signal removed collections."""
        self._send(signal, "ABORTED", data_collections=_joined(collections))

    def rejected(self, signal: str | None, collections: Sequence[str], error: str) -> None:
        """Report a signal (by its id) that cannot be carried out; ours. `collections` are those that are still read."""
        self._send(signal, "REJECTED", data_collections=_joined(collections), error=error)

    def completed(self, signal: str | None) -> None:
        """Report that everything was read."""
        self._send(signal, "COMPLETED")


class InitialEvents(_Events):
    """Notifications of an initial or blocking snapshot; each has an id of its own.

    Attributes:
        whole: whether they name all collections and count rows; those of Debezium's MongoDB connector do not.
    """

    aggregate_type = "Initial Snapshot"
    whole = True

    def started(self) -> None:
        """Report that it starts."""
        self._send(None, "STARTED")

    def in_progress(self, collection: str, to_read: Sequence[str]) -> None:
        """Report that a collection is started."""
        more = {"data_collections": _joined(to_read)} if self.whole else {}
        self._send(None, "IN_PROGRESS", current_collection_in_progress=collection, **more)

    def scan_completed(self, collection: str, captured: Sequence[str], rows: int) -> None:
        """Report that a collection is done."""
        more = {"data_collections": _joined(captured), "total_rows_scanned": str(rows)} if self.whole else {}
        self._send(None, "TABLE_SCAN_COMPLETED", scanned_collection=collection, status=ScanStatus.SUCCEEDED.value, **more)

    def completed(self) -> None:
        """Report that everything was read."""
        self._send(None, "COMPLETED")

    def aborted(self) -> None:
        """Report that it failed or was stopped."""
        self._send(None, "ABORTED")

    def skipped(self) -> None:
        """Report that there is nothing to read."""
        self._send(None, "SKIPPED")


KEY_SCHEMA = struct([("id", STRING)], name="io.debezium.connector.common.NotificationKey", version=1)
VALUE_SCHEMA = struct(
    [
        ("id", STRING),
        ("type", STRING),
        ("aggregate_type", STRING),
        ("additional_data", map_of(STRING, STRING, optional=True)),
        ("timestamp", INT64),
    ],
    name="io.debezium.connector.common.Notification",
    version=1,
)


#: Where a notification goes. What it raises is logged.
NotificationChannel = Callable[[Notification], None]

#: Entry points of packages that add channels: the name is the channel's, the value a function of the connector's properties and name that
#: opens a `NotificationChannel`.
ENTRY_POINTS = "connect_py.notification_channels"


class Notifier:
    """Hands notifications to the channels; one that fails stops neither the others nor the source."""

    def __init__(self, channels: Sequence[NotificationChannel]) -> None:
        self._channels = channels

    def __call__(self, notification: Notification) -> None:
        """Send to every channel."""
        for channel in self._channels:
            try:
                channel(notification)
            except Exception:
                log.exception("A notification channel failed; the notification is lost there: %s", as_text(notification))


def open_notification_channels(
    config: ParsedConfig, context: SourceTaskContext, emit: Callable[[EncodedRow], None]
) -> list[NotificationChannel]:
    """Return the channels of `notification.enabled.channels`. The worker's REST API (`rest`) is one when the list names it, and when there
    is no list.

    Args:
        emit: takes the records of the channel `sink`.
    """
    names = config.names("notification.enabled.channels")
    found: list[NotificationChannel] = []
    if "rest" in names or not names:
        found.append(lambda notification: context.notify(_value(notification)))
    for name in dict.fromkeys(names):
        if name == "sink":
            topic = config.raw.get("notification.sink.topic.name")
            if topic:
                found.append(_SinkChannel(topic, context.encoding, emit))
        elif name == "log":
            found.append(lambda notification: log.info("[Notification Service]  %s", as_text(notification)))
        elif name != "rest":
            found += _custom(name, config, context.connector)
    return found


def _custom(name: str, config: ParsedConfig, connector: str) -> list[NotificationChannel]:
    for entry in extensions(ENTRY_POINTS):
        if entry.name.lower() == name:
            return [entry.load()(dict(config.raw), connector)]
    log.warning(
        "notification.enabled.channels: there is no channel '%s' here, and nothing is sent to it; there are sink, log, rest and what "
        "packages add (%s)",
        name,
        ENTRY_POINTS,
    )
    return []


class _SinkChannel:
    def __init__(self, topic: str, encoding: JsonEncoding, emit: Callable[[EncodedRow], None]) -> None:
        self._records = MetadataRecords(topic, KEY_SCHEMA, VALUE_SCHEMA, encoding)
        self._emit = emit

    def __call__(self, notification: Notification) -> None:
        self._emit(self._records.row({"id": notification.id}, _value(notification)))


def _value(notification: Notification) -> dict[str, Any]:
    return {
        "id": notification.id,
        "aggregate_type": notification.aggregate_type,
        "type": notification.type,
        "additional_data": dict(notification.additional_data),
        "timestamp": notification.timestamp_ms,
    }


def as_text(notification: Notification) -> str:
    """Format a notification as Debezium's log shows it, so that what watches that log keeps working."""
    data = ", ".join(f"{name}={value}" for name, value in notification.additional_data.items())
    return (
        f"{{id='{notification.id}', aggregateType='{notification.aggregate_type}', type='{notification.type}', additionalData={{{data}}}, "
        f"timestamp={notification.timestamp_ms}}}"
    )
