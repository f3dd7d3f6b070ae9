"""SQL that turns a record's JSON payloads into a typed row. Pure: text made from a `RecordSchema`.

In addition to the row's own columns a decoded frame has `$op`, `$partition`, `$offset` and `$time`, names that no user's column has.
A record that cannot be decoded raises in the expression for `$op`. Code that uses the frame must therefore use `$op` of every row, or the
optimiser removes the check and a broken record becomes a row of nulls (`merge.keep_last_events` ranks whole rows; `merge.append_sql` looks
at it).

The position of a change in its source is a text whose order is the source's: groups of digits of fixed width, joined by points. The epoch
comes first (an operator raises it when a source was restored and its positions start over), then the connector's own position, and at the
end 0 for rows of a snapshot and 1 for changes, so that of two events at one position the change wins.

PostgreSQL's event LSNs interleave between transactions. `source.sequence` has the end of the transaction that was committed before (null
for the first one of a stream, and for a snapshot) and the event's LSN. The higher of them comes first, then the event's LSN. Between
transactions that is the order of commits: events of the earlier one lie below its end, and the first number of the later one does not. Rows
of a snapshot have its LSN and then zero. So they are later than all that was committed before it, and earlier than events beyond it and
than transactions that followed a commit beyond it. Only the first transaction to commit after a snapshot can be taken for one before it,
for rows that it had written by then. Not even that one if the snapshot's LSN is the end of the last commit, as it is in blocking snapshots.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from spark_sink.config.sink_config import SinkConfig
from spark_sink.sql.record_schema import Column, Form, RecordSchema
from spark_sink.types.columns import literal, quote

#: The column that keeps the position in tables ordered by it.
POSITION = "__position"

#: Fields of the source block that positions are made of, by connector.
_POSTGRES, _MYSQL, _SQLSERVER, _ORACLE = (
    ("sequence", "lsn"),
    ("file", "pos", "row"),
    ("commit_lsn", "change_lsn", "event_serial_no"),
    ("scn", "ssn"),
)
_TIMES = {"ts_ns": 1, "ts_us": 1_000, "ts_ms": 1_000_000}

_POSITION_WIDTH = 20


def order_of(config: SinkConfig) -> str | None:
    """Return the column that decides which event of a key is the last; None when the log does."""
    ordering = config["tables.ordering"]
    if ordering == "log" or config["tables.write-mode"] != "upsert":
        return None
    return POSITION if ordering == "source" else str(ordering).removeprefix("column:")


def wants_position(config: SinkConfig) -> bool:
    """Return whether rows need their position."""
    return "position" in config["tables.metadata-columns"] or order_of(config) == POSITION


def source_fields(schema: RecordSchema) -> tuple[str, ...]:
    """Return the fields of the source block to be read, as texts, for `position_sql`."""
    has = schema.source_fields
    if "file" in has and "pos" in has:
        wanted: tuple[str, ...] = _MYSQL
    elif "commit_lsn" in has and "change_lsn" in has:
        wanted = _SQLSERVER
    elif "lsn" in has:
        wanted = _POSTGRES
    elif "scn" in has:
        wanted = ("commit_scn", *_ORACLE)
    elif "ord" in has and "collection" in has:
        wanted = ("ts_ms", "ord")
    else:
        wanted = next(((name,) for name in _TIMES if name in has), ())
    return tuple(name for name in wanted if name in has)


def position_sql(schema: RecordSchema, operation: str, config: SinkConfig) -> str:
    """Return SQL of a record's position, over the parsed value (`v`) and Kafka's own columns."""
    fields = source_fields(schema) if schema.form is Form.ENVELOPE else ()
    of = {name: f"CAST(v.`source`.{quote(name)} AS STRING)" for name in fields}
    if "file" in of:
        parts = [_padded(f"regexp_extract({of['file']}, '([0-9]+)$', 1)", 10), _padded(of["pos"])]
        parts += [_padded(of["row"], 10)] if "row" in of else []
    elif "change_lsn" in of:
        parts = [f"coalesce({of['commit_lsn']}, '')", f"coalesce({of['change_lsn']}, '')"]
        parts += [_padded(of["event_serial_no"])] if "event_serial_no" in of else []
    elif "lsn" in of:
        sequence = f"from_json({of['sequence']}, 'array<string>')" if "sequence" in of else "CAST(NULL AS array<string>)"
        before, lsn = _padded(f"get({sequence}, 0)"), _padded(f"coalesce(get({sequence}, 1), {of['lsn']})")
        parts = [f"greatest({before}, {lsn})", f"IF({operation} = 'r', {_padded('NULL')}, {lsn})"]
    elif "scn" in of:
        # rows of a snapshot have no SCN of a commit: they are of all that was committed up to their own
        parts = [_padded(f"coalesce({of['commit_scn']}, {of['scn']})")] if "commit_scn" in of else []
        parts += [_padded(of[name]) for name in ("scn", "ssn") if name in of]
    elif "ord" in of:
        parts = [_padded("CAST(CAST(v.`source`.`ts_ms` AS BIGINT) div 1000 AS STRING)"), _padded(of["ord"], 10)]
    elif of:
        name, text = next(iter(of.items()))
        parts = [_padded(f"CAST(CAST({text} AS BIGINT) * {_TIMES[name]}L AS STRING)")]
    else:
        flat = next((name for name in ("__source_ts_ms", "__ts_ms") if schema.form is Form.FLAT and name in schema.extras), None)
        nanos = f"v.{quote(flat)} * 1000000L" if flat else "unix_micros(`timestamp`) * 1000L"
        parts = [_padded(f"CAST({nanos} AS STRING)")]
    epoch = f"'{int(config['tables.position-epoch']):06d}'"
    return f"concat_ws('.', {', '.join((epoch, *parts))}, IF({operation} = 'r', '0', '1'))"


def _padded(text: str, width: int = _POSITION_WIDTH) -> str:
    return f"lpad(coalesce({text}, '0'), {width}, '0')"


#: Begins the text of every error that a record raises; `spark_sink.errors` looks for it.
BAD_RECORD = "Bad record at "

_CORRUPT = "__corrupt"

#: Metadata columns by the name that configurations use: the column, its type.
METADATA = {
    "op": ("__op", "string"),
    "ts_ms": ("__ts_ms", "bigint"),
    "source.ts_ms": ("__source_ts_ms", "bigint"),
    "topic": ("__topic", "string"),
    "partition": ("__partition", "int"),
    "offset": ("__offset", "bigint"),
    "position": (POSITION, "string"),
    "txid": ("__txid", "string"),
    "snapshot": ("__snapshot", "string"),
    "deleted": ("__deleted", "boolean"),
}

#: Column of a changelog that names the columns whose value the source did not send.
UNAVAILABLE = "__unavailable"

_OF_CHANGELOG = ("op", "ts_ms", "source.ts_ms", "topic", "partition", "offset")

#: Fields of the source block that metadata columns are made of, as text.
_TEXTS_OF_SOURCE = {"txid": ("txId", "gtid", "tx_id"), "snapshot": ("snapshot",)}

_KAFKA_COLUMNS = ("`topic`", "`partition`", "`offset`", "`timestamp`")


def metadata_columns(config: SinkConfig) -> dict[str, str]:
    """Return the metadata columns of every table and their types."""
    return dict(METADATA[name] for name in _metadata_names(config))


def _metadata_names(config: SinkConfig) -> tuple[str, ...]:
    chosen = tuple(config["tables.metadata-columns"])
    if config["tables.write-mode"] == "append":
        return (*chosen, *(name for name in _OF_CHANGELOG if name not in chosen))
    if order_of(config) == POSITION and "position" not in chosen:
        chosen = (*chosen, "position")
    if config["snapshot.reconcile"]:
        chosen = (*chosen, *(name for name in ("topic", "offset") if name not in chosen))
    soft = "soft" in (config["tables.delete-mode"], config["tables.truncate-mode"])
    return (*chosen, "deleted") if soft and "deleted" not in chosen else chosen


def problems_sql(schema: RecordSchema, route: Mapping[str, str], config: SinkConfig) -> list[list[str]]:
    """Return select lists like `decode_sql`'s, to topic, partition, offset and `problem`: why a record cannot be decoded, or NULL."""
    deleted_row = not schema.has_whole_keys or config["tables.write-mode"] == "append"
    checks, _ = _checks(schema, route)
    cases = " ".join(f"WHEN {condition} THEN {literal(why)}" for condition, why in checks)
    return [_parse(schema, config, deleted_row=deleted_row), [*_KAFKA_COLUMNS[:3], f"CASE {cases} END problem"]]


