"""A MySQL or MariaDB task in the test's own thread, and what it gives out."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import orjson

from connect_py.api import EncodedBatch, JsonEncoding, SourceOffset, SourcePartition
from connect_py.app.services.mysql import MySqlAddress
from connectors.mysql.ddl.statements import Parser, apply
from connectors.mysql.model import Tables
from connectors.mysql.task import MariaDbConnectorTask, MySqlConnectorTask
from tests.fix_kafka import Kafka


class DirectTask:
    """Ends with its `with`.

    Args:
        parser: reads the statements of the log and of the history.

    Attributes:
        records: (topic, value) of every record with a value, in order; values as objects without schemas.
        offsets: of every batch.
    """

    connector, task = "direct", 0
    encoding = JsonEncoding(key_schemas=False, value_schemas=False)

    def __init__(self, config: Mapping[str, str], offset: SourceOffset | None = None, parser: Parser = apply) -> None:
        self._offset = offset
        self.records: list[tuple[str, Any]] = []
        self.offsets: list[SourceOffset] = []
        mariadb = config["connector.class"].endswith("MariaDbConnector")
        self._task = (MariaDbConnectorTask if mariadb else MySqlConnectorTask)(parser=parser)
        self._task.start(dict(config), self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._task.stop()
        self._task.close()

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        return self._offset

    def notify(self, notification: Mapping[str, Any]) -> None:
        """Nobody listens."""

    def poll_until(self, condition: Callable[[], object], seconds: float = 60) -> None:
        """Poll until something holds; fails after a while."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited {seconds:g} s after {self.records[-3:]}"
            batch = self._task.poll()
            if isinstance(batch, EncodedBatch):
                self.records += [(route.topic, orjson.loads(value)) for route, _, value in batch.rows if value]
                self.offsets.append(batch.source_offset)
                self._task.offsets_committed([(batch.source_partition, batch.source_offset)])

    def ask_for_snapshot(self, table: str) -> None:
        """Send the signal for a blocking snapshot, as by REST."""
        data = {"data-collections": [table], "type": "blocking"}
        self._task.take_signal({"id": "s", "type": "execute-snapshot", "data": data, "additional-data": {}}, lambda: None)

    @property
    def is_connected(self) -> bool:
        """Whether the log is followed."""
        return self._task.is_streaming

    @property
    def structures(self) -> Tables:
        """The task's structures of tables."""
        return self._task.structures

    def rows(self, table: str) -> list[tuple[str, Any]]:
        """(op, after or before) of a table's events."""
        return [
            (value["op"], value["after"] or value["before"])
            for topic, value in self.records
            if topic.endswith(f".{table}") and "op" in value
        ]


def task_config(server: MySqlAddress, kafka: Kafka, database: str, *, mariadb: bool = False, **more: str) -> dict[str, str]:
    """A connector's configuration for one database."""
    kind = "mariadb.MariaDbConnector" if mariadb else "mysql.MySqlConnector"
    return {
        "connector.class": f"io.debezium.connector.{kind}",
        "database.hostname": server.host,
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.server.id": str(uuid.uuid4().int % 1_000_000 + 1_000),
        "topic.prefix": database,
        "database.include.list": database,
        "schema.history.internal.kafka.bootstrap.servers": kafka.bootstrap,
        "schema.history.internal.kafka.topic": f"history_{database}_{uuid.uuid4().hex[:6]}",
        **more,
    }
