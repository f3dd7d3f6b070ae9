"""A batch of records brought into every table that it has rows for.

One thread, the task's, uses it but for what a lane does (`spark_sink.write.lanes`: it writes one table of a batch).
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from connect_py.api.record import TopicPartition
from connect_py.api.task import BatchSinkContext
from connect_py.errors import FatalTaskError
from spark_sink import routing
from spark_sink.config.sink_config import SinkConfig
from spark_sink.counting import Counting, Counts
from spark_sink.errors import classify, is_of_records
from spark_sink.figures import SinkFigures
from spark_sink.read import schemaless
from spark_sink.read.ranges import Range, describe
from spark_sink.read.reader import Batch, Group, Reader
from spark_sink.routing import TableName
from spark_sink.tables.base import Behind, Conflict, Tables
from spark_sink.write import columns, rejects
from spark_sink.write.apply import TableChange, apply_table
from spark_sink.write.lanes import Lanes, Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")


class Batches:
    """See the module.

    Args:
        committed: told of each table that has changed.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: SinkConfig,
        context: BatchSinkContext,
        reader: Reader,
        tables: Tables,
        lanes: Lanes,
        figures: SinkFigures,
        *,
        committed: Callable[[TableName], None],
    ) -> None:
        self._spark = spark
        self._config = config
        self._context = context
        self._reader = reader
        self._tables = tables
        self._lanes = lanes
        self._figures = figures
        self._committed = committed
        self._rejecting = threading.Lock()

    def apply(self, batch: Batch, behind: Callable[[Behind], None]) -> int:
        """Write what is new to each table.

        Args:
            behind: told of tables that have lost what was applied to them, before that is raised.

        Returns:
            How many tables the batch has rows for.

        Raises:
            ConnectError: of the first table that failed; others may have committed, and pass over the same records when they come again.
        """
        if bad := rejects.of_groups(batch.groups, batch, self._config):
            rejects.reject(bad, batch, self._reader, self._context, self._config)
            self._figures.rejected(len(bad))
        changes = self._changes(batch)
        self._apply_to_tables(changes, batch, behind)
        self._note({tp: found for tp, found in batch.ranges.items() if not any(tp in change.ranges for change in changes)})
        return len(changes)

    def _apply_to_tables(self, changes: Sequence[TableChange], batch: Batch, behind: Callable[[Behind], None]) -> None:
        """Apply a batch to all of its tables, several at once. When one fails, those that are being written are finished first."""
        if self._lanes.several(len(changes)):
            batch.share()
        by_name = {f"table {change.table} from {describe(change.ranges)}": change for change in changes}

        def done(work: Work[Counts | None], counts: Counts | None, seconds: float) -> None:
            change, was_new = by_name[work.name], counts is not None
            if was_new:
                self._committed(change.table)
            records, ends = sum(group.count for group in change.groups), {tp: end for tp, (_, end) in change.ranges.items()}
            self._figures.applied(str(change.table), records, seconds, was_new=was_new, counts=counts, ends=ends)

        works = [Work(name, functools.partial(self._apply_to_table, change, batch)) for name, change in by_name.items()]
        errors = self._lanes.run(works, done)
        for error in errors:
            if isinstance(error, Behind):
                behind(error)
        if errors:
            first = min(errors, key=lambda error: (isinstance(error, Exception), not isinstance(error, FatalTaskError)))
            for other in errors:
                if other is not first:
                    _log.warning("Another table failed in the same batch: %s", other)
            raise first

    def _apply_to_table(self, change: TableChange, batch: Batch) -> Counts | None:
        """Apply a change, without the records that are bad where these are tolerated. None when the table had it already."""
        config = self._config.of_table(str(change.table))
        while True:
            counting = Counting(observes=config["spark.remote"] is None)
            try:
                was_new = apply_table(change, batch, self._spark, self._tables, config, counting)
                return counting.counts() if was_new else None
            except Exception as error:
                is_bad = self._config.tolerates and is_of_records(error)
                bad = rejects.of_table(change.groups, batch, change.ranges, config) if is_bad else None
                if not bad:
                    self._figures.table_failed(str(change.table), by_conflict=isinstance(error, Conflict))
                    raised = classify(error, f"writing table {change.table} from {describe(change.ranges)}")
                    if raised is error:
                        raise
                    raise raised from error
                with self._rejecting:
                    rejects.reject(bad, batch, self._reader, self._context, self._config)
                    self._figures.rejected(len(bad), str(change.table))

    def _note(self, ranges: Mapping[TopicPartition, Range]) -> None:
        """Tell tables of ranges in which nothing was theirs (tombstones after deletes), lest each restart reads these again."""
        by_table: dict[TableName, dict[TopicPartition, int]] = {}
        for tp, (_, end) in ranges.items():
            for table in routing.of_topic(tp.topic, self._config):
                by_table.setdefault(table, {})[tp] = end
        for table, ends in by_table.items():
            state = self._tables.load(table)
            if state is not None and any(state.watermark.offsets.get(tp, end) < end for tp, end in ends.items()):
                known = {tp: end for tp, end in ends.items() if tp in state.watermark.offsets}
                self._tables.note(table, state.watermark.advanced(known))

    def _changes(self, batch: Batch) -> list[TableChange]:
        by_table: dict[TableName, list[Group]] = {}
        for group in batch.groups:
            for table in group.tables:
                by_table.setdefault(table, []).append(group)
        return [
            TableChange(table, self._for_table(table, groups, batch), _ranges_of(groups, batch.ranges))
            for table, groups in sorted(by_table.items())
        ]

    def _for_table(self, table: TableName, groups: Sequence[Group], batch: Batch) -> list[Group]:
        """The groups, with the columns that the table's configuration wants."""
        config = self._config.of_table(str(table))
        found: list[Group] = []
        for group in groups:
            schema = group.schema
            if schema.untyped:
                state = self._tables.load(table)
                known = {} if state is None else state.columns
                records = batch.records(group, None, config)
                schema = schemaless.typed(schema, records, known, config.column_types, config.types)
            wanted = columns.of_table(schema, str(table), config)
            found += [replace(group, schema=wanted)] if wanted is not None else []
        return found


def _ranges_of(groups: Sequence[Group], ranges: Mapping[TopicPartition, Range]) -> dict[TopicPartition, Range]:
    topics = {group.fingerprint.topic for group in groups}
    return {tp: found for tp, found in ranges.items() if tp.topic in topics}
