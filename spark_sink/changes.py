"""From a range of Kafka's log to typed rows: read by Spark in the JVM, decoded by expressions made from the records' own schemas.

A batch is read once. The rows that stay are kept without their schemas: each record's two schema texts become fingerprints, and the driver
fetches and parses the text of one record for every fingerprint that it has not met. One thread, the task's, uses this module.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connect_py.api.record import TopicPartition
from connect_py.errors import DataError, FatalTaskError
from spark_sink import routing
from spark_sink.config import SinkConfig
from spark_sink.decode import decode_sql
from spark_sink.planning import Range, offsets_json
from spark_sink.records import Form, RecordSchema, parse_head, read_schemas
from spark_sink.routing import TableName
from spark_sink.types import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

#: What JsonConverter writes between a schema and its value.
_SEAM = ',"payload":'

#: Consumer settings that Spark keeps to itself (`KafkaSourceProvider.validateGeneralOptions`) or that mean nothing to a bounded read.
_NOT_FOR_SPARK = frozenset(
    {
        "auto.offset.reset",
        "key.deserializer",
        "value.deserializer",
        "enable.auto.commit",
        "interceptor.classes",
        "group.id",
        "group.instance.id",
    }
)

#: A range larger than this is read by one Spark task a core, even when it lies in one Kafka partition.
_SPLIT_ABOVE = 5000


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells records of one topic with the same schemas apart from others; None stands for an absent key or value."""

    topic: str
    key: int | None
    value: int | None


@dataclass(frozen=True)
class Meaning:
    """What a fingerprint stands for (see `Group`)."""

    schema: RecordSchema
    table: TableName | None = None
    route: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, order=True, slots=True)
class Truncate:
    """Where the last truncate of some records stands. `time` is the record's timestamp, microseconds since 1970."""

    time: int
    partition: int
    offset: int


@dataclass(frozen=True)
class Group:
    """Records of a batch that share a fingerprint, and so a form and a table.

    Attributes:
        table: None for records that never become rows, and for tombstones that say nothing new.
        placeholder: whether the unavailable-value placeholder occurs in some of them.
        route: the parts of the source block that chose the table, for the check that every record has them.
        truncate: the last truncate among them, if there is one.
        truncates: how many of them are truncates.
    """

    fingerprint: Fingerprint
    schema: RecordSchema
    table: TableName | None
    count: int
    placeholder: bool = False
    route: Mapping[str, str] = field(default_factory=dict)
    truncate: Truncate | None = None
    truncates: int = 0


class Batch:
    """The records of some ranges, held by Spark until `close`."""

    def __init__(self, spark: SparkSession, rows: DataFrame, ranges: Mapping[TopicPartition, Range], groups: Sequence[Group]) -> None:
        self._spark = spark
        self._rows = rows
        self.ranges = ranges
        self.groups = groups

    def decoded(self, group: Group, condition: str | None, config: SinkConfig) -> DataFrame:
        """Typed rows of one group (see `decode_sql`); only those for which the SQL condition holds."""
        fingerprint = group.fingerprint
        wanted = [f"`topic` = {literal(fingerprint.topic)}", _equals("kfp", fingerprint.key), _equals("vfp", fingerprint.value)]
        wanted += [f"({condition})"] if condition else []
        frame = self._rows.where(" AND ".join(wanted))
        for step in decode_sql(group.schema, group.route, config):
            frame = frame.selectExpr(*step)
        return frame

    def close(self) -> None:
        """Release what Spark holds."""
        self._rows.unpersist()


