"""The source offset of PostgreSQL, with Debezium's fields in Debezium's order (`PostgresOffsetContext`), and log sequence numbers.

Either product loads the other's offsets. While a snapshot runs, `snapshot` is there and `snapshot_completed` is false: a start takes the
snapshot again. Once it is complete, `lsn` is the position from which streaming continues: every transaction that committed before it is in
the snapshot. A field of our own says which parts of the snapshot are done (`SnapshotProgress`): a start of ours then streams what has
changed since and reads what is left (`snapshot/snapshot.py`); the position is then one of the stream while the snapshot is unfinished.
While streaming, the offset names the last event that was sent: its transaction (`txId`), its position (`lsn` = `lsn_proc`), how many events
of that position were sent where there are several (`lsn_events_processed`), and the end of the last transaction that was sent as a whole
(`lsn_commit`).

Log sequence numbers are plain ints in arithmetic and offsets, and `X/Y` in SQL and messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connect_py.api import SourceOffset
from connectors.engine.snapshot.initial.progress import FIELD as PROGRESS
from connectors.engine.snapshot.new_tables import FIELD as TABLES
from connectors.engine.stored_offsets import BLOCKING, flag, stored_snapshot, whole_number

_MORE = ("incremental_snapshot_", "transaction_", TABLES)


@dataclass(frozen=True, slots=True)
class PostgresOffset:
    """A source offset. Positions are log sequence numbers, `ts_us` microseconds since 1970.

    Attributes:
        snapshot: INITIAL while an initial snapshot runs, BLOCKING while a blocking one interrupts the stream, else None.
        progress: the finished parts of an initial snapshot, while it runs; None when there are none.
        more: fields of an incremental snapshot and of a transaction that are under way, and of tables that were read, as the engine makes
            and reads them.
    """

    lsn: int | None = None
    tx_id: int | None = None
    ts_us: int | None = None
    lsn_proc: int | None = None
    lsn_commit: int | None = None
    message_type: str | None = None
    events_processed: int = 0
    snapshot: str | None = None
    snapshot_completed: bool = False
    last_snapshot_record: bool = False
    progress: str | None = None
    more: Mapping[str, bool | int | str | None] = field(default_factory=dict)
    xmin: int | None = None

    @classmethod
    def load(cls, stored: SourceOffset) -> PostgresOffset:
        """Load from the offsets topic; Debezium's older forms too (`"snapshot": true` is INITIAL, a missing `lsn_commit` is `lsn_proc`).

        Raises:
            ConfigError: a number is none, or there is no such kind of snapshot.
        """
        lsn_proc = whole_number(stored, "lsn_proc")
        lsn_commit = whole_number(stored, "lsn_commit")
        last = flag(stored, "last_snapshot_record")
        message_type = stored.get("messageType")
        return cls(
            lsn=whole_number(stored, "lsn"),
            tx_id=whole_number(stored, "txId"),
            xmin=whole_number(stored, "xmin"),
            ts_us=whole_number(stored, "ts_usec"),
            lsn_proc=lsn_proc,
            lsn_commit=lsn_proc if lsn_commit is None else lsn_commit,
            message_type=None if message_type is None else str(message_type),
            events_processed=whole_number(stored, "lsn_events_processed") or 0,
            snapshot=stored_snapshot(stored),
            snapshot_completed=last or flag(stored, "snapshot_completed"),
            last_snapshot_record=last,
            progress=str(stored[PROGRESS]) if stored.get(PROGRESS) else None,
            more={name: value for name, value in stored.items() if name.startswith(_MORE) and not isinstance(value, float)},
        )

    def dump(self) -> dict[str, bool | int | str | None]:
        """Return the map for the offsets topic; the order is the one of Debezium's hash map, which every reader of the topic sees."""
        in_snapshot = self.snapshot is not None
        fields: list[tuple[str, bool | int | str | None]] = [
            ("last_snapshot_record", self.last_snapshot_record if in_snapshot else None),
            ("lsn_proc", self.lsn_proc),
            ("xmin", self.xmin),
            ("messageType", self.message_type),
            ("lsn_commit", self.lsn_commit),
            ("lsn", self.lsn),
            ("txId", self.tx_id),
            ("ts_usec", self.ts_us),
            ("snapshot", self.snapshot),
            ("snapshot_completed", self.snapshot_completed if in_snapshot else None),
            ("lsn_events_processed", self.events_processed if self.events_processed > 1 else None),
            (PROGRESS, self.progress if in_snapshot else None),
        ]
        return {**{name: value for name, value in fields if value is not None}, **self.more}

    @property
    def is_snapshot_unfinished(self) -> bool:
        """Whether the initial snapshot has to be taken (again). After an interrupted blocking one, streaming continues."""
        return self.snapshot not in (None, BLOCKING) and not self.snapshot_completed

    @property
    def start_lsn(self) -> int:
        """Where to ask the server to start: transactions that committed before it are known to be in Kafka; 0 leaves it to the slot."""
        if self.lsn_proc is not None:
            return self.lsn_commit or self.lsn_proc
        return self.lsn or 0


def acknowledged_lsn(stored: SourceOffset) -> int | None:
    """Return the position up to which the server may discard, once the offsets topic holds this: the last whole transaction, never a part
    of one. None for a snapshot's."""
    found = whole_number(stored, "lsn_commit")
    return whole_number(stored, "lsn_proc") if found is None else found


def format_lsn(lsn: int) -> str:
    """Return the server's text, two hexadecimal halves without padding."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """Return the number of `X/Y`. Raises ValueError."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)
