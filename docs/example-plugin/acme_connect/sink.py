"""A sink that keeps records in a SQLite table, one row a record, by topic, partition and offset.

A record that is delivered twice (after a crash, Kafka Connect may) replaces itself, so the table holds every record exactly once.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from connect_py.api import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SinkTaskContext,
    TopicPartition,
    non_empty,
)
from connect_py.data import Struct
from connect_py.errors import ConfigError, DataError, FatalTaskError, RetriableError

FILE, TABLE = "sqlite.file", "sqlite.table"


def _identifier(name: str, value: Any) -> None:
    if value is None or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ConfigError(f"Invalid value {value} for configuration {name}: letters, digits and underscores only")


DEFINITION = ConfigDef(
    [
        ConfigKey(FILE, ConfigType.STRING, REQUIRED, Importance.HIGH, "The database's file; made when it is missing.", validator=non_empty),
        ConfigKey(TABLE, ConfigType.STRING, "records", Importance.MEDIUM, "The table; made when it is missing.", validator=_identifier),
    ]
)


class SqliteSinkConnector(SinkConnector):
    """One task: SQLite has one writer at a time."""

    java_name = "com.acme.connect.SqliteSinkConnector"
    java_task_name = "com.acme.connect.SqliteSinkTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Properties."""
        return DEFINITION

    def start(self, config: Mapping[str, str]) -> None:
        """Keep the configuration for the task."""
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """One, whatever is allowed."""
        return [self._config]

    def task_class(self) -> type[SinkTask]:
        """The class of its task."""
        return SqliteSinkTask


class SqliteSinkTask(SinkTask):
    """Holds one connection; what was put since the last commit is one transaction."""

    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        """Open the database and make the table."""
        values = DEFINITION.parse(config)
        self._context, self._table = context, values[TABLE]
        try:
            self._db = sqlite3.connect(values[FILE], timeout=2)
            with self._db:
                self._db.execute(
                    f"CREATE TABLE IF NOT EXISTS {self._table} (topic TEXT, partition INT, offset INT, key TEXT, value TEXT, "
                    "PRIMARY KEY (topic, partition, offset))"
                )
        except sqlite3.Error as error:
            raise FatalTaskError(f"The database {values[FILE]} cannot be used: {error}. Nothing was read.") from error

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take records into the open transaction; one that cannot be kept goes to the dead letter queue, where there is one."""
        rows = [row for row in map(self._row, records) if row is not None]
        try:
            self._db.executemany(f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?, ?, ?, ?)", rows)  # noqa: S608  # checked by _identifier
        except sqlite3.OperationalError as error:
            self._db.rollback()
            raise RetriableError(f"The table {self._table} cannot be written now: {error}; the records are tried again.") from error

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """End the transaction: only what the file holds may be committed to Kafka."""
        self._db.commit()
        return offsets

    def stop(self) -> None:
        """Close the database."""
        self._db.close()

    def _row(self, record: SinkRecord) -> tuple[str, int, int, str | None, str | None] | None:
        try:
            return record.topic, record.partition, record.offset, _text(record.key), _text(record.value)
        except (TypeError, ValueError) as error:
            problem = DataError(f"The record at offset {record.offset} of {record.topic} is no JSON: {error}")
            if self._context.report_errant_record is None:
                raise problem from error
            self._context.report_errant_record(record, problem)
            return None


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return {field.name: part for field, part in zip(value.schema.fields, value.values, strict=True)}
    raise TypeError(f"a {type(value).__name__} is not JSON")
