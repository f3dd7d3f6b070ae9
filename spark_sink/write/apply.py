"""One table's part of a batch: from groups of records to one commit, by steps that each take and give a `TableBatch`.

`STEPS` lists them in the order in which they run. A step that has nothing to do for a batch returns it as it is; when one has left no
groups, the rest is passed over. Nothing is written before `commit`, except for the table's definition (`prepare_table`) and remembered
deletes (`drop_late_events`), which a repetition of the batch finds as it needs them. What planned the batch is not known here.

*Tombstones* are remembered deletes: they keep an older event from bringing a deleted row back, where the source's positions decide and the
rows are gone. A table `<table>__tombstones` has the keys of deleted rows and the positions of their deletes. It is written before the table
itself, with offsets of its own, so a kill in between is repaired by the batch that comes again. Old entries are removed when new ones are
written.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.config.layout import Layout
from spark_sink.config.sink_config import SinkConfig
from spark_sink.figures import Counts, observe_events, observe_keys
from spark_sink.figures import count_events as events_counted
from spark_sink.read.reader import Group
from spark_sink.routing import TableName
from spark_sink.spark.local import evaluate
from spark_sink.sql.decode import POSITION, UNAVAILABLE, metadata_columns, order_of
from spark_sink.sql.evolve import Rules, adapt_schema, allows, common_types, in_order_of, plan_evolution
from spark_sink.sql.keys import has_plain_keys, key_texts
from spark_sink.sql.merge import (
    VERSION_COLUMNS,
    Shape,
    among_offsets,
    chain_versions,
    keep_last_events,
    may_be_unknown,
    placeholder_conditions,
    placeholder_search,
    unify_sql,
    unknown_flag,
    unseen,
)
from spark_sink.sql.record_schema import Column, Form
from spark_sink.tables.bounds import LISTED, bounds_of_texts, key_bounds
from spark_sink.tables.watermark import Watermark
from spark_sink.types.columns import quote
from spark_sink.write.reconcile import follow_snapshots
from spark_sink.write.table_batch import Step, TableBatch, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")


def _with_groups(batch: TableBatch, groups: Sequence[Group]) -> TableBatch:
    return batch if groups == list(batch.groups) else replace(batch, groups=groups)


# -- what is new ---------------------------------------------------------------------------------------------------------------------


def load_table(batch: TableBatch, at: Target) -> TableBatch:
    """Load the table; leave no groups when it has applied all of the batch."""
    state = at.tables.load(batch.table)
    if state is None:
        return replace(batch, watermark=batch.watermark.advanced(batch.ends))
    groups = () if state.watermark.covers(batch.ranges) else batch.groups
    return replace(batch, groups=groups, state=state, watermark=state.watermark.advanced(batch.ends))


def find_truncate(batch: TableBatch, at: Target) -> TableBatch:
    """Find the last truncate that has not been applied yet. A changelog keeps truncates as rows."""
    mode = at.config["tables.truncate-mode"]
    if at.is_changelog or mode == "ignore":
        return batch
    applied = {} if batch.state is None else batch.state.watermark.offsets
    found = [
        group.truncate
        for group in batch.groups
        if group.truncate is not None
        and applied.get(TopicPartition(group.fingerprint.topic, group.truncate.partition), 0) <= group.truncate.offset
    ]
    if not found:
        return batch
    last = max(found)
    if mode == "fail":
        raise FatalTaskError(
            f"Table {batch.table} was truncated in the source (partition {last.partition}, offset {last.offset}) and "
            "lakehouse.tables.truncate-mode=fail. Nothing was written; choose apply, soft or ignore and restart the task."
        )
    if at.config["tables.write-mode"] == "scd2":
        raise FatalTaskError(
            f"Table {batch.table} was truncated in the source (partition {last.partition}, offset {last.offset}), which a "
            "table of versions cannot follow. Nothing was written; set lakehouse.tables.truncate-mode=ignore and restart the task."
        )
    return replace(batch, truncate=last, counting=replace(batch.counting, truncates=sum(group.truncates for group in batch.groups)))


def drop_idle_groups(batch: TableBatch, at: Target) -> TableBatch:
    """Leave out groups that cannot change the table: truncates alone, and tombstones that delete nothing."""
    if at.is_changelog:
        return _with_groups(batch, batch.row_groups)
    groups = [group for group in batch.groups if group.truncates < group.count]
    has_rows = batch.state is not None or any(group.schema.form is not Form.TOMBSTONE for group in groups)
    return _with_groups(batch, [g for g in groups if g.schema.form is not Form.TOMBSTONE or (has_rows and g.schema.keys)])


def drop_repeated_groups(batch: TableBatch, at: Target) -> TableBatch:
    """Leave no groups when a repeated batch has nothing that the table lacks, although the table has not stored the batch's end."""
    condition = batch.condition
    if condition is None or batch.truncate is not None:
        return batch
    if any(at.records.records(group, condition, at.config).limit(1).collect() for group in batch.groups):
        return batch
    return replace(batch, groups=())