def decode_sql(schema: RecordSchema, route: Mapping[str, str], config: SinkConfig) -> list[list[str]]:
    """Return select lists to apply one after the other to columns topic, partition, offset, timestamp, key and value (JSON texts).

    Args:
        route: fields of the source block that all records must share, since they chose the table.
    """
    deleted_row = not schema.has_whole_keys or config["tables.write-mode"] == "append"
    return [_parse(schema, config, deleted_row=deleted_row), _row(schema, route, config, deleted_row=deleted_row)]


def _parse(schema: RecordSchema, config: SinkConfig, *, deleted_row: bool) -> list[str]:
    steps = [*_KAFKA_COLUMNS]
    if schema.of_key:
        steps.append(f"{_key_sql({column.field: column.type.read for column in schema.of_key})} k")
    if schema.form is Form.TOMBSTONE:
        return steps
    fields = {column.field: column.type.read for column in _value_columns(schema)}
    if schema.form is Form.ENVELOPE:
        row = "struct<" + ",".join(f"{quote(name)}:{type_}" for name, type_ in fields.items()) + ">" if not schema.document else "string"
        read = {"op": "string", "after": row}
        if deleted_row:
            read["before"] = row
        elif (column := _ordering_column(schema, config)) is not None and not schema.document:
            read["before"] = f"struct<{quote(column.field)}:{column.type.read}>"
        read |= {"ts_ms": "bigint"} if "ts_ms" in schema.extras else {}
        source = {"ts_ms": "bigint", "db": "string", "schema": "string", "table": "string", "collection": "string"}
        source |= {name: "string" for name in _more_of_source(schema, config) if name not in source}
        present = ",".join(f"{quote(name)}:{type_}" for name, type_ in source.items() if name in schema.source_fields)
        if present:
            read["source"] = f"struct<{present}>"
    else:
        extras = {"__op": "string", "__deleted": "string", "__ts_ms": "bigint", "__source_ts_ms": "bigint"}
        read = fields | {name: type_ for name, type_ in extras.items() if name in schema.extras}
        if schema.operation and schema.operation[0] not in read:  # its column is excluded
            read[schema.operation[0]] = (
                "".join(f"struct<{quote(name)}:" for name in schema.operation[1:]) + "string" + ">" * (len(schema.operation) - 1)
            )
    return [*steps, f"{_from_json('value', read)} v"]


