"""Sets of transaction identifiers, MySQL's and MariaDB's. Pure.

MySQL (`Gtid_set`): a source is a server's UUID, followed by `:tag` where transactions are tagged. Its numbers are intervals, merged and in
order.

MariaDB (knowledge base, "Global Transaction ID"; `MariaDbGtidSet.java`): a transaction is `domain-server-sequence`. Inside a domain
sequences only rise, whichever server wrote them, so the last one stands for all that was read: a "set" is a number for each domain and
server, and only the largest of a domain counts.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from connect_py.errors import DataError

#: Domains and servers have 32 bits, sequences 64.
_GTID = re.compile(r"(\d{1,10})-(\d{1,10})-(\d{1,20})", re.ASCII).fullmatch
_SOURCE = re.compile(r"(\d+)-(\d+)").fullmatch


@dataclass(frozen=True)
class MariadbGtidSet:
    """An immutable position, with the methods of `GtidSet`.

    Attributes:
        last: the last sequence of each `domain-server`.
    """

    last: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> MariadbGtidSet:
        """Parse `0-1-42,1-5-7`, with line breaks anywhere; empty text is the empty set. Raises DataError."""
        found: dict[str, int] = {}
        for entry in "".join(text.split()).split(","):
            if not entry:
                continue
            gtid = _GTID(entry)
            if gtid is None:
                raise DataError(f"{entry!r} is no GTID of MariaDB: {text[:200]}")
            source = f"{int(gtid[1])}-{int(gtid[2])}"
            found[source] = max(int(gtid[3]), found.get(source, 0))
        return cls(found)

    def __str__(self) -> str:
        """Return the text, in the order of domains and servers."""
        return ",".join(f"{source}-{self.last[source]}" for source in sorted(self.last, key=_order))

    def __bool__(self) -> bool:
        return bool(self.last)

    @property
    def domains(self) -> dict[int, tuple[int, str]]:
        """The largest sequence of each domain, and whose it is."""
        found: dict[int, tuple[int, str]] = {}
        for source, number in self.last.items():
            domain = _order(source)[0]
            if number > found.get(domain, (0, ""))[0]:
                found[domain] = (number, source)
        return found

    def with_gtid(self, source: str, number: int) -> MariadbGtidSet:
        """Return the position after one more transaction."""
        return MariadbGtidSet({**self.last, source: number})

    def contains(self, other: MariadbGtidSet) -> bool:
        """Return whether every transaction up to the other position is before this one."""
        ours = self.domains
        return all(number <= ours.get(domain, (0, ""))[0] for domain, (number, _) in other.domains.items())

    def minus(self, other: MariadbGtidSet) -> MariadbGtidSet:
        """Return what is not up to the other position."""
        theirs = other.domains
        return MariadbGtidSet(
            {source: number for source, number in self.last.items() if number > theirs.get(_order(source)[0], (0, ""))[0]}
        )

    def filtered(self, wanted: Callable[[str], bool]) -> MariadbGtidSet:
        """Return only the sources, as `domain-server`, that are wanted."""
        return MariadbGtidSet({source: number for source, number in self.last.items() if wanted(source)})

    def position(self) -> str:
        """Return the value of `@slave_connect_state`: one GTID for each domain."""
        return ",".join(f"{source}-{number}" for _, (number, source) in sorted(self.domains.items()))


def _order(source: str) -> tuple[int, int]:
    found = _SOURCE(source)
    assert found is not None
    return int(found[1]), int(found[2])


#: Numbers end at 2^63 - 2 (`GNO_END`).
_INTERVAL = re.compile(r"(\d{1,19})(?:-(\d{1,19}))?", re.ASCII).fullmatch
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}").fullmatch
_TAGGED_FORMAT = 1
_OF_MARIADB = re.compile(r"\s*\d+-\d+-\d+\s*(,|$)", re.ASCII).match

#: First and last number, both inside.
Interval = tuple[int, int]


@dataclass(frozen=True)
class GtidSet:
    """An immutable set.

    Attributes:
        sources: source → merged intervals; no source without intervals.
    """

    sources: Mapping[str, tuple[Interval, ...]] = field(default_factory=dict)

    @classmethod
    def decode(cls, data: bytes) -> GtidSet:
        """Read what `encode` makes, which is also the body of a log's event PREVIOUS_GTIDS. Raises DataError."""
        at = 0

        def take(size: int) -> bytes:
            nonlocal at
            at += size
            if at > len(data):
                raise DataError(f"A GTID set ends after {len(data)} bytes, where {at} were expected")
            return data[at - size : at]

        head = take(8)
        is_tagged = head[7] == _TAGGED_FORMAT
        found: dict[str, list[Interval]] = {}
        for _ in range(int.from_bytes(head[1:7] if is_tagged else head, "little")):
            source = str(uuid.UUID(bytes=take(16)))
            if is_tagged and (tag := take(take(1)[0] >> 1)):
                source = f"{source}:{tag.decode('ascii', 'replace')}"
            for _ in range(int.from_bytes(take(8), "little")):
                first, end = int.from_bytes(take(8), "little"), int.from_bytes(take(8), "little")
                if not 0 < first < end:
                    raise DataError(f"{first} to {end} is no interval of a GTID set")
                found.setdefault(source, []).append((first, end - 1))
        return cls({source: _merged(intervals) for source, intervals in found.items()})

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        """Parse `uuid:1-5:7,uuid:tag:1-3`, with line breaks anywhere; empty text is the empty set. Raises DataError."""
        found: dict[str, list[Interval]] = {}
        for entry in "".join(text.split()).split(","):
            if not entry:
                continue
            server, *parts = entry.split(":")
            source = _uuid_text(server, text)
            if not parts:
                raise DataError(f"A GTID set has no numbers behind {server}: {text[:200]}")
            for part in parts:
                interval = _INTERVAL(part)
                if interval is not None:
                    first, last = int(interval[1]), int(interval[2] or interval[1])
                    if not 0 < first <= last:
                        raise DataError(f"{part} is no interval of a GTID set: {text[:200]}")
                    found.setdefault(source, []).append((first, last))
                elif _TAG(part.lower()):
                    source = f"{source.partition(':')[0]}:{part.lower()}"
                else:
                    raise DataError(f"{part!r} is no part of a GTID set: {text[:200]}")
        return cls({source: _merged(intervals) for source, intervals in found.items()})

    def __str__(self) -> str:
        """Return the text, with sources in order and the tags of a server in one entry."""
        servers: dict[str, list[str]] = {}
        for source in sorted(self.sources):
            server, _, tag = source.partition(":")
            numbers = ":".join(str(first) if first == last else f"{first}-{last}" for first, last in self.sources[source])
            servers.setdefault(server, []).append(f"{tag}:{numbers}" if tag else numbers)
        return ",".join(f"{server}:{':'.join(parts)}" for server, parts in servers.items())

    def __bool__(self) -> bool:
        return bool(self.sources)

    def with_gtid(self, source: str, number: int) -> GtidSet:
        """Return the set with one more transaction."""
        intervals = self.sources.get(source, ())
        if intervals and intervals[-1][1] == number - 1:
            changed: tuple[Interval, ...] = (*intervals[:-1], (intervals[-1][0], number))
        else:
            changed = _merged([*intervals, (number, number)])
        return GtidSet({**self.sources, source: changed})

    def contains(self, other: GtidSet) -> bool:
        """Return whether every transaction of the other set is in this one."""
        return not other.minus(self)

    def minus(self, other: GtidSet) -> GtidSet:
        """Return what is not in the other set."""
        left = {source: _difference(intervals, other.sources.get(source, ())) for source, intervals in self.sources.items()}
        return GtidSet({source: intervals for source, intervals in left.items() if intervals})

    def filtered(self, wanted: Callable[[str], bool]) -> GtidSet:
        """Return only the servers that are wanted."""
        return GtidSet({source: intervals for source, intervals in self.sources.items() if wanted(source.partition(":")[0])})

    def overlaid(self, other: GtidSet) -> GtidSet:
        """Return this set with the sources of the other one replaced by its own."""
        return GtidSet({**self.sources, **other.sources})

    def restricted(self, other: GtidSet) -> GtidSet:
        """Return only the sources that the other set has too."""
        return GtidSet({source: intervals for source, intervals in self.sources.items() if source in other.sources})

    def encode(self) -> bytes:
        """Return the form that COM_BINLOG_DUMP_GTID accepts; that of MySQL 8.3 where there are tags (`Gtid_set::encode`)."""
        tagged = any(":" in source for source in self.sources)
        count = len(self.sources)
        head = (_TAGGED_FORMAT << 56 | count << 8 | _TAGGED_FORMAT).to_bytes(8, "little") if tagged else count.to_bytes(8, "little")
        parts = [head]
        for source in sorted(self.sources):
            server, _, tag = source.partition(":")
            parts.append(uuid.UUID(server).bytes)
            if tagged:
                parts.append(bytes([len(tag) << 1]) + tag.encode())
            intervals = self.sources[source]
            parts.append(len(intervals).to_bytes(8, "little"))
            # the end is the first number that is not inside
            parts += [first.to_bytes(8, "little") + (last + 1).to_bytes(8, "little") for first, last in intervals]
        return b"".join(parts)


