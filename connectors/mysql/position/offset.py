"""Positions in the binlog, and the source offset of MySQL (`BinlogOffsetContext.java`): Debezium's fields in Debezium's order.

While a snapshot runs, the offset has `snapshot`, at which Debezium takes the snapshot again. A field of our own says how much of it is done
(`SnapshotProgress`): a start of ours streams what has changed since, and reads the rest (`snapshot/resume.py`). `file` and `pos` are where
reading resumes: the start of the transaction that is under way, or the end of the last event outside one; `gtids` are the transactions that
were read completely. Inside a transaction `event` counts its handled events, and `row` the rows of the next one: a start reads the
transaction again and skips them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from connect_py.api import SourceOffset
from connect_py.errors import ConfigError
from connectors.engine.snapshot.initial.progress import FIELD as PROGRESS
from connectors.engine.snapshot.new_tables import FIELD as TABLES
from connectors.engine.stored_offsets import BLOCKING, flag, stored_snapshot, whole_number

#: The last signal that came by the log and set the position: after that it is read again.
MOVED_BY: Final = "set_binlog_position_signal"
_MORE = ("incremental_snapshot_", "transaction_", TABLES, MOVED_BY)


@dataclass(frozen=True, slots=True)
class MySqlOffset:
    """A source offset.

    Attributes:
        gtids: text of the set; None where the server has none.
        ts_sec: seconds since 1970 of the last event.
        snapshot: INITIAL or BLOCKING while one runs, else None.
        progress: what of an initial snapshot is done, while it runs; None when nothing is.
        more: fields of an incremental snapshot and of a transaction that are under way, and of tables that were read, as the engine makes
            and reads them; and `MOVED_BY`.
    """

    file: str
    pos: int
    gtids: str | None = None
    ts_sec: int | None = None
    server_id: int = 0
    event: int = 0
    row: int = 0
    snapshot: str | None = None
    progress: str | None = None
    more: Mapping[str, bool | int | str | None] = field(default_factory=dict)

    @classmethod
    def load(cls, stored: SourceOffset) -> MySqlOffset:
        """Parse an offset of the offsets topic, in the forms of any version of Debezium.

        Raises:
            ConfigError: the file is missing, a number is none, or there is no such kind of snapshot.
        """
        file = stored.get("file")
        if not isinstance(file, str):
            raise ConfigError("Source offset 'file' parameter is missing")
        gtids = stored.get("gtids")
        return cls(
            file=file,
            pos=whole_number(stored, "pos") or 0,
            gtids=None if gtids is None else str(gtids),
            ts_sec=whole_number(stored, "ts_sec"),
            server_id=whole_number(stored, "server_id") or 0,
            event=whole_number(stored, "event") or 0,
            row=whole_number(stored, "row") or 0,
            snapshot=None if flag(stored, "snapshot_completed") else stored_snapshot(stored),
            progress=str(stored[PROGRESS]) if stored.get(PROGRESS) else None,
            more={name: value for name, value in stored.items() if name.startswith(_MORE) and not isinstance(value, float)},
        )

    @property
    def is_snapshot_unfinished(self) -> bool:
        """Whether the initial snapshot, or its rest, has to be taken. An interrupted blocking one has not: streaming resumes."""
        return self.snapshot not in (None, BLOCKING)

    def dump(self) -> dict[str, bool | int | str | None]:
        """Return the fields for the offsets topic, in the order of Debezium's map, which every reader of the topic sees."""
        fields: list[tuple[str, bool | int | str | None]] = [
            ("ts_sec", self.ts_sec),
            ("file", self.file),
            ("pos", self.pos),
            ("gtids", self.gtids),
            ("row", self.row or None),
            ("server_id", self.server_id or None),
            ("event", self.event or None),
            ("snapshot", self.snapshot),
            (PROGRESS, self.progress if self.is_snapshot_unfinished else None),
        ]
        return {**{name: value for name, value in fields if value is not None}, **self.more}


@dataclass(frozen=True, slots=True)
class EventPosition:
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


@dataclass(frozen=True, slots=True)
class LoggedTransaction:
    """A transaction of the log.

    Attributes:
        gtid: MySQL's; None where transactions have none, and for MariaDB, which does not say whether one has ended.
        pos: where it begins.
        second: when it was made, since 1970, by the server's clock.
    """

    gtid: str | None
    file: str
    pos: int
    second: int


@dataclass(frozen=True, slots=True)
class BinlogPosition:
    """A position in a file of one server's log; the files' names end with their number."""

    file: str
    pos: int

    def __lt__(self, other: BinlogPosition) -> bool:
        return self._order() < other._order()

    @property
    def number(self) -> int:
        """The file's number."""
        number = self.file.rpartition(".")[2]
        return int(number) if number.isdigit() else 0

    def _order(self) -> tuple[int, int]:
        return self.number, self.pos
