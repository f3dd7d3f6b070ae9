"""PostgreSQL's `source` block (`io.debezium.connector.postgresql.SourceInfo`).

Pure: bytes from values. A block belongs to one table; a transaction's part of it is rendered once, an event adds only its LSN.
"""

from __future__ import annotations

from connect_py.converters.json_write import quote
from connect_py.data.schema import OPTIONAL_INT64, OPTIONAL_STRING, STRING
from connectors.engine.envelope import source_schema

SOURCE_SCHEMA = source_schema(
    "postgresql",
    [
        ("schema", STRING),
        ("table", STRING),
        ("txId", OPTIONAL_INT64),
        ("lsn", OPTIONAL_INT64),
        ("xmin", OPTIONAL_INT64),
        ("origin", OPTIONAL_STRING),
        ("origin_lsn", OPTIONAL_INT64),
    ],
)


class TransactionSource:
    """The block of one table's events in one transaction; call it with an event's LSN.

    The text holds the LSN twice, in `sequence` and in `lsn`, so it is three parts around it.
    """

    __slots__ = ("_head", "_last", "_middle")

    def __init__(self, head: bytes, middle: bytes, last: bytes) -> None:
        self._head, self._middle, self._last = head, middle, last

    def __call__(self, lsn: int) -> bytes:
        """Return the JSON text of the block of an event at this LSN."""
        text = b"%d" % lsn
        return b"".join((self._head, text, self._middle, text, self._last))


class SourceBlock:
    """Renders the block of one table.

    Args:
        version: Debezium's version that events show.
        name: `topic.prefix`.
        database: the captured database.
        schema: the table's schema.
        table: the table's name.
        nulls_as_defaults: as in `JsonEncoding`. Debezium leaves `snapshot` of a streamed event null, which shows as its default.
    """

    def __init__(self, version: str, name: str, database: str, schema: str, table: str, *, nulls_as_defaults: bool = True) -> None:
        self._streamed = '"false"' if nulls_as_defaults else "null"
        self._start = f'{{"version":{quote(version)},"connector":"postgresql","name":{quote(name)},"ts_ms":'
        self._database = f'"db":{quote(database)},"sequence":'
        self._table = f'"schema":{quote(schema)},"table":{quote(table)},"txId":'

    def transaction(
        self,
        ts_us: int,
        tx_id: int | None,
        last_commit_lsn: int | None,
        origin: str | None = None,
        origin_lsn: int | None = None,
        marker: str | None = None,
        xmin: int | None = None,
    ) -> TransactionSource:
        """Return what a transaction's events in this table share.

        Args:
            ts_us: commit time, microseconds since 1970.
            tx_id: None for a message outside of a transaction.
            last_commit_lsn: LSN of the commit record of the last transaction before this one that was processed.
            origin: name of the replication origin, if the transaction came from one.
            marker: what `snapshot` shows; None for a streamed event.
        """
        before = "null" if last_commit_lsn is None else f'\\"{last_commit_lsn}\\"'
        shown = self._streamed if marker is None else f'"{marker}"'
        head = f'{self._start}{ts_us // 1000},"snapshot":{shown},{self._database}"[{before},\\"'
        middle = f'\\"]","ts_us":{ts_us},"ts_ns":{ts_us * 1000},{self._table}{_number(tx_id)},"lsn":'
        last = f',"xmin":{_number(xmin)},"origin":{"null" if origin is None else quote(origin)},"origin_lsn":{_number(origin_lsn)}}}'
        return TransactionSource(head.encode(), middle.encode(), last.encode())

    def snapshot(
        self, marker: str, ts_us: int, tx_id: int | None, lsn: int, xmin: int | None = None, last_commit_lsn: int | None = None
    ) -> bytes:
        """Return the block of rows read by an initial or blocking snapshot.

        Args:
            marker: first, true, last …
            ts_us: when the snapshot was taken, microseconds since 1970.
            lsn: the position from which streaming continues.
            last_commit_lsn: as in `transaction`, for a snapshot that interrupts a stream.
        """
        return self.transaction(ts_us, tx_id, last_commit_lsn, marker=marker, xmin=xmin)(lsn)

    def incremental(self, now_ns: int, last_commit_lsn: int | None, lsn: int | None) -> bytes:
        """Return the block of rows read by an incremental snapshot: of no transaction, placed in the stream where they are sent.

        Args:
            now_ns: nanoseconds since 1970.
            last_commit_lsn: as in `transaction`.
            lsn: the position of the stream's last event.
        """
        sequence = ",".join("null" if known is None else f'\\"{known}\\"' for known in (last_commit_lsn, lsn))
        return (
            f'{self._start}{now_ns // 1_000_000},"snapshot":"incremental",{self._database}"[{sequence}]","ts_us":{now_ns // 1000},'
            f'"ts_ns":{now_ns},{self._table}null,"lsn":null,"xmin":null,"origin":null,"origin_lsn":null}}'
        ).encode()


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)