# -- how it is read ------------------------------------------------------------------------------------------------------------------


def adapt_schemas(batch: TableBatch, at: Target) -> TableBatch:
    """Read the groups as the table's rules for changes of the schema require."""
    rules = Rules.of(at.config) if batch.state is not None or at.config["tables.evolve-schema-enabled"] else Rules("exception")
    if rules.behavior == "exception":
        return batch
    table = {} if batch.state is None else batch.state.columns
    seen = dict(table)
    return _with_groups(batch, [replace(group, schema=adapt_schema(group.schema, table, seen, rules)) for group in batch.groups])


def find_placeholders(batch: TableBatch, at: Target) -> TableBatch:
    """Note the unavailable-value placeholder where a batch's summary cannot see it and only the columns' types reveal it."""

    def hides_one(group: Group) -> bool:
        if group.placeholder or group.schema.form not in (Form.ENVELOPE, Form.FLAT):
            return False
        search = placeholder_search(group.schema.columns, at.config["unavailable.value.placeholder"])
        return search is not None and bool(at.records.records(group, None, at.config).where(search).limit(1).collect())

    return _with_groups(batch, [replace(group, placeholder=True) if hides_one(group) else group for group in batch.groups])


def find_shape(batch: TableBatch, at: Target) -> TableBatch:
    """Find what the rows look like.

    Raises:
        FatalTaskError: the records do not agree on keys or types, or lack what the table's configuration needs.
    """
    config, rows = at.config, batch.row_groups
    key = _key(batch, at)
    types = common_types(str(batch.table), (column for group in rows or batch.groups for column in group.schema.columns))
    versions = config["tables.write-mode"] == "scd2"
    soft = bool(key) and config["tables.delete-mode"] == "soft" and not versions
    placeholder = config["unavailable.value.placeholder"]
    unknown = [
        name
        for name in types
        if name not in key and (soft or any(may_be_unknown(name, g.schema.columns, placeholder if g.placeholder else None) for g in rows))
    ]
    types |= added_columns(config, has_metadata=bool(rows or soft))
    shape = Shape(
        key,
        types,
        tuple(unknown),
        several_partitions=len(batch.ranges) > 1,
        soft=soft,
        unavailable=UNAVAILABLE if at.is_changelog else None,
        versions=versions,
        order=_order(batch, types, key, config),
        required_keys=frozenset(name for name in key if all(_is_required(name, group.schema.keys) for group in batch.groups)),
        count=sum(group.count for group in batch.groups),
    )
    return replace(batch, shape=shape)


def added_columns(config: SinkConfig, *, has_metadata: bool = True) -> dict[str, str]:
    """Return the columns that a table has in addition to the records', and their types."""
    found = metadata_columns(config) if has_metadata else {}
    match config["tables.write-mode"]:
        case "append":
            return found | {UNAVAILABLE: "array<string>"}
        case "scd2":
            return found | VERSION_COLUMNS
        case _:
            return found


