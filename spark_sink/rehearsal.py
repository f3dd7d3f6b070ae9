"""A sink's work on tables that nobody else sees, without Kafka: a JVM that has done it once has loaded what the work needs.

An archive of classes is made of such a JVM (`spark_sink.spark.archive`). The batches go the way that a task's go, from records to commits,
so that the classes are those of a task.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from connect_py.api.record import TopicPartition
from connect_py.api.task import BatchSinkContext, LogRecord
from connect_py.kafka.consumer import ConsumedRecord
from spark_sink.config.sink_config import SinkConfig, parse
from spark_sink.figures import SinkFigures
from spark_sink.read.held import frame_of
from spark_sink.read.ranges import Range
from spark_sink.read.reader import HELD_RECORDS, Reader
from spark_sink.routing import TableName
from spark_sink.spark.lanes import Lanes, OwnThreadLane
from spark_sink.spark.session import prepare
from spark_sink.tables.base import Tables, Writer
from spark_sink.tables.open import open_tables
from spark_sink.tables.upkeep import MaintenancePolicy
from spark_sink.write.batches import Batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOPIC, _TABLE = "rehearsal.public.t", TableName(("public", "t"))

#: What the records of each batch do: the first batch makes the table, the last one is held by Spark and the others by the driver.
_BATCHES = ("r" * 100, "cuud" * 25, "ud" * 2, "cuu" * (HELD_RECORDS // 3 + 100))

#: Formats, and whether tables are written by statements, as Delta's in catalogs are.
_WAYS: tuple[tuple[str, bool], ...] = (("iceberg", False), ("delta", False), ("delta", True))

_TABLE_SECONDS = 600.0

#: Epoch milliseconds of all events.
_TIME = 1_700_000_000_000


def rehearse(spark: SparkSession, folder: Path) -> None:
    """Create tables below a folder, bring some batches into them and tidy them up, in sessions of their own.

    Args:
        spark: of a JVM in which nothing else runs.
    """
    for number, (format_, by_statements) in enumerate(_WAYS):
        config = _config(format_, folder / str(number))
        session = spark.newSession()
        prepare(session, config)
        _write(session, config, open_tables(session, config, Writer("rehearsal", 0, 1), by_statements=by_statements))
    _read_nothing(spark)


def _config(format_: str, folder: Path) -> SinkConfig:
    iceberg = {"lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": str(folder)}
    place = iceberg if format_ == "iceberg" else {"lakehouse.format": "delta", "lakehouse.delta.root": str(folder)}
    more = {"lakehouse.tables.auto-create-enabled": "true", "lakehouse.tables.write-mode": "upsert", "lakehouse.spark.master": "local[*]"}
    return parse({"name": "rehearsal", "topics": _TOPIC, **place, **more})


def _write(session: SparkSession, config: SinkConfig, tables: Tables) -> None:
    parts = list(_log())
    log = [record for part in parts for record in part]

    def fetch(ranges: Mapping[TopicPartition, Range], _: int) -> Sequence[LogRecord]:
        return [record for start, end in ranges.values() for record in log[start:end]]

    reader = Reader(session, config, {}, fetch=fetch)
    lanes = Lanes(lambda _, answers: OwnThreadLane(answers), 1, _TABLE_SECONDS)
    # No record of it is bad, which is all that a batch would tell the runtime.
    context = cast("BatchSinkContext", None)
    batches = Batches(session, config, context, reader, tables, lanes, SinkFigures(), committed=lambda _: None)
    for part in parts:
        ranges = {TopicPartition(_TOPIC, 0): (part[0].offset, part[-1].offset + 1)}
        batch = reader.read(ranges, frame_of(session, part, headers=False) if len(part) > HELD_RECORDS else None)
        try:
            batches.apply(batch, lambda _: None)
        finally:
            batch.close()
    policy = MaintenancePolicy.of(config)
    if (compaction := tables.compact(_TABLE, policy, thoroughly=False)) is not None:
        compaction.write()
        compaction.commit()
    tables.clean(_TABLE, policy, thoroughly=False)  # a VACUUM prints what it has found
    tables.extent(_TABLE, policy.target_file_size)


# -- records -------------------------------------------------------------------------------------------------------------------------


def _field(type_: str, name: str | None = None, **parameters: str) -> dict[str, Any]:
    more: dict[str, Any] = {"name": name, "version": 1} if name else {}
    return {"type": type_, "optional": True, **more, **({"parameters": parameters} if parameters else {})}


_ID = {"type": "int64", "optional": False}
_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "id": _ID,
    "number": _field("int32"),
    "name": _field("string"),
    "paid": _field("boolean"),
    "weight": _field("double"),
    "amount": _field("bytes", "org.apache.kafka.connect.data.Decimal", scale="2", **{"connect.decimal.precision": "12"}),
    "made": _field("int64", "io.debezium.time.MicroTimestamp"),
    "seen": _field("string", "io.debezium.time.ZonedTimestamp"),
}
_TIMES = {name: _field("int64") for name in ("ts_ms", "ts_us", "ts_ns")}
_SOURCE = {name: _field("string") for name in ("version", "connector", "name", "snapshot", "db", "schema", "table")} | _TIMES


def _struct(columns: Mapping[str, Mapping[str, Any]], *, optional: bool = False) -> dict[str, Any]:
    return {"type": "struct", "fields": [{**type_, "field": name} for name, type_ in columns.items()], "optional": optional}


def _envelope() -> dict[str, Any]:
    row = _struct(_COLUMNS, optional=True)
    return _struct({"before": row, "after": row, "source": _struct(_SOURCE), "op": _field("string"), **_TIMES})


def _log() -> Iterator[list[ConsumedRecord]]:
    """Yield batches of change events, as a source of a database writes them, with a tombstone after each delete."""
    schemas, offset, made = (_struct({"id": _ID}), _envelope()), 0, 0
    times = dict.fromkeys(_TIMES, _TIME)
    source = {**dict.fromkeys(_SOURCE, "rehearsal"), "schema": "public", "table": "t", "snapshot": "false", **times}
    for operations in _BATCHES:
        batch: list[ConsumedRecord] = []
        for op in operations:
            made += op in "cr"
            key = {"id": made if op in "cr" else max(1, made - (20 if op == "u" else 40))}
            texts = {"name": f"row {offset}", "seen": f"2026-01-01T10:00:{offset % 60:02d}.{offset:06d}Z"}
            row = {"number": offset % 97, "paid": True, "weight": offset / 7, "amount": "AJiWgA==", "made": 10**15 + offset, **texts}
            before, after = (key | row, None) if op == "d" else (None, key | row)
            payloads = (key, {"before": before, "after": after, "source": source, "op": op, **times})
            of_key, value = (
                json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode()
                for schema, payload in zip(schemas, payloads, strict=True)
            )
            for text in (value, None) if op == "d" else (value,):
                batch.append(ConsumedRecord(_TOPIC, 0, offset, _TIME, "CreateTime", of_key, text, ()))
                offset += 1
        yield batch


def _read_nothing(spark: SparkSession) -> None:
    """Have Kafka's client loaded, though there is no broker."""
    unreachable = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "subscribe": "t",
        "kafka.request.timeout.ms": "500",
        "kafka.default.api.timeout.ms": "900",
    }
    with contextlib.suppress(Exception):
        spark.read.format("kafka").options(**unreachable).load().collect()
