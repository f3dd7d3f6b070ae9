"""One row per key, and the statement that puts it into the table. The statements are text, pure; the reduction is a Spark plan.

*Unknown* values: a column that holds the unavailable-value placeholder, or that the event's schema does not have. The newest real value of
the key since its last delete within the batch takes its place, else the table's value stays. Flags `$unknown:<column>` say so.

The placeholder stands for values that the source did not send (PostgreSQL's TOAST). Debezium gives it a form by the column's type: texts
have it as it is, bytes as its UTF-8, arrays and maps as their only element, arrays of numbers as the numbers of its bytes, arrays of UUIDs
as the UUID that is made of its name (`UnchangedToastedPlaceholder.java`).

Tables of versions (slowly changing dimensions, type 2): every event of a key opens a version and closes the one before it. Within a batch
the events of a key form a chain, so that every version between is kept. The key's first event also closes the version that the table has as
current, at its own time. One MERGE does both: *closing* rows match a current version, *opening* rows match nothing.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_sink.sql.decode import POSITION
from spark_sink.sql.record_schema import Column
from spark_sink.types.columns import literal, quote
from spark_sink.types.trees import conformed, parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Shape:
    """What rows of one table look like in a batch.

    Attributes:
        keys: key columns; empty for append.
        types: every column's type, metadata columns included, in order.
        unknown: columns that may hold no known value in some rows.
        several_partitions: whether a key might come from more than one topic partition.
        soft: whether a delete keeps the row and its values.
        unavailable: a column that holds the names of unknown columns, in a table that keeps every event.
        order: the column whose highest value makes an event the last of its key; without one the position in the log does.
        expires: a column of times, and the age in milliseconds at which rows that are not written are removed.
        versions: whether rows are versions, closed and opened by a chain of events (`spark_sink.sql.merge`).
        required_keys: key columns that are null in no row.
        unseen: by topic, the offset at which a snapshot of all rows began: rows that have not been written since are removed.
        bounds: conditions of a table `t` that hold for its rows with the keys of this batch (`spark_sink.tables.bounds`).
        is_local: whether the driver holds the rows, so that a statement may read them more than once and always finds the same.
        puts: by the texts of the keys, whether a row is put into the table or deletes one; of rows that the driver has looked at.
        is_narrow: whether in addition few rows of the table can match, because all keys are listed in `bounds`.
        count: how many events the rows are made of; 0 where nobody has counted them.
    """

    keys: tuple[str, ...]
    types: Mapping[str, str]
    unknown: tuple[str, ...] = ()
    several_partitions: bool = False
    soft: bool = False
    unavailable: str | None = None
    versions: bool = False
    order: str | None = None
    expires: tuple[str, int] | None = None
    required_keys: frozenset[str] = frozenset()
    unseen: Mapping[str, int] = field(default_factory=dict)
    bounds: tuple[str, ...] = ()
    is_local: bool = False
    puts: Mapping[tuple[str, ...], bool] | None = None
    is_narrow: bool = False
    count: int = 0


#: Columns of a version, by name: their types. The current one has an open end.
VERSION_COLUMNS = {"__valid_from": "timestamp", "__valid_to": "timestamp", "__is_current": "boolean"}

#: Flag of rows that close what the table has (`spark_sink.sql.merge`).
CLOSES = "`$closes`"


def unknown_flag(column: str) -> str:
    """Return the name of the flag that says a column's value is unknown."""
    return f"$unknown:{column}"


def unify_sql(columns: Iterable[str], shape: Shape, unavailable: Mapping[str, str], types: Mapping[str, str] | None = None) -> list[str]:
    """Return SQL that brings a decoded frame into the table's shape: all columns, in order, in the merged types, with flags for unknowns.

    Args:
        columns: of the frame.
        unavailable: SQL by column that is true where it has the placeholder (`placeholder_conditions`).
        types: of the frame's columns, as far as they have parts.
    """
    has = set(columns)
    unknown: dict[str, str] = {}
    for name in shape.unknown:
        if name not in has:
            unknown[name] = "true"
        else:
            unknown[name] = unavailable.get(name, "false")
        if shape.soft:  # what orders a delete is known if its old row holds it
            deleted = "`$op` = 'd'" if name != shape.order or name not in has else f"`$op` = 'd' AND {quote(name)} IS NULL"
            unknown[name] = f"({deleted} OR {unknown[name]})"
    found = [f"{quote(name)}" for name in ("$op", "$partition", "$offset", "$time")]
    for name, type_ in shape.types.items():
        value = quote(name) if name in has else "NULL"
        if name == shape.unavailable:
            names = ", ".join(f"IF({condition}, {literal(column)}, NULL)" for column, condition in unknown.items() if column in has)
            value = f"nullif(array_compact(array({names})), array())" if names else "NULL"
        elif not shape.keys and name in unknown:
            value = f"IF({unknown[name]}, NULL, {value})"
        if types and name in has and "<" in type_ and types.get(name, type_) != type_:
            value = conformed(value, parse_type(types[name]), parse_type(type_))
        found.append(f"CAST({value} AS {type_}) {quote(name)}")
    return [*found, *(f"{condition} {quote(unknown_flag(name))}" for name, condition in unknown.items())]


