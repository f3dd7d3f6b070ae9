"""Headers that say which connector, task and run a record comes from (debezium-common §2, since Debezium 3.2; `runId` since 3.4)."""

from __future__ import annotations

import os
import time
import uuid


def new_run_id() -> str:
    """A random UUID of version 7 (RFC 9562 §5.7): one a start of a task, sorting by time."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = milliseconds << 80 | random & ((1 << 80) - 1)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def context_headers(logical_name: str, task: int, connector_name: str, run_id: str) -> tuple[tuple[str, str], ...]:
    """The four headers, in Debezium's order.

    Args:
        logical_name: `topic.prefix`.
        connector_name: the short name of the kind of connector, such as ``postgresql``.
    """
    return (
        ("__debezium.context.connectorLogicalName", logical_name),
        ("__debezium.context.taskId", str(task)),
        ("__debezium.context.connectorName", connector_name),
        ("__debezium.context.runId", run_id),
    )
