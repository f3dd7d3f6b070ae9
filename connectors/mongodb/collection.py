"""What the data path needs of a captured collection: its schemas, which never change, its route, and the bytes that its records share.

The `source` block (`MongoDbSourceInfoStructMaker`) is made here too. Pure: bytes from values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from connect_py.api import JsonEncoding, Route
from connect_py.converters.json_schema import schema_to_json
from connect_py.converters.json_write import quote
from connect_py.data import Schema, Type
from connect_py.data.schema import INT32, OPTIONAL_INT64, OPTIONAL_STRING, STRING, array, struct
from connectors.engine.envelope import TRANSACTION_SCHEMA, source_schema
from connectors.engine.topic_naming import TopicNaming
from connectors.mongodb.capture import split_namespace
from connectors.mongodb.config import CONNECTOR, MongoConfig
from connectors.mongodb.field_rules import FieldChanges

BLOCK_SCHEMA: Schema = source_schema(
    "mongo",
    [
        ("collection", STRING),
        ("ord", INT32),
        ("lsid", OPTIONAL_STRING),
        ("txnNumber", OPTIONAL_INT64),
        ("wallTime", OPTIONAL_INT64),
    ],
)


class SourceBlock:
    """Renders the block of one collection.

    Args:
        version: Debezium's version that events show.
        name: `topic.prefix`.
        nulls_as_defaults: as in `JsonEncoding`. Debezium leaves `snapshot` of a streamed event null, which shows as its default.
    """

    def __init__(self, connector: str, version: str, name: str, database: str, collection: str, *, nulls_as_defaults: bool = True) -> None:
        self._streamed = '"false"' if nulls_as_defaults else "null"
        self._start = f'{{"version":{quote(version)},"connector":"{connector}","name":{quote(name)},"ts_ms":'
        self._database = f',"db":{quote(database)},"sequence":null,"ts_us":'
        self._collection = f',"collection":{quote(collection)},"ord":'

    def read(self, marker: str, seconds: int, increment: int, now_ns: int) -> bytes:
        """Return the block of a document that was read.

        Args:
            marker: what `snapshot` shows: true, last or incremental.
            seconds: seconds of the position in the stream, not positive where it has no time; the increment likewise.
            now_ns: nanoseconds since 1970, for a time that is not known.
        """
        at = seconds * 1_000_000_000 if seconds > 0 else now_ns
        return (
            f'{self._start}{at // 1_000_000},"snapshot":"{marker}"{self._database}{at // 1000},"ts_ns":{at}{self._collection}{increment},'
            '"lsid":null,"txnNumber":null,"wallTime":null}'
        ).encode()

    def event(
        self, seconds: int, increment: int, wall_ms: int | None, now_ms: int, session: str = "null", number: int | None = None
    ) -> bytes:
        """Return the block of an event of the stream.

        Args:
            seconds: seconds of the cluster time.
            wall_ms: milliseconds since 1970 that the server's clock showed; None before MongoDB 6.
            now_ms: milliseconds since 1970, for a time that is not known.
            session: JSON text of `lsid`, a JSON string or null.
            number: `txnNumber`.
        """
        ts = wall_ms or (seconds * 1000 if seconds > 0 else now_ms)
        return (
            f'{self._start}{ts},"snapshot":{self._streamed}{self._database}{ts}000,"ts_ns":{ts}000000{self._collection}{increment},"lsid":{session},'
            f'"txnNumber":{"null" if number is None else number},"wallTime":{"null" if wall_ms is None else wall_ms}}}'
        ).encode()


JSON_SCHEMA = Schema(Type.STRING, optional=True, name="io.debezium.data.Json", version=1)
_CHANGE = "io.debezium.connector.mongodb.changestream"
UPDATE_SCHEMA = struct(
    [
        ("removedFields", array(STRING, optional=True)),
        ("updatedFields", JSON_SCHEMA),
        (
            "truncatedArrays",
            array(struct([("field", STRING), ("size", INT32)], name=f"{_CHANGE}.truncatedarray", version=1), optional=True),
        ),
    ],
    optional=True,
    name=f"{_CHANGE}.updatedescription",
    version=1,
)


def envelope_schema(schema_name: str) -> Schema:
    """Return the schema of values; unlike other connectors' it has no version, one timestamp, and an optional operation."""
    return struct(
        [
            ("before", JSON_SCHEMA),
            ("after", JSON_SCHEMA),
            ("updateDescription", UPDATE_SCHEMA),
            ("source", BLOCK_SCHEMA),
            ("op", OPTIONAL_STRING),
            ("ts_ms", OPTIONAL_INT64),
            ("transaction", TRANSACTION_SCHEMA),
        ],
        name=f"{schema_name}.Envelope",
    )


