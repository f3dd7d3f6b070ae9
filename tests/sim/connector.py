"""A connector for the simulation's database, built as the real ones are: the engine's task, services, incremental snapshots and signals are
the product's; what is here is the part of a database, without a socket.

Every question to the database lets the world act before and after it, and may fail as a connection does: before the database has done what
it was asked, or after.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from connect_py.api import EncodedBatch, Route, SourceOffset, SourcePartition, SourceTaskContext
from connect_py.api.record import EncodedRow
from connect_py.data.schema import STRING
from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from connectors.engine.batches import Tuning
from connectors.engine.config import ParsedConfig
from connectors.engine.java_object import JavaValue, StoredKey
from connectors.engine.relational.tables import TableId
from connectors.engine.services import Fields, SourceServices
from connectors.engine.signal.actions import BlockingRequest
from connectors.engine.signal.taps import Taps
from connectors.engine.snapshot.incremental.contract import (
    Chunk,
    LogPositions,
    SignalTable,
    SnapshotHooks,
    UnknownCollectionError,
    Watermarks,
)
from connectors.engine.snapshot.incremental.machine import IncrementalSnapshot
from connectors.engine.snapshot.incremental.offset import WantedCollection
from connectors.engine.task import DatabaseTask, State
from tests.sim.chance import SimClock
from tests.sim.database import TABLES, Change, Database, SignalRow, Structure

PARTITION = {"server": "sim"}
SIGNALS = TableId("s", "signals")
ROUTES = {table: Route(table, STRING, STRING) for table in TABLES}

#: Table, key, position of the row's last change, structure.
Row = tuple[str, int, int, int]

CONFIG = {
    "topic.prefix": "sim",
    "heartbeat.interval.ms": "0",
    "provide.transaction.metadata": "false",
    "signal.data.collection": "s.signals",
    "signal.enabled.channels": "source,rest",
    "signal.conditions.enabled": "true",
    "signal.poll.interval.ms": "5000",
    "notification.enabled.channels": "rest",
    "snapshot.new.tables": "none",
    "max.queue.size": "100",
    "extended.headers.enabled": "false",
    "retriable.restart.connector.wait.ms": "2000",
    "errors.max.retries": "-1",
}


@dataclass(frozen=True)
class SimConfig(ParsedConfig):
    """The properties."""

    raw: Mapping[str, str]
    topic_prefix: str


class Session:
    """A connection to the database.

    Args:
        step: lets the world act.

    Attributes:
        fails: the next question fails, ``before`` or ``after`` the database has done it; empty for none.
        refuses: the next statement of a snapshot is refused.
    """

    def __init__(self, database: Database, step: Callable[[], None]) -> None:
        self.database = database
        self.step = step
        self.fails = ""
        self.refuses = False

    def ask(self, question: Callable[[], Any], *, of_snapshot: bool = False) -> Any:
        """Have the database do something. Raises RetriableError: the connection broke. Raises ConnectError: it was refused."""
        self.step()
        fails, self.fails = self.fails, ""
        if of_snapshot and self.refuses:
            self.refuses = False
            raise ConnectError("The server refuses the statement.")
        if fails == "before":
            raise RetriableError("The connection was lost.")
        answer = question()
        if fails:
            raise RetriableError("The connection was lost.")
        self.step()
        return answer


@dataclass(frozen=True, slots=True)
class SimOffset:
    """Where the source stands."""

    position: int
    more: Fields = field(default_factory=dict)

    def dump(self) -> SourceOffset:
        """Return it as it is stored."""
        return {"position": self.position, **self.more}

    @classmethod
    def load(cls, stored: SourceOffset) -> SimOffset:
        """Read it."""
        return cls(int(stored["position"] or 0), {name: value for name, value in stored.items() if name != "position"})  # type: ignore[misc]


class Chunks:
    """`ChunkReader` of the database. Integers are the keys."""

    accepts_surrogate_keys = False

    def __init__(self, session: Session, read: Callable[[StoredKey | None], None]) -> None:
        self._session = session
        self._note_read = read
        self.structure: object = None

    def names(self) -> Sequence[str]:
        return TABLES

    def maximum(self, wanted: WantedCollection) -> StoredKey | None:
        rows = self._rows(wanted)
        return self._session.ask(lambda: stored_key(max(rows)) if rows else None, of_snapshot=True)  # type: ignore[no-any-return]

    def estimate(self, wanted: WantedCollection) -> int | None:
        return len(self._rows(wanted))

    def read(self, wanted: WantedCollection, after: StoredKey | None, until: StoredKey, limit: int) -> Chunk[Row]:
        rows = self._rows(wanted)
        return self._session.ask(lambda: self._chunk(wanted.id, rows, after, until, limit), of_snapshot=True)  # type: ignore[no-any-return]

    def _chunk(self, table: str, rows: Mapping[int, int], after: StoredKey | None, until: StoredKey, limit: int) -> Chunk[Row]:
        self.structure = structure = self._session.database.structures[table]
        keys = sorted(key for key in rows if after is None or number(after) < key <= number(until))[:limit]
        self._note_read(stored_key(keys[-1]) if keys else None)
        return Chunk([(b"%d" % key, (table, key, rows[key], structure)) for key in keys], stored_key(keys[-1]) if keys else None)

    def _rows(self, wanted: WantedCollection) -> Mapping[int, int]:
        if wanted.id not in self._session.database.rows:
            raise UnknownCollectionError(f"There is no table {wanted.id}.")
        return self._session.database.rows[wanted.id]


def stored_key(key: int) -> StoredKey:
    """Return a chunk key."""
    return (JavaValue("java.lang.Integer", str(key)),)


def number(key: StoredKey) -> int:
    """Return the integer of a chunk key."""
    assert key[0] is not None
    return int(key[0].text)


def execute(session: Session, statement: str) -> None:
    """Run a statement on the signal table, as `SignalTable` writes them. Raises RetriableError."""
    verb, _, rest = statement.partition(" ")
    if verb == "INSERT":
        id_, type_, data = ast.literal_eval(rest.partition("VALUES ")[2])
        session.ask(lambda: session.database.signal(SignalRow("c", id_, type_, data)), of_snapshot=True)
    else:
        id_ = ast.literal_eval(rest.partition("id = ")[2])
        session.ask(lambda: session.database.signal(SignalRow("d", id_, "", "")), of_snapshot=True)


class Stream:
    """Reads the log.

    Attributes:
        position: of the last entry that was read.
    """

    def __init__(self, session: Session, position: int, limit: int) -> None:
        self._session = session
        self._limit = limit
        self.position = position

    def read(self, services: SimServices) -> bool:
        """Read some entries into what waits for a batch. Returns whether there were any. Raises RetriableError, also in the middle."""
        database = self._session.database
        if self.position < database.purged:
            raise FatalTaskError(f"The log begins after {database.purged}, and position {self.position} is wanted.")
        end = self._session.ask(lambda: database.end)
        found = database.log[self.position : min(end, self.position + self._limit)]
        for entry in found:
            if self._session.fails:
                self._session.ask(lambda: None)  # a message is torn
            self.position += 1
            self._take(entry, services)
        return bool(found)

    def _take(self, entry: Any, services: SimServices) -> None:
        taps = services.taps
        if isinstance(entry, SignalRow):
            taps.signal_row(entry.op, entry.id, entry.type, entry.data)
        elif isinstance(entry, Structure):
            if str(taps.watched) == entry.table:
                taps.on_structure(entry.number)
        elif isinstance(entry, Change):
            services.pending.rows += self._rows(entry, taps)

    def _rows(self, change: Change, taps: Taps) -> list[EncodedRow]:
        route = ROUTES[change.table]
        key = b"%d" % change.key
        if str(taps.watched) == change.table:
            taps.on_event(key)
            if change.op == "k":
                taps.on_event(b"%d" % change.to)
        if change.op in "dk":
            deleted: list[EncodedRow] = [(route, key, value_of("d", self.position, change.structure)), (route, key, None)]
            if change.op == "k":
                deleted.append((route, b"%d" % change.to, value_of("c", self.position, change.structure)))
            return deleted
        return [(route, key, value_of(change.op, self.position, change.structure))]


def value_of(op: str, position: int, structure: int) -> bytes:
    """Return a record's value."""
    return f"{op} {position} {structure}".encode()


