"""What events say, as values (MySQL internals, `libbinlogevents`; MariaDB knowledge base, "Replication protocol")."""

from __future__ import annotations

from dataclasses import dataclass

from connectors.mysql.binlog.gtid_events import AnonymousGtid, Gtid, MariadbGtid
from connectors.mysql.binlog.table_map import TableMap


@dataclass(frozen=True, slots=True)
class Header:
    """What every event begins with.

    Attributes:
        timestamp: seconds since 1970, 0 for events that the server makes up.
        type: an `EventType`, or a number that is none.
        length: of the event in the log, in bytes.
        end: the place in the log behind the event; 0 for events that are not in it.
    """

    timestamp: int
    type: int
    server_id: int
    length: int
    end: int
    flags: int


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """First event of a log. `checksum` tells whether the events that follow end with a CRC32."""

    server_version: str
    checksum: bool


@dataclass(frozen=True, slots=True)
class Rotate:
    """The log goes on in another file."""

    file: str
    position: int


@dataclass(frozen=True, slots=True)
class Query:
    """A statement: BEGIN, COMMIT, DDL, and rows in statement format.

    Attributes:
        schema: the default database.
        sql_mode: the session's bits, None when the event does not say.
        charset: numbers of the client's character set and of the connection's and server's collations.
    """

    thread_id: int
    schema: str
    sql: bytes
    sql_mode: int | None
    charset: tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Xid:
    """A transaction's commit."""

    number: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table.

    Attributes:
        kind: c, u or d.
        present: bit map of the columns that the rows hold; `present_after` of the second image of updates.
        body: the rows.
        partial: updates whose JSON columns may be differences (PARTIAL_UPDATE_ROWS).
        ends_statement: whether the statement's table numbers end here.
    """

    kind: str
    table_id: int
    width: int
    present: bytes
    present_after: bytes
    body: bytes
    partial: bool
    ends_statement: bool


@dataclass(frozen=True, slots=True)
class RowsQuery:
    """The statement behind the rows that follow."""

    sql: bytes


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The server is alive and the log ends at this place."""

    file: str
    position: int


@dataclass(frozen=True, slots=True)
class TransactionPayload:
    """A compressed transaction; `payload` holds whole events without checksums."""

    compressed: bool
    size: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Incident:
    """The log lacks something that happened."""

    number: int
    message: str


@dataclass(frozen=True, slots=True)
class Other:
    """An event without a meaning for changes."""


Body = (
    FormatDescription
    | Rotate
    | Query
    | Xid
    | TableMap
    | Rows
    | RowsQuery
    | Gtid
    | AnonymousGtid
    | MariadbGtid
    | Heartbeat
    | TransactionPayload
    | Incident
    | Other
)
