"""One table's part of a batch: from groups of records to one commit. It does not know what planned the batch.

*Unavailable values* are those that the source did not send (PostgreSQL's TOAST). Debezium gives the placeholder a form by the column's
type: texts have it as it is, bytes as its UTF-8, arrays and maps as their only element, arrays of numbers as the numbers of its bytes,
arrays of UUIDs as the UUID that is made of its name (`UnchangedToastedPlaceholder.java`).

*Tombstones* are remembered deletes: they keep an older event from bringing a deleted row back, where the source's positions decide and the
rows are gone. A table `<table>__tombstones` has the keys of deleted rows and the positions of their deletes. It is written before the table
itself, with offsets of its own, so a kill in between is repaired by the batch that comes again. Old entries are removed when new ones are
written.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.config.layout import Layout
from spark_sink.config.sink_config import SinkConfig
from spark_sink.figures import Counting
from spark_sink.read.ranges import Range
from spark_sink.read.reader import Batch, Group
from spark_sink.read.summary import Truncate
from spark_sink.routing import TableName
from spark_sink.sql.decode import POSITION, UNAVAILABLE, metadata_columns, order_of
from spark_sink.sql.evolve import Evolution, Rules, adapt_schema, allows, in_order_of, plan_evolution, wider
from spark_sink.sql.merge import VERSION_COLUMNS, Shape, chain_versions, keep_last_events, unify, unknown_flag, unseen
from spark_sink.sql.record_schema import Column, Form
from spark_sink.tables.base import Tables, TableState
from spark_sink.tables.watermark import Watermark
from spark_sink.types.columns import literal, quote
from spark_sink.write import reconcile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """The next offsets to apply after this change."""
        return {tp: end for tp, (_, end) in self.ranges.items()}


def apply_table(
    change: TableChange, batch: Batch, spark: SparkSession, tables: Tables, config: SinkConfig, counting: Counting | None = None
) -> bool:
    """Bring one table up to date with a batch, in one commit that also stores how far it has got.

    Args:
        counting: counts what is written.

    Returns:
        False when the table had everything already, and nothing was written.

    Raises:
        FatalTaskError: the records do not fit the table.
    """
    counting = counting or Counting(observes=False)
    state = tables.load(change.table)
    if state is not None and state.watermark.covers(change.ranges):
        return False
    condition = None if state is None else state.watermark.condition(change.ranges)
    watermark = (Watermark() if state is None else state.watermark).advanced(change.ends)
    truncate = None if config["tables.write-mode"] == "append" else _truncate(change, state, config)
    counting.truncated(0 if truncate is None else sum(group.truncates for group in change.groups))
    groups = _groups_to_apply(change, state, config)
    if not groups:
        if state is not None and truncate is not None:
            tables.empty(change.table, watermark, soft=config["tables.truncate-mode"] == "soft")
        elif state is not None:
            tables.note(change.table, watermark)
        return state is not None and truncate is not None
    if state is not None and truncate is None and _has_all(groups, batch, condition, config):
        tables.note(change.table, watermark)
        return False
    groups = [note_placeholder(group, batch, config) for group in _adapted(groups, state, config)]
    begun, ended = reconcile.snapshots_of(str(change.table), groups, batch, condition, watermark, config)
    watermark = replace(watermark, snapshots=begun)
    shape = _shape(change, groups, config)
    if shape.keys and ended:
        shape = replace(shape, unseen=ended)
        _log.info("Table %s: rows that its snapshot did not show are deleted; it began at %s", change.table, ended)
    shape = _prepare_table(change, groups, shape, state, tables, config, counting)
    rows = _read_rows(groups, batch, condition, shape, truncate, config)
    _write_rows(change, rows, shape, watermark, truncate, spark, tables, config, counting)
    return True


def _groups_to_apply(change: TableChange, state: TableState | None, config: SinkConfig) -> list[Group]:
    """Return the groups that can change the table: without truncates alone, and without tombstones that delete nothing."""
    if config["tables.write-mode"] == "append":
        return [group for group in change.groups if group.schema.form is not Form.TOMBSTONE]
    groups = [group for group in change.groups if group.truncates < group.count]
    return [group for group in groups if group.schema.form is not Form.TOMBSTONE or (state is not None and group.schema.keys)]


def _prepare_table(
    change: TableChange,
    groups: Sequence[Group],
    shape: Shape,
    state: TableState | None,
    tables: Tables,
    config: SinkConfig,
    counting: Counting,
) -> Shape:
    """Create or evolve the table so that the rows fit; return their shape with types in the table's order."""
    rows = [group for group in groups if group.schema.form is not Form.TOMBSTONE]
    if state is None:
        _create(change, rows, shape, tables, config)
        counting.changed("create.table")
        return shape
    if evolution := _evolution(change, rows, shape, state, config):
        tables.evolve(change.table, evolution)
        counting.changed("add.column", len(evolution.added))
        counting.changed("alter.column.type", len(evolution.widened) + len(evolution.relaxed))
        _log.info("Table %s: %s", change.table, evolution)
    return replace(shape, types=in_order_of(state.columns, shape.types))