#: Transactions of either kind of server; no operation mixes the two.
Transactions = GtidSet | MariadbGtidSet


def parse_transactions(text: str) -> Transactions:
    """Parse a set of either kind, which the text shows; an empty one is MySQL's. Raises DataError."""
    return MariadbGtidSet.parse(text) if _OF_MARIADB(text) else GtidSet.parse(text)


def covers(transactions: Transactions, others: Transactions) -> bool:
    """Return whether all of the others are among the transactions; those of another kind of server never are."""
    if isinstance(transactions, MariadbGtidSet):
        return transactions.contains(others) if isinstance(others, MariadbGtidSet) else not others
    return transactions.contains(others) if isinstance(others, GtidSet) else not others


def read_sources(
    stored: Transactions, executed: Transactions, purged: Transactions, wanted: Callable[[str], bool]
) -> Callable[[str], bool]:
    """Return a filter of the sources of which a dump skips what is stored: the wanted ones, and of the others those that the server can
    resume. Debezium gets all of the others again from their beginning at each start, and their statements then change tables again."""

    def can_resume(source: str) -> bool:
        if wanted(source):
            return True
        read = stored.filtered(source.__eq__)
        return covers(executed, read) and covers(read, purged.filtered(source.__eq__))

    return can_resume


def starting_set(stored: GtidSet, executed: GtidSet, purged: GtidSet, wanted: Callable[[str], bool]) -> GtidSet:
    """Return what a dump is to skip: of the sources that were seen before, what was read; and what the server has purged."""
    seen = stored.filtered(wanted)
    return executed.filtered(wanted).restricted(seen).overlaid(purged).overlaid(seen)


def _uuid_text(server: str, text: str) -> str:
    try:
        return str(uuid.UUID(server))
    except ValueError:
        raise DataError(f"{server!r} is no UUID of a GTID set: {text[:200]}") from None


def _merged(intervals: list[Interval]) -> tuple[Interval, ...]:
    found: list[Interval] = []
    for first, last in sorted(intervals):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def _difference(intervals: tuple[Interval, ...], others: tuple[Interval, ...]) -> tuple[Interval, ...]:
    left: list[Interval] = []
    for first, last in intervals:
        start = first
        for other_first, other_last in others:
            if other_last < start or other_first > last:
                continue
            if other_first > start:
                left.append((start, other_first - 1))
            start = other_last + 1
        if start <= last:
            left.append((start, last))
    return tuple(left)
