"""The sink's own figures, beside those that the runtime counts for every sink. The task's thread owns them; a batch is counted once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from connect_py.api import MetricGroup, TopicPartition


@dataclass
class _Table:
    records: int = 0
    batches: int = 0
    skipped: int = 0
    seconds: float = 0.0
    maintained: int = 0
    maintenance_seconds: float = 0.0
    rejected: int = 0
    committed_at: float = 0.0


@dataclass
class SinkFigures:
    """Counts since the task's start.

    Attributes:
        lag: offsets that are in the log and not applied, as of the last look.
    """

    lag: int = 0
    _batches: int = 0
    _passed_over: int = 0
    _failures: int = 0
    _rejected: int = 0
    _tables: dict[str, _Table] = field(default_factory=dict)
    _session_began: float | None = None

    def session_starts(self) -> None:
        """Spark is being started."""
        self._session_began = None

    def session_started(self) -> None:
        """Spark runs."""
        self._session_began = time.monotonic()

    def looked(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """The log was looked at."""
        self.lag = sum(max(0, end - positions.get(partition, start)) for partition, (start, end) in log.items())

    def applied(self, table: str, records: int, seconds: float, *, was_new: bool) -> None:
        """A table took its part of a batch; `was_new` is False when it had it already."""
        known = self._tables.setdefault(table, _Table())
        known.seconds += seconds
        if was_new:
            known.batches += 1
            known.records += records
            known.committed_at = time.time()
        else:
            known.skipped += 1

    def batch(self, passed_over: int) -> None:
        """All tables of a batch have committed; so many of its records belong to none (heartbeats, tombstones, what routing leaves out)."""
        self._batches += 1
        self._passed_over += passed_over

    def maintained(self, table: str, seconds: float) -> None:
        """A table has been compacted."""
        known = self._tables.setdefault(table, _Table())
        known.maintained += 1
        known.maintenance_seconds += seconds

    def rejected(self, records: int, table: str | None = None) -> None:
        """So many records were bad, for a table or before one was found for them."""
        self._rejected += records
        if table is not None:
            self._tables.setdefault(table, _Table()).rejected += records

    def failed(self) -> None:
        """A batch failed, and is tried again or fails the task."""
        self._failures += 1

    def groups(self) -> list[MetricGroup]:
        """As they stand now."""
        values = {"batches-total": self._batches, "batch-failures-total": self._failures, "lag-offsets": self.lag}
        values["records-passed-over-total"] = self._passed_over
        values["records-rejected-total"] = self._rejected
        values["spark-session-starting"] = int(self._session_began is None)
        values["spark-session-uptime-seconds"] = 0 if self._session_began is None else int(time.monotonic() - self._session_began)
        found = [MetricGroup("connect.py", "lakehouse-sink", {}, values)]
        for name, table in sorted(self._tables.items()):
            found.append(
                MetricGroup(
                    "connect.py",
                    "lakehouse-table",
                    {"table": name},
                    {
                        "records-applied-total": table.records,
                        "commits-total": table.batches,
                        "batches-skipped-already-committed-total": table.skipped,
                        "apply-seconds-total": table.seconds,
                        "records-rejected-total": table.rejected,
                        "last-commit-timestamp-seconds": table.committed_at,
                        "maintenance-total": table.maintained,
                        "maintenance-seconds-total": table.maintenance_seconds,
                    },
                )
            )
        return found
