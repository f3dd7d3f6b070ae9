"""Tables by the numbers that stand for them in the stream. A RELATION message tells a number before the rows that use it, and again when
the table's structure has changed."""

from __future__ import annotations

from collections.abc import Callable

from connectors.postgres.encode.table import KeyChange
from connectors.postgres.position.stream_position import StreamPlace
from connectors.postgres.stream import pgoutput
from connectors.postgres.stream.taps import Taps
from connectors.postgres.tables import CapturedTable


class TableStream:
    """A captured table in the stream, with its source block of the present transaction. `Taps` sets its functions."""

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

    def enter(self, place: StreamPlace) -> None:
        """Take the source block of the transaction under way."""
        name, lsn = place.origin or (None, None)
        self.source = self.captured.block.transaction(place.commit_us, place.xid, place.last_commit, name, lsn, xmin=place.xmin)
        self.transaction = place.number


#: Finds the captured table of a RELATION message, None for one that is not captured. Raises ConnectError.
Resolver = Callable[[pgoutput.Relation, CapturedTable | None], CapturedTable | None]


class StreamTables:
    """The numbers of one stream.

    Args:
        resolve: looks up tables.
        taps: what listens to tables.
        on_structure: told of every captured table's structure as the stream begins to use it.

    Attributes:
        known: tables by the four bytes of their number; None for those that are not captured.
    """

    def __init__(self, resolve: Resolver, taps: Taps, on_structure: Callable[[CapturedTable], None]) -> None:
        self._resolve = resolve
        self._taps = taps
        self._on_structure = on_structure
        self.known: dict[bytes, TableStream | None] = {}

    def tell(self, message: bytes) -> None:
        """A RELATION message behind its head. Raises ConnectError."""
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
        """What listens to tables has changed."""
        for table in self.known.values():
            if table is not None:
                self._tap(table)

    def _tap(self, table: TableStream) -> None:
        self._taps.apply(table.captured.id, table.captured.encoder, len(table.relation.columns), table)
