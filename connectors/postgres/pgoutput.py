"""Decoding of the pgoutput plug-in's messages, protocol versions 1 and 2: bytes in, values out, no I/O.

Layouts: PostgreSQL's manual, "Logical Replication Message Formats" and "Streaming Replication Protocol". Integers are big-endian, names
end with a zero byte, times are microseconds since 2000-01-01 UTC. Row messages (`I`, `U`, `D`) are not
decoded here: the table's encoder reads their tuples (`connectors.postgres.encode.tuples`).

Every decoder raises DataError for a message that is cut short or contradicts itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error
from typing import Final, ParamSpec, TypeVar

from connect_py.errors import DataError

#: Microseconds from 1970-01-01 to 2000-01-01, where the server's clock starts.
POSTGRES_EPOCH_US: Final = 946_684_800_000_000

_BEGIN = Struct(">qqI")
_COMMIT = Struct(">Bqqq")
_KEEPALIVE = Struct(">qqB")
_STATUS = Struct(">cqqqqB")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_INT64 = Struct(">q")

#: Where a message's own bytes begin inside an XLogData ('w') message.
WAL_HEADER: Final = 25


@dataclass(frozen=True, slots=True)
class Begin:
    """Start of a transaction: its commit record's position and time (µs since 1970), and its number."""

    final_lsn: int
    commit_us: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """End of a transaction: position of the commit record, the position after it, and the time (µs since 1970)."""

    commit_lsn: int
    end_lsn: int
    commit_us: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """One column of a RELATION message."""

    name: str
    type_oid: int
    modifier: int


@dataclass(frozen=True, slots=True)
class Relation:
    """A table's structure as of the log position where it is sent."""

    oid: int
    schema: str
    table: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE of one or several tables, by relation number."""

    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LogicalMessage:
    """What `pg_logical_emit_message` wrote."""

    transactional: bool
    lsn: int
    prefix: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a replicated transaction came from."""

    lsn: int
    name: str


P = ParamSpec("P")
T = TypeVar("T")


def _whole(decode: Callable[P, T]) -> Callable[P, T]:
    """Name the error of a message that is none."""

    @functools.wraps(decode)
    def decoded(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return decode(*arguments, **named)
        except (struct_error, IndexError, ValueError) as error:
            raise DataError(f"A message of the replication stream cannot be read ({decode.__name__}): {error}") from error

    return decoded


def _count(number: int) -> int:
    if number < 0:
        raise ValueError(f"a count or length of {number}")
    return number


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


@_whole
def decode_keepalive(data: bytes) -> tuple[int, bool]:
    """Return the server's end of log, and whether it wants an answer at once."""
    end, _, wants_reply = _KEEPALIVE.unpack_from(data, 1)
    return end, bool(wants_reply)


def encode_status(written: int, flushed: int, clock_us: int, *, wants_reply: bool = False) -> bytes:
    """Return a standby status update: what was received, what may be discarded, and the clock (µs since 1970)."""
    return _STATUS.pack(b"r", written, flushed, flushed, clock_us - POSTGRES_EPOCH_US, wants_reply)


@_whole
def decode_begin(data: bytes, at: int = WAL_HEADER) -> Begin:
    """Decode a `B` message."""
    final_lsn, clock, xid = _BEGIN.unpack_from(data, at + 1)
    return Begin(final_lsn, clock + POSTGRES_EPOCH_US, xid)


@_whole
def decode_commit(data: bytes, at: int = WAL_HEADER) -> Commit:
    """Decode a `C` message."""
    _, commit_lsn, end_lsn, clock = _COMMIT.unpack_from(data, at + 1)
    return Commit(commit_lsn, end_lsn, clock + POSTGRES_EPOCH_US)


@_whole
def decode_relation(data: bytes, at: int = WAL_HEADER) -> Relation:
    """Decode an `R` message."""
    (oid,) = _UINT32.unpack_from(data, at + 1)
    schema, at = _text(data, at + 5)
    table, at = _text(data, at)
    (count,) = _INT16.unpack_from(data, at + 1)  # after the replica identity
    at += 3
    columns = []
    for _ in range(_count(count)):
        name, at = _text(data, at + 1)  # after a byte of flags
        (type_oid,) = _UINT32.unpack_from(data, at)
        (modifier,) = _INT32.unpack_from(data, at + 4)
        at += 8
        columns.append(RelationColumn(name, type_oid, modifier))
    return Relation(oid, schema or "pg_catalog", table, tuple(columns))


@_whole
def decode_truncate(data: bytes, at: int = WAL_HEADER) -> Truncate:
    """Decode a `T` message."""
    (count,) = _INT32.unpack_from(data, at + 1)
    return Truncate(tuple(_UINT32.unpack_from(data, at + 6 + 4 * i)[0] for i in range(_count(count))))


@_whole
def decode_message(data: bytes, at: int = WAL_HEADER) -> LogicalMessage:
    """Decode an `M` message."""
    flags = data[at + 1]
    (lsn,) = _INT64.unpack_from(data, at + 2)
    prefix, at = _text(data, at + 10)
    (length,) = _INT32.unpack_from(data, at)
    content = data[at + 4 : at + 4 + _count(length)]
    if len(content) != length:
        raise ValueError(f"{length} bytes were expected, {len(content)} came")
    return LogicalMessage(bool(flags & 1), lsn, prefix, content)


@_whole
def decode_origin(data: bytes, at: int = WAL_HEADER) -> Origin:
    """Decode an `O` message."""
    (lsn,) = _INT64.unpack_from(data, at + 1)
    return Origin(lsn, _text(data, at + 9)[0])


# -- protocol version 2: transactions that are sent while they are open ----------------------------------------------------------------

#: Kinds of the messages around segments of an open transaction.
STREAM_START, STREAM_STOP, STREAM_COMMIT, STREAM_ABORT = 0x53, 0x45, 0x63, 0x41


@_whole
def decode_stream_start(data: bytes, at: int = WAL_HEADER) -> int:
    """Decode an `S` message: the transaction whose changes follow, up to the next `E`."""
    xid: int = _UINT32.unpack_from(data, at + 1)[0]
    return xid


@_whole
def decode_stream_abort(data: bytes, at: int = WAL_HEADER) -> tuple[int, int]:
    """Decode an `A` message.

    The transaction, and the sub-transaction whose changes never happened; the same number when all is rolled back.
    """
    return _UINT32.unpack_from(data, at + 1)[0], _UINT32.unpack_from(data, at + 5)[0]


@_whole
def decode_stream_commit(data: bytes, at: int = WAL_HEADER) -> int:
    """Decode a `c` message: the transaction that committed. The rest is as in a `C` message; see `begin_of` and `commit_of`."""
    return decode_stream_start(data, at)


@_whole
def begin_of(stream_commit: bytes, first_lsn: int, at: int = WAL_HEADER) -> bytes:
    """Return the `B` message with which version 1 would have sent the transaction of a `c` message.

    Args:
        first_lsn: the position that the message is to carry.
    """
    (xid,) = _UINT32.unpack_from(stream_commit, at + 1)
    _, commit_lsn, _, clock = _COMMIT.unpack_from(stream_commit, at + 5)
    return b"w" + _INT64.pack(first_lsn) + stream_commit[9:at] + b"B" + _BEGIN.pack(commit_lsn, clock, xid)


@_whole
def commit_of(stream_commit: bytes, at: int = WAL_HEADER) -> bytes:
    """Return the `C` message of version 1 for a `c` message."""
    commit = stream_commit[:at] + b"C" + stream_commit[at + 5 :]
    _COMMIT.unpack_from(commit, at + 1)
    return commit