def key_schema(schema_name: str) -> Schema:
    """Return the schema of keys."""
    return struct([("id", STRING)], name=f"{schema_name}.Key")


@dataclass(frozen=True, slots=True, eq=False)
class Collection:
    """A captured collection.

    Attributes:
        namespace: database and collection with a dot.
        block: its source block.
        route: the route of its records.
        changes: what is done to fields of its documents; None for nothing.
        key_head, value_head: the schemas, where the converters want them: what stands before a payload and is closed by a brace.
        key_start, key_end: around the key's id, a JSON string.
        value_start: up to the document before; value_end closes what the converter's schema opened.
        read_start: up to the document of a read.
    """

    namespace: str
    block: SourceBlock
    route: Route
    changes: FieldChanges | None
    key_head: bytes
    value_head: bytes
    key_start: bytes
    key_end: bytes
    value_start: bytes
    value_end: bytes
    read_start: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "read_start", self.value_start + b'null,"after":')

    def read_end(self, source: bytes, op: str, now_ms: int) -> bytes:
        """Return what follows the document in records of documents that were read: the same for many."""
        return b',"updateDescription":null,"source":%b%b' % (source, self.tail(op, now_ms))

    def tail(self, op: str, now_ms: int, transaction: bytes = b"null") -> bytes:
        """Return the end of a value, after the source block."""
        return b',"op":"%b","ts_ms":%d,"transaction":%b}%b' % (op.encode(), now_ms, transaction, self.value_end)


class CollectionFactory:
    """Builds `Collection`s, each once.

    Args:
        headers: the context headers of every record.
    """

    def __init__(self, config: MongoConfig, encoding: JsonEncoding, headers: tuple[tuple[str, str], ...]) -> None:
        self._config = config
        self._encoding = encoding
        self._naming = TopicNaming.from_config(config.raw, "default")
        self._headers = headers
        self._built: dict[str, Collection] = {}

    def get(self, namespace: str) -> Collection:
        """Return the collection of a namespace."""
        found = self._built.get(namespace)
        if found is None:
            found = self._built[namespace] = self._build(namespace)
        return found

    def _build(self, namespace: str) -> Collection:
        config, encoding = self._config, self._encoding
        database, collection = split_namespace(namespace)
        topic = self._naming.data_topic(database, collection)
        name = self._naming.schema_name(topic)
        key, value = key_schema(name), envelope_schema(name)
        key_head = b'{"schema":' + schema_to_json(key) + b',"payload":' if encoding.key_schemas else b""
        value_head = b'{"schema":' + schema_to_json(value) + b',"payload":' if encoding.value_schemas else b""
        return Collection(
            namespace=namespace,
            block=SourceBlock(
                CONNECTOR, config.version, config.topic_prefix, database, collection, nulls_as_defaults=encoding.nulls_as_defaults
            ),
            route=Route(topic, key, value, self._headers),
            changes=config.fields.of(namespace),
            key_head=key_head,
            value_head=value_head,
            key_start=key_head + b'{"id":',
            key_end=b"}}" if key_head else b"}",
            value_start=value_head + b'{"before":',
            value_end=b"}" if value_head else b"",
        )
