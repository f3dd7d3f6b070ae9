"""Values of the right type that the Java clients refuse when they are made (`ProducerConfig`, `ConsumerConfig` of Kafka 4.3). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WORDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "producer": {"acks": ("all", "-1", "0", "1"), "compression.type": ("none", "gzip", "snappy", "lz4", "zstd")},
    "consumer": {"isolation.level": ("read_committed", "read_uncommitted")},
}
_LEAST: Final[Mapping[str, Mapping[str, int]]] = {
    "producer": {
        "batch.size": 0,
        "buffer.memory": 0,
        "delivery.timeout.ms": 0,
        "linger.ms": 0,
        "max.block.ms": 0,
        "max.in.flight.requests.per.connection": 1,
        "max.request.size": 0,
        "receive.buffer.bytes": -1,
        "request.timeout.ms": 0,
        "retries": 0,
        "retry.backoff.ms": 0,
        "send.buffer.bytes": -1,
    },
    "consumer": {"fetch.max.bytes": 0, "fetch.min.bytes": 0, "max.poll.interval.ms": 1, "max.poll.records": 1},
}


def problem(client: str, name: str, value: str) -> str | None:
    """What is wrong with a value, in Kafka's words; None where it is allowed, or no number (which its conversion tells).

    Args:
        client: producer, consumer or admin.
    """
    text = value.strip()
    words = _WORDS.get(client, {}).get(name)
    if words is not None and text not in words:
        return f"Invalid value {text} for configuration {name}: String must be one of: {', '.join(words)}"
    least = _LEAST.get(client, {}).get(name)
    if least is not None and text.removeprefix("-").isdecimal() and int(text) < least:
        return f"Invalid value {text} for configuration {name}: Value must be at least {least}"
    return None
