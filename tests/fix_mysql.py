"""The MySQL server that tests use: `$MYSQL_HOST` and `$MYSQL_PORT` with the user `debezium` (password `dbz`), or one of our own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from connect_py.app.services.mysql import MySqlAddress, MySqlServer, mysqld
from connect_py.app.services.process import ServiceError


@pytest.fixture(scope="session")
def mysql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlAddress]:
    """A server with row-based log and GTIDs, and an administrator's login. Skips where no MySQL can be had."""
    if os.environ.get("MYSQL_HOST"):
        yield MySqlAddress(os.environ["MYSQL_HOST"], int(os.environ.get("MYSQL_PORT", "3306")), "debezium", "dbz")
        return
    try:
        mysqld()
    except ServiceError as error:
        pytest.skip(str(error))
    server = MySqlServer(tmp_path_factory.mktemp("mysql"))
    yield server
    server.stop()