def _read_rows(
    groups: Sequence[Group], batch: Batch, condition: str | None, shape: Shape, truncate: Truncate | None, config: SinkConfig
) -> DataFrame:
    """Decode all groups into one frame of the table's shape, without rows that the table does not accept."""
    placeholder = config["unavailable.value.placeholder"]
    frames = [
        unify(
            batch.decoded(group, condition, config),
            shape,
            placeholder_conditions(group, placeholder),
            {column.name: column.type.spark for column in group.schema.columns},
        )
        for group in groups
    ]
    frame = functools.reduce(lambda one, other: one.unionAll(other), frames)
    if config["tables.write-mode"] != "append" and (wanted := _wanted(groups, truncate, config)):
        return frame.where(wanted)
    return frame


def _write_rows(
    change: TableChange,
    rows: DataFrame,
    shape: Shape,
    watermark: Watermark,
    truncate: Truncate | None,
    spark: SparkSession,
    tables: Tables,
    config: SinkConfig,
    counting: Counting,
) -> None:
    """Write rows, as versions, by their key or each for itself, and the watermark in one commit; a truncate comes first in it."""
    counted = counting.events(rows, [unknown_flag(name) for name in shape.unknown])
    truncate_mode = None if truncate is None else config["tables.truncate-mode"]
    try:
        if shape.versions:
            current = tables.rows(change.table) if shape.unknown else None
            chain_versions(counted, shape, current).createOrReplaceTempView(_VIEW)
            tables.merge(change.table, _VIEW, shape, watermark)
        elif shape.keys:
            reduced = counting.keys(keep_last_events(counted, shape), _puts(shape))
            if shape.unseen:  # of rows that came and went before the snapshot, in this very batch
                reduced = reduced.where(f"`$op` = 'd' OR NOT ({unseen(shape.unseen)})")
            if remembers_deletes(shape, config):
                deletes = keep_last_events(rows, shape).where("`$op` = 'd'")
                reduced = without_late_events(change.table, reduced, deletes, change.ends, shape, spark, tables, config)
            reduced.createOrReplaceTempView(_VIEW)
            tables.merge(change.table, _VIEW, shape, watermark, truncate_mode)
        else:
            counted.createOrReplaceTempView(_VIEW)
            tables.append(change.table, _VIEW, shape, watermark, truncate_mode)
    finally:
        spark.catalog.dropTempView(_VIEW)


def _adapted(groups: Sequence[Group], state: TableState | None, config: SinkConfig) -> list[Group]:
    """Return the groups, read as the table's rules for changes of the schema require."""
    rules = Rules.of(config) if state is not None or config["tables.evolve-schema-enabled"] else Rules("exception")
    table = {} if state is None else state.columns
    seen = dict(table)
    return [replace(group, schema=adapt_schema(group.schema, table, seen, rules)) for group in groups]


def _evolution(change: TableChange, rows: Sequence[Group], shape: Shape, state: TableState, config: SinkConfig) -> Evolution:
    """Return what must change in the table. A column that may now be null, or that events no longer have, loses its NOT NULL."""
    rules = Rules.of(config)
    enabled = rules.behavior != "exception"
    nulls = {name for name in state.required - set(shape.keys) if not all(_is_required(name, group.schema.columns) for group in rows)}
    return plan_evolution(
        str(change.table),
        state.columns,
        shape.types,
        enabled=enabled,
        nulls=nulls if rows and rules.widens and rules.behavior != "ignore" else frozenset(),
    )


