"""The MariaDB server that tests use: `$MARIADB_HOST` and `$MARIADB_PORT` with the user `debezium` (password `dbz`), or one of our own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from connect_py.app.services.mysql import MariaDbServer, MySqlAddress, mariadbd
from connect_py.app.services.process import ServiceError


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlAddress]:
    """A server with row-based log, and an administrator's login. Skips where no MariaDB can be had."""
    if os.environ.get("MARIADB_HOST"):
        yield MySqlAddress(os.environ["MARIADB_HOST"], int(os.environ.get("MARIADB_PORT", "3306")), "debezium", "dbz")
        return
    try:
        mariadbd()
    except ServiceError as error:
        pytest.skip(str(error))
    server = MariaDbServer(tmp_path_factory.mktemp("mariadb"))
    yield server
    server.stop()
