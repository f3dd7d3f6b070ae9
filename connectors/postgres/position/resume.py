"""Where a stream goes on after a restart: which of the messages that the server sends again were in Kafka before (postgres.md §9.2).

The server repeats whole transactions, in the order of their commits, from the first one that committed after the position asked for. Two
facts of the stored offset tell what is known already:

- ``lsn_commit`` is the end of the last transaction that was sent whole. A transaction whose commit record lies before it is known: skip it.
- ``txId``, ``lsn`` and ``lsn_events_processed`` name the last event that was sent. The first transaction that is not skipped may be the
  one it belongs to; within one transaction positions only grow, so its events up to that position, and as many at it as were sent, are
  known.

Comparing positions alone would be wrong: a transaction that commits later may hold changes with smaller positions. Where the stored offset
does not say how many events of one position were sent (Debezium before 3.7; a COPY writes many rows at one position), one is taken as
known and the others are sent again rather than lost.
"""

from __future__ import annotations

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
        """Whether the whole transaction, by the position of its commit record, was sent."""
        return final_lsn < self._known_commit

    def is_partly_known(self, xid: int) -> bool:
        """Whether events of the first transaction that is not wholly known were sent."""
        return xid == self._xid

    def is_event_known(self, lsn: int, count: int) -> bool:
        """Whether the `count`-th event at a position of that transaction was sent."""
        return lsn < self._lsn or (lsn == self._lsn and count <= self._events)
