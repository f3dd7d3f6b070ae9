"""Compare one table with its source, while data flows.

The table is read first, at one commit: digests of its rows go into an index. Then the source, a range of keys at a time; what the index
does not have, or has otherwise, is only suspected: the sink follows the source by seconds. So the table is read again, and again, until the
time is up. A key is settled as soon as the table shows any state that the source has been seen in since the suspicion arose, its absence
among them; what never does, differs. Then both rows are read once more, to be shown. Memory holds a range of the source, a batch of the
table, and the suspects (at most `Patience.suspects`).

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.app.verify.changelog import Changelog, check_truncated
from connect_py.app.verify.index import CountIndex, DigestIndex
from connect_py.app.verify.lake import LakeTable
from connect_py.app.verify.layout import Layout, Normal, NotComparableError
from connect_py.app.verify.normal import digest
from connect_py.app.verify.progress import Progress
from connect_py.app.verify.report import Difference, Outcome, Patience
from connect_py.app.verify.source import KeyRange, SourceTables


@dataclass(slots=True)
class _Suspect:
    """`states` are digests of the rows that the source had, None for no row."""

    range: KeyRange | None
    states: set[bytes | None]


class Comparison:
    """One run over one table; used by one thread.

    Args:
        extras_count: whether rows that the source has not are differences.
        changes: knows which rows there are, of a table that keeps every change.
        progress: receives what the first look has read, and what is waited for.
        sleep: waits for the given seconds between two looks.
        clock: monotonic seconds, for the end of patience.
    """

    def __init__(
        self,
        outcome: Outcome,
        sources: SourceTables,
        lake: LakeTable,
        layout: Layout,
        patience: Patience,
        *,
        extras_count: bool = True,
        changes: Changelog | None = None,
        progress: Progress | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._outcome = outcome
        self._sources = sources
        self._lake = lake
        self._layout = layout
        self._patience = patience
        self._extras_count = extras_count
        self._changes = changes
        self._progress = progress or Progress()
        self._sleep = sleep
        self._clock = clock
        self._ranges: list[KeyRange] = []
        self._suspects: dict[bytes, _Suspect] = {}

    def run(self) -> None:
        """Fill in the outcome. Raises ConnectError: one of the sides cannot be read."""
        index = DigestIndex()
        try:
            for rows in self._of_table():
                index.add([(digest(key), digest(row)) for key, row in rows])
                self._progress.read("table", len(rows))
            self._outcome.table_rows, self._outcome.twice = index.count("rows"), index.count("twice")
            self._look(index)
        finally:
            index.close()
        deadline = self._clock() + self._patience.wait
        while self._suspects and (left := deadline - self._clock()) > 0:
            self._progress.wait(len(self._suspects), left)
            self._sleep(min(self._patience.pause, left))
            self._lake.refresh()
            self._settle(self._of_suspects(self._of_table()))
            if self._suspects:
                for key, state, _ in self._of_source_again():
                    self._suspects[key].states.add(state)
        if self._suspects:
            self._show()

    def _look(self, index: DigestIndex) -> None:
        """The first look at the source."""
        for name in self._outcome.sources:
            for range_, rows in self._sources.ranges(name):
                self._ranges.append(range_)
                self._outcome.source_rows += len(rows)
                self._progress.read("source", len(rows))
                digests = {digest(key): digest(row) for key, row in map(self._layout.of_source, rows)}
                for found in index.differing(list(digests.items())):
                    if found.row != digests[found.key]:
                        self._suspect(found.key, range_, digests[found.key])
        if self._extras_count:
            for key in index.unseen():
                self._suspect(key, None, None)

    def _suspect(self, key: bytes, range_: KeyRange | None, state: bytes | None) -> None:
        if len(self._suspects) < self._patience.suspects:
            self._suspects[key] = _Suspect(range_, {state})
        else:
            self._outcome.unwatched += 1

    def _settle(self, present: dict[bytes, bytes]) -> None:
        settled = [key for key, suspect in self._suspects.items() if present.get(key) in suspect.states]
        for key in settled:
            del self._suspects[key]
        self._outcome.settled += len(settled)

    def _show(self) -> None:
        """Read what is left once more, with values of those that are shown."""
        shown = frozenset(itertools.islice(self._suspects, self._patience.shown))
        of_source = {key: (state, row if key in shown else None) for key, state, row in self._of_source_again()}
        of_table: dict[bytes, tuple[bytes, Normal | None]] = {}
        for rows in self._of_table():
            of_table.update(
                {key: (digest(row[1]), row if key in shown else None) for row in rows if (key := digest(row[0])) in self._suspects}
            )
        for key, suspect in self._suspects.items():
            state, here = of_source[key]
            present, there = of_table.get(key, (None, None))
            if present in suspect.states or present == state:
                self._outcome.settled += 1
                continue
            self._outcome.counts["missing" if present is None else "extra" if state is None else "different"] += 1
            if row := here or there:
                self._outcome.differences.append(
                    Difference(
                        dict(zip([column.name for column in self._layout.key], row[0], strict=True)),
                        None if here is None else self._named(here[1]),
                        None if there is None else self._named(there[1]),
                    )
                )

    def _named(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip([column.name for column in self._layout.columns], values, strict=True))

    # -- reading -----------------------------------------------------------------------------------------------------------------------

    def _of_table(self) -> Iterator[list[Normal]]:
        if self._changes is not None:
            yield from self._changes.rows()
            self._outcome.changes, self._outcome.doubled = self._changes.changes, self._changes.doubled
            return
        for batch in self._lake.batches(self._layout.read):
            yield list(self._layout.of_table(batch))

    def _of_suspects(self, batches: Iterable[list[Normal]]) -> dict[bytes, bytes]:
        return {hashed: digest(row) for rows in batches for key, row in rows if (hashed := digest(key)) in self._suspects}

    def _of_source_again(self) -> Iterator[tuple[bytes, bytes | None, Normal | None]]:
        """Every suspect as the source has it now: key, row's digest, row. Where any of them was not found before, all ranges are read."""
        suspects = self._suspects.values()
        everywhere = any(suspect.range is None for suspect in suspects)
        wanted = None if everywhere else {suspect.range for suspect in suspects}
        unseen = set(self._suspects)
        if everywhere:
            rows = (row for name in self._outcome.sources for _, part in self._sources.ranges(name) for row in part)
        else:
            rows = (row for range_ in self._ranges if wanted is not None and range_ in wanted for row in self._sources.again(range_))
        for found in map(self._layout.of_source, rows):
            hashed = digest(found[0])
            if hashed in self._suspects:
                unseen.discard(hashed)
                yield hashed, digest(found[1]), found
        for key in unseen:
            yield key, None, None


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
