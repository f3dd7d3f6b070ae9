"""One table's part of a batch: from groups of records to one commit. It does not know what drives it."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.changes import Batch, Group
from spark_sink.config import SinkConfig
from spark_sink.decode import metadata_columns
from spark_sink.evolve import plan_evolution, wider
from spark_sink.merge import Shape, reduce, unify
from spark_sink.planning import Range
from spark_sink.records import Form
from spark_sink.routing import TableName
from spark_sink.tables.base import Tables, TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")

#: The view by which a statement finds its rows; a session writes one table at a time.
_VIEW = "connect_py_changes"


@dataclass(frozen=True)
class TableChange:
    """What a batch has for one table.

    Attributes:
        groups: in order of their first offset.
        ranges: of all topics that the groups come from; the table's watermark moves to their ends.
    """

    table: TableName
    groups: Sequence[Group]
    ranges: Mapping[TopicPartition, Range]


def apply_table(change: TableChange, batch: Batch, spark: SparkSession, tables: Tables, config: SinkConfig) -> bool:
    """Bring one table up to date with a batch, in one commit that also stores how far it has got.

    Returns:
        False when the table had everything already, and nothing was written.

    Raises:
        FatalTaskError: the records do not fit the table.
    """
    state = tables.load(change.table)
    if state is not None and state.watermark.covers(change.ranges):
        return False
    groups = [group for group in change.groups if group.schema.form is not Form.TOMBSTONE or (state is not None and group.schema.keys)]
    if not groups:
        return False
    shape = _shape(change, groups, config)
    rows = [group for group in groups if group.schema.form is not Form.TOMBSTONE]
    if state is None:
        state = _create(change, rows, shape, tables, config)
    elif evolution := plan_evolution(str(change.table), state.columns, shape.types, enabled=config["tables.evolve-schema-enabled"]):
        tables.evolve(change.table, evolution)
        _log.info("Table %s: added %s, widened %s", change.table, dict(evolution.added), dict(evolution.widened))
    condition = state.watermark.condition(change.ranges)
    placeholder = config["unavailable.value.placeholder"]
    frames = [
        unify(
            batch.decoded(group, condition, config),
            shape,
            placeholder if group.placeholder else None,
            frozenset(column.name for column in group.schema.columns if column.text),
        )
        for group in groups
    ]
    frame = functools.reduce(lambda one, other: one.unionAll(other), frames)
    watermark = state.watermark.advanced({tp: end for tp, (_, end) in change.ranges.items()})
    try:
        if shape.keys:
            reduce(frame, shape).createOrReplaceTempView(_VIEW)
            tables.merge(change.table, _VIEW, shape, watermark)
        else:
            frame.createOrReplaceTempView(_VIEW)
            tables.append(change.table, _VIEW, shape, watermark)
    finally:
        spark.catalog.dropTempView(_VIEW)
    return True


def _shape(change: TableChange, groups: Sequence[Group], config: SinkConfig) -> Shape:
    rows = [group for group in groups if group.schema.form is not Form.TOMBSTONE]
    described = rows or groups
    keys = {tuple(column.name for column in group.schema.keys) for group in groups}
    if len(keys) > 1:
        shown = " and ".join(sorted(f"({', '.join(key)})" for key in keys))
        raise FatalTaskError(
            f"The key of table {change.table} changes within {', '.join(sorted({g.fingerprint.topic for g in groups}))}: {shown}. "
            "Rows can be matched by one key only. Nothing was written; load the table anew under another connector name."
        )
    if not next(iter(keys)) and config["tables.no-key"] == "fail":
        raise FatalTaskError(
            f"Records for table {change.table} have no key, so rows cannot be matched. Give the source table a key (message.key.columns), "
            "or set lakehouse.tables.no-key=append."
        )
    types: dict[str, str] = {}
    for group in described:
        for column in group.schema.columns:
            common = wider(types[column.name], column.type.spark) if column.name in types else column.type.spark
            if common is None:
                raise FatalTaskError(
                    f"Column {column.name} of table {change.table} is {types[column.name]} in some records, {column.type.spark} in others. "
                    "This sink does not convert between them. Nothing was written."
                )
            types[column.name] = common
    unknown = [name for name in types if name not in next(iter(keys)) and any(_may_be_unknown(name, group) for group in rows)]
    if rows:
        types |= metadata_columns(config)
    partitions = {(tp.topic, tp.partition) for tp in change.ranges}
    return Shape(next(iter(keys)), types, tuple(unknown), len(partitions) > 1)


def _may_be_unknown(name: str, group: Group) -> bool:
    column = next((column for column in group.schema.columns if column.name == name), None)
    return column is None or (group.placeholder and column.text)


def _create(change: TableChange, rows: Sequence[Group], shape: Shape, tables: Tables, config: SinkConfig) -> TableState:
    if not config["tables.auto-create-enabled"]:
        raise FatalTaskError(
            f"Table {change.table} does not exist in catalog {config['catalog']}. Create it, or set "
            "lakehouse.tables.auto-create-enabled=true to have it made from the records' schema; then restart the task."
        )
    required = set(shape.keys)
    if not config["tables.schema-force-optional"]:
        required |= {c.name for c in rows[0].schema.columns if all(c.required and c in group.schema.columns for group in rows)}
    comments = {column.name: column.comment for group in rows for column in group.schema.columns if column.comment}
    _log.info("Creating table %s with columns %s", change.table, ", ".join(f"{name} {type_}" for name, type_ in shape.types.items()))
    return tables.create(change.table, shape.types, frozenset(required), comments)
