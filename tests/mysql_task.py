"""A MySQL source task without a worker, and its configuration."""

from __future__ import annotations

import uuid
from typing import Any

from connect_py.app.services.mysql import MySqlAddress
from connectors.engine.batches import Tuning
from connectors.engine.snapshot.incremental.contract import SnapshotHooks
from connectors.mysql.task import MariaDbConnectorTask, MySqlConnectorTask
from tests.postgres_task import DirectTask


class DirectMySqlTask(DirectTask):
    """See `DirectTask`."""

    def make(self, hooks: SnapshotHooks | None, tuning: Tuning) -> Any:
        """The task."""
        return MySqlConnectorTask(hooks=hooks, tuning=tuning)


class DirectMariaDbTask(DirectMySqlTask):
    """See `DirectTask`."""

    def make(self, hooks: SnapshotHooks | None, tuning: Tuning) -> Any:
        """The task."""
        return MariaDbConnectorTask(hooks=hooks, tuning=tuning)


def mysql_source(mysql: MySqlAddress, bootstrap: str, database: str, **more: str) -> dict[str, str]:
    """A connector's properties; topics begin with the database's name. Further ones with `_` for points."""
    return {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "database.hostname": mysql.host,
        "database.port": str(mysql.port),
        "database.user": mysql.user,
        "database.password": mysql.password,
        "database.server.id": str(uuid.uuid4().int % 1_000_000 + 1_000),
        "topic.prefix": database,
        "database.include.list": database,
        "schema.history.internal.kafka.bootstrap.servers": bootstrap,
        "schema.history.internal.kafka.topic": f"history_{database}_{uuid.uuid4().hex[:6]}",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
