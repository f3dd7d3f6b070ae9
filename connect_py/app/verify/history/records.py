"""The values that a history is made of: what was committed, what was delivered, what was stored, and what is found to be wrong.

A history is complete when the database is quiet and the connector has caught up; only then it can be checked. Nothing here depends on a
database or on Kafka: keys are texts, positions are tuples with an order, and the reader of a real topic, or a simulation, makes them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Where something is in a source's log. Only positions of one log are compared, and they have the same shape there.
Position = tuple[Any, ...]


class Invariant(enum.StrEnum):
    """What a connector promises. The value names it in reports; the order is that of the table in ``docs/sinks/history.md``."""

    LOST = "lost"
    PHANTOM = "phantom"
    ORDER = "order"
    REPLAYS = "replays"
    STALE_ROW = "stale-row"
    TABLE = "table"
    LAKEHOUSE = "lakehouse"
    ACKNOWLEDGED = "acknowledged"
    OFFSETS = "offsets"
    EXACTLY_ONCE = "exactly-once"
    TRANSACTIONS = "transactions"
    LOUD = "loud"
    ONE_OWNER = "one-owner"
    COUNTED = "counted"
    VALUES = "values"
    TOMBSTONES = "tombstones"
    SCHEMA_HISTORY = "schema-history"
    JOURNAL = "journal"


class Op(enum.StrEnum):
    """What happened to a row, in the letters of Debezium's envelope. A tombstone is a record with a key and no value."""

    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    READ = "r"
    TRUNCATE = "t"
    TOMBSTONE = "-"


@dataclass(frozen=True, slots=True)
class Change:
    """A line of the journal: a change that its transaction has committed.

    Attributes:
        line: its number in the journal. A line that was written after another one was committed has the higher number.
        table: as events name it, too.
        key: the row's key; None for a TRUNCATE.
        sequence: counts the changes of a key, deletions included, from 1; 0 for a TRUNCATE.
        op: CREATE, UPDATE, DELETE or TRUNCATE. A change of a key is the DELETE of the old and the CREATE of the new one.
        transaction: the number of its transaction; "" when it is not known.
        digest: stands for the row's values after the change; None: they are not compared.
    """

    line: int
    table: str
    key: str | None
    sequence: int
    op: Op
    transaction: str = ""
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A record of a topic.

    Attributes:
        offset: in its partition.
        table: as changes name it, too.
        key: None for a TRUNCATE.
        sequence: that the row says; of a DELETE that of the row which it removed, None when the event does not have it.
        digest: of the row's values after the change; None: they are not compared.
        position: in the source's log; None when it is not known.
        transaction: the source's name for the transaction; "" when the event does not name it.
        incremental: of a READ, whether an incremental snapshot has made it.
        total_order: number within the transaction, from 1 (``provide.transaction.metadata``); None without it.
        collection_order: the same within the transaction's events of this table.
    """

    topic: str
    partition: int
    offset: int
    table: str
    key: str | None
    op: Op
    sequence: int | None = None
    digest: str | None = None
    position: Position | None = None
    transaction: str = ""
    incremental: bool = False
    total_order: int | None = None
    collection_order: int | None = None


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """A source offset that was stored, in the order of the offsets topic.

    Attributes:
        partition: the source partition.
        position: None for a tombstone, with which an offset is reset.
        altered: whether the REST API stored it.
    """

    partition: str
    position: Position | None
    altered: bool = False


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A sample: up to where the source may discard its log, and up to where offsets were stored at that moment.

    Read the acknowledged position first: what is stored meanwhile only makes the other one higher.
    """

    at: float
    acknowledged: Position
    stored: Position | None


@dataclass(frozen=True, slots=True)
class Boundary:
    """BEGIN or END of a transaction, from the topic of transaction metadata, in its order.

    Attributes:
        event_count: of END, how many events the transaction has.
        by_table: of END, how many of each table.
    """

    transaction: str
    status: str
    event_count: int | None = None
    by_table: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """How far a partition reaches, some time after the last write: the next offset, and where readers of committed records stop."""

    topic: str
    partition: int
    end: int
    stable_end: int


@dataclass(frozen=True, slots=True)
class Write:
    """A record, or a run of them, that one start of a task has written, in the order of the partition."""

    task: str
    start: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class TaskState:
    """How a task ended up; `error` is its trace."""

    task: str
    state: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """What a task's metrics say became of its records."""

    task: str
    taken: int
    written: int
    filtered: int = 0
    dead_lettered: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A DDL statement of captured tables: in the journal, or in the schema history, in its order."""

    statement: str
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row that a table has: what it says of its sequence, and a digest of its values (None: not compared)."""

    sequence: int | None
    digest: str | None = None


#: The rows of a table by key.
Rows = Mapping[str, Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What was asked of the connector, so that what may be expected of its topics is known.

    Attributes:
        start: every change whose line is higher must be in the stream. None: this is found out, key by key, from what is there.
        snapshot: whether the rows that were there before must be in the topic.
        exactly_once: whether readers of committed records must find each change once. Such readers have read the events.
        tombstones: whether each DELETE is followed by a tombstone.
        restarts: how often tasks have begun, after the first time; so many replays there may be. None: any number.
        initial_rows_lag: whether rows of an initial snapshot may be older than events before them, as MongoDB's may. The stream
            brings each of them up to date.
        compacted: whether topics may have lost older events of their keys.
        failure: a part of the error with which a task must have ended; None: no task may have.
    """

    start: int | None = None
    snapshot: bool = True
    exactly_once: bool = False
    tombstones: bool = True
    restarts: int | None = None
    initial_rows_lag: bool = False
    compacted: bool = False
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that is known of a run. What is empty, or None, is not checked.

    Attributes:
        changes: the journal, of each key by sequence.
        events: the topics, of each partition by offset.
        promise: what was asked of the connector.
        rows: what tables of the source have now.
        sink_versions: what the sink's tables had, one commit after the other.
        ddl: DDL statements of captured tables, in the order of the source's log.
        schema_history: what the schema history has.
    """

    changes: Sequence[Change]
    events: Sequence[Event]
    promise: Promise = field(default_factory=Promise)
    rows: Mapping[str, Rows] | None = None
    sink_versions: Mapping[str, Sequence[Rows]] | None = None
    stored: Sequence[StoredOffset] = ()
    acknowledged: Sequence[Acknowledged] = ()
    boundaries: Sequence[Boundary] = ()
    ends: Sequence[PartitionEnd] = ()
    writes: Sequence[Write] = ()
    states: Sequence[TaskState] = ()
    counted: Sequence[Counted] = ()
    ddl: Sequence[SchemaChange] | None = None
    schema_history: Sequence[SchemaChange] | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong: which invariant, of which table and key (None where it is not one key's), and the evidence in a sentence."""

    invariant: Invariant
    table: str | None
    key: str | None
    evidence: str

    def __str__(self) -> str:
        """Return it in a line."""
        where = " ".join(part for part in (self.table, None if self.key is None else f"[{shown(self.key)}]") if part)
        return f"{self.invariant}: {f'{where}: ' if where else ''}{self.evidence}"


#: Between the columns of a key with several.
KEY_SEPARATOR = "\x1f"


def shown(key: str) -> str:
    """Return a key as people read it."""
    return key.replace(KEY_SEPARATOR, ", ")
