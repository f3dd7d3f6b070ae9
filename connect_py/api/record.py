"""Hold records on their way between a connector and Kafka, and where a source is.

A source gives records in one of two forms. `SourceRecord` is Connect's own: schema and value, to be transformed and converted.
`EncodedBatch` is this project's short way: rows that the connector has already serialised with the encoding that its context asked for
(`SourceTaskContext.encoding`), bytes in, bytes out, with no object a field. A connector gives either; the runtime decodes an encoded row
into a `SourceRecord` where a transform or another converter needs one, so a connector need not care which chain it feeds.

A *source partition* names a stream of records (``{"server": "shop"}``), a *source offset* a position in it
(``{"lsn": 33554816, "txId": 742}``; KIP-26, `OffsetUtils.java` has the rules on types). Both are flat maps of strings to primitives. Their
order of keys is kept, because the offsets topic is keyed by the exact bytes of ``["connector", partition]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from connect_py.data import Schema

OffsetValue = None | bool | int | float | str
SourcePartition = Mapping[str, OffsetValue]
SourceOffset = Mapping[str, OffsetValue]


class Header(NamedTuple):
    """One header of a record, not yet converted."""

    name: str
    value: Any
    schema: Schema | None = None


class TopicPartition(NamedTuple):
    """A partition of a Kafka topic."""

    topic: str
    partition: int


class RecordMetadata(NamedTuple):
    """Where Kafka put a record (`org.apache.kafka.clients.producer.RecordMetadata`).

    Attributes:
        timestamp: epoch milliseconds, None when the topic keeps none.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None


@dataclass(slots=True)
class SourceRecord:
    """What a source read (`org.apache.kafka.connect.source.SourceRecord`).

    Attributes:
        source_partition: the stream that the record belongs to.
        source_offset: the position from which reading resumes once the record is in Kafka.
        topic: where the record goes.
        partition: the Kafka partition, or None to let the key decide.
        timestamp: epoch milliseconds, or None for the time of sending.
    """

    source_partition: SourcePartition
    source_offset: SourceOffset
    topic: str
    key_schema: Schema | None = None
    key: Any = None
    value_schema: Schema | None = None
    value: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: list[Header] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class JsonEncoding:
    """How `EncodedBatch` rows must look: JsonConverter's settings for keys and values.

    Attributes:
        key_schemas: whether keys are ``{"schema":…,"payload":…}``.
        value_schemas: the same of values.
        key_decimals_numeric: decimals of keys are JSON numbers (``decimal.format=NUMERIC``), else base64.
        value_decimals_numeric: the same of values.
        nulls_as_defaults: whether a null is written as its schema's default (``replace.null.with.default``).
    """

    key_schemas: bool = True
    value_schemas: bool = True
    key_decimals_numeric: bool = False
    value_decimals_numeric: bool = False
    nulls_as_defaults: bool = True


class KeyText(str):
    """A header that shows a key of its route: JSON text without schema, decimals as numbers.

    Attributes:
        schema: of the key; None says the route's.
    """

    __slots__ = ("schema",)

    schema: Schema | None

    def __new__(cls, text: str, schema: Schema | None = None) -> KeyText:
        """Return a header's text."""
        made = super().__new__(cls, text)
        made.schema = schema
        return made


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """What many encoded rows share: where they go and what they are. One object a table and schema version.

    Attributes:
        headers: (name, text) pairs in order: strings, or structs of the key's schema where the text is a `KeyText`.
        key_schema: schema of the key, None where the table has no key.
        value_schema: schema of the value; a null value is a tombstone whatever it says.
    """

    topic: str
    key_schema: Schema | None
    value_schema: Schema
    headers: tuple[tuple[str, str], ...] = ()
    partition: int | None = None


EncodedRow = tuple[Route, bytes | None, bytes | None]


@dataclass(slots=True)
class EncodedBatch:
    """Rows of one source partition, serialised, in order.

    Attributes:
        rows: (route, key, value); a None value is a tombstone.
        source_partition: the stream that all rows belong to.
        source_offset: the position from which reading resumes once *all* rows are in Kafka. A batch never ends inside one source event.
        is_milestone: whether the offset should be stored without waiting for the next regular commit, because much would have to be read
            again without it.
    """

    rows: Sequence[EncodedRow]
    source_partition: SourcePartition
    source_offset: SourceOffset
    is_milestone: bool = False


@dataclass(slots=True)
class SinkRecord:
    """A consumed and converted record (`org.apache.kafka.connect.sink.SinkRecord`).

    Attributes:
        timestamp: epoch milliseconds, None when the topic keeps none.
        offset: of the record in its Kafka partition.
    """

    topic: str
    partition: int
    offset: int
    key_schema: Schema | None = None
    key: Any = None
    value_schema: Schema | None = None
    value: Any = None
    timestamp: int | None = None
    headers: list[Header] = field(default_factory=list)
