"""From a range of Kafka's log to typed rows: read by Spark in the JVM, decoded by expressions made from the records' own schemas. Small
ranges are read by the runtime's client (`read.held`).

A batch is read once. The rows that stay are kept without their schemas: each record's two schema texts become fingerprints, and the driver
fetches and parses the text of one record for every fingerprint that it has not met.

Writing is half the driver's work, planning and committing, in which executors have nothing to do; `Prefetch` reads a backlog in that time.
Nothing of it is believed before its turn: a batch that does not start where the tables stand then is released unread. At most one batch is
held in addition to the one that is being applied.

One thread at a time uses a `Reader`: the task's, or the one of `Prefetch` while the task does not use the reader. Lanes, several at once,
call the methods of a `Batch` that make frames; only the task's thread shares, rejects and closes it.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from connect_py.api.record import TopicPartition
from connect_py.api.task import LogRecord
from connect_py.errors import DataError, FatalTaskError
from spark_sink import routing
from spark_sink.config.sink_config import SinkConfig
from spark_sink.read import schemaless
from spark_sink.read.formats import Fingerprint, PlainRecords, RecordFormat
from spark_sink.read.held import frame_of, frame_of_cut
from spark_sink.read.ranges import Range, describe_record, enclosing_ranges, offsets_json
from spark_sink.read.summary import RecordKind, Truncate, at_positions, summarize, summarize_cut
from spark_sink.routing import TableName
from spark_sink.spark.evaluation import Evaluations
from spark_sink.spark.local import collect_locally, hold, select
from spark_sink.spark.session import parallelism
from spark_sink.sql.decode import decode_sql, problems_sql
from spark_sink.sql.record_schema import Form, RecordSchema, parse_head, read_schemas
from spark_sink.types.columns import SchemaJson, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")

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

#: What a batch holds of each record, in addition to its routing value.
_KEPT = ("topic", "partition", "offset", "timestamp", "kfp", "vfp", "key", "value", "problem")

#: A range larger than this is read by one Spark task a core, even when it lies in one Kafka partition.
_SPLIT_ABOVE = 5000

#: A batch of no more records than this, and with texts of no more bytes, is held by the driver: Spark's jobs would take longer than what
#: they do for so few.
HELD_RECORDS = 10_000
_HELD_BYTES = 16_000_000

#: Bytes of whole records that the driver reads for it, most of which are schemas.
_FETCHED_BYTES = 48_000_000

#: What a record is taken to have at least, and one of a topic that has not been read yet.
_SHORTEST_BYTES, _UNKNOWN_BYTES = 1000, 100_000


@dataclass(frozen=True)
class Meaning:
    """What a fingerprint stands for (see `Group`); `topic` is the one to which transforms have moved its records."""

    schema: RecordSchema
    topic: str | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    route: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True)
class Group:
    """Records of a batch that share a fingerprint, and so a form and a table.

    Attributes:
        tables: none for records that never become rows, for tombstones that say nothing new, and for what the routing passes over.
        value: the records' routing value.
        problem: why none of them can become a row.
        placeholder: whether the unavailable-value placeholder occurs in some of them.
        route: the parts of the source block that chose the table, for the check that every record has them.
        truncate: the last truncate among them, if there is one.
        truncates: how many of them are truncates.
        marks: how many of them are the first or the last row of a table in a snapshot; 0 where no table is reconciled with such.
    """

    fingerprint: Fingerprint
    schema: RecordSchema
    tables: tuple[TableName, ...]
    count: int
    placeholder: bool = False
    route: Mapping[str, str] = field(default_factory=dict)
    truncate: Truncate | None = None
    truncates: int = 0
    value: str | None = None
    problem: str | None = None
    marks: int = 0


class Batch:
    """The records of some ranges, held by Spark until `close`: by its executors, or by the driver (`spark_sink.spark.local`).

    Attributes:
        is_held: whether the driver holds them.

    Args:
        evaluations: of rows that the driver has cut (`frame_of_cut`).
        release: has Spark forget rows that the driver does not hold.
    """

    def __init__(
        self,
        spark: SparkSession,
        rows: DataFrame,
        ranges: Mapping[TopicPartition, Range],
        groups: Sequence[Group],
        *,
        is_held: bool = False,
        evaluations: Evaluations | None = None,
        release: Callable[[], object] = lambda: None,
    ) -> None:
        self._spark = spark
        self._release = release
        self._evaluations = evaluations
        self._rows = rows
        self.is_held = is_held
        self.ranges = ranges
        self.groups = groups
        self.rejected: set[tuple[TopicPartition, int]] = set()
        self._view: str | None = None

    def share(self) -> None:
        """Let any session read the records (`spark_sink.spark.lanes`), not only the one that has read the batch."""
        self._view = f"connect_py_batch_{uuid.uuid4().hex}"
        self._rows.createOrReplaceGlobalTempView(self._view)

    def decoded(self, group: Group, condition: str | None, config: SinkConfig) -> DataFrame:
        """Return typed rows of one group (see `decode_sql`): those for which the SQL condition holds, without rejected ones."""
        frame = self.records(group, condition, config)
        for step in decode_sql(group.schema, group.route, config):
            frame = select(frame, step)
        return frame

    def shaped(self, group: Group, condition: str | None, config: SinkConfig, unify: Callable[[Sequence[str]], Sequence[str]]) -> DataFrame:
        """Return rows as `decoded` does, in the shape of a table.

        Args:
            unify: returns SQL that makes the shape of columns with some names.
        """

        def decoded() -> DataFrame:
            return self.decoded(group, condition, config)

        if self._evaluations is None or condition or self.rejected:
            frame = decoded()
            return select(frame, unify(frame.columns))
        decoding = (_wanted(group, config), *map(tuple, decode_sql(group.schema, group.route, config)))
        unified = tuple(unify(self._evaluations.columns(decoding, decoded)))
        return self._evaluations.evaluated((decoding, unified), self._rows, self._spark, lambda: select(decoded(), unified))

    def of_held(self, kind: Hashable, rows: DataFrame, wanted: Sequence[str]) -> DataFrame:
        """Return what SQL makes of rows that the driver holds; rows of one kind have the same columns."""
        if self._evaluations is None:
            return select(rows, wanted)
        return self._evaluations.evaluated((kind, wanted), rows, self._spark, lambda: select(rows, wanted))

    def problems(self, group: Group, condition: str | None, config: SinkConfig) -> DataFrame:
        """Return topic, partition, offset and problem of the records of a group that cannot be decoded."""
        frame = self.records(group, condition, config)
        for step in problems_sql(group.schema, group.route, config):
            frame = select(frame, step)
        return frame.where("problem IS NOT NULL")

    def records(self, group: Group, condition: str | None, config: SinkConfig) -> DataFrame:
        """Return the records of a group, as texts."""
        wanted = [_wanted(group, config), *([f"({condition})"] if condition else [])]
        wanted += [f"NOT ({at_positions(self.rejected)})"] if self.rejected else []
        rows = self._rows if self._view is None else self._spark.table(f"global_temp.{self._view}")
        return rows.where(" AND ".join(wanted))

    def close(self) -> None:
        """Release what Spark holds."""
        if self._view is not None:
            self._spark.catalog.dropGlobalTempView(self._view)
        self._release()


class Reader:
    """Reads batches and remembers the schemas it has met.

    Args:
        held_records: how many records a batch has at most that the driver holds.
        fetch: reads them (`BatchSinkContext.records`); without it, or where it does not, Spark does.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: SinkConfig,
        kafka_options: Mapping[str, str],
        records: RecordFormat | None = None,
        *,
        held_records: int = HELD_RECORDS,
        fetch: Callable[[Mapping[TopicPartition, Range], int], Sequence[LogRecord] | None] | None = None,
    ) -> None:
        self._fetch = None if config.kafka else fetch  # settings of Spark's client are not those of the worker's
        self._held_records = held_records if config["spark.remote"] is None else 0
        self._spark = spark
        self._config = config
        self._format = PlainRecords() if records is None else records
        self._with_headers = self._format.needs_headers or str(config["tables.route-field"]).startswith("__header.")
        self._types = replace(config.types, decimals_numeric=self._format.numeric_decimals)
        # The consumer of a batch is closed at its end and waits for its last fetch, half a second by default, which is of what follows the
        # range: it need not wait, and of twenty topics a core reads ten after each other. Unlike a consumer of Connect's it reads committed
        # records only: the log is read up to its last stable offset anyway, and a table that says to have each event once must not have
        # those of an aborted transaction.
        options = {"fetch.max.wait.ms": "5", "isolation.level": "read_committed", **kafka_options, **config.kafka}
        self._options = {f"kafka.{name}": value for name, value in options.items() if name not in _NOT_FOR_SPARK}
        self._evaluations = Evaluations()
        self._known: dict[Fingerprint, Meaning] = {}
        self._peeked: set[str] = set()
        #: topics that have shown a Debezium envelope: their tombstones repeat the delete before them
        self._with_envelope: set[str] = set()
        #: by topic: the bytes of its longest records, half forgotten with each batch
        self._longest: dict[str, int] = {}

    def read(self, ranges: Mapping[TopicPartition, Range], records: DataFrame | None = None) -> Batch:
        """Read ranges [start, end) and find out what is in them.

        Args:
            records: what the ranges hold, as `stream` gave it; without it Kafka is read here.

        Raises:
            FatalTaskError: a record cannot become a row; the text names it. Nothing has been written.
        """
        self._peek(ranges)
        fetched = self._fetched(ranges) if records is None else None
        is_held = fetched is not None or self._may_be_held(ranges)
        placeholder, marks = self._config["unavailable.value.placeholder"], self._config.reconciles
        if fetched is not None and not routing.by_value(self._config) and (cut := self._format.cut(fetched)) is not None:
            groups = self._groups(summarize_cut(cut, placeholder, marks=marks))
            return Batch(self._spark, frame_of_cut(self._spark, cut), ranges, groups, is_held=True, evaluations=self._evaluations)
        kafka = (self._kafka(ranges) if fetched is None else self._frame(fetched)) if records is None else records
        rows = self._format.rows(kafka).selectExpr(*_KEPT, f"{routing.route_sql(self._config)} route")
        if len(ranges) > (cores := parallelism(self._spark)):
            rows = rows.coalesce(cores)  # each table looks through the batch: by a task a core, not by one for each of the topics
        if is_held:
            rows = collect_locally(rows)
            groups = self._groups(summarize(rows, placeholder, marks=marks, is_held=True))
            return Batch(self._spark, rows, ranges, groups, is_held=True)
        held = hold(rows)
        try:
            groups = self._groups(summarize(held.rows, placeholder, marks=marks))
        except BaseException:
            held.release()
            raise
        return Batch(self._spark, held.rows, ranges, groups, release=held.release)

    def _few(self, ranges: Mapping[TopicPartition, Range]) -> DataFrame:
        """Return a frame of ranges: without a job, if the driver can hold what is in them."""
        fetched = self._fetched(ranges)
        return self._kafka(ranges) if fetched is None else self._frame(fetched)

    def _fetched(self, ranges: Mapping[TopicPartition, Range]) -> Sequence[LogRecord] | None:
        """Return what the driver has read itself, if it could. Of topics that are new it is seen then how long their records are."""
        if self._fetch is None or not self._may_be_held(ranges, of_new=0) or (found := self._fetch(ranges, _FETCHED_BYTES)) is None:
            return None
        new = {tp.topic for tp in ranges} - self._longest.keys()
        size = sum(len(record.key or b"") + len(record.value or b"") for record in found if record.topic in new) if new else 0
        return found if size <= _HELD_BYTES else None

    def _frame(self, records: Sequence[LogRecord]) -> DataFrame:
        return frame_of(self._spark, records, headers=self._with_headers)

    def _may_be_held(self, ranges: Mapping[TopicPartition, Range], of_new: int = _UNKNOWN_BYTES) -> bool:
        """Return whether the driver can hold the records of ranges itself.

        Args:
            of_new: bytes of a record of a topic that has not been read yet.
        """
        counts = [(tp.topic, end - start) for tp, (start, end) in ranges.items()]
        size = sum(count * self._longest.get(topic, of_new) for topic, count in counts)
        return sum(count for _, count in counts) <= self._held_records and size <= _HELD_BYTES

    def _peek(self, ranges: Mapping[TopicPartition, Range]) -> None:
        """Read the first record of each new topic before a large batch, since searching all records takes far longer."""
        if not self._format.peeks:
            return
        new = {tp: (start, start + 1) for tp, (start, _) in ranges.items() if tp.topic not in self._peeked}
        self._peeked |= {tp.topic for tp in new}
        if not new or sum(end - start for start, end in ranges.values()) <= _SPLIT_ABOVE:
            return
        hashes = ("xxhash64(khead) kfp", "xxhash64(vhead) vfp")
        found = self._format.whole(self._few(new)).selectExpr("*", *hashes).collect()
        seen = {Fingerprint(row["topic"], row["kfp"] if row["key"] else None, row["vfp"] if row["value"] else None): row for row in found}
        for fingerprint, row in seen.items():
            self._format.learn(fingerprint, row)
        self._format.counted(dict.fromkeys(seen, 1))

    def stream(self, positions: Mapping[TopicPartition, int]) -> DataFrame:
        """Return an unbounded frame of partitions, in batches of the configured size; from the positions if there is no checkpoint."""
        reader = self._spark.readStream.format("kafka").options(**self._source_options(positions))
        reader = reader.option("startingOffsets", offsets_json(positions.items()))
        reader = reader.option("maxOffsetsPerTrigger", str(self._config["max-offsets-per-trigger"]))
        return reader.option("minPartitions", str(max(parallelism(self._spark), len(positions)))).load()

    def _source_options(self, partitions: Iterable[TopicPartition], *, headers: bool = False) -> dict[str, str]:
        topics: dict[str, list[int]] = {}
        for tp in partitions:
            topics.setdefault(tp.topic, []).append(tp.partition)
        return {
            **self._options,
            "assign": json.dumps(topics),
            "includeHeaders": str(headers or self._with_headers).lower(),
            "failOnDataLoss": str(self._config["fail-on-data-loss"]).lower(),
        }

    def _kafka(self, ranges: Mapping[TopicPartition, Range], *, headers: bool = False) -> DataFrame:
        reader = (
            self._spark.read.format("kafka")
            .options(**self._source_options(ranges, headers=headers))
            .option("startingOffsets", offsets_json((tp, start) for tp, (start, _) in ranges.items()))
            .option("endingOffsets", offsets_json((tp, end) for tp, (_, end) in ranges.items()))
        )
        if sum(end - start for start, end in ranges.values()) > _SPLIT_ABOVE:
            reader = reader.option("minPartitions", str(max(parallelism(self._spark), len(ranges))))
        return reader.load()

    def raw(self, positions: Iterable[tuple[TopicPartition, int]]) -> list[Row]:
        """Return records as Kafka holds them, with headers."""
        positions = list(positions)
        found = self._kafka(enclosing_ranges(positions), headers=True).where(at_positions(positions))
        rows: list[Row] = found.orderBy("topic", "partition", "offset").collect()
        return rows

    def _groups(self, kinds: Sequence[RecordKind]) -> list[Group]:
        for topic in {kind.fingerprint.topic for kind in kinds}:
            longest = max(kind.longest for kind in kinds if kind.fingerprint.topic == topic)
            self._longest[topic] = max(longest, self._longest.get(topic, 0) // 2, _SHORTEST_BYTES)
        positions: dict[Fingerprint, tuple[TopicPartition, int]] = {}
        counts: Counter[Fingerprint] = Counter()
        for kind in kinds:
            positions.setdefault(kind.fingerprint, kind.position)
            counts[kind.fingerprint] += kind.count
        self._learn({fingerprint: position for fingerprint, position in positions.items() if fingerprint not in self._known})
        self._format.counted(counts)
        groups: list[Group] = []
        misnamed: set[Fingerprint] = set()
        for kind in kinds:
            fingerprint = kind.fingerprint
            meaning = self._known[fingerprint]
            if meaning.schema.form is Form.ENVELOPE:
                self._with_envelope.add(fingerprint.topic)
            if fingerprint.value is None and fingerprint.topic in self._with_envelope:
                meaning = Meaning(RecordSchema(Form.IGNORED))
            try:
                tables = self._tables_of(kind, meaning)
            except DataError as error:
                tables, meaning = (), replace(meaning, problem=self._tolerated(kind, error))
                misnamed.add(fingerprint)
            if tables and self._lack_keys(tables, meaning.schema):
                tables, meaning = (), replace(meaning, problem=self._without_key(kind))
            groups.append(
                Group(
                    fingerprint,
                    meaning.schema,
                    () if tables is None else tables,
                    kind.count,
                    kind.placeholder,
                    meaning.route,
                    kind.truncate,
                    kind.truncates,
                    kind.route,
                    meaning.problem if tables is not None else self._rule(kind.route, meaning),
                    kind.marks,
                )
            )
        for fingerprint in misnamed:  # other records with these schemas may name other tables
            del self._known[fingerprint]
        return groups

    def _tables_of(self, kind: RecordKind, meaning: Meaning) -> tuple[TableName, ...] | None:
        """Return the tables of records; None when the records are bad because they have no table."""
        if meaning.schema.form is Form.IGNORED or (meaning.schema.form is Form.TOMBSTONE and routing.by_value(self._config)):
            return ()
        found = routing.destinations(meaning.topic or kind.fingerprint.topic, meaning.parts, kind.route, self._config)
        if found is None and self._config["tables.unrouted"] == "fail":
            raise FatalTaskError(
                f"The record at {describe_record(*kind.position)} has no table: {self._rule(kind.route, meaning)}. "
                "Nothing of this batch was written. Change the routing, or set lakehouse.tables.unrouted=skip."
            )
        return None if found is None and self._config["tables.unrouted"] == "dlq" else found or ()

    def _lack_keys(self, tables: Iterable[TableName], schema: RecordSchema) -> bool:
        """Return whether records lack a key, and none of their tables accepts that."""
        if schema.keys or "key" in schema.untyped or schema.form not in (Form.ENVELOPE, Form.FLAT):
            return False
        of_tables = [self._config.of_table(str(table)) for table in tables]
        return not any(
            config["tables.no-key"] != "dlq" or config["tables.write-mode"] == "append" or config["tables.default-id-columns"]
            for config in of_tables
        )

    def _without_key(self, kind: RecordKind) -> str:
        """Return why records without a key are bad."""
        return self._tolerated(kind, "it has no key, and lakehouse.tables.no-key=dlq")

    def _tolerated(self, kind: RecordKind, why: object) -> str:
        """Return why records are bad. Raise FatalTaskError where bad records are not tolerated."""
        if not self._config.tolerates:
            raise FatalTaskError(
                f"The record at {describe_record(*kind.position)} is bad: {why}. Nothing of this batch was written. "
                "With errors.tolerance=all such records go to the dead letter queue."
            )
        return str(why)

    def _rule(self, value: str | None, meaning: Meaning) -> str:
        config = self._config
        if config["tables.route-field"]:
            return f"lakehouse.tables.route-field is {config['tables.route-field']} and its value there {value!r}"
        known = ", ".join(sorted(meaning.parts))
        return f"lakehouse.tables.route-pattern is {config['tables.route-pattern']} and only {known} are known of it"

    def _learn(self, positions: Mapping[Fingerprint, tuple[TopicPartition, int]]) -> None:
        """Fetch one record for each fingerprint, in one read of the range that holds them, and read their schemas."""
        if not positions:
            return
        ranges = enclosing_ranges(positions.values())
        found = self._format.whole(self._few(ranges).where(at_positions(positions.values()))).collect()
        records = {(TopicPartition(row["topic"], row["partition"]), row["offset"]): row for row in found}
        for fingerprint, (tp, offset) in positions.items():
            record = records.get((tp, offset))
            try:
                self._known[fingerprint] = self._meaning(fingerprint, record)
                self._format.learn(fingerprint, record)
            except DataError as error:
                if self._config.tolerates:
                    self._known[fingerprint] = Meaning(RecordSchema(Form.IGNORED), problem=str(error))
                    continue
                form = "JSON with schemas" if isinstance(self._format, PlainRecords) else "by the connector's converters and transforms"
                raise FatalTaskError(
                    f"The record at {describe_record(tp, offset)} cannot become a row: {error}. The sink reads "
                    f"{form}, which must be those that the records were written with. Nothing of this batch was written."
                ) from None

    def _schema(self, fingerprint: Fingerprint, key: SchemaJson | None, value: SchemaJson | None, record: Row) -> RecordSchema:
        tombstone = fingerprint.value is None
        untyped = frozenset({"key"} if fingerprint.key is not None and key is None and isinstance(_payload_of(record["key"]), dict) else ())
        if tombstone or value is not None:
            schema = read_schemas(key, value, tombstone=tombstone, options=self._types)
        else:
            schema = schemaless.describe(record["routed"] or fingerprint.topic, _payload_of(record["value"]))
            keys = read_schemas(key, None, tombstone=True, options=self._types).keys
            schema = replace(schema, keys=keys, columns=keys)
        return schema if schema.form is Form.IGNORED else replace(schema, untyped=schema.untyped | untyped)

    def _meaning(self, fingerprint: Fingerprint, record: Row | None) -> Meaning:
        if record is None:
            raise DataError("Kafka no longer has it")
        if record["problem"] is not None:
            raise DataError(record["problem"])
        key, value = parse_head(record["khead"]), parse_head(record["vhead"])
        schema = self._schema(fingerprint, key, value, record)
        if schema.form is Form.IGNORED:
            return Meaning(schema)
        topic = record["routed"] or fingerprint.topic
        source: dict[str, str | None] = _source_of(record["value"]) if schema.form is Form.ENVELOPE else {}
        parts = routing.parts_of_topic(topic) | routing.parts_of_source(topic, source)
        route = {name: text for name in ("db", "schema", "table", "collection") if (text := source.get(name)) is not None}
        one_table = not (self._config["tables"] or self._config["tables.dynamic-enabled"])
        return Meaning(schema, topic, parts, route if one_table else {})


def _payload_of(text: bytes) -> Any:
    try:
        return json.loads(bytes(text)).get("payload")
    except (ValueError, RecursionError, AttributeError):
        raise DataError("the text is not JSON with a schema and a payload, or is nested too deeply") from None


def _source_of(value: bytes) -> dict[str, str | None]:
    """Return what names the table in an envelope's source block."""
    payload = _payload_of(value)
    source = payload.get("source") if isinstance(payload, dict) else None
    names = {name: source.get(name) for name in ("name", "db", "schema", "table", "collection")} if isinstance(source, dict) else {}
    if any(not isinstance(text, str | None) for text in names.values()):
        raise DataError("the names in its source block are no texts")
    return names


def _wanted(group: Group, config: SinkConfig) -> str:
    """Return SQL that says which records are of a group."""
    fingerprint = group.fingerprint
    wanted = [f"`topic` = {literal(fingerprint.topic)}", _equals("kfp", fingerprint.key), _equals("vfp", fingerprint.value)]
    wanted += [f"`route` <=> {'NULL' if group.value is None else literal(group.value)}"] if routing.by_value(config) else []
    return " AND ".join(wanted)


def _equals(column: str, fingerprint: int | None) -> str:
    # False, not unknown, for tombstones: of `unknown AND x` Spark evaluates x too, and x may be a check that raises.
    return f"{column} IS NULL" if fingerprint is None else f"{column} <=> {fingerprint}L"


class Prefetch:
    """Reads one task's next batch. Its thread uses the reader only between `begin` and `take` or `drop`; the task reads nothing then.

    Args:
        initialize: called first of all in the thread.
    """

    def __init__(self, reader: Reader, initialize: Callable[[], None] | None = None) -> None:
        self._reader = reader
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lakehouse-read-ahead", initializer=initialize)
        self._ranges: Mapping[TopicPartition, Range] = {}
        self._batch: Future[Batch] | None = None

    def begin(self, ranges: Mapping[TopicPartition, Range]) -> None:
        """Start to read ranges. What was read before them has been taken or dropped."""
        self._ranges = ranges
        self._batch = self._thread.submit(self._reader.read, ranges)

    def take(self, ranges: Mapping[TopicPartition, Range]) -> Batch | None:
        """Wait for the batch of these ranges; None when other ranges or none were read, or reading failed (the task tries again)."""
        if self._batch is None:
            return None
        if self._ranges != ranges:
            self.drop()
            return None
        reading, self._batch = self._batch, None
        try:
            return reading.result()
        except Exception as error:  # noqa: BLE001  # the task reads the same again, and fails by the rules if it must
            _log.debug("Reading ahead failed: %s", error)
            return None

    def drop(self) -> None:
        """Release what was read in vain."""
        if self._batch is None:
            return
        reading, self._batch = self._batch, None
        _release(reading)

    def close(self) -> None:
        """Release what was read, without waiting for an unfinished read: Spark's end cuts that short. Idempotent."""
        reading, self._batch = self._batch, None
        if reading is not None:
            reading.add_done_callback(_release)
        self._thread.shutdown(wait=False)


def _release(reading: Future[Batch]) -> None:
    try:
        reading.result().close()
    except Exception as error:  # noqa: BLE001  # the batch is not needed
        _log.debug("What was read ahead cannot be released: %s", error)