#: Types in which the placeholder does not look like its text or its base64, by which a batch is searched (`spark_sink.read.summary`).
_DISGUISED = ("array<int>", "array<bigint>", "array<string>")


def placeholder_conditions(columns: Iterable[Column], placeholder: str) -> dict[str, str]:
    """Return SQL by column that is true where a decoded row has the placeholder; columns that cannot have it are left out."""
    found = {column.name: _placeholder_condition(column, placeholder) for column in columns}
    return {name: sql for name, sql in found.items() if sql is not None}


def may_be_unknown(name: str, columns: Iterable[Column], placeholder: str | None) -> bool:
    """Return whether rows may lack a column's value: they do not have the column, or it can have the placeholder, if there is one."""
    column = next((column for column in columns if column.name == name), None)
    return column is None or (placeholder is not None and _placeholder_condition(column, placeholder) is not None)


def placeholder_search(columns: Iterable[Column], placeholder: str) -> str | None:
    """Return SQL that is true where a record's text may have the placeholder in disguise; None where no column can have it so."""
    if not any(column.type.read in _DISGUISED for column in columns):
        return None
    numbers = [str(number) for number in placeholder.encode()]
    texts = (",".join(numbers), ", ".join(numbers), _placeholder_uuid(placeholder))
    return " OR ".join(f"contains(value, {literal(text)})" for text in texts)


def _placeholder_condition(column: Column, placeholder: str) -> str | None:
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


def keep_last_events(frame: DataFrame, shape: Shape) -> DataFrame:
    """Keep the last event of every key: columns of `shape`, its flags, `$op`. By the shape's order, else by that of the log.

    Within a partition the offset alone decides. A key that occurs in several partitions (a topic was expanded) takes the event with the
    latest record timestamp, then the highest partition.
    """
    keys = [quote(key) for key in shape.keys]
    by_key = ", ".join(keys)
    if shape.order is not None:
        frame = _by_order(frame, shape, by_key)
        return _with_known_values(frame, shape, keys) if shape.unknown else _last(frame, by_key, f"{_SEQUENCE} DESC")
    if shape.unknown:
        frame = _with_known_values(frame.selectExpr("*", f"`$offset` {_SEQUENCE}"), shape, [*keys, "`$partition`"])
    else:  # rows that are parted and sorted by the key alone are not shuffled again for the MERGE
        frame = _last(frame, f"{by_key}, `$partition`" if shape.several_partitions else by_key, "`$offset` DESC")
    if shape.several_partitions:
        frame = _last(frame, by_key, "`$time` DESC, `$partition` DESC")
    return frame


#: Offsets that one text of flags reaches over; of a log with larger gaps a list is searched.
_MOST_FLAGS = 1 << 16


def among_offsets(wanted: Collection[int], first: int, last: int) -> str:
    """Return SQL: whether `$offset`, which is between the first and the last one, is among those wanted.

    Each has a byte, in a power of two of them: a list would be searched for each event, and be a part of the code that Spark generates, so
    that it compiles some for each batch.
    """
    size = 1 << (last - first).bit_length()
    if size > _MOST_FLAGS:
        return f"`$offset` IN ({', '.join(map(str, sorted(wanted)))})"
    flags = bytearray(size)
    for offset in wanted:
        flags[offset % size] = 1
    return f"substring(X'{flags.hex()}', CAST(pmod(`$offset`, {size}) AS INT) + 1, 1) = X'01'"


#: What orders the events of a key.
_SEQUENCE = "`$sequence`"

#: What an event itself has in the column that orders events: the column's value may be one that an earlier event knew.
_ORDER = "`$order`"


def _by_order(frame: DataFrame, shape: Shape, by_key: str) -> DataFrame:
    """Add `_SEQUENCE` and `_ORDER` to events.

    An event without a value in the ordering column is taken in the log's order, as it is when it comes in a batch of its own: it is later
    than all events before it and earlier than all that follow. So only those after the last such event compete by their values.
    """
    in_log = "struct(`$time`, `$partition`, `$offset`)" if shape.several_partitions else "`$offset`"
    if shape.order == POSITION:  # every event has one
        return frame.selectExpr("*", f"struct({POSITION}, {in_log}) {_SEQUENCE}")
    frame = frame.selectExpr("*", f"{quote(shape.order or '')} {_ORDER}")
    last_without = f"max(IF({_ORDER} IS NULL, {in_log}, NULL)) OVER (PARTITION BY {by_key})"
    return frame.selectExpr("*", f"struct(coalesce({in_log} >= {last_without}, true), {_ORDER}, {in_log}) {_SEQUENCE}")


