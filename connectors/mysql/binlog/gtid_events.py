"""Events that name transactions (MySQL's `Gtid_event`, with the fields that 8.0 and 8.3 added; MariaDB's `Gtid_log_event`)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import lru_cache

from connectors.mysql.binlog.cursor import Cursor
from connectors.mysql.binlog.errors import MalformedEventError

_LOGICAL_TIMESTAMP = 2
_HAS_ORIGINAL_COMMIT = 1 << 55
_STANDALONE = 1


@dataclass(frozen=True, slots=True)
class Gtid:
    """The transaction that follows.

    Attributes:
        source: the server's UUID as text, with `:tag` behind it where there is one.
        number: of the transaction.
        commit_micros: microseconds since 1970 of its commit on the server where it began; 0 for unknown.
        mark: between source and number.
    """

    source: str
    number: int
    commit_micros: int
    mark: str = ":"

    def __str__(self) -> str:
        return f"{self.source}{self.mark}{self.number}"


@dataclass(frozen=True, slots=True)
class AnonymousGtid:
    """A transaction without a GTID."""

    commit_micros: int


@dataclass(frozen=True, slots=True)
class MariadbGtid:
    """The transaction that follows, and its BEGIN; the server's id is in the event's header. `standalone` ones have no COMMIT."""

    domain: int
    sequence: int
    standalone: bool

    def of_server(self, server_id: int) -> Gtid:
        """As a name of the transaction."""
        return Gtid(f"{self.domain}-{server_id}", self.sequence, 0, "-")


@lru_cache(maxsize=64)
def _uuid_text(octets: bytes) -> str:
    return str(uuid.UUID(bytes=octets))


def read_gtid(cursor: Cursor) -> Gtid:
    """Flags, UUID and number; a pair of logical timestamps; then, since 8.0.1, when it was committed."""
    cursor.take(1)
    source = _uuid_text(cursor.take(16))
    number = cursor.number(8)
    micros = 0
    if cursor.end - cursor.at >= 1 + 16 + 7 and cursor.number(1) == _LOGICAL_TIMESTAMP:
        cursor.take(16)
        micros = _commit_micros(cursor)
    return Gtid(source, number, micros)


def _commit_micros(cursor: Cursor) -> int:
    """Seven bytes each; the flag in the first says that the original one follows."""
    immediate = cursor.number(7)
    if immediate & _HAS_ORIGINAL_COMMIT and cursor.end - cursor.at >= 7:
        return cursor.number(7)
    return immediate & ~_HAS_ORIGINAL_COMMIT


def read_mariadb_gtid(cursor: Cursor) -> MariadbGtid:
    """Sequence, domain, flags."""
    sequence = cursor.number(8)
    domain = cursor.number(4)
    return MariadbGtid(domain, sequence, bool(cursor.number(1) & _STANDALONE))


def read_tagged_gtid(cursor: Cursor) -> Gtid:
    """MySQL 8.3's form: fields with numbers in MySQL's `serialization` format, variable-length integers throughout.

    Fields: 0 flags, 1 UUID (16 integers), 2 number, 3 tag (length and characters), 4 and 5 logical timestamps, 6 immediate and 7 original
    commit time in microseconds; what comes behind is not needed.
    """
    _varlen(cursor)  # version of the format
    _varlen(cursor)  # size of the whole
    _varlen(cursor)  # last field that may not be ignored
    octets, number, tag, immediate, original = b"", 0, "", 0, 0
    while cursor.at < cursor.end:
        field = _varlen(cursor)
        if field == 1:
            octets = bytes(_octet(cursor) for _ in range(16))
        elif field == 2:
            number = _signed(_varlen(cursor))
        elif field == 3:
            tag = cursor.text(_varlen(cursor))
        elif field == 6:
            immediate = _varlen(cursor)
        elif field == 7:
            original = _varlen(cursor)
            break
        elif field in (0, 4, 5):
            _varlen(cursor)
        else:
            break
    if len(octets) != 16 or number <= 0:
        raise MalformedEventError("a tagged GTID event holds no GTID")
    source = str(uuid.UUID(bytes=octets))
    return Gtid(f"{source}:{tag}" if tag else source, number, original or immediate)


def _octet(cursor: Cursor) -> int:
    value = _varlen(cursor)
    if value > 255:
        raise MalformedEventError(f"{value} is no byte of a UUID")
    return value


def _varlen(cursor: Cursor) -> int:
    """As many bytes follow the first as it has trailing one bits; the value is above those (variable_length_integers.h)."""
    first = cursor.number(1)
    more = 0
    while more < 8 and first >> more & 1:
        more += 1
    rest = cursor.number(more) if more else 0
    return rest if more == 8 else (rest << (7 - more)) | (first >> (more + 1))


def _signed(value: int) -> int:
    """Zig-zag: the sign is the lowest bit."""
    return -(value >> 1) - 1 if value & 1 else value >> 1
