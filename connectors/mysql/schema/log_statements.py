"""Statements that change structures, from a place of the log up to its present end."""

from __future__ import annotations

import time

from connectors.mysql.binlog.client import BinlogClient
from connectors.mysql.binlog.events import Heartbeat, Query, Rotate
from connectors.mysql.config import MySqlConfig
from connectors.mysql.ddl.statement_kinds import Kind, kind_of, without_settings
from connectors.mysql.position.log_place import LogPlace
from connectors.mysql.position.mariadb_gtid import MariadbGtidSet
from connectors.mysql.position.offset import MySqlOffset
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection
from connectors.mysql.settings import Heartbeats

#: The server tells by a heartbeat where the log ends, where all that is left was filtered by it.
_HEARTBEATS = Heartbeats(period=1.0)
#: Seconds of nothing but heartbeats after which the log is at its end, whatever they say: old servers cut places beyond 4 GB.
_ONLY_HEARTBEATS = 30.0

#: Text, default database, and the session's modes.
Statement = tuple[str, str, int]


def statements_behind(connection: Connection, config: MySqlConfig, offset: MySqlOffset) -> list[Statement]:
    """The statements behind an offset, in order.

    Raises:
        ServerError: the log cannot be read, or no longer from there on.
        LostConnectionError: the connection broke, or nothing comes any more.
        MalformedEventError: an event cannot be decoded.
    """
    end = queries.log_status(connection, config)
    limit = LogPlace(end.file, end.position)
    gtids = queries.left_out(connection, config, offset)
    # the connector's own number would end its dump
    client = BinlogClient(
        config.connection,
        config.server_id + config.number("database.server.id.offset"),
        mariadb=queries.is_mariadb(config),
        heartbeats=_HEARTBEATS,
    )
    found: list[Statement] = []
    file = offset.file
    try:
        if isinstance(gtids, MariadbGtidSet):
            client.dump_behind(gtids.position())
        elif gtids is not None:
            client.dump_after(gtids.encode())
        else:
            client.dump_from(offset.file, offset.pos)
        moved = time.monotonic()
        while True:
            for header, body in client.read(_HEARTBEATS.period):
                if isinstance(body, Heartbeat):
                    at_end = not LogPlace(body.file, body.position or header.end) < limit
                    if at_end or time.monotonic() - moved > _ONLY_HEARTBEATS:
                        return found
                    continue
                moved = time.monotonic()
                if isinstance(body, Rotate):
                    file = body.file
                elif isinstance(body, Query):
                    sql = body.sql.decode("utf-8", "replace")
                    if kind_of(sql) is Kind.DDL:
                        found.append((without_settings(sql), body.schema, body.sql_mode or 0))
                if header.timestamp and header.end and not LogPlace(file, header.end) < limit:
                    return found
    finally:
        client.close()
