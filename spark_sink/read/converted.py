"""Records that the worker's own classes read: its converters and the connector's transforms, in Python on executors, over Arrow batches, or
in the driver's own process.

What comes out is what `JsonConverter` would write, so all that follows is the same for every converter. A record's schemas are not carried
along: each becomes a number. Topic, partition and offset stay the record's own, whatever transforms make of them; a topic to which they
move a record is part of the number. `open_format` says whether a connector needs this, or `PlainRecords` gives the same more quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connect_py.api import RecordConversion, RecordReader, SinkRecord
from connect_py.api.task import LogRecord
from connect_py.converters.json_schema import schema_to_json
from connect_py.converters.json_struct import rows_writer
from connect_py.converters.json_write import WriteOptions
from connect_py.data import Schema
from connect_py.data.schema import SchemaCache
from connect_py.errors import DataError
from spark_sink.read.formats import PROBLEM, CutRecord, Fingerprint, PlainRecords, RecordFormat, number_of, whole_and_heads
from spark_sink.read.schemaless import kind_of_value

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, Row


#: Nulls stay nulls: whether a default takes their place has been decided by the connector's own converters.
_OPTIONS = WriteOptions(numeric_decimals=False, replace_null_with_default=False)

_POSITION_TYPES = "topic string, partition int, offset bigint, timestamp timestamp"

#: What `_cut` and `_whole` give of each record.
_CUT = "kfp bigint, vfp bigint, key string, value string"
_WHOLE = "key binary, value binary, routed string"

_Parts = tuple[Any, ...]


class ConvertedRecords:
    """Any converters and transforms, in Python; nothing is gained by knowing schemas."""

    needs_headers = True
    peeks = False
    numeric_decimals = False

    def __init__(self, conversion: RecordConversion) -> None:
        self._conversion = conversion

    def rows(self, kafka: DataFrame) -> DataFrame:
        types = f"{_POSITION_TYPES}, {_CUT}, headers array<struct<key:string,value:binary>>, problem string"
        return kafka.mapInArrow(Converting(self._conversion, whole=False), types)

    def cut(self, records: Sequence[LogRecord]) -> list[CutRecord]:
        """Convert records in this process. Raises as `Converting`."""
        reader, writers = self._conversion.open(), SchemaCache(_Writer)
        found: list[CutRecord] = []
        try:
            for record in records:
                time = -1 if record.timestamp is None else record.timestamp
                place = (record.topic, record.partition, record.offset, time)
                try:
                    read = reader.read(*place, record.key, record.value, record.headers)
                    if read is None:
                        continue
                    kfp, vfp, key, value = _cut(read, writers)
                    found.append(CutRecord(*place, kfp, vfp, _encoded(key), _encoded(value)))
                except DataError as error:
                    found.append(CutRecord(*place, None, PROBLEM, None, None, str(error)))
        finally:
            reader.close()
        return found

    def whole(self, kafka: DataFrame) -> DataFrame:
        types = f"{_POSITION_TYPES}, {_WHOLE}, headers array<struct<key:string,value:binary>>, problem string"
        found = kafka.mapInArrow(Converting(self._conversion, whole=True), types)
        return found.selectExpr(*whole_and_heads(), "routed", "problem")

    def learn(self, fingerprint: Fingerprint, record: Row | None) -> None:
        pass

    def counted(self, records: Mapping[Fingerprint, int]) -> None:
        pass


@dataclass(frozen=True)
class Converting:
    """The function that each executor runs over its Arrow batches of Kafka's columns.

    Attributes:
        whole: whether keys and values come with their schemas, for the driver, or as payloads with the schemas' numbers.
    """

    conversion: RecordConversion
    whole: bool

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Convert batches. Raise RetriableError when a registry does not answer; the whole batch is tried again."""
        reader = self.conversion.open()
        writers: SchemaCache[_Writer] = SchemaCache(_Writer)
        try:
            for batch in batches:
                yield self._converted(batch, reader, writers)
        finally:
            reader.close()

    def _converted(self, batch: pyarrow.RecordBatch, reader: RecordReader, writers: SchemaCache[_Writer]) -> pyarrow.RecordBatch:
        import pyarrow as pa

        parts = _whole if self.whole else _cut
        unread: _Parts = (None, None, None) if self.whole else (None, PROBLEM, None, None)
        lists = [batch.column(name).to_pylist() for name in ("topic", "partition", "offset", "key", "value", "headers")]
        times = batch.column("timestamp").cast(pa.int64()).to_pylist()
        rows: list[_Parts] = []
        for topic, partition, offset, key, value, headers, time in zip(*lists, times, strict=True):
            pairs = [(header["key"], header["value"]) for header in headers or ()]
            try:
                record = reader.read(topic, partition, offset, None if time is None else time // 1000, key, value, pairs)
                if record is None:
                    continue
                rows.append((topic, partition, offset, time, *parts(record, writers), _headers(record), None))
            except DataError as error:
                rows.append((topic, partition, offset, time, *unread, None, str(error)))
        schema = _arrow_schema(whole=self.whole)
        columns = zip(*rows, strict=True) if rows else [()] * len(schema)
        arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Writer:
    """Writes values of one schema."""

    def __init__(self, schema: Schema | None) -> None:
        self.schema = schema_to_json(schema)
        self.write: Callable[[Any], str] = rows_writer(schema, _OPTIONS)
        self._numbers: dict[tuple[str, str], int] = {}

    def number(self, topic: str, kind: str = "") -> int:
        """Return the schema's number in records of a topic, after the transforms; `kind` distinguishes values without a schema."""
        known = self._numbers.get((topic, kind))
        if known is None:
            known = self._numbers[(topic, kind)] = number_of(b"\x00".join((self.schema, topic.encode(), kind.encode())))
        return known


def _cut(record: SinkRecord, writers: SchemaCache[_Writer]) -> _Parts:
    key = value = kfp = vfp = None
    if record.key is not None:
        writer = writers(record.key_schema)
        kfp, key = writer.number(record.topic), writer.write(record.key)
    if record.value is not None:
        writer = writers(record.value_schema)
        kind = kind_of_value(record.value) if record.value_schema is None else ""
        vfp, value = writer.number(record.topic, kind), writer.write(record.value)
    return kfp, vfp, key, value


def _whole(record: SinkRecord, writers: SchemaCache[_Writer]) -> _Parts:
    def text(schema: Schema | None, data: Any) -> bytes | None:
        if data is None:
            return None
        writer = writers(schema)
        return b'{"schema":%b,"payload":%b}' % (writer.schema, writer.write(data).encode())

    return text(record.key_schema, record.key), text(record.value_schema, record.value), record.topic


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _headers(record: SinkRecord) -> list[dict[str, Any]] | None:
    """Return headers after the transforms, as texts."""
    if not record.headers:
        return None
    return [{"key": header.name, "value": _text(header.value)} for header in record.headers]


def _text(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def _arrow_schema(*, whole: bool) -> pyarrow.Schema:
    import pyarrow as pa

    position = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", pa.timestamp("us", tz="UTC"))]
    parts = (
        [("key", pa.binary()), ("value", pa.binary()), ("routed", pa.string())]
        if whole
        else [("kfp", pa.int64()), ("vfp", pa.int64()), ("key", pa.string()), ("value", pa.string())]
    )
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.schema([*position, *parts, ("headers", headers), ("problem", pa.string())])


JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


def open_format(conversion: RecordConversion) -> RecordFormat:
    """Return the quickest format that gives what the converters and transforms would.

    Raises:
        ConfigError: one of their classes or properties is wrong.
    """
    conversion.open().close()
    sides = (conversion.converters["key"], conversion.converters["value"])
    if not conversion.transforms and all(_is_plain(side) for side in sides):
        return PlainRecords(numeric_decimals=conversion.converters["value"].get("decimal.format", "").strip().upper() == "NUMERIC")
    return ConvertedRecords(conversion)


def _is_plain(converter: Mapping[str, str]) -> bool:
    if converter["class"] != JSON_CONVERTER or converter.get("schema.content"):
        return False
    return converter.get("schemas.enable", "true").strip().lower() != "false"
