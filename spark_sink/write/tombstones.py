"""Remembered deletes: what keeps an older event from bringing a deleted row back, where the source's positions decide and rows are gone.

A table `<table>__tombstones` has the keys of deleted rows and the positions of their deletes. It is written before the table itself, with
offsets of its own, so a kill in between is repaired by the batch that comes again. Old entries go with the writing of new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from connect_py.api.record import TopicPartition
from spark_sink.config.layout import Layout
from spark_sink.config.sink_config import SinkConfig
from spark_sink.routing import TableName
from spark_sink.sql.merge import Shape
from spark_sink.sql.ordering import POSITION
from spark_sink.tables.base import Tables
from spark_sink.tables.watermark import Watermark
from spark_sink.types.columns import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SUFFIX = "__tombstones"
_DELETED_AT = "__deleted_at"
_VIEW = "connect_py_tombstones"


def needed(shape: Shape, config: SinkConfig) -> bool:
    """Whether a table's deletes must be remembered."""
    return shape.order == POSITION and config["tables.delete-mode"] == "hard" and not shape.versions


def without_late_events(
    table: TableName,
    rows: DataFrame,
    deletes: DataFrame,
    ends: Mapping[TopicPartition, int],
    shape: Shape,
    spark: SparkSession,
    tables: Tables,
    config: SinkConfig,
) -> DataFrame:
    """Remember the deletes among reduced rows; the rows that are not older than a delete of their key, this batch's or an earlier one's.

    Args:
        deletes: those among the rows, in a frame that may be looked at more than once.
        ends: the offsets that the batch ends at.
    """
    name = TableName((*table.parts[:-1], table.parts[-1] + _SUFFIX))
    types = {key: shape.types[key] for key in shape.keys} | {POSITION: "string", _DELETED_AT: "timestamp"}
    state = tables.load(name)
    if state is None:
        if not deletes.limit(1).collect():
            return rows
        state = tables.create(name, types, frozenset(shape.keys), {}, Layout())
    if any(state.watermark.offsets.get(tp, 0) < end for tp, end in ends.items()) and deletes.limit(1).collect():
        expires = (_DELETED_AT, config["tables.tombstone-retention-ms"])
        ours = Shape(shape.keys, types, order=POSITION, expires=expires)
        _write(name, deletes, Watermark(state.watermark.offsets).advanced(ends), ours, spark, tables)
    return _younger(rows, tables.rows(name), shape)


def _write(name: TableName, deletes: DataFrame, watermark: Watermark, shape: Shape, spark: SparkSession, tables: Tables) -> None:
    columns = (*(quote(key) for key in shape.keys), quote(POSITION))
    deletes.selectExpr(*columns, f"current_timestamp() {_DELETED_AT}", "'c' `$op`").createOrReplaceTempView(_VIEW)
    try:
        tables.merge(name, _VIEW, shape, watermark)
    finally:
        spark.catalog.dropTempView(_VIEW)


def _younger(rows: DataFrame, deleted: DataFrame, shape: Shape) -> DataFrame:
    from pyspark.sql import functions as f

    renamed = deleted.selectExpr(
        *(f"{quote(key)} {quote('$key:' + key)}" for key in shape.keys), f"{quote(POSITION)} `$deleted_at_position`"
    )
    same = " AND ".join(f"{quote(key)} <=> {quote('$key:' + key)}" for key in shape.keys)
    return rows.join(renamed, f.expr(f"{same} AND {quote(POSITION)} < `$deleted_at_position`"), "left_anti")
