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
from typing import Any, Generic, Protocol, TypeVar

from connect_py.errors import ConnectError
from connectors.engine.java_object import StoredKey
from connectors.engine.signal.records import CLOSE, OPEN
from connectors.engine.snapshot.incremental.offset import WantedCollection


class _Ordered(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


R = TypeVar("R")
P = TypeVar("P", bound=_Ordered)


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

    def estimate(self, wanted: WantedCollection) -> int | None:
        """Return about how many rows the collection has, by statistics, in a moment; None where nothing is known. It may be called when
        `maximum` has found a key."""
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


class SignalTable(Watermarks):
    """Rows of the signal table.

    Args:
        execute: runs a statement in a transaction of its own. Raises ConnectError.
        name: the table's, quoted.
        literal: returns a text as a literal.
        deletes: whether the high watermark is the deletion of the low one
            (``incremental.snapshot.watermarking.strategy=insert_delete``).
    """

    def __init__(self, execute: Callable[[str], None], name: str, literal: Callable[[str], str], *, deletes: bool) -> None:
        self._execute = execute
        self._name = name
        self._literal = literal
        self._deletes = deletes
        self._opened = ""

    def low(self, chunk: str) -> None:
        self._opened = _instant()
        self._insert(f"{chunk}-open", OPEN, {"openWindowTimestamp": self._opened})

    def high(self, chunk: str) -> None:
        if self._deletes:
            self._execute(f"DELETE FROM {self._name} WHERE id = {self._literal(f'{chunk}-open')}")  # noqa: S608  # quoted by the connector
        else:
            self._insert(f"{chunk}-close", CLOSE, {"openWindowTimestamp": self._opened, "closeWindowTimestamp": _instant()})

    def _insert(self, id_: str, type_: str, data: dict[str, str]) -> None:
        values = ", ".join(map(self._literal, (id_, type_, json.dumps(data))))
        self._execute(f"INSERT INTO {self._name} VALUES ({values})")  # noqa: S608  # as above


class LogPositions(Watermarks, Generic[P]):
    """Positions of the log, where nothing may be written (`read.only=true`).

    Args:
        end: returns the position that the log has reached. Raises ConnectError.
        received: up to where the stream was read; None before its begin.
    """

    open_at_once = True

    def __init__(self, end: Callable[[], P], received: Callable[[], P | None]) -> None:
        self._log_end = end
        self._received = received
        self._chunk = ""
        self._end: P | None = None

    def low(self, chunk: str) -> None:
        self._chunk, self._end = chunk, None

    def high(self, chunk: str) -> None:
        self._end = self._log_end()

    def passed(self) -> str:
        received = self._received()
        if self._end is None or received is None or received < self._end:
            return ""
        chunk, self._chunk, self._end = self._chunk, "", None
        return chunk


def _instant() -> str:
    now = time.time_ns()
    seconds = datetime.datetime.fromtimestamp(now // 1_000_000_000, datetime.UTC)
    return f"{seconds:%Y-%m-%dT%H:%M:%S}.{now % 1_000_000_000:09d}Z"


class SnapshotHooks:
    """Points of an incremental snapshot at which a test puts a race (`SnapshotPhaseHooks` of flink-cdc); does nothing by itself."""

    def reached(self, phase: str) -> None:
        """Called at before_low, after_low, before_chunk, after_chunk, before_high and after_high."""
