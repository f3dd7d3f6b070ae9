"""The stream's tables by the numbers that stand for them, and what listens to single tables: signals, an open window, transactions.

A RELATION message announces a number before the rows that use it, and again when the table's structure has changed. The stream calls three
functions of a table's encoder for its rows. A tap wraps them for the tables it listens to; the functions of all other tables are the
encoder's own, so that a stream to which nothing listens pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from connectors.engine.metadata_records import TransactionMonitor
from connectors.engine.relational.tables import TableId
from connectors.engine.signal.taps import Taps
from connectors.postgres import pgoutput
from connectors.postgres.encode.table import KeyChange, PostgresEncoder
from connectors.postgres.encode.tuples import read_tuple
from connectors.postgres.position.stream_position import StreamPosition
from connectors.postgres.tables import CapturedTable

_HEAD = b'"transaction":null'

Encoded = tuple[bytes | None, bytes]


class RowFunctions(Protocol):
    """A table's functions as the stream calls them: those of its `PostgresEncoder`, or taps around them."""

    insert: Callable[[bytes, int, bytes, bytes], Encoded]
    update: Callable[[bytes, int, bytes, bytes], tuple[bytes | None, bytes, bytes | None]]
    delete: Callable[[bytes, int, bytes, bytes], Encoded]
    split: Callable[[bytes, int, bytes, bytes, bytes], KeyChange]


@dataclass(slots=True)
class PostgresTaps(Taps):
    """What is listened to; the owner changes it between batches.

    Attributes:
        monitor: counts the events of transactions, None when there is no transaction metadata.
        shown_transaction: the present transaction as records show it, for an event's message.
        skipped: operations that make no events.
    """

    monitor: TransactionMonitor | None = None
    shown_transaction: Callable[[bytes], str] = lambda _: ""
    skipped: frozenset[str] = frozenset()

    def apply(self, table: TableId, encoder: PostgresEncoder, width: int, to: RowFunctions) -> None:
        """Set a table's functions: the encoder's own, wrapped in what listens.

        Args:
            width: columns of the relation.
        """
        to.insert, to.update, to.delete, to.split = encoder.insert, encoder.update, encoder.delete, encoder.split
        if self.monitor is not None:
            _count(self, str(table), self.monitor, to)
        if self.watched == table:
            _watch(self, to)
        if self.signal_table == table:
            _listen(self, width, len(encoder.columns), to)


def _count(taps: PostgresTaps, table: str, monitor: TransactionMonitor, to: RowFunctions) -> None:
    """Give every event its transaction block."""
    insert, update, delete, split = to.insert, to.update, to.delete, to.split

    def block(message: bytes, tail: bytes) -> bytes:
        return b'"transaction":' + monitor.event(table, taps.shown_transaction(message)) + tail[len(_HEAD) :]

    def counted_insert(message: bytes, at: int, source: bytes, tail: bytes) -> Encoded:
        return insert(message, at, source, block(message, tail))

    def counted_update(message: bytes, at: int, source: bytes, tail: bytes) -> tuple[bytes | None, bytes, bytes | None]:
        if "u" in taps.skipped:
            return update(message, at, source, tail)
        found = update(message, at, source, block(message, tail))
        if not found[1]:
            # it changed nothing, or the key: then it is two events, which `split` counts
            monitor.forget(table)
        return found

    def counted_delete(message: bytes, at: int, source: bytes, tail: bytes) -> Encoded:
        return delete(message, at, source, block(message, tail))

    def counted_split(message: bytes, at: int, source: bytes, delete_tail: bytes, create_tail: bytes) -> KeyChange:
        deleted = delete_tail if "d" in taps.skipped else block(message, delete_tail)
        created = create_tail if "c" in taps.skipped else block(message, create_tail)
        return split(message, at, source, deleted, created)

    to.insert, to.update, to.delete, to.split = counted_insert, counted_update, counted_delete, counted_split


