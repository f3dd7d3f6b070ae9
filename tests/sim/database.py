"""A database of a simulation: tables, the log of what was committed, a table of signals, and the log's begin, which moves.

A position is the number of an entry of the log, counted from 1. Transactions are appended whole. Every row remembers the position of its
last change, so that a record of the topic says which state of the row it shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TABLES = ("s.a", "s.b")


@dataclass(frozen=True, slots=True)
class Change:
    """One row was changed: ``c``, ``u`` or ``d``; ``k`` is a change of its key, from `key` to `to`."""

    table: str
    op: str
    key: int
    structure: int
    to: int = -1


@dataclass(frozen=True, slots=True)
class SignalRow:
    """A row of the signal table: ``c`` or ``d``."""

    op: str
    id: str
    type: str
    data: str


@dataclass(frozen=True, slots=True)
class Structure:
    """A table has another structure from here on."""

    table: str
    number: int


Entry = Change | SignalRow | Structure


@dataclass(slots=True)
class History:
    """What happened to one row: positions with what the topic shows of each (``c``, ``u``, ``d``)."""

    positions: list[int] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    index: dict[int, int] = field(default_factory=dict)

    def add(self, position: int, op: str) -> None:
        """Append an event."""
        self.index[position] = len(self.positions)
        self.positions.append(position)
        self.ops.append(op)


class Database:
    """The source.

    Attributes:
        log: entries; the one at position n is `log[n - 1]`.
        rows: by table and key, the position of the row's last change.
        structures: the present structure of each table.
        histories: by table and key.
        confirmed: up to where the connector has said that the log may be discarded.
        purged: up to where it was.
    """

    def __init__(self) -> None:
        self.log: list[Entry] = []
        self.rows: dict[str, dict[int, int]] = {table: {} for table in TABLES}
        self.structures = dict.fromkeys(TABLES, 1)
        self.histories: dict[tuple[str, int], History] = {}
        self.signals: dict[str, SignalRow] = {}
        self.confirmed = 0
        self.purged = 0

    @property
    def end(self) -> int:
        """The position of the last entry."""
        return len(self.log)

    def put(self, table: str, key: int) -> None:
        """Insert or update a row."""
        op = "u" if key in self.rows[table] else "c"
        self.log.append(Change(table, op, key, self.structures[table]))
        self._changed(table, key, op)
        self.rows[table][key] = self.end

    def delete(self, table: str, key: int) -> None:
        """Delete a row, if there is one."""
        if key in self.rows[table]:
            self.log.append(Change(table, "d", key, self.structures[table]))
            del self.rows[table][key]
            self._changed(table, key, "d")

    def rename(self, table: str, key: int, to: int) -> None:
        """Change a row's key, if there is such a row and none of the new key."""
        rows = self.rows[table]
        if key in rows and to not in rows:
            self.log.append(Change(table, "k", key, self.structures[table], to))
            del rows[key]
            rows[to] = self.end
            self._changed(table, key, "d")
            self._changed(table, to, "c")

    def alter(self, table: str) -> None:
        """Change a table's structure."""
        self.structures[table] += 1
        self.log.append(Structure(table, self.structures[table]))

    def signal(self, row: SignalRow) -> None:
        """Insert a row into the signal table, or delete it from there."""
        if row.op == "c":
            self.signals[row.id] = row
        else:
            known = self.signals.pop(row.id, None)
            if known is None:
                return
            row = SignalRow("d", known.id, known.type, known.data)
        self.log.append(row)

    def purge(self) -> None:
        """Discard what may be discarded."""
        self.purged = max(self.purged, self.confirmed)

    def _changed(self, table: str, key: int, op: str) -> None:
        history = self.histories.get((table, key))
        if history is None:
            history = self.histories[table, key] = History()
        history.add(self.end, op)
