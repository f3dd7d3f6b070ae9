"""Driving the JDBC sink's task without Kafka: records of JSON with schemas in, tables out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from connect_py.api import SinkRecord
from connect_py.converters.json_converter import JsonConverter
from connect_py.data import Schema, Struct
from connectors.jdbc.task import SQLITE_LOCK_SECONDS, JdbcSinkTask


class Context(SimpleNamespace):
    """What the runtime gives a task; `refused` has the records that it was told of, `waits` the seconds until it asks again."""

    def __init__(self, *, reports: bool = False) -> None:
        self.refused: list[tuple[int, str]] = []
        self.waits: list[float] = []
        super().__init__(connector="sink", task=0, report_errant_record=self.refuse if reports else None, retry_after=self.waits.append)

    def refuse(self, record: SinkRecord, error: Exception) -> None:
        self.refused.append((record.offset, str(error)))


@contextmanager
def started(
    url: str, *, reports: bool = False, lock_seconds: float = SQLITE_LOCK_SECONDS, **more: str
) -> Iterator[tuple[JdbcSinkTask, Context]]:
    """A task; `more` are properties, their dots as `_` and their underscores doubled."""
    task, context = JdbcSinkTask(lock_seconds), Context(reports=reports)
    settings = {"connection.url": url, "schema.evolution": "basic"}
    named = {name.replace("__", "\0").replace("_", ".").replace("\0", "_"): value for name, value in more.items()}
    task.start(settings | named, context)  # type: ignore[arg-type]
    try:
        yield task, context
    finally:
        task.stop()


class Reader:
    """Makes sink records of JSON with schemas."""

    def __init__(self) -> None:
        self._key, self._value = JsonConverter(), JsonConverter()

    def record(self, topic: str, offset: int, key: str | None, value: str | None) -> SinkRecord:
        key_schema, key_data = self._key.to_connect_data(topic, None if key is None else key.encode())
        value_schema, value_data = self._value.to_connect_data(topic, None if value is None else value.encode())
        return SinkRecord(topic, 0, offset, key_schema, key_data, value_schema, value_data)


def row(topic: str, offset: int, key: Struct | None, value: Struct | None, schema: Schema | None = None) -> SinkRecord:
    """A record of structs."""
    return SinkRecord(topic, 0, offset, key.schema if key else None, key, value.schema if value else schema, value)
