"""What Debezium's MySQL beans show beyond those of all connectors (`MySqlStreamingChangeEventSourceMetrics`, `SchemaHistoryMetrics`,
`MySqlSnapshotChangeEventSourceMetrics`). No I/O.

What this connector does not know is left out: it has no look-ahead buffer, whose overflows `NumberOfLargeTransactions` would count.

The task's thread owns these.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from connect_py.api import MetricGroup, MetricValue


@dataclass(slots=True)
class LogFigures:
    """What the binlog's reader counts since the task's start.

    Attributes:
        has_gtids: whether the server has GTIDs; None before it was asked.
        disconnects: connections to the binlog that broke.
        skipped: events that could not be decoded and were left out.
        rolled_back: transactions that end with a ROLLBACK, which are in the log for tables without transactions.
        malformed: begins inside of a transaction, and ends outside of one.
    """

    has_gtids: bool | None = None
    disconnects: int = 0
    skipped: int = 0
    rolled_back: int = 0
    malformed: int = 0

    def values(self, position: int | None) -> dict[str, MetricValue]:
        """Return attributes of the streaming bean.

        Args:
            position: the offset in the file that was read; None while nothing is.
        """
        values: dict[str, MetricValue] = {
            "NumberOfDisconnects": self.disconnects,
            "NumberOfSkippedEvents": self.skipped,
            "NumberOfRolledBackTransactions": self.rolled_back,
            "NumberOfNotWellFormedTransactions": self.malformed,
        }
        if position is not None:
            values["BinlogPosition"] = position
        if self.has_gtids is not None:
            values["IsGtidModeEnabled"] = self.has_gtids
        return values


class HistoryFigures:
    """How far the schema history was read, and what was added to it. A recovered change is applied, too, as in Debezium."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, wall_clock: Callable[[], float] = time.time) -> None:
        self._clock, self._wall_clock = clock, wall_clock
        self._recovery: int | None = None
        self._recovered_at: float | None = None
        self._applied_at: float | None = None
        self.recovered = self.applied = 0

    def begin(self) -> None:
        """Note that the history is read from its begin."""
        self._recovery = int(self._wall_clock())

    def took(self) -> None:
        """Count a record that was read."""
        self.recovered += 1
        self._recovered_at = self._clock()
        self.wrote()

    def wrote(self) -> None:
        """Count a change of the tables."""
        self.applied += 1
        self._applied_at = self._clock()

    def values(self) -> dict[str, MetricValue]:
        """Return attributes of the bean of the schema history; -1 stands for never. `RecoveryStartTime` is in seconds since 1970."""
        return {
            "RecoveryStartTime": -1 if self._recovery is None else self._recovery,
            "ChangesRecovered": self.recovered,
            "ChangesApplied": self.applied,
            "MilliSecondsSinceLastRecoveredChange": self._milliseconds_since(self._recovered_at),
            "MilliSecondsSinceLastAppliedChange": self._milliseconds_since(self._applied_at),
        }

    def _milliseconds_since(self, moment: float | None) -> int:
        return -1 if moment is None else int((self._clock() - moment) * 1000)


def bean(connector: str, server: str, context: str, values: dict[str, MetricValue]) -> MetricGroup:
    """Return a bean of the connector `mysql` or `mariadb`.

    Args:
        server: ``topic.prefix``.
        context: snapshot, streaming or schema-history.
    """
    return MetricGroup(f"debezium.{connector}", "connector-metrics", {"context": context, "server": server}, values)
