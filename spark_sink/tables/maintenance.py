"""When a table is due for compaction and clean-up. Pure; the task's thread asks between two batches, and `Tables.maintain` does it.

A table's turn comes after a number of its commits. It is postponed while the sink has more to catch up with than
`lakehouse.maintenance.max-lag`, and outside of the hours of `lakehouse.maintenance.window`. Its failure is logged and costs nothing but the
turn: no batch waits for it to succeed.
"""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import dataclass

from spark_sink.config.sink_config import SinkConfig
from spark_sink.routing import TableName


@dataclass(frozen=True)
class MaintenancePolicy:
    """What maintenance does; ages in milliseconds, sizes in bytes."""

    target_file_size: int
    older_than_ms: int
    retain_last: int
    orphans_older_than_ms: int
    vacuum_hours: int

    @classmethod
    def of(cls, config: SinkConfig) -> MaintenancePolicy:
        """Read the policy of a configuration."""
        return cls(
            config["maintenance.target-file-size-bytes"],
            config["maintenance.expire-snapshots.older-than-ms"],
            config["maintenance.expire-snapshots.retain-last"],
            config["maintenance.remove-orphan-files.older-than-ms"],
            config["maintenance.vacuum.retain-hours"],
        )


class MaintenanceSchedule:
    """Commits of each table since its last turn."""

    def __init__(self, config: SinkConfig) -> None:
        self._every = config["maintenance.compact.every-commits"] if config["maintenance.enabled"] else None
        self._max_lag = config["maintenance.max-lag"]
        self._window = window(config["maintenance.window"])
        self._commits: Counter[TableName] = Counter()

    def committed(self, table: TableName) -> None:
        """Count a commit of a table."""
        self._commits[table] += 1

    def due(self, lag: int, now: datetime.datetime) -> TableName | None:
        """Return the table whose turn it is, if any, and restart its count. `now` in UTC."""
        if self._every is None or lag > self._max_lag or not self._window[0] <= _minutes(now, self._window) < self._window[1]:
            return None
        table, commits = max(self._commits.items(), key=lambda item: item[1], default=(None, 0))
        if table is None or commits < self._every:
            return None
        del self._commits[table]
        return table


def window(text: str | None) -> tuple[int, int]:
    """Parse ``HH:MM-HH:MM`` into minutes since midnight; a window that passes midnight ends beyond 24 hours.

    Raises:
        ValueError: the text is not of that form.
    """
    if not text:
        return 0, 24 * 60
    begin, _, end = text.partition("-")
    times = [datetime.time.fromisoformat(part.strip()) for part in (begin, end)]
    first, last = (time.hour * 60 + time.minute for time in times)
    return first, last if last > first else last + 24 * 60


def _minutes(now: datetime.datetime, between: tuple[int, int]) -> int:
    minutes = now.hour * 60 + now.minute
    return minutes if minutes >= between[0] else minutes + 24 * 60