def _more_of_source(schema: RecordSchema, config: SinkConfig) -> list[str]:
    names = list(source_fields(schema)) if wants_position(config) else []
    return [*names, *(name for column in _metadata_names(config) for name in _TEXTS_OF_SOURCE.get(column, ()))]


def _value_columns(schema: RecordSchema) -> list[Column]:
    """Return the columns that are read from the value: none of the key's, unless every column is one (an object needs a field)."""
    return [column for column in schema.columns if not column.of_key] or list(schema.columns)


def _from_json(column: str, fields: Mapping[str, str]) -> str:
    types = ",".join(f"{quote(name)}:{type_}" for name, type_ in fields.items())
    shape = literal(f"struct<{types},{quote(_CORRUPT)}:string>")
    return f"from_json({column}, {shape}, map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{_CORRUPT}'))"


#: Names that are the same in JSON.
_PLAIN_NAME = re.compile(r"\w+", re.ASCII)


def _key_sql(fields: Mapping[str, str]) -> str:
    """Return SQL of a key.

    Most keys are one whole number. A key that is exactly the text which JsonConverter writes of one needs no parser: Spark makes one for
    each text, with a buffer of 8 kB. Those of keys were more than a quarter of what a large merge allocated.
    """
    parsed = _from_json("key", fields)
    [(name, type_), *others] = fields.items()
    if others or type_ not in ("tinyint", "smallint", "int", "bigint") or not _PLAIN_NAME.fullmatch(name):
        return parsed
    begin = f'{{"{name}":'
    number = f"try_cast(substring(key, {len(begin) + 1}, length(key) - {len(begin) + 1}) AS {type_})"
    key = f"named_struct({literal(name)}, {number}, '{_CORRUPT}', CAST(NULL AS STRING))"
    return f"IF(key = concat({literal(begin)}, CAST({number} AS STRING), '}}'), {key}, {parsed})"


