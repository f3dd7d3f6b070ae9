"""What says which ranges of the log are the next batch: the task itself (`loop`) or Structured Streaming (`stream`). Tables do not know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from connect_py.api.record import TopicPartition
from spark_sink.read.ranges import Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Pending:
    """A batch that is to be applied.

    Attributes:
        ranges: non-empty; [start, end) by topic partition.
        records: the records of these ranges with the columns of Spark's Kafka source; None when they are still to be read.
    """

    ranges: Mapping[TopicPartition, Range]
    records: DataFrame | None = None


class Driver(Protocol):
    """Says which batch is next. The task's thread calls everything; only `stop` may come from another one."""

    def next(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, Range]) -> Pending | None:
        """The next batch, or None when nothing waits or the time has not come.

        Asking again says that the batch before has been applied and reported: what `positions` says is in the tables.

        Args:
            positions: the next offset to apply, for every partition of `log`; they decide, whatever the driver remembers.
            log: first and next offset that Kafka holds.

        Raises:
            FatalTaskError: Kafka has deleted offsets that were still to be read.
        """
        ...

    def after(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, Range]) -> Mapping[TopicPartition, Range] | None:
        """The ranges that `next` will answer with at once when it is asked from `positions`; None when that is not known yet.

        They may be read before, but nothing of them may be believed until `next` has named the same.
        """
        ...

    def failed(self, *, too_large: bool = False) -> None:
        """The batch could not be applied; it, or what is left of it, comes again: smaller, if it was too large and may be cut."""
        ...

    def stop(self) -> None:
        """A call of `next` that waits returns None soon."""
        ...

    def close(self) -> None:
        """Release what the driver holds. Idempotent."""
        ...
