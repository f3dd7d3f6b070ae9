"""A database of one table and its log, and a run of an incremental snapshot over it, for tests of the state machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from connect_py.errors import RetriableError
from connectors.engine.java_object import JavaValue, StoredKey
from connectors.engine.notifications import IncrementalEvents, Notification
from connectors.engine.snapshot.incremental.contract import Chunk, SnapshotHooks, UnknownCollectionError, Watermarks
from connectors.engine.snapshot.incremental.machine import IncrementalSnapshot
from connectors.engine.snapshot.incremental.offset import WantedCollection

Operation = tuple[str, int, int]
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 6), st.integers(0, 99)),
    st.tuples(st.just("delete"), st.integers(0, 6), st.just(0)),
    st.tuples(st.just("truncate"), st.just(0), st.just(0)),
)


@dataclass
class Table(SnapshotHooks, Watermarks):
    """Rows, a log of what was done to them, and a plan of what others do at each phase."""

    structure = None
    accepts_surrogate_keys = True

    rows: dict[int, int]
    plan: list[list[Operation]] = field(default_factory=list)
    failures: list[Exception | None] = field(default_factory=list)
    maximum_failures: list[Exception] = field(default_factory=list)
    log: list[tuple[str, object]] = field(default_factory=list)

    def do(self, operation: Operation) -> None:
        name, key, value = operation
        if name == "put":
            self.rows[key] = value
        elif name == "delete":
            if self.rows.pop(key, None) is None:
                return
        else:
            self.rows.clear()
        self.log.append((name, (key, value)))

    def reached(self, phase: str) -> None:
        for operation in self.plan.pop(0) if self.plan else []:
            self.do(operation)

    def low(self, chunk: str) -> None:
        self.log.append(("open", chunk + "-open"))

    def high(self, chunk: str) -> None:
        self.log.append(("close", chunk + "-close"))

    def names(self) -> Sequence[str]:
        return ["s.t"]

    def maximum(self, wanted: WantedCollection) -> StoredKey | None:
        if wanted.id != "s.t":
            raise UnknownCollectionError("no such table")
        if self.maximum_failures:
            raise self.maximum_failures.pop(0)
        return stored(max(self.rows)) if self.rows else None

    def estimate(self, wanted: WantedCollection) -> int | None:
        return len(self.rows)

    def read(self, wanted: WantedCollection, after: StoredKey | None, until: StoredKey, limit: int) -> Chunk[tuple[int, int]]:
        failure = self.failures.pop(0) if self.failures else None
        if failure:
            raise failure
        keys = sorted(key for key in self.rows if after is None or number(after) < key <= number(until))[:limit]
        return Chunk([(b"%d" % key, (key, self.rows[key])) for key in keys], stored(keys[-1]) if keys else None)


def stored(key: int) -> StoredKey:
    return (JavaValue("java.lang.Integer", str(key)),)


def number(key: StoredKey) -> int:
    assert key[0] is not None
    return int(key[0].text)


class Run:
    """Drives a snapshot over a table; `topic` is what it and the stream sent, folded."""

    def __init__(self, table: Table, chunk_size: int) -> None:
        self.table, self.chunk_size = table, chunk_size
        self.topic: dict[int, int] = {}
        self.read_at = 0
        self.now = 0.0
        self.notes: list[Notification] = []
        self.snapshot = self.new()

    def new(self) -> IncrementalSnapshot[tuple[int, int]]:
        tell = IncrementalEvents("p", self.notes.append)
        return IncrementalSnapshot(
            self.table, self.table, chunk_size=self.chunk_size, emit=self.topic_put, tell=tell, hooks=self.table, clock=self.clock
        )

    def clock(self) -> float:
        """Time passes whenever somebody looks."""
        self.now += 1.0
        return self.now

    def topic_put(self, rows: list[tuple[int, int]]) -> None:
        self.topic.update(rows)

    def batch(self, most: int = 1_000_000) -> None:
        """What a poll does. One that fails loses its batch, and goes on from the offset of the one before."""
        before = self.read_at, dict(self.topic), dict(self.snapshot.offset())
        try:
            self.snapshot.advance()
            self.stream(most)
        except RetriableError:
            self.read_at, self.topic, offset = before
            self.snapshot.restore(offset)

    def stream(self, most: int) -> None:
        for name, what in self.table.log[self.read_at : self.read_at + most]:
            self.read_at += 1
            if name == "open":
                self.snapshot.window_opened(str(what))
            elif name == "close":
                self.snapshot.window_closed(str(what))
            else:
                assert isinstance(what, tuple)
                key, value = what
                if name == "truncate":
                    self.topic.clear()
                    self.snapshot.truncated()
                    continue
                self.snapshot.event(b"%d" % key)
                if name == "put":
                    self.topic[key] = value
                else:
                    self.topic.pop(key, None)

    def finish(self) -> None:
        for _ in range(1000):
            self.batch()
            if not self.snapshot.is_running and not self.snapshot.chunk:
                return
        raise AssertionError("the snapshot does not end")
