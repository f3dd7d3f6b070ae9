"""What PostgreSQL says of its log and of the connector's slot: one statement on a session of its own.

`to_jsonb` of the slot's row gives what the server's version has: `wal_status` and `safe_wal_size` since 13, `inactive_since` since 17.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from connect_py.api import MetricGroup, MetricValue, SourceFacts, StoredOffsets
from connect_py.errors import ConnectError
from connectors.engine.facts import LIMIT_SECONDS
from connectors.postgres.config import parse_config
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.server.connection import Connection, quote_literal

#: What a slot can be in, from well to lost; a number for alerts.
_WAL_STATUSES = ("reserved", "extended", "unreserved", "lost")

#: pg_wal_lsn_diff has no overflow; a standby has no write position, but one that it has received.
HEAD_SQL = (
    "CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) ELSE pg_current_wal_lsn() END AS head"
)
_STATEMENT = """
SELECT pg_wal_lsn_diff(head, '0/0'),
       to_jsonb(s),
       pg_wal_lsn_diff(s.restart_lsn, '0/0'),
       pg_wal_lsn_diff(s.confirmed_flush_lsn, '0/0'),
       pg_size_bytes(current_setting('max_slot_wal_keep_size', true)),
       extract(epoch FROM now() - (to_jsonb(s)->>'inactive_since')::timestamptz)
  FROM (SELECT {head}) AS log LEFT JOIN pg_replication_slots AS s ON s.slot_name = {slot}
"""


class PostgresFactsReader:
    """Asks one server for one slot.

    Args:
        config: the connector's. Raises ConfigError.
    """

    uses_offsets = False  # the server knows what was confirmed

    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = parse_config(config)
        self._statement = _STATEMENT.format(head=HEAD_SQL, slot=quote_literal(self._config.slot))
        self._connection: Connection | None = None

    def read(self, offsets: StoredOffsets) -> SourceFacts:
        """Raises ConnectError."""
        try:
            if self._connection is None:
                self._connection = Connection(
                    self._config.connection,
                    "Debezium Facts",
                    query_seconds=LIMIT_SECONDS,
                    cancel_seconds=LIMIT_SECONDS,
                    connect_seconds=LIMIT_SECONDS,
                )
            (row,) = self._connection.query(self._statement)
        except ServerError as error:
            self.close()
            raise translate(
                error, "The server does not show its log and its slot", user=self._config.user, database=self._config.database
            ) from None
        except (ConnectError, ValueError):
            self.close()
            raise
        return slot_facts(self._config.slot, row)

    def close(self) -> None:
        """End the session."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def slot_facts(slot: str, row: tuple[str | None, ...]) -> SourceFacts:
    """Return the facts of one row of the statement.

    Args:
        row: the log's end, the slot as JSON, its two positions, the limit of what slots may keep in bytes (-1: none), and the seconds since
            it was last used.
    """
    head, shown, restart, confirmed, limit, inactive = row
    end = int(head or 0)
    values: dict[str, MetricValue] = {"current-lsn": end, "exists": shown is not None}
    if shown is not None:
        found: dict[str, Any] = json.loads(shown)
        values["active"] = bool(found.get("active"))
        if restart is not None:
            values |= {"restart-lsn": int(restart), "retained-bytes": max(0, end - int(restart))}
        if confirmed is not None:
            values |= {"confirmed-flush-lsn": int(confirmed), "distance-bytes": max(0, end - int(confirmed))}
        if found.get("wal_status") in _WAL_STATUSES:
            values |= {"wal-status": found["wal_status"], "wal-status-level": _WAL_STATUSES.index(found["wal_status"])}
        if found.get("safe_wal_size") is not None:
            values["safe-wal-size-bytes"] = int(found["safe_wal_size"])
        if limit is not None and int(limit) > 0:
            values["wal-keep-limit-bytes"] = int(limit)
        values["inactive-seconds"] = float(inactive) if inactive is not None else 0.0
    group = MetricGroup("connect.py", "postgres-slot", {"slot": slot}, values)
    return SourceFacts(end, int(confirmed) if confirmed is not None else None, groups=[group])
