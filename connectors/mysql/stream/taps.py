"""What listens to single tables of the stream: signals, and an open window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from connectors.engine.encode.texts import Text
from connectors.engine.relational.table import TableId
from connectors.engine.signal.records import SignalRecord, deleted, inserted
from connectors.mysql.model import MyTable


@dataclass(slots=True)
class Taps:
    """What is listened to; the owner changes it between events.

    Attributes:
        signal_table: None when the channel `source` is off.
        on_signal: carries out a signal; may emit rows.
        deletes_close: whether the deletion of a row of the signal table is a watermark.
        watched: the table of the window that waits, None without one.
        on_event: told of the keys of its events.
        on_truncate: told of its truncates.
        on_structure: told of its new structure, None when it is gone.
    """

    signal_table: TableId | None = None
    on_signal: Callable[[SignalRecord], None] = lambda _: None
    deletes_close: bool = False
    watched: TableId | None = None
    on_event: Callable[[bytes | None], None] = lambda _: None
    on_truncate: Callable[[], None] = lambda: None
    on_structure: Callable[[MyTable | None], None] = lambda _: None

    def row(self, kind: str, texts: Sequence[Text]) -> None:
        """A row of the signal table: id, type and data are its first three columns. Raises RetriableError."""
        id_, type_, data = (text if isinstance(text, str) else None for text in (*texts[:3], None, None, None)[:3])
        if id_ is None:
            return
        if kind == "c" and type_ is not None:
            self.on_signal(inserted(id_, type_, data))
        elif kind == "d" and self.deletes_close:
            self.on_signal(deleted(id_, data))
