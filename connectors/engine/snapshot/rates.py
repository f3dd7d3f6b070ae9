"""How far a snapshot is, how fast it goes and when it will end, for each table: what `GET /connectors/{name}/status` shows of it. No I/O.

The group's type and the names of its values are what the worker looks for (`connect_py.metrics.snapshot`). It is there while a
snapshot runs that is not over at once, and for a minute afterwards where it was a long one: most snapshots of small databases end before
anybody can ask, and the answers about them are Connect's own. Owned by the task's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from connect_py.api import MetricGroup, MetricValue

#: A snapshot is worth telling of when it has lasted so long, and afterwards when it lasted so long.
SHOWN_AFTER_SECONDS, LONG_SECONDS = 5.0, 30.0
#: How long a snapshot that has ended is shown.
SHOWN_FOR_SECONDS = 60.0


@dataclass(slots=True)
class _Table:
    estimate: int | None
    rows: int = 0
    #: rows that an earlier attempt has read
    before: int = 0
    began: float | None = None
    ended: float | None = None

    def rate(self, now: float) -> float:
        seconds = (self.ended or now) - (self.began or now)
        return (self.rows - self.before) / seconds if seconds > 0 else 0.0


class SnapshotRates:
    """See the module."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tables: dict[str, _Table] = {}
        self._began: float | None = None
        self._ended: float | None = None

    def begin(self, estimates: Mapping[str, int | None], done: Mapping[str, int], ended: Collection[str]) -> None:
        """A snapshot begins.

        Args:
            estimates: rows of all its tables; None where nothing is known.
            done: rows that an earlier attempt has read, of those tables of which it has.
            ended: tables of which it has read all.
        """
        self._began, self._ended = self._clock(), None
        self._tables = {name: _Table(estimate, done.get(name, 0), done.get(name, 0)) for name, estimate in estimates.items()}
        for name in ended:
            self.table_ended(name)

    def scanned(self, table: str, rows: int) -> None:
        """So many further rows of a table were read."""
        known = self._tables.setdefault(table, _Table(None))
        if known.began is None:
            known.began = self._clock()
        known.rows += rows

    def table_ended(self, table: str) -> None:
        """A table was read to its end."""
        if table in self._tables:
            self._tables[table].ended = self._clock()

    def end(self) -> None:
        """The snapshot has ended, in whatever way."""
        if self._ended is None:
            self._ended = self._clock()

    def groups(self) -> list[MetricGroup]:
        """One group, or none."""
        now = self._clock()
        if self._began is None:
            return []
        lasted = (self._ended or now) - self._began
        if lasted < (SHOWN_AFTER_SECONDS if self._ended is None else LONG_SECONDS) or (self._ended or now) < now - SHOWN_FOR_SECONDS:
            return []
        tables = self._tables
        values: dict[str, MetricValue] = {
            "running": self._ended is None,
            "rows": {name: table.rows for name, table in tables.items()},
            "estimated-rows": {name: max(table.estimate, table.rows) for name, table in tables.items() if table.estimate is not None},
            "rows-per-second": {name: round(table.rate(now), 1) for name, table in tables.items() if table.began is not None},
            "seconds-left": {name: left for name, table in tables.items() if (left := _seconds_left(table, now)) is not None},
            "done": {name: int(table.ended is not None) for name, table in tables.items()},
        }
        return [MetricGroup("connect.py", "snapshot-progress", {}, values)]


def _seconds_left(table: _Table, now: float) -> int | None:
    """None where it cannot be told: nothing was read yet, or more than the estimate."""
    if table.ended is not None:
        return 0
    rate = table.rate(now)
    if table.estimate is None or table.estimate <= table.rows or rate <= 0:
        return None
    return int((table.estimate - table.rows) / rate)