def _last(frame: DataFrame, keys: str, order: str) -> DataFrame:
    ranked = frame.selectExpr("*", f"row_number() OVER (PARTITION BY {keys} ORDER BY {order}) `$rank`")
    return ranked.where("`$rank` = 1").drop("$rank")


def _with_known_values(frame: DataFrame, shape: Shape, by: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as f

    ends_row = "false" if shape.soft else "`$op` = 'd'"
    deleted_at = f"max(IF({ends_row}, {_SEQUENCE}, NULL)) OVER (PARTITION BY {', '.join(by)})"
    columns = [quote(name) for name in frame.columns]
    known = [
        f"max_by(struct({quote(name)} value), {_SEQUENCE}) "
        f"FILTER (WHERE NOT {quote(unknown_flag(name))} AND (`$deleted` IS NULL OR {_SEQUENCE} > `$deleted`))"
        for name in shape.unknown
    ]
    grouped = (
        frame.selectExpr("*", f"{deleted_at} `$deleted`")
        .groupBy(*[f.expr(key) for key in by])
        .agg(
            f.expr(f"max_by(struct({', '.join(columns)}), {_SEQUENCE}) `$last`"),
            f.expr("max(`$deleted`) `$deleted`"),
            *[f.expr(f"{expression} {quote(f'$known:{name}')}") for expression, name in zip(known, shape.unknown, strict=True)],
        )
    )
    select = []
    for name in frame.columns:
        last = f"`$last`.{quote(name)}"
        if name in shape.unknown:
            last = f"IF(`$last`.{quote(unknown_flag(name))}, {quote(f'$known:{name}')}.value, {last})"
        select.append(f"{last} {quote(name)}")
    flags = {unknown_flag(name): name for name in shape.unknown}
    select = [
        expression
        if name not in flags
        else f"(`$last`.{quote(name)} AND {quote(f'$known:{flags[name]}')} IS NULL AND `$deleted` IS NULL) {quote(name)}"
        for name, expression in zip(frame.columns, select, strict=True)
    ]
    return grouped.selectExpr(*select)


def merge_sql(table: str, source: str, shape: Shape, truncate: str | None = None) -> str:
    """Return the MERGE of reduced rows into a table; both names are quoted already.

    Keys that may be null are matched null-safe; columns are named on both sides; an unknown value leaves what the table has.

    Args:
        truncate: ``apply`` also removes all rows that the table had, ``soft`` marks them as deleted.
    """
    if shape.versions:
        return _versions_sql(table, source, shape)
    columns = [name for name in shape.types if name not in shape.keys]
    kept = () if truncate == "apply" else shape.unknown
    sets = ", ".join(f"t.{quote(name)} = {_kept(name) if name in kept else 's.' + quote(name)}" for name in columns)
    newer = f" AND {_not_older(shape.order)}" if shape.order is not None and truncate != "apply" else ""
    kind = " AND s.`$op` <> 'd'" if newer and not shape.soft else ""  # an older delete must not become an update
    update = f" WHEN MATCHED{kind}{newer} THEN UPDATE SET {sets}" if columns else ""
    names = ", ".join(quote(name) for name in shape.types)
    values = ", ".join(f"s.{quote(name)}" for name in shape.types)
    delete, insert = (
        ("", " WHEN NOT MATCHED AND s.`$op` IS NOT NULL")
        if shape.soft
        else (f" WHEN MATCHED AND s.`$op` = 'd'{newer} THEN DELETE", " WHEN NOT MATCHED AND s.`$op` <> 'd'")
    )
    others = {
        None: "",
        "apply": " WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "soft": f" WHEN NOT MATCHED BY SOURCE {_MARKED}",
    }[truncate]
    if shape.unseen and truncate != "apply":
        others = _unseen_sql(shape) + others
    if shape.expires is not None:
        column, age = shape.expires
        others += (
            f" WHEN NOT MATCHED BY SOURCE AND t.{quote(column)} < current_timestamp() - make_dt_interval(0, 0, 0, {age / 1000}) THEN DELETE"
        )
    on = _same_key(shape)
    return f"MERGE INTO {table} t USING {source} s ON {on}{delete}{update}{insert} THEN INSERT ({names}) VALUES ({values}){others}"


def unseen(of: Mapping[str, int], row: str = "") -> str:
    """Return SQL: whether a row was written before the snapshot of its topic began; `row` is its alias and a point."""
    return " OR ".join(f"({row}`__topic` = {literal(topic)} AND {row}`__offset` < {start})" for topic, start in sorted(of.items()))


def _unseen_sql(shape: Shape) -> str:
    condition = f" WHEN NOT MATCHED BY SOURCE AND ({unseen(shape.unseen, 't.')})"
    return f"{condition} {_MARKED}" if shape.soft else f"{condition} THEN DELETE"


def _not_older(column: str) -> str:
    """Return SQL: whether the table's row is not of a later event. Without the column in either of them the event counts."""
    return f"coalesce(s.{_ORDER if column != POSITION else quote(column)} >= t.{quote(column)}, true)"


def _versions_sql(table: str, source: str, shape: Shape) -> str:
    names = ", ".join(quote(name) for name in shape.types)
    values = ", ".join(f"s.{quote(name)}" for name in shape.types)
    return (
        f"MERGE INTO {table} t USING {source} s ON {_same_key(shape)} AND s.{CLOSES} AND t.`__is_current` "
        "WHEN MATCHED THEN UPDATE SET t.`__valid_to` = s.`__valid_from`, t.`__is_current` = false "
        f"WHEN NOT MATCHED AND NOT s.{CLOSES} THEN INSERT ({names}) VALUES ({values})"
    )


def _same_key(shape: Shape) -> str:
    """Return SQL: whether keys are equal. Of null-safe equality Spark makes two conditions, neither of them the key, and shuffles again."""
    same = (f"t.{quote(key)} {'=' if key in shape.required_keys else '<=>'} s.{quote(key)}" for key in shape.keys)
    return " AND ".join((*same, *shape.bounds))


def _kept(name: str) -> str:
    return f"CASE WHEN s.{quote(unknown_flag(name))} THEN t.{quote(name)} ELSE s.{quote(name)} END"


_DELETED = f"t.{quote('__deleted')}"
#: What becomes of a row of the table, unless it is marked already, where deletes are soft.
_MARKED = f"AND NOT coalesce({_DELETED}, false) THEN UPDATE SET {_DELETED} = true"


def overwrite_sql(table: str, source: str, columns: Sequence[str], stored: Sequence[str]) -> str:
    """Return an INSERT that replaces all rows of the table. With `stored` columns the old rows are kept, marked as deleted."""
    if not stored:
        return append_sql(table, source, columns).replace("INSERT INTO", "INSERT OVERWRITE", 1)
    new = ", ".join(quote(name) if name in columns else f"NULL {quote(name)}" for name in stored)
    old = ", ".join(f"true {quote(name)}" if name == "__deleted" else quote(name) for name in stored)
    rows = f"SELECT {old} FROM {table} UNION ALL SELECT {new} FROM ({_checked(source, columns)})"
    return f"INSERT OVERWRITE {table} ({', '.join(quote(name) for name in stored)}) {rows}"


def append_sql(table: str, source: str, columns: Sequence[str]) -> str:
    """Return the INSERT of rows; columns are named on both sides."""
    return f"INSERT INTO {table} ({', '.join(quote(name) for name in columns)}) {_checked(source, columns)}"


def _checked(source: str, columns: Sequence[str]) -> str:
    """Select the rows of a view, with `$op` evaluated for each, which raises for broken ones.

    A condition would do so too, but Spark moves it below the decoding and then parses every record twice.
    """
    first, *others = (quote(name) for name in columns)
    return f"SELECT {', '.join((f'IF(`$op` IS NULL, NULL, {first}) {first}', *others))} FROM {source}"


def chain_versions(frame: DataFrame, shape: Shape, current: DataFrame | None) -> DataFrame:
    """Return closing and opening rows for decoded events: `$closes`, `$op` and the columns of `shape`.

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
    """Replace unknown values by the newest known one of the key since its last delete: in the batch, else in the table."""
    frame = frame.selectExpr("*", f"count(IF(`$op` = 'd', 1, NULL)) {by_key} `$life`")
    in_life = by_key.replace("PARTITION BY ", "PARTITION BY `$life`, ")
    known = {
        name: f"last(IF({quote(unknown_flag(name))}, NULL, struct({quote(name)} value)), true) {in_life} {quote('$known:' + name)}"
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
                f"CAST(CASE WHEN NOT {quote(unknown_flag(name))} THEN {quote(name)} WHEN {in_batch} IS NOT NULL THEN {in_batch}.value "
                f"WHEN `$life` = 0 THEN {in_table} END AS {shape.types[name]}) {quote(name)}"
            )
        else:
            select.append(quote(name))
    return stored.selectExpr(*select)