def _key(batch: TableBatch, at: Target) -> tuple[str, ...]:
    """Return the key columns, none for a changelog. Raise FatalTaskError if the groups differ in them, or lack them where they must not."""
    if at.is_changelog:
        return ()
    keys = {tuple(column.name for column in group.schema.keys) for group in batch.groups}
    if len(keys) > 1:
        shown = " and ".join(sorted(f"({', '.join(key)})" for key in keys))
        raise FatalTaskError(
            f"The key of table {batch.table} changes within {', '.join(sorted({g.fingerprint.topic for g in batch.groups}))}: {shown}. "
            "Rows can be matched by one key only. Nothing was written; load the table anew under another connector name."
        )
    key = next(iter(keys))
    if not key and at.config["tables.no-key"] == "fail":
        raise FatalTaskError(
            f"Records for table {batch.table} have no key, so rows cannot be matched. Give the source table a key (message.key.columns), "
            "or set lakehouse.tables.no-key=append."
        )
    if not key and at.config["tables.write-mode"] == "scd2":
        raise FatalTaskError(
            f"Records for table {batch.table} have no key, so they have no versions. Give the source table a key (message.key.columns), "
            "or write the table with another lakehouse.tables.write-mode."
        )
    return key


def _order(batch: TableBatch, types: Mapping[str, str], key: Sequence[str], config: SinkConfig) -> str | None:
    """Return the column that says which event of a key is the last. Raise FatalTaskError if the records do not have it."""
    name = order_of(config)
    if name is None or not key:
        return None
    if name not in types:
        raise FatalTaskError(
            f"Table {batch.table} is ordered by column {name}, which the records do not have; they have {', '.join(types)}. Nothing was "
            "written; change lakehouse.tables.ordering."
        )
    return name


def _is_required(name: str, columns: Sequence[Column]) -> bool:
    return any(column.name == name and column.required for column in columns)


# -- the table -----------------------------------------------------------------------------------------------------------------------


def prepare_table(batch: TableBatch, at: Target) -> TableBatch:
    """Create or evolve the table so that the rows fit, and give them their types in the table's order.

    Raises:
        FatalTaskError: that is needed and must not be done.
    """
    shape, state = batch.shape, batch.state
    if state is None:
        _create_table(batch, at)
        return replace(batch, counting=batch.counting.changed("create.table"))
    rules, rows = Rules.of(at.config), batch.row_groups
    # A column that may now be null, or that events no longer have, loses its NOT NULL.
    nulls = {name for name in state.required - set(shape.keys) if not all(_is_required(name, group.schema.columns) for group in rows)}
    evolution = plan_evolution(
        str(batch.table),
        state.columns,
        shape.types,
        enabled=rules.behavior != "exception",
        nulls=nulls if rows and rules.widens and rules.behavior != "ignore" else frozenset(),
    )
    counting = batch.counting
    if evolution:
        at.tables.evolve(batch.table, evolution)
        counting = counting.changed("add.column", len(evolution.added))
        counting = counting.changed("alter.column.type", len(evolution.widened) + len(evolution.relaxed))
        _log.info("Table %s: %s", batch.table, evolution)
    return replace(batch, shape=replace(shape, types=in_order_of(state.columns, shape.types)), counting=counting)


