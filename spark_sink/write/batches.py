"""A batch of records brought into every table that it has rows for, without the records that cannot be applied.

With ``errors.tolerance=all`` bad records are found one by one and handed to the runtime before anything is committed. Decoding stops at the
first bad record of a batch, since a check costs nothing then. Only after that are the others searched for: first all that fail a check of
their form, in one pass; else, since the failure came from a conversion, by halving the batch's ranges.

The task's thread uses everything here; only a lane, which writes one table of a batch, has a thread of its own (`spark.lanes`).
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from connect_py.api.record import TopicPartition
from connect_py.api.task import BadRecord, BatchSinkContext
from connect_py.errors import DataError, FatalTaskError
from spark_sink import routing
from spark_sink.config.sink_config import SinkConfig
from spark_sink.errors import classify, first_line, is_of_records
from spark_sink.figures import Counts, SinkFigures
from spark_sink.read import schemaless
from spark_sink.read.ranges import Range, describe, describe_record
from spark_sink.read.reader import Batch, Group, Reader
from spark_sink.routing import TableName
from spark_sink.spark.lanes import Lanes, Work
from spark_sink.sql.record_schema import Column, Form, RecordSchema
from spark_sink.tables.base import Conflict, Tables, TableSetBack
from spark_sink.types.columns import literal
from spark_sink.write.apply import added_columns, apply_table
from spark_sink.write.table_batch import TableBatch, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")


class Batches:
    """Brings batches into their tables.

    Args:
        committed: called for each table that has changed.
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

    def apply(self, batch: Batch, set_back: Callable[[TableSetBack], None]) -> int:
        """Write what is new to each table.

        Args:
            set_back: called for tables that have lost what was applied to them, before that is raised.

        Returns:
            The number of tables that the batch has rows for.

        Raises:
            ConnectError: the error of the first table that failed; others may have committed, and skip these records when they come again.
        """
        if bad := problems_of_groups(batch, self._config):
            self._reject(bad, batch)
        parts = self._parts(batch)
        self._apply_to_tables(parts, batch, set_back)
        self._note({tp: found for tp, found in batch.ranges.items() if not any(tp in part.ranges for part, _ in parts)})
        return len(parts)

    def _parts(self, batch: Batch) -> list[tuple[TableBatch, Target]]:
        """Return what the batch has for each table, read as the table's configuration chooses. Nothing has been written yet."""
        by_table: dict[TableName, list[Group]] = {}
        for group in batch.groups:
            for table in group.tables:
                by_table.setdefault(table, []).append(group)
        parts: list[tuple[TableBatch, Target]] = []
        for table, groups in sorted(by_table.items()):
            topics = {group.fingerprint.topic for group in groups}
            ranges = {tp: found for tp, found in batch.ranges.items() if tp.topic in topics}
            at = Target(batch, self._spark, self._tables, self._config.of_table(str(table)))
            parts.append((choose_columns(infer_types(TableBatch(table, groups, ranges), at), at), at))
        return parts

    def _apply_to_tables(self, parts: Sequence[tuple[TableBatch, Target]], batch: Batch, set_back: Callable[[TableSetBack], None]) -> None:
        """Apply a batch to all of its tables, several at once. When one fails, those that are being written are finished first."""
        if self._lanes.several(len(parts)):
            batch.share()
        by_name = {f"table {part.table} from {describe(part.ranges)}": (part, at) for part, at in parts}

        def done(work: Work[Counts | None], counts: Counts | None, seconds: float) -> None:
            (part, _), was_new = by_name[work.name], counts is not None
            if was_new:
                self._committed(part.table)
            records = sum(group.count for group in part.groups)
            self._figures.applied(str(part.table), records, seconds, was_new=was_new, counts=counts, ends=part.ends)

        works = [Work(name, functools.partial(self._apply_to_table, part, at)) for name, (part, at) in by_name.items()]
        errors = self._lanes.run(works, done)
        for error in errors:
            if isinstance(error, TableSetBack):
                set_back(error)
        if errors:
            first = min(errors, key=lambda error: (isinstance(error, Exception), not isinstance(error, FatalTaskError)))
            for other in errors:
                if other is not first:
                    _log.warning("Another table failed in the same batch: %s", other)
            raise first

    def _apply_to_table(self, part: TableBatch, at: Target) -> Counts | None:
        """Apply a part, without the records that are bad where these are tolerated. None when the table had it already."""
        while True:
            try:
                return apply_table(part, at)
            except Exception as error:
                bad = problems_of_part(part, at) if self._config.tolerates and is_of_records(error) else None
                if not bad:
                    self._figures.table_failed(str(part.table), by_conflict=isinstance(error, Conflict))
                    raised = classify(error, f"writing table {part.table} from {describe(part.ranges)}")
                    if raised is error:
                        raise
                    raise raised from error
                with self._rejecting:
                    self._reject(bad, at.records, str(part.table))

    def _reject(self, bad: Problems, batch: Batch, table: str | None = None) -> None:
        reject_records(bad, batch, self._reader, self._context, self._config)
        self._figures.rejected(bad, table)

    def _note(self, ranges: Mapping[TopicPartition, Range]) -> None:
        """Store in tables the ranges in which nothing was theirs (tombstones after deletes), so that no restart reads these again."""
        by_table: dict[TableName, dict[TopicPartition, int]] = {}
        for tp, (_, end) in ranges.items():
            for table in routing.of_topic(tp.topic, self._config):
                by_table.setdefault(table, {})[tp] = end
        for table, ends in by_table.items():
            state = self._tables.load(table)
            if state is not None and any(state.watermark.offsets.get(tp, end) < end for tp, end in ends.items()):
                known = {tp: end for tp, end in ends.items() if tp in state.watermark.offsets}
                self._tables.note(table, state.watermark.advanced(known))


