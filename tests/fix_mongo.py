"""The MongoDB that tests use: `$MONGODB_URI`, or a server of our own (a `mongod` of the path, or a stand-in)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connect_py.app.services.mongo import MongoAddress, mongo_server


@pytest.fixture(scope="session")
def mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoAddress]:
    """A replica set."""
    server = mongo_server(tmp_path_factory.mktemp("mongo"))
    yield server
    server.stop()
