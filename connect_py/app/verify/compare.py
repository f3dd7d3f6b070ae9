"""One table against its source, while data flows.

The table is read first, at one commit: digests of its rows go into an index. Then the source, a range of keys at a time; what the index has
not, or has otherwise, is only suspected: the sink follows the source by seconds. So the table is read again, and again, until the time is
up. A key is settled as soon as the table shows any state that the source has been seen in since the suspicion arose, its absence among
them; what never does, differs. Then both rows are read once more, to be shown.

Memory holds a range of the source, a batch of the table, and the suspects (at most `Patience.suspects`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.app.verify.changelog import Changelog
from connect_py.app.verify.index import DigestIndex
from connect_py.app.verify.lake import LakeTable
from connect_py.app.verify.layout import Layout, Normal
from connect_py.app.verify.normal import digest
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
        changes: what tells which rows there are, of a table that keeps every change.
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
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._outcome = outcome
        self._sources = sources
        self._lake = lake
        self._layout = layout
        self._patience = patience
        self._extras_count = extras_count
        self._changes = changes
        self._sleep = sleep
        self._ranges: list[KeyRange] = []
        self._suspects: dict[bytes, _Suspect] = {}

    def run(self) -> None:
        """Fill in the outcome. Raises ConnectError: one of the sides cannot be read."""
        index = DigestIndex()
        try:
            for rows in self._of_table():
                index.add([(digest(key), digest(row)) for key, row in rows])
            self._outcome.table_rows, self._outcome.twice = index.count("rows"), index.count("twice")
            self._look(index)
        finally:
            index.close()
        deadline = time.monotonic() + self._patience.wait
        while self._suspects and (left := deadline - time.monotonic()) > 0:
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