class Injected(Protocol):
    """What a run takes the product's pieces from, so that planted bugs (`tests.sim.bugs`) can take their place."""

    machine: type[IncrementalSnapshot[Row]]

    def chunk_read(self, last: StoredKey | None) -> None: ...
    def watermarks(self, marks: Watermarks) -> Watermarks: ...
    def tap(self, taps: Taps) -> Taps: ...
    def fields(self, fields: Fields, incremental: IncrementalSnapshot[Row]) -> Fields: ...


class SimServices(SourceServices[Row]):
    """The services of the simulation's source."""

    def __init__(
        self,
        config: ParsedConfig,
        context: SourceTaskContext,
        session: Session,
        position: Callable[[], SimOffset | None],
        injected: Injected,
        hooks: SnapshotHooks,
        tuning: Tuning,
        clock: SimClock,
    ) -> None:
        self._injected = injected
        self._position = position
        self.stream: Stream | None = None
        self._chunks = Chunks(session, injected.chunk_read)
        marks: Watermarks
        if config.choice("read.only") == "true":
            marks = LogPositions(lambda: session.ask(lambda: session.database.end), self._received)
        else:
            marks = SignalTable(lambda text: execute(session, text), str(SIGNALS), repr, deletes=config.deletes_close_windows)
        super().__init__(config, context, self._chunks, injected.watermarks(marks), hooks, tuning, clock=clock, machine=injected.machine)
        self.taps = injected.tap(self.connect(Taps(), config, SIGNALS))

    def fields(self) -> Fields:
        """Return what the offset holds in addition to the position."""
        found = super().fields()
        return found if self.incremental is None else self._injected.fields(found, self.incremental)

    def attach(self, stream: Stream | None) -> None:
        """Set the present stream."""
        self.stream = stream
        if self.incremental is not None:
            self.watch(self.incremental.watched)

    def records(self, rows: list[Row]) -> list[EncodedRow]:
        return [(ROUTES[table], b"%d" % key, value_of("r", position, structure)) for table, key, position, structure in rows]

    def watch(self, collection: str | None) -> None:
        self.taps.watched = None if collection is None else TableId(*collection.split("."))

    def position(self) -> Mapping[str, Any]:
        found = self._position()
        return found.dump() if found else {}

    def execute(self, statement: str) -> None:
        """There are no statements of the user's."""

    def _received(self) -> int | None:
        return None if self.stream is None else self.stream.position