class Reader:
    """Reads batches and remembers the schemas it has met."""

    def __init__(self, spark: SparkSession, config: SinkConfig, kafka_options: Mapping[str, str]) -> None:
        self._spark = spark
        self._config = config
        # The consumer of a batch is closed at its end and waits for its last fetch, half a second by default: measured 0.8 s a read
        # against 0.3 s with this.
        options = {"fetch.max.wait.ms": "50", **kafka_options, **config.kafka}
        self._options = {f"kafka.{name}": value for name, value in options.items() if name not in _NOT_FOR_SPARK}
        self._known: dict[Fingerprint, Meaning] = {}
        #: topics that have shown a Debezium envelope: their tombstones repeat the delete before them
        self._with_envelope: set[str] = set()

    def read(self, ranges: Mapping[TopicPartition, Range]) -> Batch:
        """Read ranges [start, end) and find out what is in them.

        Raises:
            FatalTaskError: a record cannot become a row; the text names it. Nothing has been written.
        """
        rows = self._kafka(ranges).selectExpr(*_HEADS).selectExpr(*_PAYLOADS).persist()
        try:
            return Batch(self._spark, rows, ranges, self._groups(rows, ranges))
        except BaseException:
            rows.unpersist()
            raise

    def _kafka(self, ranges: Mapping[TopicPartition, Range]) -> DataFrame:
        topics: dict[str, list[int]] = {}
        for tp in ranges:
            topics.setdefault(tp.topic, []).append(tp.partition)
        reader = (
            self._spark.read.format("kafka")
            .options(**self._options)
            .option("assign", json.dumps(topics))
            .option("startingOffsets", offsets_json((tp, start) for tp, (start, _) in ranges.items()))
            .option("endingOffsets", offsets_json((tp, end) for tp, (_, end) in ranges.items()))
            .option("failOnDataLoss", str(self._config["fail-on-data-loss"]).lower())
        )
        if sum(end - start for start, end in ranges.values()) > _SPLIT_ABOVE:
            reader = reader.option("minPartitions", str(max(self._spark.sparkContext.defaultParallelism, len(ranges))))
        return reader.load()

    def _groups(self, rows: DataFrame, ranges: Mapping[TopicPartition, Range]) -> list[Group]:
        placeholder = self._config["unavailable.value.placeholder"]
        found = rows.selectExpr(
            "topic",
            "kfp",
            "vfp",
            "struct(partition, offset) place",
            f"{_has_placeholder('value', placeholder)} placeholder",
            f"IF({_IS_TRUNCATE}, struct(unix_micros(timestamp), partition, offset), NULL) truncated",
        )
        counted = found.groupBy("topic", "kfp", "vfp").agg(*_aggregates())
        summary = sorted(counted.collect(), key=lambda row: (row["vfp"] is None, row["topic"], row["place"]["offset"]))
        places = {
            Fingerprint(row["topic"], row["kfp"], row["vfp"]): (
                TopicPartition(row["topic"], row["place"]["partition"]),
                row["place"]["offset"],
            )
            for row in summary
        }
        self._learn({fingerprint: place for fingerprint, place in places.items() if fingerprint not in self._known})
        groups: list[Group] = []
        for row, fingerprint in zip(summary, places, strict=True):
            meaning = self._known[fingerprint]
            if meaning.schema.form is Form.ENVELOPE:
                self._with_envelope.add(fingerprint.topic)
            if fingerprint.value is None and fingerprint.topic in self._with_envelope:
                meaning = Meaning(RecordSchema(Form.IGNORED))
            groups.append(
                Group(
                    fingerprint,
                    meaning.schema,
                    meaning.table,
                    row["n"],
                    bool(row["placeholder"]),
                    meaning.route,
                    None if row["truncated"] is None else Truncate(*row["truncated"]),
                    row["truncates"],
                )
            )
        return groups

    def _learn(self, places: Mapping[Fingerprint, tuple[TopicPartition, int]]) -> None:
        """Fetch one record for each fingerprint, in one read of the range that holds them, and read their schemas."""
        if not places:
            return
        ranges: dict[TopicPartition, Range] = {}
        for tp, offset in places.values():
            first, end = ranges.get(tp, (offset, offset + 1))
            ranges[tp] = (min(first, offset), max(end, offset + 1))
        wanted = " OR ".join(
            f"(`topic` = {literal(tp.topic)} AND `partition` = {tp.partition} AND `offset` = {offset})" for tp, offset in places.values()
        )
        found = self._kafka(ranges).where(wanted).selectExpr(*_HEADS).collect()
        records = {(TopicPartition(row["topic"], row["partition"]), row["offset"]): row for row in found}
        for fingerprint, (tp, offset) in places.items():
            try:
                self._known[fingerprint] = self._meaning(fingerprint, records.get((tp, offset)))
            except DataError as error:
                raise FatalTaskError(
                    f"The record at topic {tp.topic} partition {tp.partition} offset {offset} cannot become a row: {error}. "
                    "The sink reads JSON with schemas (schemas.enable=true in the source's converters). Nothing of this batch was written."
                ) from None

    def _meaning(self, fingerprint: Fingerprint, record: Row | None) -> Meaning:
        if record is None:
            raise DataError("Kafka no longer has it")
        key, value = parse_head(record["khead"]), parse_head(record["vhead"])
        schema = read_schemas(key, value, tombstone=fingerprint.value is None, options=self._config.types)
        if schema.form is Form.IGNORED:
            return Meaning(schema)
        source = _source_of(record["v"]) if schema.form is Form.ENVELOPE else {}
        parts = routing.parts_of_topic(fingerprint.topic) | routing.parts_of_source(fingerprint.topic, source)
        table = routing.resolve(parts, self._config)
        if table is None:
            known = ", ".join(sorted(parts))
            raise DataError(f"lakehouse.tables.route-pattern is {self._config['tables.route-pattern']} and only {known} are known of it")
        route = {name: source[name] for name in ("db", "schema", "table", "collection") if source.get(name) is not None}
        return Meaning(schema, table, route)


