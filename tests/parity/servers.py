"""Where the worker and the servers of a run are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Kinds of internal topics.
INTERNAL = ("config", "offset", "status")


@dataclass(frozen=True)
class Servers:
    """A Connect worker and the servers that its connectors reach.

    Attributes:
        connect_url: of the worker's REST API, without a slash at the end.
        bootstrap: of Kafka.
        internal: kind of internal topic (`config`, `offset`, `status`) to its name.
        postgres: arguments of `psycopg.connect` for an administrator.
        mysql: arguments of `pymysql.connect` for the user of the connectors.
        mysql_class: the connector that the MySQL scenarios create; MariaDB's against a MariaDB server.
        mongo_uri: of a replica set.
    """

    connect_url: str
    bootstrap: str
    internal: Mapping[str, str]
    postgres: Mapping[str, Any]
    mysql: Mapping[str, Any]
    mysql_class: str
    mongo_uri: str

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ) -> Servers:
        """Read the variables that `parity.py` documents; the defaults are those of the rig that recorded the goldens."""
        get = env.get
        return cls(
            connect_url=get("CONNECT_URL", "http://127.0.0.1:18083"),
            bootstrap=get("BOOTSTRAP", "127.0.0.1:19092"),
            internal={
                "config": get("CONFIG_TOPIC", "connect-configs"),
                "offset": get("OFFSET_TOPIC", "connect-offsets"),
                "status": get("STATUS_TOPIC", "connect-status"),
            },
            postgres={
                "host": get("PG_HOST", "127.0.0.1"),
                "port": int(get("PG_PORT", "15432")),
                "user": get("PG_USER", "postgres"),
                "password": get("PG_PASSWORD", "postgres"),
            },
            mysql={"host": get("MYSQL_HOST", "127.0.0.1"), "port": int(get("MYSQL_PORT", "13306")), "user": "debezium", "password": "dbz"},
            mysql_class=get("MYSQL_CONNECTOR", "io.debezium.connector.mysql.MySqlConnector"),
            mongo_uri=get("MONGO_URI", "mongodb://127.0.0.1:37017/?replicaSet=rs0"),
        )
