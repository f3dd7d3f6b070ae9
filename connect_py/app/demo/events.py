"""Read topics and tables for the demo: change events of JsonConverter in short, the sink's tables without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import internal_properties
from connect_py.kafka.shared_log import KafkaLog, LogRecord

#: What the envelope's `op` means to a person.
OPERATIONS = {"r": "read", "c": "create", "u": "update", "d": "delete"}


@dataclass(frozen=True)
class Change:
    """One record: the key's field, the operation (`tombstone` for a null value), the row before and after."""

    key: Any
    operation: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def _properties(bootstrap: str) -> dict[str, str]:
    return internal_properties({"bootstrap.servers": bootstrap, "group.id": "connect-py-demo"}, "demo")


def read_changes(bootstrap: str, topic: str) -> list[Change]:
    """Return all records of a topic of Debezium's events; none when the topic does not exist yet."""
    properties = _properties(bootstrap)
    admin = KafkaAdmin(properties)
    try:
        if not admin.describe_topics([topic]):
            return []
        records: list[LogRecord] = []
        log = KafkaLog(topic, properties, admin, records.append)
        log.start()
        log.stop()
    finally:
        admin.close()
    return [parse_change(record.key, record.value) for record in records]


def parse_change(key: bytes | None, value: bytes | None) -> Change:
    """Return a record of JsonConverter with schemas, as a Change."""
    key_fields = json.loads(key or b"{}").get("payload") or {}
    only = _parsed(next(iter(key_fields.values()), None))
    if value is None:
        return Change(only, "tombstone", None, None)
    event = json.loads(value)["payload"]
    return Change(only, OPERATIONS.get(event["op"], event["op"]), _parsed(event["before"]), _parsed(event["after"]))


def _parsed(value: Any) -> Any:
    """Return what a text of MongoDB's connector holds, as JSON; other values as they are."""
    return json.loads(value) if isinstance(value, str) else value


def count_records(bootstrap: str, topic: str) -> int:
    """Return how many records a topic has got; 0 when it does not exist yet."""
    admin = KafkaAdmin(_properties(bootstrap))
    try:
        return sum(end for _, end in admin.log_offsets([topic]).values()) if admin.describe_topics([topic]) else 0
    finally:
        admin.close()


class LakeTable:
    """An Iceberg table of a Hadoop catalog, as its files say."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return all rows by their first column; none when there is no table yet."""
        table = self._table()
        rows = table.scan(selected_fields=tuple(columns)).to_arrow().to_pylist() if table else []
        return sorted(rows, key=lambda row: row[columns[0]])

    def count(self) -> int:
        """Return how many rows the newest commit says there are."""
        snapshot = self._snapshot()
        return int(snapshot.summary["total-records"] or 0) if snapshot and snapshot.summary else 0

    def commit(self) -> int:
        """Return the newest commit's id; 0 when there is none."""
        snapshot = self._snapshot()
        return snapshot.snapshot_id if snapshot else 0

    def _snapshot(self) -> Any:
        table = self._table()
        return table.current_snapshot() if table else None

    def _table(self) -> Any:
        from pyiceberg.table import StaticTable

        try:
            return StaticTable.from_metadata(str(self._place))
        except FileNotFoundError:
            return None
