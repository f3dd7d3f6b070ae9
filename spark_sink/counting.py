"""Counting a table's rows while they are written: the statement that writes them looks at each of them anyway.

Spark tells what it has observed when the statement has ended, shortly after. Over Spark Connect the statement's text is all that reaches
the server, and nothing is told. A frame may be observed only where it is used once: an earlier use (a look at its first row) would be what
is told of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spark_sink.types.columns import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

#: Operations of Debezium's events, as the figures show them.
OPERATIONS = ("c", "r", "u", "d", "t")

_UNAVAILABLE = "unavailable"

#: Spark waits a tenth of a second at a time for what was observed, which is told by another thread. A figure is not worth more.
_ATTEMPTS = 10


@dataclass(frozen=True)
class Counts:
    """What was counted of a table's part of a batch.

    Attributes:
        operations: events that were applied, by operation; those that the table had already, and bad ones, are none.
        keys: how many keys they were of, each of which was written once; None where every event is a row.
        changes: of the schema, by their names in ``lakehouse.tables.include.schema.changes``.
        unavailable: values that the events, other than deletes, did not hold.
        puts: keys whose row is to be inserted or updated; None where whatever comes last in the log is.
    """

    operations: Mapping[str, int] = field(default_factory=dict)
    keys: int | None = None
    changes: Mapping[str, int] = field(default_factory=dict)
    unavailable: int = 0
    puts: int | None = None

    @property
    def events(self) -> int:
        """All that were applied."""
        return sum(self.operations.values())

    @property
    def deduplicated(self) -> int:
        """Events that a later one of their key made superfluous."""
        return 0 if self.keys is None else max(0, self.events - self.operations.get("t", 0) - self.keys)


class Counting:
    """Of one table's part of a batch; of the thread that writes it.

    Args:
        observes: whether Spark's driver is in this process.
    """

    def __init__(self, *, observes: bool) -> None:
        self._observes = observes
        self._events: Observation | None = None
        self._keys: Observation | None = None
        self._truncates = 0
        self._changes: Counter[str] = Counter()

    def events(self, frame: DataFrame, flags: Sequence[str] = ()) -> DataFrame:
        """A frame of decoded events, which is to be used in its place. `flags` are its columns that say whether a value is not known."""
        if not self._observes:
            return frame
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        self._events = Observation()
        counts = [f.expr(f"count_if(`$op` = '{name}')").alias(name) for name in OPERATIONS]
        if flags:
            counts.append(f.expr(" + ".join(f"count_if(`$op` <> 'd' AND {quote(name)})" for name in flags)).alias(_UNAVAILABLE))
        return frame.observe(self._events, *counts)

    def keys(self, frame: DataFrame, puts: str | None = None) -> DataFrame:
        """A frame with one row a key, which is to be used in its place; `puts` is true, in SQL, of those that are `Counts.puts`."""
        if not self._observes:
            return frame
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        self._keys = Observation()
        counts = [f.expr("count(1)").alias("keys")] + ([f.expr(f"count_if({puts})").alias("puts")] if puts else [])
        return frame.observe(self._keys, *counts)

    def truncated(self, events: int) -> None:
        """Truncates are applied, which are no rows of a frame unless every event is one."""
        self._truncates = events

    def changed(self, kind: str, columns: int = 1) -> None:
        """The table's schema was changed."""
        if columns:
            self._changes[kind] += columns

    def counts(self) -> Counts:
        """After the table has committed."""
        events = _told(self._events)
        keys = _told(self._keys)
        operations = {name: found for name in OPERATIONS if (found := events.get(name, 0) + (self._truncates if name == "t" else 0))}
        unavailable, puts = events.get(_UNAVAILABLE, 0), keys.get("puts")
        return Counts(operations, keys.get("keys") if events else None, dict(self._changes), unavailable, puts)


def _told(observation: Observation | None) -> Mapping[str, Any]:
    """What was observed; nothing when Spark does not tell, which must not hold up a task."""
    if observation is None:
        return {}
    told: Any = observation._jo
    if any(told.getRowOrEmpty().isDefined() for _ in range(_ATTEMPTS)):
        return dict(observation.get)
    return {}
