"""What a topic of change events says about its table, and whether that is true."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from confluent_kafka import Message


def payload(data: bytes) -> Any:
    """The payload of JsonConverter's bytes, with or without a schema."""
    value = orjson.loads(data)
    return value["payload"] if isinstance(value, dict) and set(value) == {"schema", "payload"} else value


def fold(records: Iterable[Message]) -> dict[int, dict[str, Any]]:
    """The rows that are left when every event is applied in order, by the key's field `id`; the last event of a key wins."""
    rows: dict[int, dict[str, Any]] = {}
    for record in records:
        key = payload(record.key())["id"]
        event = payload(record.value()) if record.value() is not None else None
        if event is None or event["op"] == "d":
            rows.pop(key, None)
        else:
            rows[key] = event["after"]
    return rows
