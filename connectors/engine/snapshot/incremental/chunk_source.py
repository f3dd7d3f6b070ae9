"""What a connector reads for an incremental snapshot: chunks of rows in the order of a key (`ChunkReader`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from connect_py.errors import ConnectError
from connectors.engine.snapshot.incremental.offset import StoredKey, WantedCollection

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
        rows: message keys, encoded as the stream encodes them, and whatever the connector makes records of.
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
    def takes_surrogate_keys(self) -> bool:
        """Whether a chunk can be read by another unique column than the key."""
        ...

    @property
    def structure(self) -> object:
        """Of the rows that were read last, to be compared with what `IncrementalSnapshot.structure_seen` is told; None before the first."""
        ...

    def names(self) -> Sequence[str]:
        """The collections that are captured, as signals name them."""
        ...

    def maximum(self, wanted: WantedCollection) -> StoredKey | None:
        """The largest key that the collection has now under the condition; None when it is empty.

        Raises:
            UnknownCollectionError, NoKeyError: it cannot be read in chunks.
        """
        ...

    def read(self, wanted: WantedCollection, after: StoredKey | None, until: StoredKey, limit: int) -> Chunk[R]:
        """Rows behind `after` up to `until`; from the beginning, and without an end, when `after` is None."""
        ...
