"""What MySQL and MariaDB say of their binary log: its files, and a few variables, by two statements on a session of their own.

The positions of the log are put on one scale in bytes: a file begins where the one before it ends. The scale begins with the oldest file
that the first look has seen, so that it stays as it is when files are purged.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from connect_py.api import MetricGroup, MetricValue, SourceFacts, SourceOffset, StoredOffsets
from connect_py.errors import ConnectError
from connectors.engine.facts import LIMIT_SECONDS, bytes_between, stored_offset
from connectors.mysql.config.config import parse_config
from connectors.mysql.position.gtid import GtidSet, MariadbGtidSet, Transactions, parse_transactions
from connectors.mysql.position.offset import BinlogPosition, MySqlOffset
from connectors.mysql.server.connection import Connection
from connectors.mysql.server.queries import open_connection

_VARIABLES = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN "
    "('gtid_executed', 'gtid_purged', 'gtid_binlog_pos', 'binlog_expire_logs_seconds', 'expire_logs_days')"
)


class MySqlFactsReader:
    """Asks one server.

    Args:
        config: the connector's. Raises ConfigError.
        connector: `mysql` or `mariadb`.
    """

    uses_offsets = True

    def __init__(self, config: Mapping[str, str], connector: str) -> None:
        parsed = parse_config(config, connector)
        settings = replace(
            parsed.connection,
            connect_timeout=min(parsed.connection.connect_timeout, LIMIT_SECONDS),
            query_timeout=min(parsed.connection.query_timeout or LIMIT_SECONDS, LIMIT_SECONDS),
        )
        self._config = replace(parsed, connection=settings)
        self._connection: Connection | None = None
        self._starts: dict[int, int] = {}

    def read(self, offsets: StoredOffsets) -> SourceFacts:
        """Raises ConnectError."""
        try:
            if self._connection is None:
                self._connection = open_connection(self._config)
            files = [(name, int(size)) for name, size, *_ in self._connection.texts("SHOW BINARY LOGS")]
            variables = {name.lower(): value for name, value in self._connection.texts(_VARIABLES)}
        except (ConnectError, ValueError):
            self.close()
            raise
        self._starts = file_starts(files, self._starts)
        stored = stored_offset(offsets, "server", self._config.topic_prefix)
        return log_facts(files, self._starts, variables, stored, time.time())

    def close(self) -> None:
        """End the session."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def file_starts(files: Sequence[tuple[str, int]], known: Mapping[int, int]) -> dict[int, int]:
    """Return where each file begins on the scale, by its number.

    Args:
        files: names and sizes, the oldest first.
        known: the answer of the last look; its files stay where they were.
    """
    starts: dict[int, int] = {}
    at = 0
    for name, size in files:
        number = BinlogPosition(name, 0).number
        at = known.get(number, at)
        starts[number] = at
        at += size
    return starts


def log_facts(
    files: Sequence[tuple[str, int]], starts: Mapping[int, int], variables: Mapping[str, str], stored: SourceOffset | None, now: float
) -> SourceFacts:
    """Return the facts of one look.

    Args:
        files: names and sizes, the oldest first.
        starts: where each begins on the scale, by its number.
        variables: of the server, by names in lower case.
        stored: the connector's offset.
        now: seconds since 1970.
    """
    if not files:
        return SourceFacts(None)
    last, size = files[-1]
    head = starts[BinlogPosition(last, 0).number] + size
    values: dict[str, MetricValue] = {
        "files": len(files),
        "oldest-file-number": BinlogPosition(files[0][0], 0).number,
        "end-file-number": BinlogPosition(last, 0).number,
        "end-position": size,
        "size-bytes": sum(size for _, size in files),
    }
    offset = MySqlOffset.load(stored) if stored else None
    position = None
    if offset is not None:
        position = bytes_between(starts, BinlogPosition(offset.file, 0).number, offset.pos)
        values["position-available"] = position is not None
        if position is not None:
            values["distance-bytes"] = max(0, head - position)
        values |= _transactions(variables, offset.gtids)
        expires = _expires_seconds(variables)
        if expires:
            # a server removes files that have not been written to for so long; what the position is in was, when its event happened
            age = max(0.0, now - offset.ts_sec) if offset.ts_sec and position is not None and position < head else 0.0
            values["seconds-left"] = max(0.0, expires - age) if position is not None else 0.0
    return SourceFacts(head, position, segments=starts, groups=[MetricGroup("connect.py", "mysql-binlog", {}, values)])


def _transactions(variables: Mapping[str, str], gtids: str | None) -> dict[str, MetricValue]:
    """Return how many transactions the connector has not read, and how many of these the server has purged."""
    executed_text = variables.get("gtid_executed") or variables.get("gtid_binlog_pos")
    if not gtids or not executed_text:
        return {}
    read, executed = parse_transactions(gtids), parse_transactions(executed_text)
    purged = parse_transactions(variables.get("gtid_purged", ""))
    found: dict[str, MetricValue] = {"gtid-distance": _count(executed, read)}
    if isinstance(purged, GtidSet) and isinstance(read, GtidSet):
        found["gtid-purged-unread"] = _count(purged, read)
    return found


def _count(transactions: Transactions, read: Transactions) -> int:
    """Return how many transactions are not among those that were read."""
    if isinstance(transactions, GtidSet) and isinstance(read, GtidSet):
        left = transactions.minus(read)
        return sum(last - first + 1 for intervals in left.sources.values() for first, last in intervals)
    if isinstance(transactions, MariadbGtidSet) and isinstance(read, MariadbGtidSet):
        seen = read.domains
        return sum(max(0, number - seen.get(domain, (0, ""))[0]) for domain, (number, _) in transactions.domains.items())
    return 0


def _expires_seconds(variables: Mapping[str, str]) -> float:
    """Return after how many seconds the server removes files of its log; 0 where it keeps them."""
    seconds = variables.get("binlog_expire_logs_seconds")
    if seconds and seconds.isdigit() and int(seconds):
        return float(seconds)
    days = variables.get("expire_logs_days", "")
    try:
        return float(days or 0) * 86_400
    except ValueError:
        return 0.0
