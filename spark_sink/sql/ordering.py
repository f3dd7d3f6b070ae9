"""Where in its source a change happened, as a text whose order is the source's. SQL text, pure.

Groups of digits of fixed width, joined by points: the epoch first (raised by people when a source was restored and counts anew), then the
connector's own position, and at the end 0 for rows of a snapshot and 1 for changes, so that of two events at one position the change wins.
PostgreSQL's event LSNs interleave between transactions, hence the commit's LSN before them (`source.sequence`).
"""

from __future__ import annotations

from spark_sink.config.sink_config import SinkConfig
from spark_sink.sql.record_schema import Form, RecordSchema
from spark_sink.types.columns import quote

#: The column that keeps the position in tables ordered by it.
POSITION = "__position"

#: Fields of the source block that positions are made of, by what tells whose block it is.
_POSTGRES, _MYSQL, _SQLSERVER, _ORACLE = (
    ("sequence", "lsn"),
    ("file", "pos", "row"),
    ("commit_lsn", "change_lsn", "event_serial_no"),
    ("scn", "ssn"),
)
_TIMES = {"ts_ns": 1, "ts_us": 1_000, "ts_ms": 1_000_000}

_WIDTH = 20


def order_of(config: SinkConfig) -> str | None:
    """The column that decides which event of a key is the last; None when the log does."""
    ordering = config["tables.ordering"]
    if ordering == "log" or config["tables.write-mode"] != "upsert":
        return None
    return POSITION if ordering == "source" else str(ordering).removeprefix("column:")


def wants_position(config: SinkConfig) -> bool:
    """Whether rows need their position."""
    return "position" in config["tables.metadata-columns"] or order_of(config) == POSITION


def source_fields(schema: RecordSchema) -> tuple[str, ...]:
    """Fields of the source block to be read, as texts, for `position_sql`."""
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
    """The position of a record, over the columns that `spark_sink.sql.decode` has parsed (`v`) and Kafka's own."""
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
        parts = [_padded(f"get({sequence}, 0)"), _padded(f"coalesce(get({sequence}, 1), {of['lsn']})")]
    elif "scn" in of:
        parts = [_padded(of[name]) for name in ("commit_scn", "scn", "ssn") if name in of]
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


def _padded(text: str, width: int = _WIDTH) -> str:
    return f"lpad(coalesce({text}, '0'), {width}, '0')"
