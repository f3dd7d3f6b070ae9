"""The connection: SQLAlchemy's engine for an address. The drivers are named here only."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

from connect_py.errors import ConfigError
from connectors.jdbc.config import SinkConfig
from connectors.jdbc.dialects.base import Dialect
from connectors.jdbc.dialects.mysql import MySqlDialect
from connectors.jdbc.dialects.postgres import PostgresDialect
from connectors.jdbc.dialects.sqlite import SqliteDialect

_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mysql+pymysql", "sqlite": "sqlite"}
_NAMES = {"postgresql": "PostgreSQL", "mysql": "MySQL", "mariadb": "MariaDB", "sqlite": "SQLite"}
_DIALECTS: dict[str, type[Dialect]] = {
    "postgresql": PostgresDialect,
    "mysql": MySqlDialect,
    "mariadb": MySqlDialect,
    "sqlite": SqliteDialect,
}
CONNECT_SECONDS = 15


def shown(config: SinkConfig) -> str:
    """The database in messages."""
    return f"{_NAMES[config.address.kind]} ({config.address.shown})"


def open_engine(config: SinkConfig) -> Engine:
    """An engine, which connects when it is first used. Raises ConfigError: a parameter of the URL makes no sense."""
    address = config.address
    password = config.password.reveal() if config.password is not None else None
    if address.kind == "sqlite":
        url = URL.create("sqlite", database=address.database)
        return create_engine(url, hide_parameters=True, connect_args={"timeout": 10})
    url = URL.create(_DRIVERS[address.kind], config.user, password, address.host, address.port, address.database)
    arguments = _postgres_arguments(config) if address.kind == "postgresql" else _mysql_arguments(config)
    engine = create_engine(
        url,
        hide_parameters=True,
        connect_args=arguments,
        pool_size=config.pool_size,
        max_overflow=0,
        pool_recycle=config.pool_seconds,
        pool_pre_ping=True,
    )
    if address.kind != "postgresql":
        _prepare_mysql_sessions(engine, config)
    return engine


def dialect_of(config: SinkConfig, engine: Engine) -> Dialect:
    """The dialect of an engine that has connected."""
    return _DIALECTS[config.address.kind](config, engine)


def _postgres_arguments(config: SinkConfig) -> dict[str, Any]:
    options = dict(config.address.options)
    path = options.pop("currentSchema", None)
    if path is not None:
        if not re.fullmatch(r"\w+(,\w+)*", path):
            raise ConfigError(
                "The 'connection.url' value is invalid: parameter currentSchema: it must be names of schemas, divided by commas"
            )
        options["options"] = f"-csearch_path={path}"
    return {"connect_timeout": CONNECT_SECONDS, "application_name": "Debezium JDBC sink", **options}


def _mysql_arguments(config: SinkConfig) -> dict[str, Any]:
    options = dict(config.address.options)
    mode, authority = options.pop("ssl_mode", None), options.pop("ssl_ca", None)
    if mode in ("DISABLED", "DISABLE"):
        options["ssl_disabled"] = True
    elif mode in ("VERIFY_CA", "VERIFY_IDENTITY", "VERIFY_FULL"):
        options |= {"ssl_verify_cert": True, "ssl_verify_identity": mode != "VERIFY_CA"}
        if authority:
            options["ssl_ca"] = authority
    elif mode in ("REQUIRED", "TRUST"):
        options["ssl"] = {"check_hostname": False, "verify_mode": "none"}
    return {"connect_timeout": CONNECT_SECONDS, "charset": "utf8mb4", "local_infile": False, **options}


def _prepare_mysql_sessions(engine: Engine, config: SinkConfig) -> None:
    """Strict, as Connector/J makes sessions: a value too large is an error, not cut; and with the zone of the moments that are written."""
    zone = "+00:00" if config.zone.key in ("UTC", "Etc/UTC", "GMT", "Z") else config.zone.key

    def prepare(connection: Any, record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES'), time_zone = %s", (zone,))

    event.listen(engine, "connect", prepare)


__all__ = ["Connection", "Engine", "dialect_of", "open_engine", "shown"]
