"""The stream's position: the transaction that the server is sending, the event in it, and which of both were sent before a restart.

After a restart the server repeats whole transactions, in the order of their commits, from the first one that committed after the position
asked for. Two facts of the stored offset say which of them Kafka has already:

- ``lsn_commit`` is the end of the last transaction that was sent as a whole. A transaction whose commit record lies before it is known: it
  is skipped.
- ``txId``, ``lsn`` and ``lsn_events_processed`` name the last event that was sent. The first transaction that is not skipped may be the
  one it belongs to; within one transaction positions only grow, so its events up to that position, and as many at it as were sent, are
  known.

Comparing positions alone would be wrong: a transaction that commits later may hold changes with smaller positions. Where the stored offset
does not say how many events of one position were sent (Debezium before 3.7; a COPY writes many rows at one position), one is taken as
known and the others are sent again rather than lost.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from connectors.postgres import pgoutput
from connectors.postgres.position.offset import PostgresOffset

_ROW_TYPES = frozenset(("INSERT", "UPDATE", "DELETE", "TRUNCATE", "MESSAGE"))


class ResumePoint:
    """Answers for the first transactions of a stream; afterwards nothing is known any more and it is not asked."""

    def __init__(self, stored: PostgresOffset) -> None:
        streaming = stored.lsn_proc is not None
        self._known_commit = (stored.lsn_commit or 0) if streaming else 0
        self._xid = stored.tx_id if streaming and stored.message_type in _ROW_TYPES else None
        self._lsn = stored.lsn or 0
        self._events = max(stored.events_processed, 1)

    def is_transaction_known(self, final_lsn: int) -> bool:
        """Return whether the whole transaction, by the position of its commit record, was sent."""
        return final_lsn < self._known_commit

    def is_partly_known(self, xid: int) -> bool:
        """Return whether events of the first transaction that is not wholly known were sent."""
        return xid == self._xid

    def is_event_known(self, lsn: int, count: int) -> bool:
        """Return whether the `count`-th event at a position of that transaction was sent."""
        return lsn < self._lsn or (lsn == self._lsn and count <= self._events)


#: How many of the latest transactions are remembered for a chunk's reader, which must not read an older state than theirs.
RECENT_TRANSACTIONS = 4096

#: A pgoutput message's kind, as offsets name it.
EVENT_TYPES = {0x49: "INSERT", 0x55: "UPDATE", 0x44: "DELETE", 0x54: "TRUNCATE", 0x4D: "MESSAGE"}
COMMIT = 0x43
_OFFSET_TYPES = {**EVENT_TYPES, COMMIT: "COMMIT"}

#: An event: position, number at that position, kind, transaction, when it committed (µs), end of the transaction before.
Event = tuple[int, int, int, int | None, int, int | None]


class StreamPosition:
    """The stream sets `lsn` and `events` for every event, the rest follows the transactions' messages.

    Args:
        stored: the offset from which the stream was started.
        read_xmin: the slot's, asked at the begin of each transaction.

    Attributes:
        number: the number of the present transaction, counted from the stream's start.
        xid, commit_us, origin: facts of the present or last transaction.
        last_commit: the end of the last whole transaction.
        lsn, events: position of the last event of the transaction, and how many there were at this position.
        inside: whether a transaction is being sent.
        skips_all: whether the whole transaction was sent before.
        skips_known: whether events of it may have been: ask `is_known`.
    """

    __slots__ = (
        "_read_xmin",
        "_recent",
        "_resume",
        "_settled",
        "commit_us",
        "events",
        "inside",
        "last_commit",
        "lsn",
        "number",
        "origin",
        "skips_all",
        "skips_known",
        "xid",
        "xmin",
    )

    def __init__(self, stored: PostgresOffset, read_xmin: Callable[[], int | None]) -> None:
        self._read_xmin = read_xmin
        self._resume: ResumePoint | None = ResumePoint(stored)
        self._recent: deque[int] = deque(maxlen=RECENT_TRANSACTIONS)
        self._settled: tuple[int, int | None, int] | None = None
        self.number = 0
        self.xid: int | None = None
        self.xmin: int | None = None
        self.commit_us = 0
        self.origin: tuple[str, int] | None = None
        self.last_commit = stored.lsn_commit
        self.lsn = self.events = 0
        self.inside = self.skips_all = self.skips_known = False

    def begin(self, begin: pgoutput.Begin) -> None:
        """Begin a transaction."""
        self.number += 1
        self.inside = True
        self._recent.append(begin.xid)
        self._settled = None
        self.xid = begin.xid
        self.commit_us = begin.commit_us
        self.xmin = self._read_xmin()
        self.origin = None
        self.lsn = self.events = 0
        if self._resume is not None:
            self.skips_all = self._resume.is_transaction_known(begin.final_lsn)
            if not self.skips_all:
                self.skips_known = self._resume.is_partly_known(begin.xid)
                if not self.skips_known:
                    self._resume = None

    def commit(self, commit: pgoutput.Commit) -> bool:
        """End the transaction. Returns whether it was new."""
        if self._resume is not None and not self.skips_all:
            self._resume = None
        known = self.skips_all
        self.inside = self.skips_all = self.skips_known = False
        end = self.last_commit = max(commit.end_lsn, self.last_commit or 0)
        if not known:
            self._settled = (end, self.xid, self.commit_us)
        return not known

    def is_known(self, lsn: int) -> bool:
        """Return whether the event at hand was sent before; asked while `skips_known`."""
        if self._resume is not None and self._resume.is_event_known(lsn, self.events):
            return True
        self.skips_known = False
        self._resume = None
        return False

    def outside(self, lsn: int, now_us: int) -> None:
        """Note an event that belongs to no transaction: its own position is complete at once."""
        self.xid, self.commit_us, self.xmin = None, now_us, self._read_xmin()
        self.last_commit = max(lsn, self.last_commit or 0)

    def end(self) -> Event:
        """Return the end of the transaction that was committed last, for `offset`."""
        return self.last_commit or 0, 0, COMMIT, self.xid, self.commit_us, self.last_commit

    def offset(self, event: Event) -> PostgresOffset:
        """Return what is stored for records up to an event."""
        lsn, events, kind, xid, commit_us, last_commit = event
        return PostgresOffset(
            lsn=lsn,
            tx_id=xid,
            ts_us=commit_us,
            lsn_proc=lsn,
            lsn_commit=last_commit,
            message_type=_OFFSET_TYPES[kind],
            events_processed=events,
            xmin=self.xmin,
        )

    @property
    def settled(self) -> PostgresOffset | None:
        """Where the source stands after the last whole transaction; None inside of one, and before the first."""
        return self._behind(*self._settled) if self._settled is not None else None

    def quiet(self, scanned_lsn: int) -> PostgresOffset | None:
        """Return where the source stands although nothing of it changed; None inside of a transaction, and before the server said anything.

        The server sends transactions in the order of their commits: what committed before this position was sent before the server named
        it.

        Args:
            scanned_lsn: up to where the server says it has looked, 0 when it has not said so.
        """
        end = max(scanned_lsn, self._settled[0] if self._settled else 0)
        if self.inside or not end:
            return None
        return self._behind(end, self.xid, self.commit_us or time.time_ns() // 1000)

    def _behind(self, end: int, xid: int | None, commit_us: int) -> PostgresOffset:
        return PostgresOffset(
            lsn=end, tx_id=xid, ts_us=commit_us, lsn_proc=end, lsn_commit=end, message_type=_OFFSET_TYPES[COMMIT], xmin=self.xmin
        )

    def recent_transactions(self) -> frozenset[int]:
        """Return the numbers of the transactions that were shown last."""
        return frozenset(self._recent)