@dataclass(frozen=True, slots=True)
class _Streams:
    name: str = "no_data"
    streams: bool = True


class SimTask(DatabaseTask[SimServices, SimOffset]):
    """Streams the simulation's database.

    Args:
        base: where the stream begins without an offset.
        limit: entries of the log in one read.
        confirm: tells the database up to where it may discard its log.
    """

    def __init__(
        self,
        session: Session,
        injected: Injected,
        *,
        base: int,
        limit: int,
        confirm: Callable[[int], None],
        hooks: SnapshotHooks,
        tuning: Tuning,
        clock: SimClock,
    ) -> None:
        super().__init__(hooks=hooks, tuning=tuning, clock=clock)
        self._session, self._injected, self._base, self._limit, self._confirm = session, injected, base, limit, confirm
        self._sim_clock = clock
        self._stream: Stream | None = None
        self._sim_hooks, self._sim_tuning = hooks, tuning

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        self._config = SimConfig(config, "sim")
        self._partition = dict(PARTITION)
        self._begin(self._config, context, "sim", "sim")
        stored = context.offset(PARTITION)
        self._position = SimOffset(self._base) if stored is None else SimOffset.load(stored)
        self._maybe_services = SimServices(
            self._config, context, self._session, lambda: self._position, self._injected, self._sim_hooks, self._sim_tuning, self._sim_clock
        )
        self.use_services(self._maybe_services)

    def offsets_committed(self, offsets: Sequence[tuple[SourcePartition, SourceOffset]]) -> None:
        super().offsets_committed(offsets)
        self._session.step()
        for _, offset in offsets:
            self._confirm(int(offset["position"] or 0))

    @property
    def has_unsent(self) -> bool:
        """Whether rows or a place wait for a batch: in the middle of a poll, a snapshot may have ended without them."""
        services, position = self._maybe_services, self._position
        return services is not None and position is not None and (bool(services.pending.rows) or services.fields() != position.more)

    @property
    def _mode(self) -> _Streams:
        return _Streams()

    @property
    def _running(self) -> None:
        return None

    def _connect(self) -> None:
        assert self._position is not None and self._maybe_services is not None
        self._session.ask(lambda: None)
        self._stream = Stream(self._session, self._position.position, self._limit)
        self._maybe_services.attach(self._stream)
        self._maybe_services.starts(from_start=False)
        self._state = State.STREAMING

    def _read_stream(self) -> EncodedBatch | None:
        services, stream = self._maybe_services, self._stream
        assert services is not None and stream is not None
        services.before_read()
        came = stream.read(services)
        self._reset_backoff()
        services.after_read()
        if not came:
            self._sim_clock.until(lambda: False, 0.01)
        return self._batch(SimOffset(stream.position) if came else None)

    def _begin(self, config: ParsedConfig, context: SourceTaskContext, connector: str, bean: str) -> None:
        super()._begin(config, context, connector, bean)

    def _reset_backoff(self) -> None:
        super()._reset_backoff()

    def _batch(self, offset: SimOffset | None) -> EncodedBatch | None:
        services, before = self._maybe_services, self._position
        assert services is not None and before is not None
        fields = services.fields()
        rows = services.pending.take()
        if not rows and (offset is None or offset.position == before.position) and fields == before.more:
            return None
        self._position = replace(offset or before, more=fields)
        stored = self._position.dump()
        return EncodedBatch(rows, self._partition, stored, services.made(stored))

    def _end_snapshot(self, snapshot: Any) -> None:
        raise NotImplementedError

    def _begin_blocking(self, request: BlockingRequest) -> None:
        """There are no blocking snapshots here."""

    def _resume_description(self) -> str:
        return "reading goes on"

    def _close_connections(self) -> None:
        self._stream = None
        if self._maybe_services is not None:
            self._maybe_services.attach(None)
