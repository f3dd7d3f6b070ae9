"""Heartbeats: a record now and then that carries the present offset, so that it advances when all events are filtered (debezium-common §8;
`HeartbeatImpl.java`)."""

from __future__ import annotations

import time
from collections.abc import Callable

from connect_py.api import JsonEncoding
from connect_py.api.record import EncodedRow
from connect_py.data.schema import INT64, STRING, struct
from connectors.engine.side_records import SideRecords
from connectors.engine.topic_naming import TopicNaming


class Heartbeat:
    """Says when a heartbeat is due, and makes it.

    Args:
        interval: seconds; 0 for none.
    """

    def __init__(self, interval: float, naming: TopicNaming, encoding: JsonEncoding, clock: Callable[[], float] = time.monotonic) -> None:
        key = struct([("serverName", STRING)], name=naming.schema_name("io.debezium.connector.common.ServerNameKey"), version=1)
        value = struct([("ts_ms", INT64)], name=naming.schema_name("io.debezium.connector.common.Heartbeat"), version=1)
        self._records = SideRecords(naming.heartbeat_topic(), key, value, encoding, partition=0)
        self._server = naming.prefix
        self._interval = interval
        self._clock = clock
        self._next = clock() + interval

    @property
    def is_enabled(self) -> bool:
        """Whether there are heartbeats at all."""
        return self._interval > 0

    @property
    def is_due(self) -> bool:
        """Whether the interval has passed since the last one."""
        return self._interval > 0 and self._clock() >= self._next

    def beat(self) -> EncodedRow:
        """The record; the next one is due after the interval."""
        self._next = self._clock() + self._interval
        return self._records.row({"serverName": self._server}, {"ts_ms": time.time_ns() // 1_000_000})
