"""Transaction metadata: which events belong together, and boundaries as records (debezium-common §3; `pipeline/txmetadata`).

`TransactionMonitor` belongs to the stream's thread. Its counts are part of the offset while a transaction is under way, so that a task that
goes on in the middle of one numbers on, and sends no second BEGIN.
"""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api import JsonEncoding
from connect_py.api.record import EncodedRow
from connect_py.converters.json_write import quote
from connect_py.data.schema import INT64, OPTIONAL_INT64, STRING, array, struct
from connectors.engine.side_records import SideRecords
from connectors.engine.topic_naming import TopicNaming

_ID = "transaction_id"
_COUNT = "transaction_data_collection_order_"


class TransactionMonitor:
    """Counts events and makes the boundaries' records.

    Attributes:
        open: the id of the transaction under way as offsets hold it; None without one.
    """

    def __init__(self, naming: TopicNaming, encoding: JsonEncoding) -> None:
        counts = struct([("data_collection", STRING), ("event_count", INT64)], optional=True, name="event.collection", version=1)
        key = struct([("id", STRING)], name=naming.schema_name("io.debezium.connector.common.TransactionMetadataKey"), version=1)
        value = struct(
            [
                ("status", STRING),
                ("id", STRING),
                ("event_count", OPTIONAL_INT64),
                ("data_collections", array(counts, optional=True)),
                ("ts_ms", INT64),
            ],
            name=naming.schema_name("io.debezium.connector.common.TransactionMetadataValue"),
            version=1,
        )
        self._records = SideRecords(naming.transaction_topic(), key, value, encoding)
        self.open: str | None = None
        self._counts: dict[str, int] = {}
        self._total = 0
        self._ended: dict[str, str | int] = {}

    def restore(self, stored: Mapping[str, object]) -> None:
        """Go on from an offset."""
        found = stored.get(_ID)
        self.open = None if found is None else str(found)
        self._counts = {name.removeprefix(_COUNT): int(str(n)) for name, n in stored.items() if name.startswith(_COUNT)}
        self._total = sum(self._counts.values())

    def offset(self) -> dict[str, str | int]:
        """The fields of the source offset: of the transaction under way, or, as Debezium leaves them there, of the last one."""
        if self.open is None:
            return self._ended
        return {_ID: self.open, **{_COUNT + name: count for name, count in self._counts.items()}}

    def begin(self, id_: str, shown_id: str, ts_ms: int) -> EncodedRow | None:
        """A transaction begins in the log.

        Args:
            id_: as offsets hold it.
            shown_id: as records show it.

        Returns:
            The record; None when the transaction was under way before a restart.
        """
        if self.open == id_:
            return None
        self.open = id_
        self._counts = {}
        self._total = 0
        return self._records.row({"id": shown_id}, {"status": "BEGIN", "id": shown_id, "ts_ms": ts_ms})

    def event(self, collection: str, shown_id: str) -> bytes:
        """An event of the open transaction: the JSON text of its block."""
        self._total += 1
        order = self._counts[collection] = self._counts.get(collection, 0) + 1
        return b'{"id":%b,"total_order":%d,"data_collection_order":%d}' % (quote(shown_id).encode(), self._total, order)

    def forget(self, collection: str) -> None:
        """The last `event` was none."""
        self._total -= 1
        self._counts[collection] -= 1
        if not self._counts[collection]:
            del self._counts[collection]

    def end(self, shown_id: str, ts_ms: int) -> EncodedRow | None:
        """The transaction is committed. Returns the record; None when none was open."""
        if self.open is None:
            return None
        collections = [{"data_collection": name, "event_count": count} for name, count in self._counts.items()]
        self._ended = self.offset()
        value = {"status": "END", "id": shown_id, "event_count": self._total, "data_collections": collections, "ts_ms": ts_ms}
        self.open = None
        self._counts = {}
        self._total = 0
        return self._records.row({"id": shown_id}, value)