#: Why records are bad, by where they are.
Problems = dict[tuple[TopicPartition, int], str]


def problems_of_groups(batch: Batch, config: SinkConfig) -> Problems:
    """Return the records that are bad because of their schema, or because they have no table."""
    found: Problems = {}
    for group in batch.groups:
        if group.problem is not None:
            rows = batch.records(group, None, config).select("topic", "partition", "offset", "problem").limit(_bound(config)).collect()
            found |= {(TopicPartition(row["topic"], row["partition"]), row["offset"]): row["problem"] or group.problem for row in rows}
    return found


def problems_of_part(part: TableBatch, at: Target) -> Problems:
    """Return the records that make the decoding of one table's groups fail."""
    found, bound = Problems(), _bound(at.config)
    for group in part.groups:
        rows = at.records.problems(group, None, at.config).limit(bound).collect()
        found |= {(TopicPartition(row["topic"], row["partition"]), row["offset"]): row["problem"] for row in rows}
    if found:
        return found
    for group in part.groups:
        for tp, whole in part.ranges.items():
            if tp.topic == group.fingerprint.topic:
                _halve(tp, whole, lambda condition, group=group: at.records.decoded(group, condition, at.config), found, bound)  # type: ignore[misc]
    return found


def _halve(tp: TopicPartition, whole: Range, decoded: Callable[[str], DataFrame], found: Problems, bound: int) -> None:
    """Decode a range, then the halves of what fails."""
    pending = [whole]
    while pending and len(found) < bound:
        start, end = pending.pop()
        here = f"`topic` = {literal(tp.topic)} AND `partition` = {tp.partition} AND `offset` >= {start} AND `offset` < {end}"
        try:
            decoded(here).write.format("noop").mode("overwrite").save()
        except Exception as error:
            if not is_of_records(error):
                raise
            if end - start == 1:
                found[(tp, start)] = first_line(str(error))
            else:
                middle = (start + end) // 2
                pending += [(middle, end), (start, middle)]


