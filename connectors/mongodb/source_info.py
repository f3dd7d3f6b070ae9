"""MongoDB's `source` block (mongodb.md §4.4; `MongoDbSourceInfoStructMaker.java`). Pure: bytes from values."""

from __future__ import annotations

from connect_py.converters.json_write import quote
from connect_py.data import Schema
from connect_py.data.schema import INT32, OPTIONAL_INT64, OPTIONAL_STRING, STRING
from connectors.engine.source_info import source_schema

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
    """

    def __init__(self, connector: str, version: str, name: str, database: str, collection: str) -> None:
        self._start = f'{{"version":{quote(version)},"connector":"{connector}","name":{quote(name)},"ts_ms":'
        self._database = f',"db":{quote(database)},"sequence":null,"ts_us":'
        self._collection = f',"collection":{quote(collection)},"ord":'

    def read(self, marker: str, seconds: int, increment: int, now_ns: int) -> bytes:
        """Of a document that was read.

        Args:
            marker: what `snapshot` shows: true, last or incremental.
            seconds: of the place in the stream, not positive where the place has no time; the increment likewise.
            now_ns: nanoseconds since 1970, in place of a time that is not known.
        """
        at = seconds * 1_000_000_000 if seconds > 0 else now_ns
        return (
            f'{self._start}{at // 1_000_000},"snapshot":"{marker}"{self._database}{at // 1000},"ts_ns":{at}{self._collection}{increment},'
            '"lsid":null,"txnNumber":null,"wallTime":null}'
        ).encode()

    def event(
        self, seconds: int, increment: int, wall_ms: int | None, now_ms: int, session: str = "null", number: int | None = None
    ) -> bytes:
        """Of an event of the stream.

        Args:
            seconds: of the cluster time.
            wall_ms: milliseconds since 1970 that the server's clock showed; None before MongoDB 6.
            now_ms: in place of a time that is not known.
            session: JSON text of `lsid`, a JSON string or null.
            number: `txnNumber`.
        """
        ts = wall_ms or (seconds * 1000 if seconds > 0 else now_ms)
        return (
            f'{self._start}{ts},"snapshot":"false"{self._database}{ts}000,"ts_ns":{ts}000000{self._collection}{increment},"lsid":{session},'
            f'"txnNumber":{"null" if number is None else number},"wallTime":{"null" if wall_ms is None else wall_ms}}}'
        ).encode()