def _has_all(groups: Sequence[Group], batch: Batch, condition: str | None, config: SinkConfig) -> bool:
    """Return whether a table has all records of a repeated batch, although it has not stored the batch's end."""
    return condition is not None and not any(batch.records(group, condition, config).limit(1).collect() for group in groups)


def _truncate(change: TableChange, state: TableState | None, config: SinkConfig) -> Truncate | None:
    """Return the last truncate that has not been applied yet, and must be."""
    mode = config["tables.truncate-mode"]
    applied = {} if state is None else state.watermark.offsets
    found = [
        group.truncate
        for group in change.groups
        if group.truncate is not None
        and applied.get(TopicPartition(group.fingerprint.topic, group.truncate.partition), 0) <= group.truncate.offset
    ]
    if found and mode == "fail":
        raise FatalTaskError(
            f"Table {change.table} was truncated in the source (partition {max(found).partition}, offset {max(found).offset}) and "
            "lakehouse.tables.truncate-mode=fail. Nothing was written; choose apply, soft or ignore and restart the task."
        )
    if found and mode != "ignore" and config["tables.write-mode"] == "scd2":
        raise FatalTaskError(
            f"Table {change.table} was truncated in the source (partition {max(found).partition}, offset {max(found).offset}), which a "
            "table of versions cannot follow. Nothing was written; set lakehouse.tables.truncate-mode=ignore and restart the task."
        )
    return max(found) if found and mode != "ignore" else None


def _wanted(groups: Sequence[Group], truncate: Truncate | None, config: SinkConfig) -> str | None:
    """Return SQL: rows that an upsert table accepts; None for all. Of other partitions those count that are younger than the truncate.

    Spark moves a condition below the decoding and then parses every record twice, so there is one only when it is needed.
    """
    ignores_deletes = config["tables.delete-mode"] == "ignore"
    if not ignores_deletes and not any(group.truncates for group in groups) and truncate is None:
        return None
    dropped = "'t', 'd'" if ignores_deletes else "'t'"
    # `$op` once only: of an expression that occurs twice in a filter Spark makes one that it evaluates first, for rows of other groups too,
    # and their decoding raises.
    conditions = [f"`$op` NOT IN ({dropped})"]
    if truncate is not None and config["tables.truncate-mode"] == "apply":
        here = f"`$partition` = {truncate.partition}"
        conditions.append(f"IF({here}, `$offset` > {truncate.offset}, unix_micros(`$time`) >= {truncate.time})")
    return " AND ".join(conditions)


