"""What the steps of a table's part of a batch take and give (`spark_sink.write.apply`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from connect_py.api.record import TopicPartition
from spark_sink.config.sink_config import SinkConfig
from spark_sink.figures import Counting
from spark_sink.read.ranges import Range
from spark_sink.read.reader import Batch, Group
from spark_sink.read.summary import Truncate
from spark_sink.routing import TableName
from spark_sink.sql.merge import Shape
from spark_sink.sql.record_schema import Form
from spark_sink.tables.base import Tables, TableState
from spark_sink.tables.watermark import Watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

#: Frames of a batch before `decode_events` has made them.
_NOT_YET = cast("DataFrame", None)


@dataclass(frozen=True)
class TableBatch:
    """What a batch has for one table, and what the steps have made of it.

    Attributes:
        groups: in order of their first offset; none when nothing is to be written but, perhaps, the watermark.
        ranges: of all topics that the groups come from; the table's watermark moves to their ends.
        state: the table as the batch found it; None when it did not exist.
        watermark: what the commit stores.
        truncate: the last truncate that has not been applied yet, and must be.
        shape: what the rows look like.
        events: the groups' decoded events, in the table's shape. Not to be written: its statement would report no counts.
        rows: what is written, made of the events.
        looks: of each event, where the driver holds them: ``$op``, ``$offset``, ``$unavailable`` (how many of its values are unknown) and
            the texts of the keys by which tables are narrowed (`spark_sink.tables.bounds`); None where Spark holds them.
    """

    table: TableName
    groups: Sequence[Group]
    ranges: Mapping[TopicPartition, Range]
    state: TableState | None = None
    watermark: Watermark = field(default_factory=Watermark)
    truncate: Truncate | None = None
    shape: Shape = field(default_factory=lambda: Shape((), {}))
    events: DataFrame = _NOT_YET
    rows: DataFrame = _NOT_YET
    counting: Counting = field(default_factory=Counting)
    looks: Sequence[Row] | None = None

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """The next offsets to apply after this batch."""
        return {tp: end for tp, (_, end) in self.ranges.items()}

    @property
    def condition(self) -> str | None:
        """SQL that is true for records that the table does not have yet; None when that is all of them."""
        return None if self.state is None else self.state.watermark.condition(self.ranges)

    @property
    def row_groups(self) -> Sequence[Group]:
        """The groups whose records are more than a key."""
        return [group for group in self.groups if group.schema.form is not Form.TOMBSTONE]


@dataclass(frozen=True)
class Target:
    """What the steps work with: the records, the session that reads and writes, the tables, the table's configuration."""

    records: Batch
    spark: SparkSession
    tables: Tables
    config: SinkConfig

    @property
    def is_changelog(self) -> bool:
        """Whether every event is a row."""
        return bool(self.config["tables.write-mode"] == "append")


Step = Callable[[TableBatch, Target], TableBatch]
