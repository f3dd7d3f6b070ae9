"""Records that are not rows: transaction boundaries (`pipeline/txmetadata`), heartbeats (`HeartbeatImpl.java`), and what makes records of
one topic with fixed schemas, notifications among them. They are few, so they take JsonConverter's own way.

`TransactionMonitor` says which events belong together. Its counts are part of the offset while a transaction is under way, so that a task
that resumes in the middle of one continues the numbers, and sends no second BEGIN. A heartbeat carries the current offset, so that it
advances when all events are filtered. The task's thread owns both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from connect_py.api import JsonEncoding, Route
from connect_py.api.record import EncodedRow
from connect_py.converters.json_schema import schema_to_json
from connect_py.converters.json_write import WriteOptions, payload_writer, quote
from connect_py.data import Schema
from connect_py.data.schema import INT64, OPTIONAL_INT64, STRING, Struct, array, struct
from connectors.engine.topic_naming import TopicNaming


class MetadataRecords:
    """Makes the records of one topic.

    Args:
        key_schema: a struct of plain fields; value_schema as well, also of lists of structs and maps.
        partition: None leaves it to the key.
    """

    def __init__(self, topic: str, key_schema: Schema, value_schema: Schema, encoding: JsonEncoding, partition: int | None = None) -> None:
        self._route = Route(topic, key_schema, value_schema, partition=partition)
        self._key_schema, self._value_schema = key_schema, value_schema
        self._key = _Frame(key_schema, encoding.key_schemas)
        self._value = _Frame(value_schema, encoding.value_schemas)

    def row(self, key: Mapping[str, Any], value: Mapping[str, Any]) -> EncodedRow:
        """Return one record; fields that are not given are null."""
        return self._route, self._key(_struct(self._key_schema, key)), self._value(_struct(self._value_schema, value))


class _Frame:
    def __init__(self, schema: Schema, with_schema: bool) -> None:
        self._write = payload_writer(schema, WriteOptions())
        self._head, self._end = (b'{"schema":' + schema_to_json(schema) + b',"payload":', b"}") if with_schema else (b"", b"")

    def __call__(self, value: Struct) -> bytes:
        return self._head + self._write(value).encode() + self._end


def _struct(schema: Schema, fields: Mapping[str, Any]) -> Struct:
    return Struct(schema, [_value(field.schema, fields.get(field.name)) for field in schema.fields])


def _value(schema: Schema, value: Any) -> Any:
    if isinstance(value, Mapping) and schema.fields:
        return _struct(schema, value)
    if isinstance(value, list) and schema.value_schema is not None:
        return [_value(schema.value_schema, item) for item in value]
    return value


_ID = "transaction_id"
_COUNT = "transaction_data_collection_order_"


class TransactionMonitor:
    """Counts events and makes the boundaries' records.

    Attributes:
        open: the id of the transaction under way as offsets hold it; None without one.
    """

    def __init__(self, naming: TopicNaming, encoding: JsonEncoding) -> None:
        counts = struct([("data_collection", STRING), ("event_count", INT64)], optional=True, name="event.collection", version=1)
        key = struct([("id", STRING)], name=naming.schema_name("io.debezium.connector.common.TransactionMetadataKey"), version=1)
        value = struct(
            [
                ("status", STRING),
                ("id", STRING),
                ("event_count", OPTIONAL_INT64),
                ("data_collections", array(counts, optional=True)),
                ("ts_ms", INT64),
            ],
            name=naming.schema_name("io.debezium.connector.common.TransactionMetadataValue"),
            version=1,
        )
        self._records = MetadataRecords(naming.transaction_topic(), key, value, encoding)
        self.open: str | None = None
        self._counts: dict[str, int] = {}
        self._total = 0
        self._ended: dict[str, str | int] = {}

    def restore(self, stored: Mapping[str, object]) -> None:
        """Resume from an offset."""
        found = stored.get(_ID)
        self.open = None if found is None else str(found)
        self._counts = {name.removeprefix(_COUNT): int(str(n)) for name, n in stored.items() if name.startswith(_COUNT)}
        self._total = sum(self._counts.values())

    def offset(self) -> dict[str, str | int]:
        """Return the fields of the source offset: of the transaction under way, or, as Debezium leaves them there, of the last one."""
        if self.open is None:
            return self._ended
        return {_ID: self.open, **{_COUNT + name: count for name, count in self._counts.items()}}

    def begin(self, id_: str, shown_id: str, ts_ms: int) -> EncodedRow | None:
        """Open the transaction that starts in the log.

        Args:
            id_: as offsets hold it.
            shown_id: as records show it.

        Returns:
            The record; None when the transaction was under way before a restart.
        """
        if self.open == id_:
            return None
        self.open = id_
        self._counts = {}
        self._total = 0
        return self._records.row({"id": shown_id}, {"status": "BEGIN", "id": shown_id, "ts_ms": ts_ms})

    def event(self, collection: str, shown_id: str) -> bytes:
        """Count an event of the open transaction. Returns the JSON text of its block."""
        self._total += 1
        order = self._counts[collection] = self._counts.get(collection, 0) + 1
        return b'{"id":%b,"total_order":%d,"data_collection_order":%d}' % (quote(shown_id).encode(), self._total, order)

    def forget(self, collection: str) -> None:
        """Undo the last `event`, which made no record."""
        self._total -= 1
        self._counts[collection] -= 1
        if not self._counts[collection]:
            del self._counts[collection]

    def end(self, shown_id: str, ts_ms: int) -> EncodedRow | None:
        """Close the transaction, which is committed. Returns the record; None when none was open."""
        if self.open is None:
            return None
        collections = [{"data_collection": name, "event_count": count} for name, count in self._counts.items()]
        self._ended = self.offset()
        value = {"status": "END", "id": shown_id, "event_count": self._total, "data_collections": collections, "ts_ms": ts_ms}
        self.open = None
        self._counts = {}
        self._total = 0
        return self._records.row({"id": shown_id}, value)


class Heartbeat:
    """Says when a heartbeat is due, and makes it.

    Args:
        interval: seconds; 0 for none.
    """

    def __init__(self, interval: float, naming: TopicNaming, encoding: JsonEncoding, clock: Callable[[], float] = time.monotonic) -> None:
        key = struct([("serverName", STRING)], name=naming.schema_name("io.debezium.connector.common.ServerNameKey"), version=1)
        value = struct([("ts_ms", INT64)], name=naming.schema_name("io.debezium.connector.common.Heartbeat"), version=1)
        self._records = MetadataRecords(naming.heartbeat_topic(), key, value, encoding, partition=0)
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

    @property
    def seconds_left(self) -> float:
        """How long until the next one is due; infinite without any."""
        return max(0.0, self._next - self._clock()) if self._interval > 0 else math.inf

    def beat(self) -> EncodedRow:
        """Return the record; the next one is due after the interval."""
        self._next = self._clock() + self._interval
        return self._records.row({"serverName": self._server}, {"ts_ms": time.time_ns() // 1_000_000})
