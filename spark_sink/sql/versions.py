"""Slowly changing dimensions, type 2: every event of a key opens a version and closes the one before it. Plans of Spark and text of SQL.

Within a batch the events of a key form a chain, so that every version between is kept. The key's first event also closes the version that
the table has as current, at its own time. One MERGE does both: *closing* rows match a current version, *opening* rows match nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_sink.sql.merge import CLOSES, VERSION_COLUMNS, Shape, flag
from spark_sink.types.columns import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def chain(frame: DataFrame, shape: Shape, current: DataFrame | None) -> DataFrame:
    """Closing and opening rows out of decoded events: `$closes`, `$op` and the columns of `shape`.

    Args:
        frame: with `$op`, `$partition`, `$offset`, `$time` (the event's, in the source) and the columns of `shape` without the version's.
        current: the table's current versions, which are looked into for values that the source did not send; None when none can be missing.
    """
    keys = ", ".join(quote(key) for key in shape.keys)
    order = "`$time`, `$partition`, `$offset`" if shape.several_partitions else "`$offset`"
    by_key = f"OVER (PARTITION BY {keys} ORDER BY {order})"
    frame = frame.selectExpr("*", f"row_number() {by_key} `$number`", f"lead(`$time`) {by_key} `$next`")
    if shape.unknown:
        frame = _filled(frame, shape, current, by_key)
    columns = [quote(name) for name in shape.types if name not in VERSION_COLUMNS]
    opening = frame.where("`$op` <> 'd'").selectExpr(
        f"false {CLOSES}", *columns, "`$time` `__valid_from`", "`$next` `__valid_to`", "`$next` IS NULL `__is_current`"
    )
    closing = frame.where("`$number` = 1").selectExpr(
        f"true {CLOSES}", *columns, "`$time` `__valid_from`", "CAST(NULL AS TIMESTAMP) `__valid_to`", "false `__is_current`"
    )
    return opening.unionAll(closing)


def _filled(frame: DataFrame, shape: Shape, current: DataFrame | None, by_key: str) -> DataFrame:
    """Unknown values replaced by the newest known one of the key since its last delete: in the batch, else in the table."""
    frame = frame.selectExpr("*", f"count(IF(`$op` = 'd', 1, NULL)) {by_key} `$life`")
    in_life = by_key.replace("PARTITION BY ", "PARTITION BY `$life`, ")
    known = {
        name: f"last(IF({quote(flag(name))}, NULL, struct({quote(name)} value)), true) {in_life} {quote('$known:' + name)}"
        for name in shape.unknown
    }
    frame = frame.selectExpr("*", *known.values())
    if current is None:
        stored = frame.selectExpr("*", *(f"NULL {quote('$stored:' + name)}" for name in shape.unknown))
    else:
        renamed = current.where("__is_current").selectExpr(
            *(f"{quote(key)} {quote('$key:' + key)}" for key in shape.keys),
            *(f"{quote(name)} {quote('$stored:' + name)}" for name in shape.unknown if name in current.columns),
            *(f"NULL {quote('$stored:' + name)}" for name in shape.unknown if name not in current.columns),
        )
        on = " AND ".join(f"{quote(key)} <=> {quote('$key:' + key)}" for key in shape.keys)
        from pyspark.sql import functions as f

        stored = frame.join(renamed, f.expr(on), "left")
    select = []
    for name in frame.columns:
        if name in shape.unknown:
            in_batch, in_table = quote("$known:" + name), quote("$stored:" + name)
            select.append(
                f"CAST(CASE WHEN NOT {quote(flag(name))} THEN {quote(name)} WHEN {in_batch} IS NOT NULL THEN {in_batch}.value "
                f"WHEN `$life` = 0 THEN {in_table} END AS {shape.types[name]}) {quote(name)}"
            )
        else:
            select.append(quote(name))
    return stored.selectExpr(*select)
