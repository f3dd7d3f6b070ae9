"""Where notifications go: `notification.enabled.channels` (debezium-common §9; `SinkNotificationChannel.java`,
`LogNotificationChannel.java`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from connect_py.api import JsonEncoding, SourceTaskContext
from connect_py.api.record import EncodedRow
from connect_py.data.schema import INT64, STRING, map_of, struct
from connectors.engine.config import ParsedConfig
from connectors.engine.notification.events import Notification
from connectors.engine.plugins.extensions import extensions
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


#: Where a notification goes. What it raises is logged.
NotificationChannel = Callable[[Notification], None]

#: Entry points of packages that add channels: the name is the channel's, the value a function of the connector's properties and name that
#: opens a `NotificationChannel`.
ENTRY_POINTS = "connect_py.notification_channels"


class Notifier:
    """Hands notifications to the channels; one that fails keeps neither the others nor the source from going on."""

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
    """The channels of `notification.enabled.channels`. The worker's REST API (`rest`) is one when the list names it, and when there is no
    list.

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
        self._records = SideRecords(topic, KEY_SCHEMA, VALUE_SCHEMA, encoding)
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
    """As Debezium's log shows it, so that what watches that log goes on working."""
    data = ", ".join(f"{name}={value}" for name, value in notification.additional_data.items())
    return (
        f"{{id='{notification.id}', aggregateType='{notification.aggregate_type}', type='{notification.type}', additionalData={{{data}}}, "
        f"timestamp={notification.timestamp_ms}}}"
    )
