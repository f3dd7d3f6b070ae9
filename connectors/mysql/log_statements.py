"""Statements that change structures, from a place of the log up to its present end."""

from __future__ import annotations

from connectors.mysql import server
from connectors.mysql.binlog.events import Query, Rotate
from connectors.mysql.binlog_client import BinlogClient
from connectors.mysql.config import MySqlConfig
from connectors.mysql.connection import Connection
from connectors.mysql.log_place import LogPlace
from connectors.mysql.mariadb_gtid import MariadbGtidSet
from connectors.mysql.offset import MySqlOffset
from connectors.mysql.statement_kinds import Kind, kind_of, without_settings

#: A log that says nothing for so many seconds is at its end: all that is left was filtered by the server.
_SILENCE_SECONDS = 3.0

#: Text, default database, and the session's modes.
Statement = tuple[str, str, int]


def statements_behind(connection: Connection, config: MySqlConfig, offset: MySqlOffset) -> list[Statement]:
    """The statements behind an offset, in order.

    Raises:
        ServerError: the log cannot be read, or no longer from there on.
        MalformedEventError: an event cannot be decoded.
    """
    end = server.log_status(connection, config)
    limit = LogPlace(end.file, end.position)
    gtids = server.left_out(connection, config, offset)
    # the connector's own number would end its dump
    client = BinlogClient(
        config.connection, config.server_id + config.number("database.server.id.offset"), mariadb=server.is_mariadb(config)
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
        while events := client.read(_SILENCE_SECONDS):
            for header, body in events:
                if isinstance(body, Rotate):
                    file = body.file
                elif isinstance(body, Query):
                    sql = body.sql.decode("utf-8", "replace")
                    if kind_of(sql) is Kind.DDL:
                        found.append((without_settings(sql), body.schema, body.sql_mode or 0))
                if header.timestamp and header.end and not LogPlace(file, header.end) < limit:
                    return found
        return found
    finally:
        client.close()
