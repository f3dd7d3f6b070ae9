"""Rows on their way into the next batch: where whatever makes records beside the stream puts them."""

from __future__ import annotations

from collections.abc import Sequence

from connect_py.api.record import EncodedRow


class PendingRows:
    """One list, owned by the task's thread. The stream appends to the same list, so that all rows keep the order in which they were made.

    Attributes:
        rows: so far; a new list after every `take`.
        beside: how many of them are not the stream's own.
    """

    def __init__(self) -> None:
        self.rows: list[EncodedRow] = []
        self.beside = 0

    def add(self, row: EncodedRow) -> None:
        """Append one row that is not the stream's."""
        self.rows.append(row)
        self.beside += 1

    def extend(self, rows: Sequence[EncodedRow]) -> None:
        """Append rows that are not the stream's."""
        self.rows += rows
        self.beside += len(rows)

    def take(self) -> list[EncodedRow]:
        """The rows for a batch."""
        rows, self.rows, self.beside = self.rows, [], 0
        return rows
