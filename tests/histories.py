"""Right histories, made at random: what a connector that keeps its promise may deliver of some tables, over kills and replays.

The source commits transactions, one after the other, some of which are rolled back. The connector begins somewhere in the log, reads
the rows that were there, delivers what comes after, and is killed now and then: it begins again from the offset that was stored last.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from connect_py.app.verify.history.records import (
    Acknowledged,
    Boundary,
    Change,
    Counted,
    Event,
    History,
    Op,
    PartitionEnd,
    Promise,
    Row,
    SchemaChange,
    StoredOffset,
    TaskState,
    Write,
)

TABLES = ("shop.orders", "shop.customers")
KEYS = ("1", "2", "3", "4", "5")
DDL = ("CREATE TABLE orders (id INT PRIMARY KEY)", "CREATE TABLE customers (id INT)", "ALTER TABLE orders ADD note TEXT")


@dataclass(frozen=True, slots=True)
class Entry:
    """A change in the log: its position says where its transaction was committed, and its number in it."""

    change: Change
    position: tuple[int, int]
    orders: tuple[int, int]
    removed: int | None


class Source:
    """A log of transactions, and the rows that they have made."""

    def __init__(self, dice: random.Random, transactions: int) -> None:
        self._dice = dice
        self.log: list[Entry] = []
        self.sizes: list[tuple[str, dict[str, int]]] = []
        self._sequences: dict[tuple[str, str], int] = {}
        self._live: dict[tuple[str, str], Change] = {}
        self._line = 0
        for number in range(1, transactions + 1):
            self._commit(number)

    def _commit(self, number: int) -> None:
        counts: dict[str, int] = {}
        entries: list[Entry] = []
        for _ in range(self._dice.choice([1, 1, 1, 2, 3, 8])):
            place = table, key = self._dice.choice(TABLES), self._dice.choice(KEYS)
            if self._dice.random() < 0.1:  # a number that is not used, as after a transaction that was rolled back
                self._line += 1
            self._line += 1
            before = self._live.get(place)
            op = Op.CREATE if before is None else self._dice.choice([Op.UPDATE, Op.UPDATE, Op.DELETE])
            sequence = self._sequences[place] = self._sequences.get(place, 0) + 1
            digest = None if op is Op.DELETE else f"{table}/{key}/{sequence}"
            change = Change(self._line, table, key, sequence, op, f"tx{number}", digest)
            if op is Op.DELETE:
                del self._live[place]
            else:
                self._live[place] = change
            counts[table] = counts.get(table, 0) + 1
            orders = len(entries) + 1, counts[table]
            entries.append(Entry(change, (number, len(entries)), orders, before.sequence if before else None))
        self.log += entries
        self.sizes.append((f"{number}:lsn", counts))

    def rows(self, until: int) -> dict[tuple[str, str], Change]:
        """Return the rows that there were after so many entries of the log."""
        found: dict[tuple[str, str], Change] = {}
        for entry in self.log[:until]:
            place = entry.change.table, str(entry.change.key)
            found.pop(place, None)
            if entry.change.op is not Op.DELETE:
                found[place] = entry.change
        return found


def right_history(
    dice: random.Random,
    *,
    transactions: int = 30,
    exactly_once: bool = False,
    whole_deletes: bool = True,
    late_rows: bool = False,
    kills: float = 0.05,
) -> History:
    """Return a history in which nothing is wrong.

    Args:
        exactly_once: readers of committed records find nothing twice.
        whole_deletes: a DELETE says which row it has removed.
        late_rows: the rows that there were at the beginning are read some time later, each at its own, as MongoDB's are; and again after a
            kill, while no offset of the stream is stored.
        kills: how often the connector is killed, by change.
    """
    source = Source(dice, transactions)
    log = source.log
    ends = [place for place in range(1, len(log)) if log[place].position[0] != log[place - 1].position[0]]
    start = dice.choice([0, *ends])
    topics = _Topics(dice, whole_deletes)

    def read() -> None:
        for place, change in source.rows(start).items():
            row = source.rows(dice.randint(start, len(log))).get(place) if late_rows else change
            if row is not None:
                topics.read(row, log[start - 1].position)

    read()
    at = stored = start
    restarts = 0
    offsets: list[StoredOffset] = []
    acknowledged: list[Acknowledged] = []
    boundaries: list[Boundary] = []
    while at < len(log):
        entry = log[at]
        name, counts = source.sizes[entry.position[0] - 1]
        if entry.orders[0] == 1:
            boundaries.append(Boundary(name, "BEGIN"))
        topics.stream(entry, name)
        at += 1
        ended = at in ends or at == len(log)
        if ended:
            boundaries.append(Boundary(name, "END", sum(counts.values()), counts))
        if ended and (exactly_once or dice.random() < 0.3):
            stored = at
            offsets.append(StoredOffset("shop", log[at - 1].position))
            acknowledged.append(Acknowledged(at, log[dice.randrange(start, at)].position, log[at - 1].position))
        elif not exactly_once and dice.random() < kills:
            at, restarts = stored, restarts + 1
            if late_rows and stored == start:
                read()
    final = source.rows(len(log))
    rows = {table: {key: Row(c.sequence, c.digest) for (of, key), c in final.items() if of == table} for table in TABLES}
    versions = {table: [_rows(source.rows(until), table) for until in sorted({0, *dice.sample(ends, 3), len(log)})] for table in TABLES}
    return History(
        changes=[entry.change for entry in log],
        events=topics.events,
        promise=Promise(
            start=log[start - 1].change.line if start else 0, restarts=restarts, exactly_once=exactly_once, initial_rows_lag=late_rows
        ),
        rows=rows,
        sink_versions=versions,
        stored=offsets,
        acknowledged=acknowledged,
        boundaries=boundaries,
        ends=[PartitionEnd(table, 0, end, end) for table, end in topics.ends.items()],
        writes=[Write("c-0", f"start {event.offset // 40}", event.topic, 0, event.offset) for event in topics.events],
        states=[TaskState("c-0", "RUNNING")],
        counted=[Counted("c-0", 100, 90, 7, 2, 1)],
        ddl=[SchemaChange(text) for text in DDL],
        schema_history=[SchemaChange("SET character_set_server=utf8mb4"), *(SchemaChange(f"{text};") for text in DDL)],
    )


def _rows(found: dict[tuple[str, str], Change], table: str) -> dict[str, Row]:
    return {key: Row(change.sequence, change.digest) for (of, key), change in found.items() if of == table}


class _Topics:
    """One partition a table."""

    def __init__(self, dice: random.Random, whole_deletes: bool) -> None:
        self._dice, self._whole_deletes = dice, whole_deletes
        self.events: list[Event] = []
        self.ends: dict[str, int] = {}

    def read(self, change: Change, position: tuple[int, int]) -> None:
        self._add(Event(change.table, 0, 0, change.table, change.key, Op.READ, change.sequence, change.digest, position))

    def stream(self, entry: Entry, transaction: str) -> None:
        change = entry.change
        deleted = change.op is Op.DELETE
        event = Event(change.table, 0, 0, change.table, change.key, change.op, change.sequence, change.digest, entry.position, transaction)
        if deleted:
            event = replace(event, sequence=entry.removed if self._whole_deletes else None)
        self._add(replace(event, total_order=entry.orders[0], collection_order=entry.orders[1]))
        if deleted:
            self._add(Event(change.table, 0, 0, change.table, change.key, Op.TOMBSTONE))

    def _add(self, event: Event) -> None:
        offset = self.ends.get(event.topic, 0) + (self._dice.random() < 0.05)  # a transaction's marker takes an offset
        self.ends[event.topic] = offset + 1
        self.events.append(replace(event, offset=offset))
