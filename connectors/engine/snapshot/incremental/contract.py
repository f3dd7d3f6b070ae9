"""What a connector provides for incremental snapshots: a `ChunkReader`, which reads rows in the order of a key, and `Watermarks`, which
mark a chunk's position in the source's log.

There are two kinds of watermarks. *Written*: a row (document) of the signal table before the chunk and one after it, or its deletion; the
stream shows them like any other change, and they are the signals that open and close the window. *Positions*, where nothing may be written:
the position that the log has reached after the chunk was read. The window is then open as soon as the chunk is there; an event that is
older than the chunk drops its row too, which is right: that event, and all that follow it up to what the chunk saw, are in the stream.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from connect_py.errors import ConnectError
from connectors.engine.java_object import StoredKey
from connectors.engine.signal.records import CLOSE, OPEN
from connectors.engine.snapshot.incremental.offset import WantedCollection

R = TypeVar("R")


class UnknownCollectionError(ConnectError):
    """There is no such collection, or it is not captured."""


class NoKeyError(ConnectError):
    """The collection has no key to cut chunks by."""


class BusyError(ConnectError):
    """The collection cannot be read just now: try again after some streaming."""


@dataclass(frozen=True, slots=True)
class Chunk(Generic[R]):
    """Rows in key order.

    Attributes:
        rows: message keys, encoded as the stream encodes them, and what the connector makes records of.
        last: the chunk key of the last row; None without rows.
    """

    rows: Sequence[tuple[bytes | None, R]]
    last: StoredKey | None


class ChunkReader(Protocol[R]):
    """Reads chunks. Every method raises ConnectError; RetriableError for what passes.

    A chunk must not be older than what the stream has already shown: a row whose event was shown before the low watermark is not dropped
    from the window, so the chunk has to show it as that event left it. Where commits reach the log before other sessions see them, `read`
    waits until they do, or raises BusyError.
    """

    @property
    def accepts_surrogate_keys(self) -> bool:
        """Whether a chunk can be read by another unique column than the key."""
        ...

    @property
    def structure(self) -> object:
        """Return the structure of the rows that were read last, which `IncrementalSnapshot.structure_seen` compares; None before the
        first."""
        ...

    def names(self) -> Sequence[str]:
        """Return the collections that are captured, as signals name them."""
        ...

    def maximum(self, wanted: WantedCollection) -> StoredKey | None:
        """Return the current largest key of the collection under the condition; None when it is empty.

        Raises:
            UnknownCollectionError, NoKeyError: it cannot be read in chunks.
        """
        ...

    def read(self, wanted: WantedCollection, after: StoredKey | None, until: StoredKey, limit: int) -> Chunk[R]:
        """Read rows after `after` up to `until`; from the beginning, and without an end, when `after` is None."""
        ...


class Watermarks:
    """What an incremental snapshot asks of a way to mark the log.

    Attributes:
        open_at_once: whether a window is open as soon as its chunk is read; otherwise the stream opens it.
    """

    open_at_once = False

    def low(self, chunk: str) -> None:
        """Mark the position before the chunk is read. Raises ConnectError."""
        raise NotImplementedError

    def high(self, chunk: str) -> None:
        """Mark the position after it. Raises ConnectError."""
        raise NotImplementedError

    def passed(self) -> str:
        """Return the chunk whose high watermark the stream has passed although it shows nothing of it; empty for none. Asked after each
        read of the stream; a chunk is named once."""
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
        self._opened = _instant()
        self._insert(f"{chunk}-open", OPEN, json.dumps({"openWindowTimestamp": self._opened}))

    def high(self, chunk: str) -> None:
        if self._delete is not None:
            self._delete(f"{chunk}-open")
        else:
            data = {"openWindowTimestamp": self._opened, "closeWindowTimestamp": _instant()}
            self._insert(f"{chunk}-close", CLOSE, json.dumps(data))


def _instant() -> str:
    now = time.time_ns()
    seconds = datetime.datetime.fromtimestamp(now // 1_000_000_000, datetime.UTC)
    return f"{seconds:%Y-%m-%dT%H:%M:%S}.{now % 1_000_000_000:09d}Z"


class SnapshotHooks:
    """Points of an incremental snapshot at which a test puts a race (`SnapshotPhaseHooks` of flink-cdc); does nothing by itself."""

    def reached(self, phase: str) -> None:
        """Called at before_low, after_low, before_chunk, after_chunk, before_high and after_high."""
