"""Where a stream is, as source blocks show it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """The event that was read last.

    Attributes:
        pos: where it begins.
        gtid: of its transaction.
        thread: that made it; None outside of transactions.
    """

    file: str
    pos: int
    server_id: int = 0
    gtid: str | None = None
    thread: int | None = None
