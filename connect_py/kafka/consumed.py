"""A record as Kafka holds it, before any converter has seen it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Message


class ConsumedRecord(NamedTuple):
    """One record as Kafka holds it.

    Attributes:
        timestamp: epoch milliseconds, None when there is none.
        timestamp_type: ``CreateTime``, ``LogAppendTime`` or None.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: str | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def consumed_record(message: Message) -> ConsumedRecord:
    """A message of librdkafka's that is no error."""
    kind, timestamp = message.timestamp()
    has_time = kind != TIMESTAMP_NOT_AVAILABLE and timestamp >= 0
    return ConsumedRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp if has_time else None,
        ("CreateTime" if kind == TIMESTAMP_CREATE_TIME else "LogAppendTime") if has_time else None,
        message.key(),
        message.value(),
        message.headers() or (),
    )