def reject_records(found: Problems, batch: Batch, reader: Reader, context: BatchSinkContext, config: SinkConfig) -> None:
    """Leave records out of a batch, after the runtime has reported them.

    Raises:
        FatalTaskError: they are too many, or the dead letter queue does not take them; nothing of the batch's rest was written.
    """
    if len(batch.rejected) + len(found) > config["errors.max-per-batch"]:
        (tp, offset), why = next(iter(sorted(found.items())))
        raise FatalTaskError(
            f"More than lakehouse.errors.max-per-batch={config['errors.max-per-batch']} records of one batch are bad, so it is likely that "
            f"the configuration is. The first: {describe_record(tp, offset)}: {why}. No offset moved."
        )
    records = [
        BadRecord(
            row["topic"],
            row["partition"],
            row["offset"],
            int(row["timestamp"].timestamp() * 1000),
            None if row["key"] is None else bytes(row["key"]),
            None if row["value"] is None else bytes(row["value"]),
            [(header["key"], None if header["value"] is None else bytes(header["value"])) for header in row["headers"] or ()],
            DataError(found[(TopicPartition(row["topic"], row["partition"]), row["offset"])]),
        )
        for row in reader.raw(found)
    ]
    context.reject(records)
    batch.rejected = batch.rejected | set(found)  # a new set: other tables of the batch may be reading this one


def _bound(config: SinkConfig) -> int:
    return int(config["errors.max-per-batch"]) + 1


def infer_types(part: TableBatch, at: Target) -> TableBatch:
    """Give records without schemas the types that the table has, its configuration names, or their values show."""
    if not any(group.schema.untyped for group in part.groups):
        return part
    state = at.tables.load(part.table)
    known = {} if state is None else state.columns

    def typed(group: Group) -> Group:
        records = at.records.records(group, None, at.config)
        return replace(group, schema=schemaless.typed(group.schema, records, known, at.config.column_types, at.config.types))

    return replace(part, groups=[typed(group) if group.schema.untyped else group for group in part.groups])


def choose_columns(part: TableBatch, at: Target) -> TableBatch:
    """Read the columns that the table's configuration chooses. Raises as `table_schema`."""
    schemas = [(group, table_schema(group.schema, str(part.table), at.config)) for group in part.groups]
    return replace(part, groups=[replace(group, schema=schema) for group, schema in schemas if schema is not None])


def table_schema(schema: RecordSchema, table: str, config: SinkConfig) -> RecordSchema | None:
    """Return a record's schema as a table's configuration chooses it; None for tombstones that identify no row, or say nothing.

    A flattened record's fields give way to the columns of the same names that the table has of this sink.

    Raises:
        FatalTaskError: the records do not have a column that is to identify them, or it is excluded.
    """
    chosen, excluded = config["tables.default-id-columns"] or (), frozenset(config["tables.exclude-columns"] or ())
    if field := config["tables.cdc-field"]:
        if schema.form is Form.TOMBSTONE:
            return None  # the field says which records are deletes
        if schema.form is Form.FLAT:
            schema = replace(schema, operation=tuple(field.split(".")))
    if schema.form is Form.FLAT and any(column.name.startswith("__") for column in schema.columns):
        excluded |= {column.name for column in schema.columns if column.name.lower() in added_columns(config) and not column.of_key}
    if not (chosen or excluded):
        return schema
    by_name = {column.name: column for column in schema.columns}
    if schema.form is Form.TOMBSTONE and not set(chosen) <= by_name.keys():
        return None
    if lacking := [name for name in chosen if name not in by_name]:
        raise FatalTaskError(
            f"Rows of table {table} are to be identified by {', '.join(lacking)}, and the records have {', '.join(by_name) or 'nothing'}. "
            "Nothing was written; change lakehouse.tables.default-id-columns or the table's id-columns."
        )
    keys: tuple[Column, ...] = tuple(by_name[name] for name in chosen) or schema.keys
    if clash := sorted(excluded & {column.name for column in keys}):
        raise FatalTaskError(f"Columns {', '.join(clash)} identify the rows of table {table} and cannot be excluded. Nothing was written.")
    return replace(schema, keys=keys, columns=tuple(column for column in schema.columns if column.name not in excluded))
