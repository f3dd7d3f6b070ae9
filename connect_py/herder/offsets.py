"""Read, alter and reset a connector's offsets (KIP-875; `runtime/Worker.java`, `util/SinkUtils.java`).

Source offsets live in the offset store, a sink's in its consumer group. The herder checks that the connector is stopped before it calls
what changes them. Functions of values but for the stores they are given; run on the thread of the request.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from connect_py.api import SinkConnector, SourceConnector, TopicPartition
from connect_py.api.storage import OffsetStore
from connect_py.errors import BadRequestError, ConnectError, RestError
from connect_py.herder.base import OffsetEntry
from connect_py.kafka.admin import GroupNotEmptyError

log = logging.getLogger(__name__)

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII).fullmatch
_TOPIC, _PARTITION, _OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"

#: KafkaBasedLog's read to the end, within a request.
_READ_SECONDS = 30.0


class GroupAdmin(Protocol):
    """What is asked of the cluster about a sink's consumer group (`connect_py.kafka.admin.KafkaAdmin`)."""

    def group_offsets(self, group: str) -> Mapping[TopicPartition, int]: ...
    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int | None]) -> None: ...
    def delete_group(self, group: str) -> None: ...


def source_offsets(store: OffsetStore, connector: str, config: Mapping[str, str]) -> list[OffsetEntry]:
    """Return everything stored of a source connector."""
    return list(store.read(connector, config, _READ_SECONDS))


def sink_offsets(admin: GroupAdmin, group: str) -> list[OffsetEntry]:
    """Return what a sink's group has committed, in the shape that clients see."""
    return [
        ({_PARTITION: partition.partition, _TOPIC: partition.topic}, {_OFFSET: offset})
        for partition, offset in sorted(admin.group_offsets(group).items())
    ]


def alter_source(
    store: OffsetStore, name: str, connector: SourceConnector, config: Mapping[str, str], offsets: Sequence[OffsetEntry]
) -> str:
    """Set offsets of a source; None removes one. Returns the answer's message.

    Raises:
        RestError: the connector refuses them.
    """
    entries = [_source_entry(partition, offset) for partition, offset in offsets]
    complete = _ask(lambda: connector.alter_offsets(config, list(entries)))
    store.put(name, entries, config)
    return _message("altered", complete)


def reset_source(store: OffsetStore, name: str, connector: SourceConnector, config: Mapping[str, str]) -> str:
    """Remove all offsets of a source. Returns the answer's message."""
    gone = [(partition, None) for partition, _ in store.read(name, config, _READ_SECONDS)]
    complete = _ask(lambda: connector.alter_offsets(config, gone))
    if gone:
        store.put(name, gone, config)
    return _message("reset", complete)


def alter_sink(
    admin: GroupAdmin, group: str, name: str, connector: SinkConnector, config: Mapping[str, str], offsets: Sequence[OffsetEntry]
) -> str:
    """Set committed offsets of a sink's group. Returns the answer's message.

    Raises:
        BadRequestError: an entry is malformed.
        RestError: the connector refuses, or the group still has members.
    """
    parsed: dict[TopicPartition, int | None] = dict(parse_sink_entry(partition, offset) for partition, offset in offsets)
    if any(offset is not None and offset < 0 for offset in parsed.values()):
        raise RestError(f"Failed to modify offsets for sink connector {name}", 500)
    complete = _ask(lambda: connector.alter_offsets(config, {(p.topic, p.partition): o for p, o in parsed.items()}))
    if any(not place.topic or place.partition < 0 for place in parsed):
        raise RestError(f"Failed to alter consumer group offsets for connector {name}", 500)
    try:
        admin.alter_group_offsets(group, parsed)
    except ConnectError as error:
        raise _group_refused("alter", name, error) from error
    return _message("altered", complete)


def reset_sink(admin: GroupAdmin, group: str, name: str, connector: SinkConnector, config: Mapping[str, str]) -> str:
    """Delete a sink's group. Returns the answer's message."""
    known: dict[tuple[str, int], int | None] = dict.fromkeys(admin.group_offsets(group))
    complete = _ask(lambda: connector.alter_offsets(config, known))
    try:
        admin.delete_group(group)
    except ConnectError as error:
        raise _group_refused("reset", name, error) from error
    return _message("reset", complete)


def parse_sink_entry(partition: Mapping[str, Any] | None, offset: Mapping[str, Any] | None) -> tuple[TopicPartition, int | None]:
    """Return one entry of a client's request as a Kafka partition and offset. Pure.

    Raises:
        BadRequestError: with Connect's text for what is wrong.
    """
    if partition is None:
        raise BadRequestError("The partition for a sink connector offset cannot be null or missing")
    if _TOPIC not in partition or _PARTITION not in partition:
        raise BadRequestError(f"The partition for a sink connector offset must contain the keys '{_TOPIC}' and '{_PARTITION}'")
    topic, number = partition[_TOPIC], partition[_PARTITION]
    if topic is None:
        raise BadRequestError("Kafka topic names must be valid strings and may not be null")
    if number is None:
        raise BadRequestError("Kafka partitions must be valid numbers and may not be null")
    where = TopicPartition(str(topic), _integer(number, 32, "partition", "Partition"))
    if offset is None:
        return where, None
    if _OFFSET not in offset:
        raise BadRequestError(f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'")
    return where, _integer(offset[_OFFSET], 64, "offset", "Offset")


def _source_entry(partition: Mapping[str, Any] | None, offset: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Raises RestError: it has no partition, or holds what Connect stores nowhere (`storage/OffsetUtils.java`)."""
    for part in (partition, offset):
        for field, value in (part or {}).items():
            if isinstance(value, dict | list):
                kind = "MAP" if isinstance(value, dict) else "ARRAY"
                raise RestError(f"Offsets may only contain primitive types as values, but field {field} contains {kind}", 500)
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise BadRequestError(f"The value of {field} is beyond 64 bits; offsets may only contain such numbers.")
    if partition is None:
        raise RestError("Partition objects cannot be null", 500)
    return dict(partition), None if offset is None else dict(offset)


def _integer(value: Any, bits: int, what: str, title: str) -> int:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if _INTEGER(text) and -(1 << bits - 1) <= int(text) < 1 << bits - 1:
        return int(text)
    raise BadRequestError(
        f"Failed to parse the following Kafka {what} value in the provided offsets: '{text}'. "
        f"{title} values for sink connectors need to be integers."
    )


def _ask(question: Any) -> bool:
    """A connector's refusal is the answer of the request, with its own text."""
    try:
        return bool(question())
    except RestError:
        raise
    except ConnectError as error:
        raise RestError(str(error), 500) from error


def _group_refused(verb: str, name: str, error: ConnectError) -> RestError:
    if not isinstance(error, GroupNotEmptyError):
        log.warning("The offsets of %s stay as they are: %s", name, error)
        return RestError(f"Failed to {verb} consumer group offsets for connector {name}", 500)
    return RestError(
        f"Failed to {verb} consumer group offsets for connector {name} either because its tasks haven't stopped completely yet or the "
        "connector was resumed before the request could be completed. Please retry while it is stopped. If that never succeeds, restart "
        f"the worker that runs the zombie sink tasks. ({error})",
        500,
    )


def _message(verb: str, complete: bool) -> str:
    if complete:
        return f"The offsets for this connector have been {verb} successfully"
    return (
        f"The Connect framework-managed offsets for this connector have been {verb} successfully. However, if this connector manages "
        f"offsets externally, they will need to be manually {verb} in the system that the connector uses."
    )