def _source_of(value: str) -> dict[str, Any]:
    payload = json.loads(value).get("payload") or {}
    return dict(payload.get("source") or {})


def _aggregates() -> list[Any]:
    from pyspark.sql import functions as f

    return [
        f.expr("count(1) n"),
        f.expr("min(place) place"),
        f.expr("bool_or(placeholder) placeholder"),
        f.expr("max(truncated) truncated"),
        f.expr("count(truncated) truncates"),
    ]


#: SQL: only a text that might be a truncate is parsed.
_IS_TRUNCATE = """contains(value, '"op":"t"') AND get_json_object(value, '$.op') = 't'"""


def _has_placeholder(column: str, placeholder: str) -> str:
    """SQL: whether the placeholder occurs in a JSON text, as text or as base64 of its bytes."""
    encoded = base64.b64encode(placeholder.encode()).decode()
    return f"coalesce(contains({column}, {literal(placeholder)}) OR contains({column}, {literal(encoded)}), false)"


def _equals(column: str, fingerprint: int | None) -> str:
    # False, not unknown, for tombstones: of `unknown AND x` Spark evaluates x too, and x may be a check that raises.
    return f"{column} IS NULL" if fingerprint is None else f"{column} <=> {fingerprint}L"


def _head(text: str) -> str:
    """SQL: a record's text before its payload; of text without a payload the first characters, for the error that follows."""
    return f"IF(locate({literal(_SEAM)}, {text}) > 0, substring({text}, 1, locate({literal(_SEAM)}, {text}) - 1), left({text}, 80))"


_HEADS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "CAST(key AS STRING) k",
    "CAST(value AS STRING) v",
    f"{_head('CAST(key AS STRING)')} khead",
    f"{_head('CAST(value AS STRING)')} vhead",
)

_PAYLOADS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "CASE WHEN k IS NOT NULL THEN xxhash64(khead) END kfp",
    "CASE WHEN v IS NOT NULL THEN xxhash64(vhead) END vfp",
    f"substring(k, length(khead) + {len(_SEAM) + 1}, length(k) - length(khead) - {len(_SEAM) + 1}) key",
    f"substring(v, length(vhead) + {len(_SEAM) + 1}, length(v) - length(vhead) - {len(_SEAM) + 1}) value",
)
