"""Batches: how much is read before its records go to Kafka, and the rows that wait for the next batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connect_py.api.record import EncodedRow

#: A batch ends at whichever comes first; 4 MB keeps a task small when rows are large, 2,000 rows make the work around a batch negligible.
MAX_ROWS = 2_000
MAX_BYTES = 4_000_000

#: Seconds before each further attempt at a chunk that the server refuses. The first comes at once, with the structure as it is then: a
#: column may just have gone. Together they outlast a lock, a failover that lost a privilege, a statement timeout on a busy server.
CHUNK_PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes and delays of a task that no property sets, and tests do.

    Attributes:
        batch_rows: maximum rows of a batch of the stream.
        snapshot_rows: rows of a batch of an initial snapshot that the task itself reads; None for `rows_per_batch`.
        chunk_pauses: seconds before each further attempt at an incremental snapshot's chunk that the server refuses.
        slot_report_seconds: how long the creation of a replication slot waits for transactions before the first warning, and between two.
    """

    batch_rows: int = MAX_ROWS
    snapshot_rows: int | None = None
    chunk_pauses: Sequence[float] = CHUNK_PAUSES
    slot_report_seconds: tuple[float, float] = (5.0, 30.0)


DEFAULT_TUNING = Tuning()


class PendingRows:
    """One list, owned by the task's thread. The stream appends to the same list, so that all rows keep the order in which they were made.

    Args:
        batch_rows: how many rows of the stream a batch has at most.

    Attributes:
        rows: so far; a new list after every `take`.
        from_services: how many of them are not the stream's own.
    """

    def __init__(self, batch_rows: int = MAX_ROWS) -> None:
        self.batch_rows = batch_rows
        self.rows: list[EncodedRow] = []
        self.from_services = 0

    def add(self, row: EncodedRow) -> None:
        """Append one row that is not the stream's."""
        self.rows.append(row)
        self.from_services += 1

    def extend(self, rows: Sequence[EncodedRow]) -> None:
        """Append rows that are not the stream's."""
        self.rows += rows
        self.from_services += len(rows)

    def take(self) -> list[EncodedRow]:
        """Return the rows for a batch, and start a new list."""
        rows, self.rows, self.from_services = self.rows, [], 0
        return rows


#: Records of a batch are made before the first of them is sent. A batch of up to this size is still in the L2 cache then: rows with schemas
#: (3.6 kB) take 5.9 us each from the server's bytes into Kafka's client where a batch has 200 of them, 6.9 where it has 2,000.
L2_CACHE_BYTES = 512 * 1024

#: The work around a batch takes some 50 us; smaller batches are not worth it.
MIN_ROWS = 100


def rows_per_batch(constant_bytes: int) -> int:
    """Return the number of rows of a snapshot's batch.

    Args:
        constant_bytes: the size of the part of each record that does not come from the row.
    """
    return max(MIN_ROWS, min(MAX_ROWS, L2_CACHE_BYTES // max(1, constant_bytes)))
