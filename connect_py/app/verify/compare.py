"""Compare one table with its source, while data flows.

The table is read first, at one commit: digests of its rows go into an index. Then the source, a range of keys at a time; what the index
does not have, or has otherwise, is only suspected: the sink follows the source by seconds. So the table is read again, and again, until the
time is up. A key is settled as soon as the table shows any state that the source has been seen in since the suspicion arose, its absence
among them; what never does, differs. Then both rows are read once more, to be shown. Memory holds a range of the source, a batch of the
table, and the suspects (at most `Patience.suspects`). `connect_py.app.verify.topic` compares topics in the same way.

Of a table without a key, `KeylessComparison` asks which rows there are, and how often. Every event is a row of the table. What was read or
inserted is there once more, what was deleted once less. An update brings the new row and leaves the old one, and the table does not say
which that was: so, where there are updates, a row may be there too often, and all of them together as many times too often as there are
updates. A row is settled as soon as the table has it as often as the source has been seen to have it since. The sum is right when it lies
within what the source has been seen to have.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from connect_py.app.verify.changelog import Changelog, check_truncated
from connect_py.app.verify.choice import Chosen, Sample
from connect_py.app.verify.index import CountIndex, DigestIndex
from connect_py.app.verify.lake import LakeTable
from connect_py.app.verify.layout import Layout, Normal, NotComparableError
from connect_py.app.verify.normal import digest
from connect_py.app.verify.progress import Progress
from connect_py.app.verify.report import Difference, Outcome, Patience
from connect_py.app.verify.source import KeyRange, SourceRow, SourceTables

T = TypeVar("T")


def await_side(find: Callable[[], T], patience: Patience, *, is_due: bool) -> T:
    """Return what is found of a table or topic; if it `is_due`, one that is still to come is waited for, as differences are."""
    deadline = time.monotonic() + (patience.wait if is_due else 0)
    while not (found := find()) and time.monotonic() < deadline:
        time.sleep(min(patience.pause, 1.0))
    return found


@dataclass(slots=True)
class Suspect:
    """A key that may differ.

    Attributes:
        range: of the source, where the key was found; None: it was not.
        states: of the rows that the source had, None for no row.
        is_there: whether the source had a row at the last look.
    """

    range: KeyRange | None
    states: set[bytes | None]
    is_there: bool = False


class KeyedComparison:
    """Compare rows by key with a side that follows the source; used by one thread.

    Subclasses read that side. A row's *state* are bytes that stand for its values.

    Args:
        extras_count: whether rows that the source has not are differences.
        chosen: which keys are compared, by their digests; None: all.
        progress: receives what the first look has read, and what is waited for.
        sleep: waits for the given seconds between two looks.
        clock: monotonic seconds, for the end of patience.
    """

    def __init__(
        self,
        outcome: Outcome,
        sources: SourceTables,
        patience: Patience,
        *,
        extras_count: bool = True,
        chosen: Chosen | None = None,
        progress: Progress | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.outcome = outcome
        self.sources = sources
        self.patience = patience
        self.extras_count = extras_count
        self.chosen = chosen
        self.progress = progress or Progress()
        self.suspects: dict[bytes, Suspect] = {}
        self._sleep = sleep
        self._clock = clock
        self._ranges: list[KeyRange] = []

    def run(self) -> None:
        """Fill in the outcome. Raises ConnectError: one of the sides cannot be read."""
        self.look()
        deadline = self._clock() + self.patience.wait
        while self.suspects and (left := deadline - self._clock()) > 0:
            self.progress.wait(len(self.suspects), left)
            self._sleep(min(self.patience.pause, left))
            self.look_again()
            if self.suspects:
                for key, row in self._of_source_again():
                    self.suspects[key].states.add(None if row is None else self.state_of(row))
        if self.suspects:
            self._show()

    # -- what subclasses read -----------------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Read the side, then the source by `look_at_source`, and the rows that only the side has."""
        raise NotImplementedError

    def look_again(self) -> None:
        """Go to what the side has now, and `settle`."""
        raise NotImplementedError

    def key_of(self, row: SourceRow) -> bytes:
        """Return the digest of a row's key."""
        raise NotImplementedError

    def state_of(self, row: SourceRow) -> bytes:
        """Return the state of a row."""
        raise NotImplementedError

    def is_same(self, present: bytes | None, state: bytes | None) -> bool:
        """Return whether the side has a state of the source."""
        return present == state

    def is_settled(self, key: bytes, present: bytes | None, states: Collection[bytes | None]) -> bool:
        """Return whether a suspect is right after all.

        Args:
            present: the state that the side has now.
            states: in which the source has been seen.
        """
        return any(self.is_same(present, state) for state in states)

    def last_states(self, shown: frozenset[bytes]) -> Mapping[bytes, bytes]:
        """Return the suspects' states that the side has now; rows of those that are shown are kept for `difference`."""
        raise NotImplementedError

    def difference(self, key: bytes, row: SourceRow | None) -> Difference | None:
        """Return what is shown of a key, with the source's row; None for nothing."""
        raise NotImplementedError

    # -- what is common ----------------------------------------------------------------------------------------------------------------

    def look_at_source(self, differing: Callable[[dict[bytes, bytes]], Iterable[bytes]]) -> None:
        """The first look at the source.

        Args:
            differing: returns those of a range's keys whose states the side has not.
        """
        for name in self.outcome.sources:
            for range_, rows in self.sources.ranges(name):
                self._ranges.append(range_)
                self.outcome.source_rows += len(rows)
                self.progress.read("source", len(rows))
                keys = ((self.key_of(row), row) for row in rows)
                states = {key: self.state_of(row) for key, row in keys if self.chosen is None or self.chosen(key)}
                self.outcome.compared += len(states)
                for key in differing(states):
                    self.suspect(key, range_, states[key])

    def suspect(self, key: bytes, range_: KeyRange | None, state: bytes | None) -> None:
        """Watch a key; without a range it was not in the source."""
        if self.chosen is not None and not self.chosen(key):
            return
        if len(self.suspects) < self.patience.suspects:
            self.suspects[key] = Suspect(range_, {state})
        else:
            self.outcome.unwatched += 1

    def settle(self, present: Mapping[bytes, bytes | None]) -> None:
        """Release the suspects of which the side has a state that the source has been seen in."""
        settled = [key for key, suspect in self.suspects.items() if any(self.is_same(present.get(key), state) for state in suspect.states)]
        for key in settled:
            del self.suspects[key]
        self.outcome.settled += len(settled)

    def _show(self) -> None:
        """Read what is left once more, with values of those that are shown."""
        shown = frozenset(itertools.islice(self.suspects, self.patience.shown))
        rows: dict[bytes, SourceRow | None] = {}
        for key, row in self._of_source_again():
            self.suspects[key].states.add(None if row is None else self.state_of(row))
            rows[key] = row if key in shown else None
            self.suspects[key].is_there = row is not None
        present = self.last_states(shown)
        for key, suspect in self.suspects.items():
            if self.is_settled(key, present.get(key), suspect.states):
                self.outcome.settled += 1
                continue
            kind = "missing" if present.get(key) is None else "different" if suspect.is_there else "extra"
            self.outcome.counts[kind] += 1
            if key in shown and (difference := self.difference(key, rows[key])) is not None:
                self.outcome.differences.append(difference)

    def _of_source_again(self) -> Iterator[tuple[bytes, SourceRow | None]]:
        """Every suspect as the source has it now. Where any of them was not found before, all ranges are read."""
        suspects = self.suspects.values()
        everywhere = any(suspect.range is None for suspect in suspects)
        wanted = {suspect.range for suspect in suspects}
        unseen = set(self.suspects)
        if everywhere:
            rows = (row for name in self.outcome.sources for _, part in self.sources.ranges(name) for row in part)
        else:
            rows = (row for range_ in self._ranges if range_ in wanted for row in self.sources.again(range_))
        for row in rows:
            if (key := self.key_of(row)) in unseen:
                unseen.discard(key)
                yield key, row
        for key in unseen:
            yield key, None