def _shape(change: TableChange, groups: Sequence[Group], config: SinkConfig) -> Shape:
    rows = [group for group in groups if group.schema.form is not Form.TOMBSTONE]
    described = rows or groups
    changelog = config["tables.write-mode"] == "append"
    keys = {() if changelog else tuple(column.name for column in group.schema.keys) for group in groups}
    if len(keys) > 1:
        shown = " and ".join(sorted(f"({', '.join(key)})" for key in keys))
        raise FatalTaskError(
            f"The key of table {change.table} changes within {', '.join(sorted({g.fingerprint.topic for g in groups}))}: {shown}. "
            "Rows can be matched by one key only. Nothing was written; load the table anew under another connector name."
        )
    if not changelog and not next(iter(keys)) and config["tables.no-key"] == "fail":
        raise FatalTaskError(
            f"Records for table {change.table} have no key, so rows cannot be matched. Give the source table a key (message.key.columns), "
            "or set lakehouse.tables.no-key=append."
        )
    versions = config["tables.write-mode"] == "scd2"
    if versions and not next(iter(keys)):
        raise FatalTaskError(
            f"Records for table {change.table} have no key, so they have no versions. Give the source table a key (message.key.columns), "
            "or write the table with another lakehouse.tables.write-mode."
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
    key = next(iter(keys))
    soft = bool(key) and config["tables.delete-mode"] == "soft" and not versions
    placeholder = config["unavailable.value.placeholder"]
    unknown = [name for name in types if name not in key and (soft or any(_may_be_unknown(name, group, placeholder) for group in rows))]
    if rows or soft:
        types |= metadata_columns(config)
    if changelog:
        types[UNAVAILABLE] = "array<string>"
    if versions:
        types |= VERSION_COLUMNS
    return Shape(
        key,
        types,
        tuple(unknown),
        several_partitions=len(change.ranges) > 1,
        soft=soft,
        unavailable=UNAVAILABLE if changelog else None,
        versions=versions,
        order=_order(change, types, key, config),
        required_keys=frozenset(name for name in key if all(_is_required(name, group.schema.keys) for group in groups)),
    )


def _puts(shape: Shape) -> str | None:
    """Return SQL: which events of a table with an order of its own write a row, unless the table has a later one."""
    return None if shape.order is None else "true" if shape.soft else "`$op` <> 'd'"


def _order(change: TableChange, types: Mapping[str, str], key: Sequence[str], config: SinkConfig) -> str | None:
    """Return the column that says which event of a key is the last. Raise FatalTaskError if the records do not have it."""
    name = order_of(config)
    if name is None or not key:
        return None
    if name not in types:
        raise FatalTaskError(
            f"Table {change.table} is ordered by column {name}, which the records do not have; they have {', '.join(types)}. Nothing was "
            "written; change lakehouse.tables.ordering."
        )
    return name


def _is_required(name: str, columns: Sequence[Column]) -> bool:
    return any(column.name == name and column.required for column in columns)


def _may_be_unknown(name: str, group: Group, placeholder: str) -> bool:
    column = next((column for column in group.schema.columns if column.name == name), None)
    return column is None or (group.placeholder and placeholder_condition(column, placeholder) is not None)


def _create(change: TableChange, rows: Sequence[Group], shape: Shape, tables: Tables, config: SinkConfig) -> None:
    if not (config["tables.auto-create-enabled"] and allows(config, "create.table")):
        raise FatalTaskError(
            f"Table {change.table} does not exist in {config['delta.root'] or 'catalog ' + config['catalog']}. Create it, or set "
            "lakehouse.tables.auto-create-enabled=true to have it made from the records' schema; then restart the task."
        )
    required = set(shape.keys)
    if not config["tables.schema-force-optional"]:
        required |= {c.name for c in rows[0].schema.columns if all(c.required and c in group.schema.columns for group in rows)}
    comments = {column.name: column.comment for group in rows for column in group.schema.columns if column.comment}
    _log.info("Creating table %s with columns %s", change.table, ", ".join(f"{name} {type_}" for name, type_ in shape.types.items()))
    layout = config.layout
    layout.check(str(change.table), shape.types)
    tables.create(change.table, shape.types, frozenset(required), comments, layout)


_TOMBSTONES_SUFFIX = "__tombstones"
_DELETED_AT = "__deleted_at"
_TOMBSTONES_VIEW = "connect_py_tombstones"


def remembers_deletes(shape: Shape, config: SinkConfig) -> bool:
    """Return whether a table's deletes must be remembered."""
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
    """Remember the deletes among reduced rows, and return the rows that are not older than a delete of their key, in any batch.

    Args:
        deletes: those among the rows, in a frame that may be looked at more than once.
        ends: the offsets that the batch ends at.
    """
    name = TableName((*table.parts[:-1], table.parts[-1] + _TOMBSTONES_SUFFIX))
    types = {key: shape.types[key] for key in shape.keys} | {POSITION: "string", _DELETED_AT: "timestamp"}
    state = tables.load(name)
    if state is None:
        if not deletes.limit(1).collect():
            return rows
        state = tables.create(name, types, frozenset(shape.keys), {}, Layout())
    if any(state.watermark.offsets.get(tp, 0) < end for tp, end in ends.items()) and deletes.limit(1).collect():
        expires = (_DELETED_AT, config["tables.tombstone-retention-ms"])
        ours = Shape(shape.keys, types, order=POSITION, expires=expires)
        _write_tombstones(name, deletes, Watermark(state.watermark.offsets).advanced(ends), ours, spark, tables)
    return _without_older(rows, tables.rows(name), shape)


def _write_tombstones(name: TableName, deletes: DataFrame, watermark: Watermark, shape: Shape, spark: SparkSession, tables: Tables) -> None:
    columns = (*(quote(key) for key in shape.keys), quote(POSITION))
    deletes.selectExpr(*columns, f"current_timestamp() {_DELETED_AT}", "'c' `$op`").createOrReplaceTempView(_TOMBSTONES_VIEW)
    try:
        tables.merge(name, _TOMBSTONES_VIEW, shape, watermark)
    finally:
        spark.catalog.dropTempView(_TOMBSTONES_VIEW)


def _without_older(rows: DataFrame, deleted: DataFrame, shape: Shape) -> DataFrame:
    from pyspark.sql import functions as f

    renamed = deleted.selectExpr(
        *(f"{quote(key)} {quote('$key:' + key)}" for key in shape.keys), f"{quote(POSITION)} `$deleted_at_position`"
    )
    same = " AND ".join(f"{quote(key)} <=> {quote('$key:' + key)}" for key in shape.keys)
    return rows.join(renamed, f.expr(f"{same} AND {quote(POSITION)} < `$deleted_at_position`"), "left_anti")


#: Types in which it does not look like its text or its base64, by which a batch is searched (`spark_sink.read.summary`).
_DISGUISED = ("array<int>", "array<bigint>", "array<string>")


def placeholder_conditions(group: Group, placeholder: str) -> dict[str, str]:
    """Return SQL by column that is true where a group's decoded row has the placeholder; columns that cannot have it are left out."""
    found = {column.name: placeholder_condition(column, placeholder) for column in group.schema.columns} if group.placeholder else {}
    return {name: sql for name, sql in found.items() if sql is not None}


def placeholder_condition(column: Column, placeholder: str) -> str | None:
    """Return SQL that is true where a column has the placeholder; None if it cannot have it."""
    name, read, text = quote(column.name), column.type.read, literal(placeholder)
    if column.type.spark == "variant":
        return f"coalesce(CAST({name} AS STRING) = {text}, false)" if read == "string" else None
    if read == "map<string,string>":
        return f"coalesce(map_keys({name}) = array({text}), false)"
    forms = _placeholder_forms(read, placeholder)
    if not column.type.same:
        # Other conversions would raise for it.
        forms = [column.type.convert(form) for form in forms] if read in ("array<int>", "array<bigint>") else []
    return f"coalesce({' OR '.join(f'{name} = {form}' for form in forms)}, false)" if forms else None


def note_placeholder(group: Group, batch: Batch, config: SinkConfig) -> Group:
    """Return the group with the placeholder noted where only the columns' types reveal it."""
    if group.placeholder or group.schema.form not in (Form.ENVELOPE, Form.FLAT):
        return group
    if not any(column.type.read in _DISGUISED for column in group.schema.columns):
        return group
    numbers = [str(number) for number in config["unavailable.value.placeholder"].encode()]
    texts = (",".join(numbers), ", ".join(numbers), _placeholder_uuid(config["unavailable.value.placeholder"]))
    has_one = " OR ".join(f"contains(value, {literal(text)})" for text in texts)
    return replace(group, placeholder=bool(batch.records(group, None, config).where(has_one).limit(1).collect()))


def _placeholder_forms(read: str, placeholder: str) -> list[str]:
    text, numbers = literal(placeholder), list(placeholder.encode())
    forms: Mapping[str, list[str]] = {
        "string": [text],
        "binary": [f"CAST({text} AS BINARY)"],
        "array<string>": [f"array({text})", f"array({literal(_placeholder_uuid(placeholder))})"],
        "array<binary>": [f"array(CAST({text} AS BINARY))"],
        "array<int>": [f"array({', '.join(map(str, numbers))})"],
        "array<bigint>": [f"array({', '.join(f'{number}L' for number in numbers)})"],
    }
    return forms.get(read, [])


def _placeholder_uuid(name: str) -> str:
    """Return the UUID that Java's `UUID.nameUUIDFromBytes` makes."""
    return str(uuid.UUID(bytes=hashlib.md5(name.encode(), usedforsecurity=False).digest(), version=3))
