"""The oldest transaction that a slot keeps the catalog for, as records show it (`xmin.fetch.interval.ms`;
`PostgresStreamingChangeEventSource.java`, getSlotXmin)."""

from __future__ import annotations

import time
from collections.abc import Callable

from connectors.postgres.server.connection import Connection, quote_literal


class SlotXmin:
    """Asks for the slot's `catalog_xmin` from time to time. Owned by the task's thread.

    Args:
        general: the connection of now.
        seconds: how long an answer is good.
    """

    def __init__(self, general: Callable[[], Connection], slot: str, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._general = general
        self._sql = f"SELECT catalog_xmin FROM pg_replication_slots WHERE slot_name = {quote_literal(slot)}"
        self._seconds = seconds
        self._clock = clock
        self._known: int | None = None
        self._until = 0.0

    def __call__(self) -> int | None:
        """The number; None when the slot is gone. Raises ServerError."""
        now = self._clock()
        if self._known is None or now >= self._until:
            rows = self._general().query(self._sql)
            self._known = int(rows[0][0]) if rows and rows[0][0] is not None else None
            self._until = now + self._seconds
        return self._known