def _watch(taps: PostgresTaps, to: RowFunctions) -> None:
    """Show every event's key to the window. An operation that is skipped makes no event, so the window's row stays."""
    insert, update, delete, split = to.insert, to.update, to.delete, to.split

    def watched_insert(message: bytes, at: int, source: bytes, tail: bytes) -> Encoded:
        found = insert(message, at, source, tail)
        taps.on_event(found[0])
        return found

    def watched_update(message: bytes, at: int, source: bytes, tail: bytes) -> tuple[bytes | None, bytes, bytes | None]:
        found = update(message, at, source, tail)
        if found[1] and "u" not in taps.skipped:
            taps.on_event(found[0])
        return found

    def watched_delete(message: bytes, at: int, source: bytes, tail: bytes) -> Encoded:
        found = delete(message, at, source, tail)
        taps.on_event(found[0])
        return found

    def watched_split(message: bytes, at: int, source: bytes, delete_tail: bytes, create_tail: bytes) -> KeyChange:
        change = split(message, at, source, delete_tail, create_tail)
        if "d" not in taps.skipped:
            taps.on_event(change.old_key)
        if "c" not in taps.skipped:
            taps.on_event(change.new_key)
        return change

    to.insert, to.update, to.delete, to.split = watched_insert, watched_update, watched_delete, watched_split


def _listen(taps: PostgresTaps, width: int, columns: int, to: RowFunctions) -> None:
    """Read signals from the rows of the signal table, before these are encoded as the ordinary rows that they are too."""
    insert, delete = to.insert, to.delete

    def row(message: bytes, at: int) -> Sequence[object]:
        """Return id, type and data: a signal table's three columns, by their order."""
        return read_tuple(message, at + 1, width)[0] if columns == width == 3 else (None,)

    def signal_insert(message: bytes, at: int, source: bytes, tail: bytes) -> Encoded:
        taps.signal_row("c", *row(message, at))
        return insert(message, at, source, tail)

    def signal_delete(message: bytes, at: int, source: bytes, tail: bytes) -> Encoded:
        taps.signal_row("d", *row(message, at))
        return delete(message, at, source, tail)

    to.insert, to.delete = signal_insert, signal_delete


class TableStream:
    """A captured table in the stream, with its source block of the present transaction. `PostgresTaps` sets its functions."""

    __slots__ = ("captured", "delete", "insert", "relation", "route", "source", "split", "transaction", "update")

    insert: Callable[[bytes, int, bytes, bytes], tuple[bytes | None, bytes]]
    update: Callable[[bytes, int, bytes, bytes], tuple[bytes | None, bytes, bytes | None]]
    delete: Callable[[bytes, int, bytes, bytes], tuple[bytes | None, bytes]]
    split: Callable[[bytes, int, bytes, bytes, bytes], KeyChange]

    def __init__(self, captured: CapturedTable, relation: pgoutput.Relation) -> None:
        self.captured = captured
        self.relation = relation
        self.route = captured.route
        self.transaction = -1
        self.source: Callable[[int], bytes] = lambda _: b""

    def enter(self, position: StreamPosition) -> None:
        """Set the source block of the transaction under way."""
        name, lsn = position.origin or (None, None)
        self.source = self.captured.block.transaction(position.commit_us, position.xid, position.last_commit, name, lsn, xmin=position.xmin)
        self.transaction = position.number


#: Finds the captured table of a RELATION message, None for one that is not captured. Raises ConnectError.
Resolver = Callable[[pgoutput.Relation, CapturedTable | None], CapturedTable | None]


class StreamTables:
    """The numbers of one stream.

    Args:
        resolve: looks up tables.
        taps: what listens to tables.
        on_structure: called with every captured table's structure as the stream begins to use it.

    Attributes:
        known: tables by the four bytes of their number; None for those that are not captured.
    """

    def __init__(self, resolve: Resolver, taps: PostgresTaps, on_structure: Callable[[CapturedTable], None]) -> None:
        self._resolve = resolve
        self._taps = taps
        self._on_structure = on_structure
        self.known: dict[bytes, TableStream | None] = {}

    def on_relation(self, message: bytes) -> None:
        """Read a RELATION message without its head. Raises ConnectError."""
        relation = pgoutput.decode_relation(message)
        number = message[26:30]
        known = self.known.get(number)
        captured = self._resolve(relation, known.captured if known else None)
        if captured is None:
            self.known[number] = None
        elif known is None or known.captured is not captured:
            table = self.known[number] = TableStream(captured, relation)
            self._tap(table)
            self._on_structure(captured)

    def tap(self) -> None:
        """Apply a change of what listens to tables."""
        for table in self.known.values():
            if table is not None:
                self._tap(table)

    def _tap(self, table: TableStream) -> None:
        self._taps.apply(table.captured.id, table.captured.encoder, len(table.relation.columns), table)
