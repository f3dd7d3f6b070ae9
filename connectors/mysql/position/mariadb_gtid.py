"""Positions in MariaDB's transactions (mysql.md §21; MariaDB knowledge base, "Global Transaction ID"; `MariaDbGtidSet.java`). Pure.

A transaction is `domain-server-sequence`. Inside of a domain sequences only rise, whichever server wrote them, so the last one says all
that was read: a "set" is a number for each domain and server, and what counts of a domain is its largest.
"""

from __future__ import annotations

import re
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
        """`0-1-42,1-5-7`, with line breaks anywhere; empty text is the empty set. Raises DataError."""
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
        """In the order of domains and servers."""
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
        """The position behind one more transaction."""
        return MariadbGtidSet({**self.last, source: number})

    def contains(self, other: MariadbGtidSet) -> bool:
        """Whether every transaction up to the other position is before this one."""
        ours = self.domains
        return all(number <= ours.get(domain, (0, ""))[0] for domain, (number, _) in other.domains.items())

    def minus(self, other: MariadbGtidSet) -> MariadbGtidSet:
        """What is not up to the other position."""
        theirs = other.domains
        return MariadbGtidSet(
            {source: number for source, number in self.last.items() if number > theirs.get(_order(source)[0], (0, ""))[0]}
        )

    def filtered(self, wanted: Callable[[str], bool]) -> MariadbGtidSet:
        """Only the sources, as `domain-server`, that are wanted."""
        return MariadbGtidSet({source: number for source, number in self.last.items() if wanted(source)})

    def position(self) -> str:
        """What `@slave_connect_state` takes: one GTID for each domain."""
        return ",".join(f"{source}-{number}" for _, (number, source) in sorted(self.domains.items()))


def _order(source: str) -> tuple[int, int]:
    found = _SOURCE(source)
    assert found is not None
    return int(found[1]), int(found[2])
