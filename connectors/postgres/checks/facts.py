"""What is known of a server, and what a configuration asks of it.

The facts of a start are `connectors.postgres.server.catalog.ServerState` and the tables; `Facts` has what the doctor reads in addition
(`connectors.postgres.doctor`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.engine.relational.tables import TableId
from connectors.postgres.errors import ServerError
from connectors.postgres.server.catalog import ServerState
from connectors.postgres.server.connection import Row


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table, whether it is captured or not.

    Attributes:
        root: the topmost table that it is a partition of; None for others.
        is_partitioned: whether it has partitions and no rows of its own.
        readable: whether the user may read it.
        owned: whether the user may alter it.
        identity: its replica identity as the catalog has it: d(efault), n(othing), f(ull), i(ndex).
        has_key: whether it has a primary key.
        row_security: whether row security hides rows from the user.
        large_values: whether values are stored out of line.
    """

    id: TableId
    root: TableId | None = None
    is_partitioned: bool = False
    readable: bool = True
    owned: bool = True
    identity: str = "d"
    has_key: bool = True
    is_unlogged: bool = False
    row_security: bool = False
    large_values: bool = False


@dataclass(frozen=True, slots=True)
class PublicationFacts:
    """A publication that exists; `operations` are the ones that it publishes: c, u, d, t."""

    all_tables: bool
    operations: frozenset[str]
    via_root: bool
    owned: bool
    tables: frozenset[TableId]


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """What the server shows of the connector's slot in addition to `catalog.Slot`.

    Attributes:
        user: who reads it: a process number, and what is known of it; None when nobody does.
        wal_status: since version 13: reserved, extended, unreserved or lost.
        retained_bytes: of the log, kept because of it.
    """

    user: str | None
    wal_status: str
    retained_bytes: int


@dataclass(frozen=True, slots=True)
class SignalFacts:
    """The table of signals; `columns` is None when it does not exist."""

    id: TableId
    columns: int | None
    may_insert: bool
    may_delete: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What the doctor has read of one server.

    Attributes:
        slots: used and at most; `senders` likewise.
        idle_slots: the names of slots that nobody reads.
        slot_keep_bytes: `max_slot_wal_keep_size`; negative without a limit.
        idle_slot_seconds: `idle_replication_slot_timeout`; 0 without one.
        tables: all that are not the server's own.
        captured: the names of those that the filters choose.
        running: transactions that a slot's creation would wait for, as rows of `slot.RUNNING_SQL`.
        replication_error: why no replication connection could be opened.
    """

    state: ServerState
    is_superuser: bool = False
    may_create: bool = False
    slots: tuple[int, int] = (0, 10)
    idle_slots: Sequence[str] = ()
    senders: tuple[int, int] = (0, 10)
    slot_keep_bytes: int = -1
    idle_slot_seconds: int = 0
    hot_standby_feedback: bool = True
    slot: SlotFacts | None = None
    publication: PublicationFacts | None = None
    tables: Sequence[TableFacts] = ()
    captured: frozenset[TableId] = frozenset()
    signal: SignalFacts | None = None
    running: Sequence[Row] = ()
    replication_error: ServerError | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a configuration asks of the server.

    Attributes:
        streams: whether changes are followed.
        reads: whether rows are read by a snapshot.
        publication_mode: `publication.autocreate.mode`.
        operations: those that become records: c, u, d, t.
        options: the `WITH (…)` of a publication that the connector creates.
        via_root: `publish.via.partition.root`.
        deletes_windows: whether watermarks of incremental snapshots are deleted from the signal table.
        reselects: whether values that an event lacks are read again.
    """

    user: str
    database: str
    slot: str
    publication: str
    streams: bool = True
    reads: bool = True
    publication_mode: str = "all_tables"
    operations: frozenset[str] = frozenset("cud")
    options: str = ""
    via_root: bool = False
    deletes_windows: bool = False
    reselects: bool = False
