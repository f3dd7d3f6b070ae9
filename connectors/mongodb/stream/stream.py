"""From events of the change stream to records (mongodb.md §4.2, §8, §10.1). Owned by the task's thread.

Each event is a place of its own: it has its resume token. So a batch may end behind any event, and a restart shows no event of a batch that
Kafka holds again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from connect_py.api.record import EncodedRow
from connect_py.converters.json_write import quote
from connectors.engine.metrics import StreamingMetrics
from connectors.engine.pending import PendingRows
from connectors.engine.signal.records import SignalRecord, inserted
from connectors.engine.transactions import TransactionMonitor
from connectors.mongodb.collection import Collection, CollectionFactory
from connectors.mongodb.config import MongoConfig
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.position.resume_token import ResumeToken
from connectors.mongodb.stream.change_stream import ChangeStream
from connectors.mongodb.stream.signals import signal_of
from connectors.mongodb.values.change_event import Event, fields_of
from connectors.mongodb.values.documents import Documents

_OPERATIONS = {"insert": "c", "update": "u", "replace": "u", "delete": "d"}


class Streaming:
    """Reads a change stream and puts records to `pending`.

    Args:
        offset: where the stream begins.
        signal: carries out a signal of the signal collection; may add to `pending`.
        monitor: transaction metadata; None without them.

    Attributes:
        watched: the namespace whose events `on_event` is told of, by their keys.
        on_first_use: told of every captured namespace as its first event is shown.
    """

    def __init__(
        self,
        stream: ChangeStream,
        config: MongoConfig,
        offset: MongoOffset,
        collections: CollectionFactory,
        documents: Documents,
        *,
        pending: PendingRows,
        signal: Callable[[SignalRecord], None],
        monitor: TransactionMonitor | None,
        metrics: StreamingMetrics,
    ) -> None:
        self._stream = stream
        self._is_captured = config.namespaces.is_captured
        self._known: dict[bytes, Collection | None] = {}
        self._collections = collections
        self._documents = documents
        self._skipped = config.skipped
        self._tombstones = config.flag("tombstones.on.delete")
        self._signals = config.signal_collection if "source" in config.names("signal.enabled.channels") else None
        self._pending = pending
        self._signal = signal
        self._monitor = monitor
        self._metrics = metrics
        self._offset = offset
        self._last: Event | None = None
        self.watched: str | None = None
        self.on_event: Callable[[bytes], None] = lambda _: None
        self.on_first_use: Callable[[str], None] = lambda _: None

    def read(self) -> bool:
        """Read one answer of the server. Returns whether there was an event of a captured collection. Raises as `ChangeStream.read`, and
        DataError: an event cannot be decoded."""
        events = self._stream.read()
        counts = {"c": 0, "u": 0, "d": 0}
        shown = False
        for event in events:
            shown |= self._event(event, counts)
        if events:
            self._metrics.events(sum(counts.values()), created=counts["c"], updated=counts["u"], deleted=counts["d"])
            offset = self.offset
            self._metrics.behind(time.time_ns() // 1_000_000 - offset.seconds * 1000)
            self._metrics.position = {"sec": offset.seconds, "ord": offset.increment}
        return shown

    @property
    def offset(self) -> MongoOffset:
        """The place behind the last event that was shown."""
        event = self._last
        if event is not None:
            session, number, _ = self._transaction(event)
            seconds, increment = event["clusterTime"]
            self._offset = MongoOffset(seconds, increment, ResumeToken(event["_id"]), lsid=session, txn_number=number)
            self._last = None
        return self._offset

    @property
    def idle_offset(self) -> MongoOffset | None:
        """The place up to which nothing more has happened to captured collections; None where the server does not say."""
        token = self._stream.token
        if token is None or token == self.offset.token:
            return None
        return MongoOffset(-1, -1, token)

    def close(self) -> None:
        """Close the cursor."""
        self._stream.close()

    # -- events ------------------------------------------------------------------------------------------------------------------------

    def _event(self, event: Event, counts: dict[str, int]) -> bool:
        op = _OPERATIONS.get(event["operationType"])
        if op is None:
            return False
        try:
            collection = self._known[event["ns"]]
        except KeyError:
            collection = self._collection(event["ns"])
        if collection is None:
            self._metrics.filtered += 1
            return False
        self._last = event
        if collection.namespace == self._signals and op == "c":
            found = signal_of(event["fullDocument"])
            if found is not None:
                self._signal(inserted(*found))
        if op in self._skipped:
            return True
        counts[op] += 1
        self._record(collection, event, op)
        return True

    def _collection(self, name: bytes) -> Collection | None:
        told = fields_of(name)
        namespace = f"{told['db']}.{told['coll']}"
        found = self._collections.get(namespace) if self._is_captured(namespace) else None
        self._known[name] = found
        if found is not None:
            self.on_first_use(namespace)
        return found

    def _record(self, collection: Collection, event: Event, op: str) -> None:
        documents = self._documents
        key = documents.key(event["documentKey"], collection)
        wall_ms = event.get("wallTime")
        now_ms = time.time_ns() // 1_000_000
        seconds, increment = event["clusterTime"]
        session, number, transaction = self._transaction(event)
        source = collection.block.event(
            seconds, increment, wall_ms, now_ms, "null" if session is None else quote(session), None if session is None else number
        )
        block = b"null"
        if self._monitor is not None:
            block = self._count(collection, transaction, wall_ms or seconds * 1000)
        before, after = event.get("fullDocumentBeforeChange"), event.get("fullDocument")
        description = event.get("updateDescription") if event["operationType"] == "update" else None
        changes = collection.changes
        value = b"".join(
            (
                collection.value_start,
                b"null" if before is None else documents.quoted(before, changes),
                b',"after":',
                b"null" if after is None else documents.quoted(after, changes),
                b',"updateDescription":',
                b"null" if description is None else documents.update(description, changes),
                b',"source":',
                source,
                collection.tail(op, now_ms, block),
            )
        )
        if collection.namespace == self.watched:
            self.on_event(key)
        rows: list[EncodedRow] = self._pending.rows
        rows.append((collection.route, key, value))
        if op == "d" and self._tombstones:
            rows.append((collection.route, key, None))

    def _transaction(self, event: Event) -> tuple[str | None, int | None, str | None]:
        """Text of the session and number, where there are both, and the transaction's id."""
        lsid, number = event.get("lsid"), event.get("txnNumber")
        if lsid is None and number is None:
            return None, None, None
        text = None if lsid is None else self._documents.session(lsid)
        id_ = ":".join(part for part in (text, None if number is None else str(number)) if part)
        return (text, number, id_) if text is not None and number is not None else (None, None, id_)

    def _count(self, collection: Collection, id_: str | None, ts_ms: int) -> bytes:
        """The JSON text of an event's transaction block; boundaries become records when an event with another id, or none, comes."""
        monitor = self._monitor
        assert monitor is not None
        if monitor.open is not None and monitor.open != id_:
            ended = monitor.end(monitor.open, ts_ms)
            if ended is not None:
                self._pending.rows.append(ended)
        if id_ is None:
            return b"null"
        begun = monitor.begin(id_, id_, ts_ms)
        if begun is not None:
            self._pending.rows.append(begun)
        return monitor.event(collection.namespace, id_)