def _create_table(batch: TableBatch, at: Target) -> None:
    config, shape, rows = at.config, batch.shape, batch.row_groups
    if not (config["tables.auto-create-enabled"] and allows(config, "create.table")):
        raise FatalTaskError(
            f"Table {batch.table} does not exist in {config['delta.root'] or 'catalog ' + config['catalog']}. Create it, or set "
            "lakehouse.tables.auto-create-enabled=true to have it made from the records' schema; then restart the task."
        )
    required = set(shape.required_keys)
    if not config["tables.schema-force-optional"]:
        required |= {c.name for c in rows[0].schema.columns if all(c.required and c in group.schema.columns for group in rows)}
    comments = {column.name: column.comment for group in rows for column in group.schema.columns if column.comment}
    _log.info("Creating table %s with columns %s", batch.table, ", ".join(f"{name} {type_}" for name, type_ in shape.types.items()))
    layout = config.layout
    layout.check(str(batch.table), shape.types)
    at.tables.create(batch.table, shape.types, frozenset(required), comments, layout)


# -- the rows ------------------------------------------------------------------------------------------------------------------------


def decode_events(batch: TableBatch, at: Target) -> TableBatch:
    """Decode all groups into one frame of the table's shape."""
    placeholder = at.config["unavailable.value.placeholder"]
    frames: list[DataFrame] = []
    for group in batch.groups:
        unavailable = placeholder_conditions(group.schema.columns, placeholder) if group.placeholder else {}
        types = {column.name: column.type.spark for column in group.schema.columns}
        unify = functools.partial(unify_sql, shape=batch.shape, unavailable=unavailable, types=types)
        frames.append(at.records.shaped(group, batch.condition, at.config, unify))
    return replace(batch, events=functools.reduce(lambda one, other: one.unionAll(other), frames))


def drop_refused_events(batch: TableBatch, at: Target) -> TableBatch:
    """Leave out truncates and what came before the last one, and deletes where they are ignored; a changelog accepts all.

    Spark moves a condition below the decoding and then parses every record twice, so there is one only when it is needed. In other
    partitions than the truncate's those events count that are younger.
    """
    ignores_deletes, truncate = at.config["tables.delete-mode"] == "ignore", batch.truncate
    if at.is_changelog or not (ignores_deletes or truncate is not None or any(group.truncates for group in batch.groups)):
        return batch
    dropped = "'t', 'd'" if ignores_deletes else "'t'"
    # `$op` once only: of an expression that occurs twice in a filter Spark makes one that it evaluates first, for rows of other groups too,
    # and their decoding raises.
    conditions = [f"`$op` NOT IN ({dropped})"]
    if truncate is not None and at.config["tables.truncate-mode"] == "apply":
        here = f"`$partition` = {truncate.partition}"
        conditions.append(f"IF({here}, `$offset` > {truncate.offset}, unix_micros(`$time`) >= {truncate.time})")
    return replace(batch, events=batch.events.where(" AND ".join(conditions)))


def hold_events(batch: TableBatch, at: Target) -> TableBatch:
    """Have the driver decode the events of a batch that it holds, once for all that follows, and look at each of them."""
    if not at.records.is_held or (events := evaluate(batch.events)) is None:
        return batch
    flags = " + ".join(f"IF({quote(unknown_flag(name))}, 1, 0)" for name in batch.shape.unknown) or "0"
    unavailable = f"IF(`$op` <> 'd', {flags}, 0) `$unavailable`"
    wanted = ("`$op`", "`$offset`", unavailable, *key_texts(batch.shape))
    looks = at.records.of_held((tuple(batch.shape.types.items()), batch.shape.unknown), events, wanted).collect()
    return replace(batch, events=events, looks=looks)


def count_events(batch: TableBatch, at: Target) -> TableBatch:
    """Have the events counted by the statement that writes them. Over Spark Connect nothing is reported."""
    if batch.looks is not None:
        counted = events_counted((look["$op"] for look in batch.looks), sum(look["$unavailable"] for look in batch.looks))
        return replace(batch, rows=batch.events, counting=replace(batch.counting, events=counted))
    if at.config["spark.remote"] is not None:
        return replace(batch, rows=batch.events)
    rows, seen = observe_events(batch.events, [unknown_flag(name) for name in batch.shape.unknown])
    return replace(batch, rows=rows, counting=replace(batch.counting, events=seen))


