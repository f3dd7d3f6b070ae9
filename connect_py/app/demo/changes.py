"""What the demo shows of a topic: its change events, in short."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import internal_properties
from connect_py.kafka.log import KafkaLog, LogRecord

#: What the envelope's `op` means to a person.
OPERATIONS = {"r": "read", "c": "create", "u": "update", "d": "delete"}


@dataclass(frozen=True)
class Change:
    """One record: the key's field, the operation (`tombstone` for a null value), the row before and after."""

    key: Any
    operation: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def read_changes(bootstrap: str, topic: str) -> list[Change]:
    """All records of a topic of Debezium's events; none when the topic does not exist yet."""
    properties = internal_properties({"bootstrap.servers": bootstrap, "group.id": "connect-py-demo"}, "demo")
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
    """A record of JsonConverter with schemas, as a Change."""
    key_fields = json.loads(key or b"{}").get("payload") or {}
    only = next(iter(key_fields.values()), None)
    if value is None:
        return Change(only, "tombstone", None, None)
    event = json.loads(value)["payload"]
    return Change(only, OPERATIONS.get(event["op"], event["op"]), event["before"], event["after"])
