"""The stream of changes: events become records, and documents of the signal collection signals. Owned by the task's thread.

`ChangeStream` gives batches of raw events; it is the only reader of its cursor. The driver's own class gives one event at a time and does
not say whether another one is there already, so that a reader either waits after each burst or works event by event. Here a batch is what
one answer of the server holds. After a failure the task continues from the position that it has handed out.

Each event is a position of its own: it has its resume token. So a batch may end after any event, and a restart shows no event of a batch
that Kafka holds again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument
from bson.timestamp import Timestamp
from pymongo.command_cursor import CommandCursor
from pymongo.errors import PyMongoError

from connect_py.api.record import EncodedRow
from connect_py.converters.json_write import quote
from connect_py.errors import FatalTaskError
from connectors.engine.batches import PendingRows
from connectors.engine.metadata_records import TransactionMonitor
from connectors.engine.metrics import StreamingMetrics
from connectors.engine.signal.records import SignalRecord, inserted
from connectors.mongodb.capture import Capture
from connectors.mongodb.collection import Collection, CollectionFactory
from connectors.mongodb.config import MongoConfig
from connectors.mongodb.position.offset import MongoOffset, ResumeToken
from connectors.mongodb.server.connection import Client, answered
from connectors.mongodb.values.bson_forms import Form, MalformedBsonError
from connectors.mongodb.values.bson_json import bson_json
from connectors.mongodb.values.documents import RAW, Documents, Event, fields_of

log = logging.getLogger(__name__)


class ChangeStream:
    """An open cursor.

    Args:
        start: where to begin: after its token, at its time, at `capture.start.op.time`, or now; the first one that is there.
        batch_size: maximum number of events of an answer.
        wait_ms: how long the server waits for an event before it answers that there is none.

    Raises:
        LostPositionError: the position is gone.
        ServerError: the server refuses.
    """

    def __init__(self, client: Client, capture: Capture, start: MongoOffset | None, *, batch_size: int, wait_ms: int) -> None:
        options: dict[str, Any] = dict(capture.options)
        if start is not None and start.token is not None:
            options["resumeAfter"] = start.token.document
        elif start is not None and start.seconds > 0:
            options["startAtOperationTime"] = Timestamp(start.seconds, max(start.increment, 0))
        elif capture.start_at is not None:
            options["startAtOperationTime"] = Timestamp(*capture.start_at)
        if capture.database is None:
            options["allChangesForCluster"] = True
        command = {
            "aggregate": capture.collection or 1,
            "pipeline": [{"$changeStream": options}, *capture.stages],
            "cursor": {"batchSize": batch_size},
        }
        self._fragments = Fragments()
        with answered(f"The change stream of {capture.shown_target} cannot be opened"):
            # the answers after the first one are read with the options of the database
            database = client.get_database(capture.database or "admin", codec_options=RAW)
            self._cursor: CommandCursor[Any] = database.cursor_command(
                command, codec_options=RAW, read_preference=client.read_preference, max_await_time_ms=wait_ms
            )
            # a cursor takes the size of the answers that follow the first one from here
            self._cursor.batch_size(batch_size)

    def read(self) -> Sequence[Event]:
        """Return the events of the next answer, those that the server split put together; none when none came in the time.

        Raises:
            LostPositionError, LostConnectionError, ServerError: reading failed.
            MalformedBsonError: the bytes of an event are none.
            FatalTaskError: parts of an event are missing, or an event like `invalidate` ended the stream.
        """
        with answered("Unable to fetch change stream events"):
            first = self._cursor.try_next()
            answer: list[RawBSONDocument] = [] if first is None else [first]
            if self._cursor._has_next():
                self._cursor._next_batch(answer)
            if first is None and not self._cursor.alive:
                raise FatalTaskError(
                    "The change stream has ended: what it watches (capture.target) was dropped or renamed. What happened before was read. "
                    "Restart the connector with another capture.target or scope, or take a new snapshot"
                )
            answers = [bytes(event.raw) for event in answer]
        return self._fragments.join([fields_of(event) for event in answers])

    @property
    def token(self) -> ResumeToken | None:
        """A position after everything that was read, given also where nothing happens; None where the server gives none.

        Raises:
            ServerError: what it gives is no token.
        """
        # not public, and neither is `_next_batch`: the driver's own ChangeStream has its `resume_token` from here
        token = self._cursor._post_batch_resume_token
        if token is None or self._fragments.is_open:
            return None
        with answered("The position of the change stream cannot be read"):
            return ResumeToken.of(token)

    def close(self) -> None:
        """Close the cursor; a server that is gone is no error."""
        # the server drops the cursor by itself; the driver refuses a cursor whose number the server never should have given
        with suppress(PyMongoError, OSError, TypeError):
            self._cursor.close()


class Fragments:
    """Puts events together again that the server split because they were too large (`$changeStreamSplitLargeEvent`)."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []

    @property
    def is_open(self) -> bool:
        """Whether the last fragment of an event is still missing."""
        return bool(self._parts)

    def join(self, events: Sequence[dict[str, Any]]) -> Sequence[Event]:
        """Return the whole events of an answer. Raises FatalTaskError: a fragment is missing."""
        if not self._parts and not any("splitEvent" in event for event in events):
            return events
        found: list[Event] = []
        for event in events:
            split = event.get("splitEvent")
            if split is None:
                if self._parts:
                    raise FatalTaskError("Missing event fragment")
                found.append(event)
                continue
            self._parts.append(event)
            fragment = fields_of(split) if isinstance(split, bytes) else {}
            number = fragment.get("fragment")
            if number != len(self._parts):
                raise FatalTaskError("Missing event fragment")
            if number == fragment.get("of"):
                _check(event)
                found.append(merged(self._parts))
                self._parts = []
        return found


def merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one event made of its fragments: the first value of each field, and the token of the last fragment."""
    event: dict[str, Any] = {}
    for part in reversed(parts):
        event |= part
    event["_id"] = parts[-1]["_id"]
    del event["splitEvent"]
    return event


#: What fields of an event are, as `fields_of` gives them.
_KINDS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("_id", "ns", "documentKey", "lsid", "splitEvent", "updateDescription"), bytes),
    **dict.fromkeys(("fullDocument", "fullDocumentBeforeChange"), bytes),
    **dict.fromkeys(("wallTime", "txnNumber"), int),
    "operationType": str,
    "clusterTime": tuple,
}
#: Fields of each event of a document; only the last fragment of one that was split needs the others.
_REQUIRED: Final = ("_id", "operationType", "ns", "documentKey", "clusterTime")


def _check(event: Event) -> None:
    """Raise MalformedBsonError where an event is none of the server's manual, "Change Events"."""
    wrong = [name for name, value in event.items() if not isinstance(value, _KINDS.get(name, object))]
    missing = [name for name in (("_id",) if "splitEvent" in event else _REQUIRED) if name not in event]
    if wrong or missing:
        raise MalformedBsonError(f"A change event is not as the server documents it: without {missing}, of other types {wrong}")


_FIELDS: Final = 3
_OPTIONS: Final[CodecOptions[dict[str, Any]]] = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_MS, unicode_decode_error_handler="replace"
)
_text = bson_json(Form.RELAXED).document


def signal_of(raw: bytes) -> tuple[str, str, str] | None:
    """Return id, type and data (JSON text, perhaps empty) of a signal document; None, with a warning, for another document."""
    try:
        document = bson.decode(raw, _OPTIONS)
    except BSONError as error:
        raise MalformedBsonError(f"A signal document cannot be read: {error}") from error
    if len(document) != _FIELDS:
        log.warning("The signal event '%s' should have %d fields but has %d", _text(raw), _FIELDS, len(document))
        return None
    id_, type_, data = (_shown(value) for value in document.values())
    return id_, type_, data


def _shown(value: Any) -> str:
    return _text(bson.encode(value)) if isinstance(value, dict) else "" if value is None else str(value)


_OPERATIONS = {"insert": "c", "update": "u", "replace": "u", "delete": "d"}


class EventStream:
    """Reads a change stream and puts records to `pending`.

    Args:
        offset: where the stream begins.
        signal: carries out a signal of the signal collection; may add to `pending`.
        monitor: transaction metadata; None without them.

    Attributes:
        watched: the namespace for whose events `on_event` is called, with their keys.
        on_first_use: called with every captured namespace as its first event is shown.
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
            try:
                shown |= self._event(event, counts)
            except (KeyError, TypeError, AttributeError):
                _check(event)
                raise
        if events:
            self._metrics.events(sum(counts.values()), created=counts["c"], updated=counts["u"], deleted=counts["d"])
            offset = self.offset
            self._metrics.behind(time.time_ns() // 1_000_000 - offset.seconds * 1000)
            self._metrics.position = {"sec": offset.seconds, "ord": offset.increment}
        return shown

    @property
    def offset(self) -> MongoOffset:
        """The position after the last event that was shown."""
        event = self._last
        if event is not None:
            session, number, _ = self._transaction(event)
            seconds, increment = event["clusterTime"]
            self._offset = MongoOffset(seconds, increment, ResumeToken(event["_id"]), lsid=session, txn_number=number)
            self._last = None
        return self._offset

    @property
    def idle_offset(self) -> MongoOffset | None:
        """The position up to which nothing more has happened to captured collections; None where the server does not say."""
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
            if not isinstance(event["operationType"], str):
                _check(event)
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
        fields = fields_of(name)
        database, name_in_it = fields.get("db"), fields.get("coll")
        if not (isinstance(database, str) and isinstance(name_in_it, str)):
            raise MalformedBsonError(f"A change event is of no collection: {fields}")
        namespace = f"{database}.{name_in_it}"
        found = self._collections.get(namespace) if self._is_captured(namespace) else None
        self._known[name] = found
        if found is not None:
            self.on_first_use(namespace)
        return found

    def _record(self, collection: Collection, event: Event, op: str) -> None:
        documents = self._documents
        key = documents.key(event["documentKey"], collection)
        wall_ms = event.get("wallTime")
        if not (isinstance(wall_ms, int | None) and isinstance(event["_id"], bytes)):
            _check(event)
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
        """Return the text of the session and number, where there are both, and the transaction's id."""
        lsid, number = event.get("lsid"), event.get("txnNumber")
        if lsid is None and number is None:
            return None, None, None
        text = None if lsid is None else self._documents.session(lsid)
        id_ = ":".join(part for part in (text, None if number is None else str(number)) if part)
        return (text, number, id_) if text is not None and number is not None else (None, None, id_)

    def _count(self, collection: Collection, id_: str | None, ts_ms: int) -> bytes:
        """Return the JSON text of an event's transaction block; boundaries become records when an event with another id, or none, comes."""
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