def chain_events(batch: TableBatch, at: Target) -> TableBatch:
    """Make versions of the events of each key, in a table of versions."""
    if not batch.shape.versions:
        return batch
    current = at.tables.rows(batch.table) if batch.shape.unknown else None
    return replace(batch, rows=chain_versions(batch.rows, batch.shape, current))


def keep_last(batch: TableBatch, at: Target) -> TableBatch:
    """Keep one row for each key, in a table with a row for each."""
    shape = batch.shape
    if not shape.keys or shape.versions:
        return batch
    if batch.looks is not None and is_plain(shape):
        looks = sorted(batch.looks, key=lambda look: look["$offset"])
        last = {tuple(look[key] for key in shape.keys): (look["$offset"], look["$op"]) for look in looks}
        rows = batch.events
        if len(last) < len(looks):
            rows = rows.where(among_offsets([offset for offset, _ in last.values()], looks[0]["$offset"], looks[-1]["$offset"]))
        shape = replace(shape, puts={key: operation != "d" for key, (_, operation) in last.items()})
        return replace(batch, rows=rows, shape=shape, counting=replace(batch.counting, keys={"keys": len(last)}))
    rows = keep_last_events(batch.rows, shape)
    if at.config["spark.remote"] is not None:
        return replace(batch, rows=rows)
    # Of a table with an order of its own: which events write a row, unless the table has a later one.
    puts = None if shape.order is None else "true" if shape.soft else "`$op` <> 'd'"
    rows, seen = observe_keys(rows, puts)
    return replace(batch, rows=rows, counting=replace(batch.counting, keys=seen))


def is_plain(shape: Shape) -> bool:
    """Return whether the greatest offset alone says which event of a key is written, and the keys' texts which events share one."""
    return not (shape.unknown or shape.order is not None or shape.several_partitions) and has_plain_keys(shape)


def drop_unseen_rows(batch: TableBatch, at: Target) -> TableBatch:
    """Leave out rows that came and went before a snapshot that has ended, in this very batch."""
    if not batch.shape.unseen:
        return batch
    return replace(batch, rows=batch.rows.where(f"`$op` = 'd' OR NOT ({unseen(batch.shape.unseen)})"))


_TOMBSTONES_SUFFIX = "__tombstones"
_DELETED_AT = "__deleted_at"


def drop_late_events(batch: TableBatch, at: Target) -> TableBatch:
    """Remember the deletes among the rows, and leave out rows that are older than a delete of their key, in any batch."""
    shape, tables = batch.shape, at.tables
    if shape.order != POSITION or at.config["tables.delete-mode"] != "hard":
        return batch
    deletes = keep_last_events(batch.events, shape).where("`$op` = 'd'")
    name = TableName((*batch.table.parts[:-1], batch.table.parts[-1] + _TOMBSTONES_SUFFIX))
    types = {key: shape.types[key] for key in shape.keys} | {POSITION: "string", _DELETED_AT: "timestamp"}
    state = tables.load(name)
    if state is None:
        if not deletes.limit(1).collect():
            return batch
        state = tables.create(name, types, frozenset(shape.keys), {}, Layout())
    if any(state.watermark.offsets.get(tp, 0) < end for tp, end in batch.ends.items()) and deletes.limit(1).collect():
        columns = (*(quote(key) for key in shape.keys), quote(POSITION))
        expires = (_DELETED_AT, at.config["tables.tombstone-retention-ms"])
        ours, watermark = Shape(shape.keys, types, order=POSITION, expires=expires), Watermark(state.watermark.offsets)
        entries = deletes.selectExpr(*columns, f"current_timestamp() {_DELETED_AT}", "'c' `$op`")
        tables.merge(name, entries, ours, watermark.advanced(batch.ends))
    return replace(batch, rows=_without_older(batch.rows, tables.rows(name), shape))


