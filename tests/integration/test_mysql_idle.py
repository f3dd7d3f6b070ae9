"""A server that has nothing to say sends its heartbeats, so that an idle stream is not taken for a lost one."""

from __future__ import annotations

import time

import pytest

from connect_py.api import Password
from connect_py.app.services.mysql import MySqlAddress
from connectors.mysql.binlog.events import Heartbeat
from connectors.mysql.config.config import ConnectionSettings, Heartbeats
from connectors.mysql.position.gtid import parse_transactions
from connectors.mysql.server.binlog_client import BinlogClient

pytestmark = pytest.mark.services


@pytest.mark.parametrize("by_gtids", [False, True], ids=["by place", "by GTIDs"])
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_an_idle_server_is_heard(kind: str, by_gtids: bool, request: pytest.FixtureRequest) -> None:
    server: MySqlAddress = request.getfixturevalue(kind)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS" if kind == "mariadb" else "SHOW BINARY LOG STATUS")
        row = cursor.fetchone()
        assert row is not None
        cursor.execute("SELECT @@GLOBAL.gtid_binlog_pos" if kind == "mariadb" else "SELECT @@GLOBAL.gtid_executed")
        gtids = cursor.fetchone()
        assert gtids is not None
    settings = ConnectionSettings(server.host, server.port, server.user, Password(server.password), 10)
    client = BinlogClient(settings, 987_321, mariadb=kind == "mariadb", heartbeats=Heartbeats(0.2, 1.0))
    try:
        if not by_gtids:
            client.dump_from(str(row[0]), int(row[1]))
        elif kind == "mariadb":
            client.dump_mariadb(str(gtids[0]))
        else:
            client.dump_gtids(parse_transactions(str(gtids[0])).encode())  # type: ignore[union-attr]
        heard = 0
        deadline = time.monotonic() + 60
        while heard < 8:
            assert time.monotonic() < deadline
            heard += sum(isinstance(body, Heartbeat) for _, body in client.read(0.5))
    finally:
        client.close()
