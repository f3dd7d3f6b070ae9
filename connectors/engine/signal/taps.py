"""What listens to single tables of a stream: the signals of the signal table, and the window of an incremental snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from connectors.engine.relational.tables import TableId
from connectors.engine.signal.records import SignalRecord, deleted, inserted


@dataclass(slots=True)
class Taps:
    """The listeners; the owner changes them between events (`SourceServices.connect`).

    Attributes:
        signal_table: None when the channel `source` is off.
        on_signal: carries out a signal; may emit rows.
        deletes_close: whether the deletion of a row of the signal table is a watermark.
        watched: the table of the window that waits, None without one.
        on_event: called with the keys of its events.
        on_truncate: called for each of its truncates.
        on_structure: called with its new structure, None when it was dropped.
    """

    signal_table: TableId | None = None
    on_signal: Callable[[SignalRecord], None] = lambda _: None
    deletes_close: bool = False
    watched: TableId | None = None
    on_event: Callable[[bytes | None], None] = lambda _: None
    on_truncate: Callable[[], None] = lambda: None
    on_structure: Callable[[object], None] = lambda _: None

    def signal_row(self, kind: str, id_: object, type_: object = None, data: object = None) -> None:
        """Pass on a row of the signal table that was created or deleted (``c``, ``d``), by its first three columns: those that are texts.

        Raises RetriableError."""
        if not isinstance(id_, str):
            return
        text = data if isinstance(data, str) else None
        if kind == "c" and isinstance(type_, str):
            self.on_signal(inserted(id_, type_, text))
        elif kind == "d" and self.deletes_close:
            self.on_signal(deleted(id_, text))