def _row(schema: RecordSchema, route: Mapping[str, str], config: SinkConfig, *, deleted_row: bool) -> list[str]:
    row = {Form.ENVELOPE: "v.`after`", Form.FLAT: "v", Form.TOMBSTONE: ""}[schema.form]
    if schema.form is Form.ENVELOPE and deleted_row:
        row = "IF(v.`op` = 'd', v.`before`, v.`after`)"
    time = f"timestamp_millis({_metadata('source.ts_ms', schema)})" if config["tables.write-mode"] == "scd2" else "`timestamp`"
    steps = [f"{_operation(schema, route)} `$op`", "`partition` `$partition`", "`offset` `$offset`", f"{time} `$time`"]
    ordering = None if schema.document else _ordering_column(schema, config)
    for column in schema.columns:
        of_key = column.of_key
        field = row if schema.document and not of_key else f"{'k' if of_key else row}.{quote(column.field)}"
        if column == ordering and schema.form is Form.ENVELOPE and not deleted_row:
            field = f"IF(v.`op` = 'd', v.`before`.{quote(column.field)}, {field})"
        value = column.type.convert(field) if row or of_key else "NULL"
        if not column.type.same:
            value = f"CAST({value} AS {column.type.spark})"
        if column == ordering:
            value = f"IF({_plain_operation(schema)} = 'd' AND ({_stands_for_null(column, field, value)}), NULL, {value})"
        steps.append(f"{value} {quote(column.name)}")
    for name in _metadata_names(config):
        column_name, type_ = METADATA[name]
        value = position_sql(schema, _plain_operation(schema), config) if name == "position" else _metadata(name, schema)
        steps.append(f"CAST({value} AS {type_}) {quote(column_name)}")
    return steps


def _ordering_column(schema: RecordSchema, config: SinkConfig) -> Column | None:
    """Return the column of the records' values that orders events, if one does."""
    order = order_of(config)
    return next((column for column in schema.columns if column.name == order and not column.of_key), None)


#: SQL of the values that Debezium's connectors write by type for a value that they do not know, where NULL is not allowed.
_ZEROS = {
    "string": "''",
    "binary": "X''",
    "date": "DATE '1970-01-01'",
    "timestamp": "TIMESTAMP '1970-01-01 00:00:00Z'",
    "timestamp_ntz": "TIMESTAMP_NTZ '1970-01-01 00:00:00'",
} | dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"), "0")


def _stands_for_null(column: Column, field: str, value: str) -> str:
    """Return SQL: whether a value of a deleted row is not the row's.

    A source that knows the old row's key only (PostgreSQL without ``REPLICA IDENTITY FULL``) writes null, and where the schema does not
    allow that the column's default, or zero (`ValueConverter` of Debezium's `JdbcValueConverters`). JsonConverter writes the default too.
    """
    conditions = ["false"]
    if column.default is not None:
        conditions.append(f"{field} <=> {column.default}")
    if column.required and (zero := _ZEROS.get(column.type.spark.partition("(")[0])) is not None:
        conditions.append(f"{value} <=> {zero}")
    return " OR ".join(conditions)


