"""The window of an incremental snapshot: a chunk's rows, less those that changed while it was read (DBLog; Debezium's design of 2.0).

Pure: events in, deduplicated rows out. A chunk is read between two watermarks of the source's log. Rows of the chunk are held until the
stream has passed the high watermark; of a key that the stream shows between the two, the stream's event is the newer one or will be
followed by it, so the chunk's row must not follow it.

Two kinds of events concern more than a key. A truncate between the watermarks empties the window: what was inserted after it is in the
stream. A change of the table's structure spoils it: rows of the old structure must not follow those of the new one; the chunk is read
again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

R = TypeVar("R")


class Window(Generic[R]):
    """Rows of one chunk between its watermarks.

    Attributes:
        chunk: identifies the chunk; watermarks of other chunks (an earlier run's) are not ours. Empty without one.
        is_open: whether the low watermark has been passed.
    """

    def __init__(self) -> None:
        self.chunk = ""
        self.is_open = False
        self._rows: dict[Hashable, R] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def begin(self, chunk: str) -> None:
        """Start a new chunk, with nothing in it."""
        self.chunk, self.is_open = chunk, False
        self._rows = {}

    def fill(self, rows: Iterable[tuple[bytes | None, R]]) -> None:
        """Hold the chunk's rows with their keys, in order. Rows without a key are all kept; of equal keys the last one stays."""
        for number, (key, row) in enumerate(rows):
            self._rows[number if key is None else key] = row

    def opens(self, watermark: str) -> bool:
        """Open the window at a low watermark of the stream. Returns whether it is this chunk's."""
        if not self._is_ours(watermark):
            return False
        self.is_open = True
        return True

    def closes(self, watermark: str) -> bool:
        """Return whether a high watermark of the stream is this chunk's: then `take` the rows."""
        return self._is_ours(watermark)

    def drop(self, key: bytes | None) -> bool:
        """Drop the row of a key that the stream shows. Returns whether there was one."""
        return self.is_open and key is not None and self._rows.pop(key, None) is not None

    def drop_all(self) -> None:
        """Drop all rows: the stream shows a truncate of the table."""
        if self.is_open:
            self._rows.clear()

    def take(self) -> list[R]:
        """Return the rows that are left; the window is then closed and empty, and without a chunk."""
        rows = list(self._rows.values())
        self.begin("")
        return rows

    def _is_ours(self, watermark: str) -> bool:
        # without a chunk no text is ours
        return bool(self.chunk) and watermark.startswith(self.chunk)