def _without_older(rows: DataFrame, deleted: DataFrame, shape: Shape) -> DataFrame:
    from pyspark.sql import functions as f

    renamed = deleted.selectExpr(
        *(f"{quote(key)} {quote('$key:' + key)}" for key in shape.keys), f"{quote(POSITION)} `$deleted_at_position`"
    )
    same = " AND ".join(f"{quote(key)} <=> {quote('$key:' + key)}" for key in shape.keys)
    return rows.join(renamed, f.expr(f"{same} AND {quote(POSITION)} < `$deleted_at_position`"), "left_anti")


def bound_keys(batch: TableBatch, at: Target) -> TableBatch:
    """Say in which part of the table the keys can be, unless the statement has to look at every row anyway."""
    shape = batch.shape
    if not shape.keys or batch.state is None or batch.truncate is not None or shape.unseen:
        return batch
    if batch.looks is not None:
        return replace(batch, shape=replace(shape, bounds=bounds_of_texts(batch.looks, shape)))
    if not at.tables.needs_bounds(batch.table, shape):
        return batch
    return replace(batch, shape=replace(shape, bounds=key_bounds(batch.events, shape, shape.count)))


def hold_rows(batch: TableBatch, at: Target) -> TableBatch:
    """Have the driver hold what is written, where it can be made of the events without a job."""
    if batch.looks is None or (rows := evaluate(batch.rows)) is None:
        return batch
    is_narrow = 0 < len(batch.shape.bounds) == len(batch.shape.keys) and len(batch.looks) <= LISTED
    return replace(batch, rows=rows, shape=replace(batch.shape, is_local=True, is_narrow=is_narrow))


# -- the whole -----------------------------------------------------------------------------------------------------------------------

#: What becomes of one table's part of a batch, in this order. Each step asks by itself whether it has something to do.
STEPS: tuple[Step, ...] = (
    load_table,
    find_truncate,
    drop_idle_groups,
    drop_repeated_groups,
    adapt_schemas,
    find_placeholders,
    find_shape,
    follow_snapshots,
    prepare_table,
    decode_events,
    drop_refused_events,
    hold_events,
    count_events,
    chain_events,
    keep_last,
    drop_unseen_rows,
    drop_late_events,
    bound_keys,
    hold_rows,
)


def apply_table(batch: TableBatch, at: Target) -> Counts | None:
    """Bring one table up to date with a batch, in one commit that also stores how far it has got.

    Returns:
        What was written; None when the table had everything already.

    Raises:
        FatalTaskError: the records do not fit the table.
    """
    for step in STEPS:
        batch = step(batch, at)
        if not batch.groups:
            break
    return batch.counting.counts() if commit(batch, at) else None


def is_first(batch: TableBatch) -> bool:
    """Return whether the table was made for this batch and its rows need no MERGE: there is one of each key, and none to match.

    The commit is conditional on that no other task has written the table.
    """
    shape = batch.shape
    return batch.state is None and batch.truncate is None and not (shape.versions or shape.unseen or shape.order is not None)


def commit(batch: TableBatch, at: Target) -> bool:
    """Write what the steps have left, and the watermark, in one commit; a truncate comes first in it. Return whether rows changed."""
    tables, truncate_mode = at.tables, None if batch.truncate is None else at.config["tables.truncate-mode"]
    if not batch.groups:
        if batch.state is None or batch.watermark == batch.state.watermark:
            return False
        if truncate_mode is None:
            tables.note(batch.table, batch.watermark)
            return False
        tables.empty(batch.table, batch.watermark, soft=truncate_mode == "soft")
        return True
    rows, write = batch.rows, tables.merge if batch.shape.keys else tables.append
    if batch.shape.keys and is_first(batch):
        rows, write = rows if batch.shape.soft else rows.where("`$op` <> 'd'"), tables.append
    write(batch.table, rows, batch.shape, batch.watermark, truncate_mode)
    return True
