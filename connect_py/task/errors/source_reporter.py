"""Where a source task's failed records go: the log, as in Connect, and a dead letter queue, which Connect has for sinks only.

With ``errors.tolerance=all`` and ``errors.deadletterqueue.topic.name`` a record that is skipped leaves a dead letter. There are no bytes of
it yet, so the letter's key and value are what JsonConverter writes with schemas (whatever the connector's converters are: one of them may
be what failed), and its headers are texts. A record that Kafka refused leaves its bytes, without headers where the client forgot them; one
that it refused for its size leaves its key and the size. Context headers are those of a sink's letters, with the topic that the record was
for, without partition and offset, and with ``__connect.errors.source.partition`` and ``__connect.errors.source.offset`` as JSON.

A letter belongs to the submission of its record: the source offset advances when Kafka holds the letter, and a letter that Kafka refuses
fails the task. The task's thread owns a `SourceErrors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from connect_py.api import SourceOffset, SourcePartition, SourceRecord
from connect_py.converters.json_converter import JsonConverter
from connect_py.data.schema import Schema
from connect_py.data.text import to_text
from connect_py.data.values import to_text as header_text
from connect_py.errors import DataError
from connect_py.metrics.task import ErrorMetrics
from connect_py.task.errors.dead_letters import Headers, context_headers, dead_letter_topic, has_context_headers
from connect_py.task.errors.error_log import ErrorLog
from connect_py.task.producing import Produced

_SIZE_HEADER = "__connect.errors.value.bytes"


class SourceErrors:
    """The error reporters of one source task.

    Args:
        config: the connector's configuration.
        metrics: where reports are counted.

    Attributes:
        record: what is under way; set before its transformation.
        topic: the dead letter queue, None when the connector has none.
    """

    def __init__(self, connector: str, task: int, config: Mapping[str, str], metrics: ErrorMetrics | None = None) -> None:
        self.record: SourceRecord | None = None
        self.topic = dead_letter_topic(config)
        self._connector = connector
        self._task = task
        self._metrics = metrics or ErrorMetrics()
        self._log = ErrorLog(connector, task, config, self._metrics)
        self._has_context = has_context_headers(config)
        self._json = JsonConverter()
        self._json.configure({"replace.null.with.default": "false"})  # a letter shows what there was
        self._last: tuple[str, str, Exception] | None = None

    def report(self, stage: str, class_name: str, error: Exception) -> None:
        """Log the failure of `record`, and remember it for the letter."""
        self._last = stage, class_name, error
        record = self.record
        self._log.write(stage, class_name, error, lambda: f", where source record is = {_shown(record)}" if record is not None else "")

    def place(self) -> str:
        """Where the record under way is from, in words."""
        record = self.record
        return (
            f"source partition {dict(record.source_partition)}, offset {dict(record.source_offset)}" if record is not None else "no record"
        )

    def letter(self) -> Produced | None:
        """The letter of `record`, whose failure was reported last; None without a queue."""
        record = self.record
        if self.topic is None or record is None:
            return None
        headers: Headers = [(header.name, _header(header.schema, header.value)) for header in record.headers]
        key, value = (self._bytes(schema, data) for schema, data in ((record.key_schema, record.key), (record.value_schema, record.value)))
        return self._letter(key, value, headers, record.timestamp)

    def letter_of(self, produced: Produced) -> Produced | None:
        """The letter of `record`, which Kafka refused as these bytes; None without a queue."""
        return None if self.topic is None else self._letter(produced.key, produced.value, list(produced.headers or ()), produced.timestamp)

    def without_value(self, letter: Produced) -> Produced:
        """A letter that Kafka refused for its size, shortened to where the record can be found."""
        size = (_SIZE_HEADER, str(len(letter.value or b"")).encode())
        return letter._replace(value=None, headers=[*(letter.headers or ()), size])

    def letter_failed(self) -> None:
        """Kafka refused a letter."""
        self._metrics.dead_letter_failures += 1

    def _letter(self, key: bytes | None, value: bytes | None, headers: Headers, timestamp: int | None) -> Produced:
        assert self.topic is not None
        self._metrics.dead_letter_requests += 1
        if self._has_context and self._last is not None and self.record is not None:
            headers += context_headers(self.record.topic, None, None, self._connector, self._task, *self._last)
            headers += _source_headers(self.record.source_partition, self.record.source_offset)
        return Produced(self.topic, None, timestamp, key, value, headers or None, is_dead_letter=True)

    def _bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        try:
            return self._json.from_connect_data("", schema, value)
        except DataError:
            return to_text(schema, value).encode("utf-8", "surrogateescape")


def refused_record(partition: SourcePartition, offset: SourceOffset, produced: Produced) -> SourceRecord:
    """A record that is known by its bytes only, for the log and the headers."""
    key, value = (None if data is None else data.decode("utf-8", "replace") for data in (produced.key, produced.value))
    return SourceRecord(partition, offset, produced.topic, None, key, None, value, produced.partition, produced.timestamp)


def _source_headers(partition: SourcePartition, offset: SourceOffset) -> Headers:
    return [
        (f"__connect.errors.source.{name}", orjson.dumps(dict(what), default=str))
        for name, what in (("partition", partition), ("offset", offset))
    ]


def _header(schema: Schema | None, value: Any) -> bytes | None:
    return None if value is None else header_text(schema, value).encode("utf-8", "surrogateescape")


def _shown(record: SourceRecord) -> str:
    """`SourceRecord.toString`."""
    headers = ", ".join(
        f"ConnectHeader(key={h.name}, value={to_text(h.schema, h.value)}, schema={_schema(h.schema)})" for h in record.headers
    )
    return (
        f"SourceRecord{{sourcePartition={to_text(None, record.source_partition)}, sourceOffset={to_text(None, record.source_offset)}}} "
        f"ConnectRecord{{topic='{record.topic}', kafkaPartition={to_text(None, record.partition)}, "
        f"key={to_text(record.key_schema, record.key)}, keySchema={_schema(record.key_schema)}, "
        f"value={to_text(record.value_schema, record.value)}, valueSchema={_schema(record.value_schema)}, "
        f"timestamp={to_text(None, record.timestamp)}, headers=ConnectHeaders(headers={f'[{headers}]' if headers else ''})}}"
    )


def _schema(schema: Schema | None) -> str:
    """`ConnectSchema.toString`."""
    if schema is None:
        return "null"
    return f"Schema{{{schema.name}:{schema.type.name}}}" if schema.name else f"Schema{{{schema.type.name}}}"