def _metadata(name: str, schema: RecordSchema) -> str:
    match name:
        case "op":
            return _plain_operation(schema)
        case "txid" | "snapshot":
            found = [f"v.`source`.{quote(field)}" for field in _TEXTS_OF_SOURCE[name] if field in schema.source_fields]
            return f"coalesce({', '.join(found)})" if found and schema.form is Form.ENVELOPE else "NULL"
        case "deleted":
            return f"coalesce({_plain_operation(schema)} = 'd', false)"
        case "ts_ms" | "source.ts_ms":
            flat = "__" + name.replace(".", "_")
            if schema.form is Form.FLAT and flat in schema.extras:
                return f"v.{flat}"
            if schema.form is Form.ENVELOPE and name in schema.extras:
                return "v.`ts_ms`"
            if schema.form is Form.ENVELOPE and name == "source.ts_ms" and "ts_ms" in schema.source_fields:
                return "v.`source`.`ts_ms`"
            return "unix_millis(`timestamp`)"
        case _:
            return quote(name)


def _plain_operation(schema: RecordSchema) -> str:
    match schema.form:
        case Form.ENVELOPE:
            return "v.`op`"
        case Form.TOMBSTONE:
            return "'d'"
        case _ if schema.operation:
            field = ".".join(("v", *(quote(name) for name in schema.operation)))
            return f"translate(lower(left(ltrim(CAST({field} AS STRING)), 1)), 'i', 'c')"
        case _:
            operation = "coalesce(v.`__op`, 'c')" if "__op" in schema.extras else "'c'"
            return f"IF(v.`__deleted` = 'true', 'd', {operation})" if "__deleted" in schema.extras else operation


def _operation(schema: RecordSchema, route: Mapping[str, str]) -> str:
    """Return SQL of the operation, after every check of the record."""
    checks, operation = _checks(schema, route)
    cases = " ".join(f"WHEN {condition} THEN {_bad(why)}" for condition, why in checks)
    return f"CASE {cases} ELSE {operation} END"


def _checks(schema: RecordSchema, route: Mapping[str, str]) -> tuple[list[tuple[str, str]], str]:
    """Return the conditions under which a record is broken, each with what is wrong then, and the operation."""
    checks: list[tuple[str, str]] = []
    if schema.of_key:
        checks.append((f"k IS NULL OR k.{_CORRUPT} IS NOT NULL", "the key is not what its schema says"))
    if schema.form is not Form.TOMBSTONE:
        checks.append((f"v IS NULL OR v.{_CORRUPT} IS NOT NULL", "the value is not what its schema says"))
    operation = _plain_operation(schema)
    known = "'c', 'r', 'u', 'd', 't'" if schema.form is Form.ENVELOPE else "'c', 'r', 'u', 'd'"
    named = "op" if not schema.operation else ".".join(schema.operation)
    checks.append((f"coalesce({operation}, '') NOT IN ({known})", f"the operation ({named}) is unknown"))
    if schema.form is Form.ENVELOPE:
        lacks = "the event has no row (after is null)"
        if schema.document:
            lacks = "the event has no document (after is null): let the source send whole ones (capture.mode=change_streams_update_full)"
        checks.append((f"{operation} NOT IN ('d', 't') AND v.`after` IS NULL", lacks))
        for column in schema.keys:
            if not column.of_key:
                why = f"the delete does not hold column {column.name}, which identifies the row"
                checks.append((f"{operation} = 'd' AND v.`before`.{quote(column.field)} IS NULL", why))
        several = " OR ".join(f"NOT v.`source`.{quote(name)} <=> {literal(text)}" for name, text in route.items())
        if several:
            checks.append((several, "the topic carries several tables under one schema, which this sink cannot tell apart"))
    return checks, operation


def _bad(why: str) -> str:
    position = "`topic`, ' partition ', `partition`, ' offset ', `offset`"
    return f"raise_error(concat('{BAD_RECORD}topic ', {position}, {literal(': ' + why)}))"
