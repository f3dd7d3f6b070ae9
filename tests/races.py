"""Races between an incremental snapshot and its table, placed: what every database's test of them shares.

Every case has a table of its own whose rows were there before the stream began, so that only the snapshot can bring them. At one phase of
one of its chunks another session changes the table. At the end the topic, folded by key, is the table: no row is missing, none is stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from connectors.engine.snapshot.incremental.contract import SnapshotHooks
from tests.postgres_task import DirectTask, fold_events

PHASES = ["before_low", "after_low", "before_chunk", "after_chunk", "before_high", "after_high"]

#: Change, phase, and which of the first two chunks.
Place = tuple[str, str, int]


def places(changes: Iterable[str]) -> list[Place]:
    """Every change at every phase, of the first and the second chunk in turn."""
    return [(change, phase, (i + j) % 2) for i, change in enumerate(changes) for j, phase in enumerate(PHASES)]


def table_name(change: str, phase: str, chunk: int) -> str:
    """The table of a case."""
    return f"t_{change}_{phase}_{chunk}".replace(" ", "_")


@dataclass
class Race(SnapshotHooks):
    """Runs a change at the n-th time that a phase is reached."""

    execute: Callable[[str], object]
    phase: str = ""
    count: int = -1
    change: str = ""

    def place(self, phase: str, chunk: int, change: str) -> None:
        """Where it happens next."""
        self.phase, self.count, self.change = phase, chunk, change

    def reached(self, phase: str) -> None:
        """See `SnapshotHooks`."""
        if phase != self.phase:
            return
        if self.count == 0:
            self.execute(self.change)
        self.count -= 1


@dataclass
class Running:
    """One task for all cases of a strategy.

    Attributes:
        signal: sends id, type and data.
        mark: inserts a number into the captured table `marker`.
        prefix: what the names of topics begin with, up to the table's name.
        query: runs a statement and gives a cursor.
    """

    task: DirectTask
    race: Race
    signal: Callable[[str, str, Mapping[str, object]], None]
    mark: Callable[[int], object]
    prefix: str
    query: Callable[[str], Any]

    def settle(self) -> None:
        """Wait for the snapshot's end, and for what had been committed then to be streamed."""
        marker = len(self.task.batches)
        self.task.poll_until(lambda: not self.task.is_snapshotting(), what="the end of the snapshot")
        self.mark(marker)
        self.task.poll_until(lambda: {"id": marker} in [key for key, _ in self.task.of(f"{self.prefix}.marker")], what="the marker")

    def run(self, place: Place, collection: str, change: str) -> None:
        """Take a snapshot of a case's table while it changes."""
        table = table_name(*place)
        self.race.place(place[1], place[2], change)
        self.signal(f"s-{table}", "execute-snapshot", {"data-collections": [collection], "type": "incremental"})
        self.task.poll_until(lambda: self.race.count < 0, what="the race")
        self.settle()


def assert_topic_is_table(events: list[tuple[Any, Any]], names: list[str], rows: Iterable[tuple[Any, ...]], change: str) -> None:
    """Compare a topic with its table, whose first column is the key."""
    wanted = {(("id", row[0]),): dict(zip(names, row, strict=True)) for row in rows}
    found = fold_events(events)
    assert set(found) == set(wanted)
    shared = [name for name in names if name != "more"]  # a new column's default reaches no row that nobody touches
    assert {key: {name: row[name] for name in shared} for key, row in found.items()} == {
        key: {name: row[name] for name in shared} for key, row in wanted.items()
    }
    shown = [event["after"] or event["before"] for _, event in events if event is not None and event["op"] in "rcu"]
    # a row of an older structure must not follow one of a newer
    if change == "add column":
        assert [("more" in row) for row in shown] == sorted("more" in row for row in shown)
    if change == "drop column":
        assert [("w" in row) for row in shown] == sorted((("w" in row) for row in shown), reverse=True)
