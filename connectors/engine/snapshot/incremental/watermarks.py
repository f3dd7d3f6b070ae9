"""Watermarks of an incremental snapshot: how a chunk's place in the source's log is marked (debezium-common §11.2).

Two ways. *Written*: a row (document) of the signal table before the chunk and one after it, or its deletion; the stream shows them like any
other change, and the signals that they are open and close the window. *Positions*, where nothing may be written: the place that the log has
reached after the chunk was read. The window is then open from the moment the chunk is there; an event that is older than the chunk drops
its row too, which is right: that event, and all that follow it up to what the chunk saw, are in the stream.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable

OPEN, CLOSE = "snapshot-window-open", "snapshot-window-close"


class Watermarks:
    """What an incremental snapshot asks of a way to mark the log.

    Attributes:
        open_at_once: whether a window is open as soon as its chunk is read; otherwise the stream opens it.
    """

    open_at_once = False

    def low(self, chunk: str) -> None:
        """Mark the place before the chunk is read. Raises ConnectError."""
        raise NotImplementedError

    def high(self, chunk: str) -> None:
        """Mark the place after it. Raises ConnectError."""
        raise NotImplementedError

    def passed(self) -> str:
        """The chunk whose high watermark the stream has passed although it shows nothing of it; empty for none. Asked after each read of
        the stream; a chunk is named once."""
        return ""


class WrittenWatermarks(Watermarks):
    """Rows of the signal table.

    Args:
        insert: id, type and data (JSON text) of a row, in a transaction of its own. Raises ConnectError.
        delete: removes the row of an id, likewise; with it the high watermark is the deletion of the low one
            (``incremental.snapshot.watermarking.strategy=insert_delete``).
    """

    def __init__(self, insert: Callable[[str, str, str], None], delete: Callable[[str], None] | None = None) -> None:
        self._insert = insert
        self._delete = delete
        self._opened = ""

    def low(self, chunk: str) -> None:
        """See `Watermarks`."""
        self._opened = _instant()
        self._insert(f"{chunk}-open", OPEN, json.dumps({"openWindowTimestamp": self._opened}))

    def high(self, chunk: str) -> None:
        """See `Watermarks`."""
        if self._delete is not None:
            self._delete(f"{chunk}-open")
        else:
            data = {"openWindowTimestamp": self._opened, "closeWindowTimestamp": _instant()}
            self._insert(f"{chunk}-close", CLOSE, json.dumps(data))


def _instant() -> str:
    now = time.time_ns()
    seconds = datetime.datetime.fromtimestamp(now // 1_000_000_000, datetime.UTC)
    return f"{seconds:%Y-%m-%dT%H:%M:%S}.{now % 1_000_000_000:09d}Z"