class Comparison(KeyedComparison):
    """One run over one lakehouse table.

    Args:
        changes: knows which rows there are, of a table that keeps every change.
        sample: the part of the keys that is compared; None: all.
        more: of `KeyedComparison`.
    """

    def __init__(
        self,
        outcome: Outcome,
        sources: SourceTables,
        lake: LakeTable,
        layout: Layout,
        patience: Patience,
        *,
        changes: Changelog | None = None,
        sample: Sample | None = None,
        **more: Any,
    ) -> None:
        super().__init__(outcome, sources, patience, **more)
        self._lake = lake
        self._layout = layout
        self._changes = changes
        self._sample = sample
        self._of_table_shown: dict[bytes, Normal] = {}

    def look(self) -> None:
        samples = self._sample if self.chosen is None else None
        if samples is not None:
            self.chosen = samples.chosen(self._lake.row_estimate())
        index = DigestIndex()
        try:
            for rows in self._of_table():
                keys = ((digest(key), row) for key, row in rows)
                index.add([(key, digest(row)) for key, row in keys if self.chosen is None or self.chosen(key)])
                self.progress.read("table", len(rows))
                self.outcome.table_rows += len(rows)
            self.outcome.twice = index.count("twice")
            if samples is not None and self.chosen is None:
                self.chosen = samples.chosen(index.count("rows"))
            self.look_at_source(
                lambda states: [found.key for found in index.differing(list(states.items())) if found.row != states[found.key]]
            )
            if self.extras_count:
                for key in index.unseen():
                    self.suspect(key, None, None)
        finally:
            index.close()

    def look_again(self) -> None:
        self._lake.refresh()
        self.settle({key: digest(row) for key, row in self._of_suspects()})

    def key_of(self, row: SourceRow) -> bytes:
        return digest(self._layout.key_of_source(row))

    def state_of(self, row: SourceRow) -> bytes:
        return digest(self._layout.of_source(row)[1])

    def last_states(self, shown: frozenset[bytes]) -> Mapping[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for key, row in self._of_suspects():
            found[key] = digest(row)
            if key in shown:
                self._of_table_shown[key] = row
        return found

    def difference(self, key: bytes, row: SourceRow | None) -> Difference | None:
        here = None if row is None else self._layout.of_source(row)[1]
        there = self._of_table_shown.get(key)
        values = here if here is not None else there
        if values is None:
            return None
        named = dict(zip([column.name for column in self._layout.key], self._layout.key_of(values), strict=True))
        return Difference(named, None if here is None else self._named(here), None if there is None else self._named(there))

    def _named(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip([column.name for column in self._layout.columns], values, strict=True))

    # -- reading -----------------------------------------------------------------------------------------------------------------------

    def _of_table(self) -> Iterator[list[Normal]]:
        if self._changes is not None:
            yield from self._changes.rows()
            self.outcome.changes, self.outcome.doubled = self._changes.changes, self._changes.doubled
            return
        for batch in self._lake.batches(self._layout.read):
            yield list(self._layout.of_table(batch))

    def _of_suspects(self) -> Iterator[tuple[bytes, tuple[Any, ...]]]:
        """Yield those of the table's rows that are suspects, by key."""
        for rows in self._of_table():
            for key, row in rows:
                if (hashed := digest(key)) in self.suspects:
                    yield hashed, row


#: What an event does to the number of its row's copies. A truncate is no row.
_WEIGHTS = {"c": 1, "r": 1, "u": 1, "d": -1, "t": 0}
_PLACE = ("__topic", "__partition", "__offset")

#: Values of all compared columns.
Row = tuple[Any, ...]


class KeylessComparison:
    """One run over one table; used by one thread.

    Args:
        keeps_truncates: whether a truncate is an event of the table's, and has not emptied it (`write-mode=append`).
        extras_count: whether rows that the source has not are differences.
        progress, sleep, clock: those of `Comparison`.
    """

    def __init__(
        self,
        outcome: Outcome,
        sources: SourceTables,
        lake: LakeTable,
        layout: Layout,
        patience: Patience,
        *,
        keeps_truncates: bool,
        extras_count: bool = True,
        progress: Progress | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._outcome = outcome
        self._sources = sources
        self._lake = lake
        self._layout = layout
        self._patience = patience
        self._keeps_truncates = keeps_truncates
        self._extras_count = extras_count
        self._progress = progress or Progress()
        self._sleep = sleep
        self._clock = clock
        self._suspects: dict[bytes, set[int]] = {}  # the numbers of copies that the source was seen to have
        self._here: Counter[bytes] = Counter()  # suspects in the table at the last look
        self._totals: list[int] = []  # of the source

    def run(self) -> None:
        """Fill in the outcome.

        Raises:
            NotComparableError: the table does not say enough.
            ConnectError: one of the sides cannot be read.
        """
        self._look()
        deadline = self._clock() + self._patience.wait
        while (self._suspects or self._unaccounted()) and (left := deadline - self._clock()) > 0:
            self._progress.wait(len(self._suspects), left)
            self._sleep(min(self._patience.pause, left))
            self._lake.refresh()
            self._count_suspects()
            settled = [row for row, states in self._suspects.items() if self._is_right(self._here[row], states)]
            for row in settled:
                del self._suspects[row]
            self._outcome.settled += len(settled)
            if self._suspects or self._unaccounted():
                there = Counter(row for rows in self._of_source() for value in rows if (row := digest(value)) in self._suspects)
                for row, states in self._suspects.items():
                    states.add(there[row])
        self._outcome.unaccounted = self._unaccounted()
        if self._suspects:
            self._show()

    def _look(self) -> None:
        """The first look at both."""
        index = CountIndex()
        try:
            for rows in self._of_table():
                index.add_to_table([(digest(row), weight) for row, weight in rows])
                self._progress.read("table", len(rows))
            for of_source in self._of_source():
                index.add_to_source([(digest(row), 1) for row in of_source])
                self._progress.read("source", len(of_source))
            self._outcome.source_rows = self._totals[0]
            for row, there, here in index.differing(extras=self._extras_count and not self._outcome.updates):
                if len(self._suspects) < self._patience.suspects:
                    self._suspects[row] = {there}
                    self._here[row] = here
                else:
                    self._outcome.unwatched += 1
        finally:
            index.close()

    def _is_right(self, here: int, states: set[int]) -> bool:
        more = self._outcome.updates or not self._extras_count
        return here in states or bool(more and here > min(states))

    def _unaccounted(self) -> int:
        """Count the rows that the table has beyond the source's and those from before updates, without those that are missing."""
        if not (self._outcome.updates and self._extras_count) or self._outcome.unwatched:
            return 0
        missing = sum(max(0, min(states) - self._here[row]) for row, states in self._suspects.items())
        rows = self._outcome.table_rows - self._outcome.updates + missing
        least, most = min(self._totals), max(self._totals)
        return rows - most if rows > most else min(0, rows - least)

    def _count_suspects(self) -> None:
        self._here = Counter()
        for rows in self._of_table():
            for value, weight in rows:
                if (row := digest(value)) in self._suspects:
                    self._here[row] += weight

    def _show(self) -> None:
        """Tell what is left, with values of those rows that are shown."""
        wanted = set(itertools.islice(self._suspects, self._patience.shown))
        values: dict[bytes, Row] = {}
        both = itertools.chain(self._of_source(), ([row for row, _ in rows] for rows in self._of_table()))
        for rows in both:
            values |= {hashed: row for row in rows if (hashed := digest(row)) in wanted}
        names = [column.name for column in self._layout.columns]
        for row, states in self._suspects.items():
            here = self._here[row]
            there = min(states, key=lambda state: abs(state - here))
            self._outcome.counts["missing" if here < there else "extra"] += abs(there - here)
            if row in values:
                named = dict(zip(names, values[row], strict=True))
                difference = Difference({}, named if here < there else None, None if here < there else named, (there, here))
                self._outcome.differences.append(difference)

    # -- reading -----------------------------------------------------------------------------------------------------------------------

    def _of_table(self) -> Iterator[list[tuple[Row, int]]]:
        """Yield rows of events, and what each does to the number of copies. Counts rows and updates."""
        there = set(self._lake.columns().names)
        wanted = ["__op", *(_PLACE if self._keeps_truncates else ())]
        if lacking := [name for name in wanted if name not in there]:
            raise NotComparableError(f"its records have no key, and it has no column {', '.join(lacking)} to tell what they did")
        cuts = self._cuts() if self._keeps_truncates else {}
        rows = updates = 0
        for batch in self._lake.batches([*self._layout.read, *wanted]):
            told = zip(*[batch.column(name).to_pylist() for name in wanted], strict=True)
            found = []
            for (_, row), (op, *place) in zip(self._layout.of_table(batch.select(self._layout.read)), told, strict=True):
                weight = _WEIGHTS.get(op, 1)
                if not weight or (place and place[2] < cuts.get((place[0], place[1]), 0)):
                    continue
                rows += weight
                updates += op == "u"
                found.append((row, weight))
            yield found
        self._outcome.table_rows, self._outcome.updates = rows, updates

    def _cuts(self) -> dict[tuple[str, int], int]:
        """Return offsets of the last truncate of each partition."""
        cuts: dict[tuple[str, int], int] = {}
        partitions: dict[str, set[int]] = {}
        for batch in self._lake.batches(["__op", *_PLACE]):
            for op, topic, partition, offset in zip(*[batch.column(name).to_pylist() for name in ("__op", *_PLACE)], strict=True):
                partitions.setdefault(topic, set()).add(partition)
                if op == "t":
                    cuts[topic, partition] = max(offset, cuts.get((topic, partition), 0))
        check_truncated({topic for topic, _ in cuts}, partitions)
        return cuts

    def _of_source(self) -> Iterator[list[Row]]:
        """Yield all rows; counts them."""
        total = 0
        for name in self._outcome.sources:
            for rows in self._sources.whole(name):
                total += len(rows)
                yield [row for _, row in map(self._layout.of_source, rows)]
        self._totals.append(total)
