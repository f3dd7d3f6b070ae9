"""Show on a terminal how far a comparison is: rows read of estimated rows, table by table, in one line that is written over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, TextIO

Side = Literal["table", "topic", "source"]

#: How often the line changes: people read no faster, and a terminal far away takes no more.
_SECONDS = 0.2


class Progress:
    """Receives what happens to one table after the other, from one thread. This one shows nothing."""

    def begin(self, table: str, estimate: int | None) -> None:
        """Begin a table or a topic.

        Args:
            estimate: how many rows or records it has by its metadata; None when these do not say it.
        """

    def read(self, side: Side, rows: int) -> None:
        """Count rows that were read at the first look. The table or topic is read before its source."""

    def expect(self, rows: int) -> None:
        """Say how many rows the source is expected to have; else as many as the table."""

    def wait(self, keys: int, seconds: float) -> None:
        """Say that so many keys differ, and how long they may still settle."""

    def end(self) -> None:
        """End the table: what is printed next has the terminal for itself."""


class ProgressLine(Progress):
    """Writes to a terminal.

    Args:
        clock: monotonic seconds.
        width: of the terminal, in characters; a longer line could not be written over.
    """

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic, width: int = 79) -> None:
        self._stream = stream
        self._clock = clock
        self._width = width
        self._table = ""
        self._estimate: int | None = None
        self._rows: dict[Side, int] = {}
        self._expected: int | None = None
        self._phase = ""
        self._shown_at = float("-inf")
        self._is_shown = False

    def begin(self, table: str, estimate: int | None) -> None:
        """Begin a table."""
        self._table, self._estimate = table, estimate
        self._rows, self._expected = {}, None
        self._phase = ""

    def read(self, side: Side, rows: int) -> None:
        """Count rows; what the table has is what its source is expected to have."""
        done = self._rows[side] = self._rows.get(side, 0) + rows
        expected = self._estimate if side != "source" else self._expected or self._rows.get("table")
        # an estimate that turns out to be too low says nothing any more
        what = "records" if side == "topic" else "rows"
        of = f" of about {expected:,} {what} ({100 * done // expected} %)" if expected and done <= expected else f" {what}"
        self._show(side, f"{done:,}{of}")

    def expect(self, rows: int) -> None:
        """Say how many rows the source is expected to have."""
        self._expected = rows

    def wait(self, keys: int, seconds: float) -> None:
        """Say what is waited for."""
        self._show("differing", f"{keys:,} keys, which have {seconds:.0f} s to settle")

    def end(self) -> None:
        """Clear the line."""
        if self._is_shown:
            self._stream.write("\r\033[K")
            self._stream.flush()
            self._is_shown = False

    def _show(self, phase: str, text: str) -> None:
        now = self._clock()
        if phase == self._phase and now - self._shown_at < _SECONDS:
            return
        self._phase, self._shown_at, self._is_shown = phase, now, True
        self._stream.write(f"\r\033[K{f'{self._table}: {phase}, {text}'[: self._width]}")
        self._stream.flush()
