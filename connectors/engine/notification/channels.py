"""Where notifications go: `notification.enabled.channels` (debezium-common §9; `SinkNotificationChannel.java`,
`LogNotificationChannel.java`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from connect_py.api import JsonEncoding
from connect_py.api.record import EncodedRow
from connect_py.data.schema import INT64, STRING, map_of, struct
from connectors.engine.notification.events import Notification
from connectors.engine.side_records import SideRecords

log = logging.getLogger(__name__)

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


class Notifier:
    """Hands notifications to the channels.

    Args:
        channels: `sink`, `log`, or both.
        topic: of the channel `sink`; None without it.
        emit: takes the records of `sink`.
    """

    def __init__(self, channels: Sequence[str], topic: str | None, encoding: JsonEncoding, emit: Callable[[EncodedRow], None]) -> None:
        self._logs = "log" in channels
        self._records = SideRecords(topic, KEY_SCHEMA, VALUE_SCHEMA, encoding) if "sink" in channels and topic else None
        self._emit = emit

    def __call__(self, notification: Notification) -> None:
        """Send to every channel."""
        if self._logs:
            log.info("[Notification Service]  %s", as_text(notification))
        if self._records is not None:
            value = {
                "id": notification.id,
                "type": notification.type,
                "aggregate_type": notification.aggregate_type,
                "additional_data": dict(notification.additional_data),
                "timestamp": notification.timestamp_ms,
            }
            self._emit(self._records.row({"id": notification.id}, value))


def as_text(notification: Notification) -> str:
    """As Debezium's log shows it, so that what watches that log goes on working."""
    data = ", ".join(f"{name}={value}" for name, value in notification.additional_data.items())
    return (
        f"{{id='{notification.id}', aggregateType='{notification.aggregate_type}', type='{notification.type}', additionalData={{{data}}}, "
        f"timestamp={notification.timestamp_ms}}}"
    )
