"""The rules of a source, checked at each record and each offset that reaches Kafka (invariants I1 to I5, I7 and I8).

A record's value says what it shows: ``op position structure``; a tombstone follows its delete. Of each row the ledger knows what the
topic has shown, ever and since the present process started to show it: a first appearance is the row's next event, a replay repeats a run
of events without a gap, and a row of a snapshot shows the very state that the topic is at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.sim.chance import Violation
from tests.sim.database import Change, Database


class _Row:
    """What the topic has shown of a row."""

    __slots__ = ("alive", "at", "awaits_tombstone", "position", "process", "seen")

    def __init__(self, seen: int) -> None:
        self.seen = seen  # number of the row's last event that was shown, ever
        self.at: int | None = None  # the same, by the present process
        self.process = -1
        self.awaits_tombstone = 0  # position of a delete
        self.position = 0  # of what is shown
        self.alive = False


class Ledger:
    """What Kafka holds of the source.

    Args:
        database: the truth.

    Attributes:
        base: the position from which the connector has to show everything.
        stored: the position of the last stored offset.
        fields: that offset.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.base = 0
        self.stored = 0
        self.fields: Mapping[str, Any] = {}
        self.records = 0
        self._rows: dict[tuple[str, int], _Row] = {}
        self._gaps: set[int] = set()
        self._parts: dict[int, set[tuple[int, bool]]] = {}
        self._held = 0
        self._structures: dict[tuple[str, int, int], int] = {}

    def begin(self, base: int) -> None:
        """The connector is created: what was committed before is a snapshot's."""
        self.base = self._held = self.stored = base

    # -- records

    def lacks(self, process: int) -> None:
        """A record of a process was refused: what it sent after that may be in the topic, with a gap, until its successor repeats it."""
        self._gaps.add(process)

    def append(self, topic: str, key: bytes | None, value: bytes | None, process: int) -> None:
        """Take a record."""
        if topic not in self.database.rows:
            return
        assert key is not None
        self.records += 1
        number = int(key)
        row = self._rows.get((topic, number))
        history = self.database.histories.get((topic, number))
        if history is None:
            raise Violation(f"phantom: {topic} has no row {number}, and the topic shows one")
        if row is None:
            first = next((i for i, position in enumerate(history.positions) if position > self.base), len(history.positions))
            row = self._rows[topic, number] = _Row(first - 1)
        if row.process != process:
            row.process, row.at, row.awaits_tombstone = process, None, 0
        has_gaps = process in self._gaps
        if value is None:
            if not row.awaits_tombstone and has_gaps:
                return
            if not row.awaits_tombstone:
                raise Violation(f"phantom: a tombstone of row {number} of {topic} without a delete")
            self._note(row.awaits_tombstone, number, True)
            row.awaits_tombstone = 0
            return
        op, at, structure = value.split()
        position, shown = int(at), chr(op[0])
        index = history.index.get(position)
        what = f"{shown} of row {number} of {topic} at {position}"
        if index is None or (shown != "r" and history.ops[index] != shown) or (shown == "r" and history.ops[index] == "d"):
            raise Violation(f"phantom: the topic shows {what}, which was never committed")
        self._check_structure((topic, number % 2, process), int(structure), what)
        if shown == "r":
            if not has_gaps:
                self._read(row, index, what)
        else:
            if row.at is not None and index != row.at + 1 and not has_gaps:
                raise Violation(f"order: {what} is event {index} of its row, and the process has shown {row.at} last")
            if index > row.seen + 1 and not has_gaps:
                raise Violation(f"lost: {what} is event {index} of its row, and the topic has only had those up to {row.seen}")
            if index <= row.seen + 1:
                row.seen = max(row.seen, index)
            if shown == "d":
                row.awaits_tombstone = position
            self._note(position, number, False)
        row.at = index
        row.position, row.alive = position, shown != "d"

    def _read(self, row: _Row, index: int, what: str) -> None:
        if row.at is not None and index != row.at:
            raise Violation(f"stale: {what} is state {index} of its row, and the topic is at {row.at}")
        if index > row.seen:
            raise Violation(f"early: {what} is state {index} of its row, and the topic has only had the events up to {row.seen}")

    def _check_structure(self, place: tuple[str, int, int], structure: int, what: str) -> None:
        known = self._structures.get(place, 0)
        if structure < known:
            raise Violation(f"structure: {what} has the structure {structure}, after rows with {known}")
        self._structures[place] = structure

    def _note(self, position: int, key: int, is_tombstone: bool) -> None:
        if position > self._held:
            self._parts.setdefault(position, set()).add((key, is_tombstone))

    def holds(self, position: int) -> bool:
        """Return whether Kafka holds every change up to a position."""
        log = self.database.log
        while self._held < position:
            entry = log[self._held]
            if isinstance(entry, Change) and len(self._parts.get(self._held + 1, ())) < {"d": 2, "k": 3}.get(entry.op, 1):
                return False
            self._held += 1
            self._parts.pop(self._held, None)
        return True

    # -- offsets

    def store(self, offset: Mapping[str, Any]) -> None:
        """Take an offset."""
        position = int(offset["position"])
        if position < self.stored:
            raise Violation(f"offset goes back: {position} is stored after {self.stored}")
        if not self.holds(position):
            raise Violation(f"offset ahead: {position} is stored, and Kafka lacks the change at {self._held + 1}")
        self.stored, self.fields = position, offset

    def confirm(self, position: int) -> None:
        """The source is told that it may discard its log."""
        if position > self.stored:
            raise Violation(f"acknowledged early: {position} is confirmed, and the offsets topic holds {self.stored}")

    # -- the end

    def check_end(self, complete: frozenset[str]) -> None:
        """Compare the topics with the tables.

        Args:
            complete: tables of which a snapshot has been taken.
        """
        database = self.database
        if not self.holds(database.end):
            raise Violation(f"lost: Kafka lacks the change at {self._held + 1}")
        for table, rows in database.rows.items():
            for key, position in rows.items():
                row = self._rows.get((table, key))
                if row is None or not row.alive:
                    if position > self.base or table in complete:
                        raise Violation(f"lost: row {key} of {table} (at {position}) is not in the topic")
                elif row.position != position:
                    raise Violation(f"final: row {key} of {table} is at {position}, and the topic shows it at {row.position}")
        for (table, key), row in self._rows.items():
            if row.alive and key not in database.rows[table]:
                raise Violation(f"final: the topic shows row {key} of {table} (at {row.position}), which was deleted")
