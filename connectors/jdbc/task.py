"""The sink's task: records in, transactions out (`JdbcSinkConnectorTask`), and SQLAlchemy's engine for its database.

Offsets are committed to Kafka after the database has committed, so nothing is lost; what was committed but not reported before a crash
comes again, which ``insert.mode=upsert`` turns into the same rows. The reference accepts records after a failed batch and reports the
failure with the next one; here `put` fails itself, and a database that is unavailable makes the runtime bring the same records again.

The drivers are named here only.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

from connect_py.api import SinkRecord, SinkTask, SinkTaskContext
from connect_py.errors import ConfigError, ConnectError, DataError, FatalTaskError, RetriableError, noted
from connectors.engine.sink_records import ErrantRecords
from connectors.jdbc.config import SinkConfig, parse_config
from connectors.jdbc.dialects.base import Dialect
from connectors.jdbc.dialects.mysql import MySqlDialect
from connectors.jdbc.dialects.postgres import PostgresDialect
from connectors.jdbc.dialects.sqlite import SqliteDialect
from connectors.jdbc.errors import BusyError, StaleTableError, database_error
from connectors.jdbc.records import Change, ChangeReader
from connectors.jdbc.writer import FAILURES, Writer

log = logging.getLogger(__name__)


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
    """Return the database in messages."""
    return f"{_NAMES[config.address.kind]} ({config.address.shown})"


#: How long SQLite waits for another connection's lock.
SQLITE_LOCK_SECONDS = 10.0


def open_engine(config: SinkConfig, lock_seconds: float = SQLITE_LOCK_SECONDS) -> Engine:
    """Return an engine, which connects when it is first used. Raises ConfigError: a parameter of the URL makes no sense."""
    address = config.address
    password = config.password.reveal() if config.password is not None else None
    if address.kind == "sqlite":
        url = URL.create("sqlite", database=address.database)
        return create_engine(url, hide_parameters=True, connect_args={"timeout": lock_seconds})
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
    """Return the dialect of an engine that has connected."""
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
    """Make sessions strict, as Connector/J does (a value too large is an error, not cut), in the zone of written timestamps."""
    zone = "+00:00" if config.zone.key in ("UTC", "Etc/UTC", "GMT", "Z") else config.zone.key

    def prepare(connection: Any, record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES'), time_zone = %s", (zone,))

    event.listen(engine, "connect", prepare)


_SCHEMA_CHANGE = (
    "Schema change records are not supported by JDBC connector. Adjust `topics` or `topics.regex` to exclude schema change topic."
)
_NOTE = "Offsets stand before the records that are not written; these come again."


class JdbcSinkTask(SinkTask):
    """Writes into one database, through one connection.

    Args:
        lock_seconds: how long SQLite waits for another connection's lock.
    """

    def __init__(self, lock_seconds: float = SQLITE_LOCK_SECONDS) -> None:
        self._lock_seconds = lock_seconds
        self._engine: Engine | None = None
        self._writer: Writer | None = None
        self._busy = 0
        self._is_stale = False
        #: Records of a `put` that failed which are written or reported: the runtime brings the same objects again. Neither topic nor
        #: offset would do, since a transform may have made one topic of several.
        self._done: dict[int, SinkRecord] = {}

    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        """Make an engine, which connects with the first records. Raises ConfigError."""
        self._config: SinkConfig = parse_config(config)
        self._context = context
        self._errant = ErrantRecords(config, context)
        self._reader = ChangeReader(self._config)
        self._engine = open_engine(self._config, self._lock_seconds)

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write the records.

        Raises:
            RetriableError: the database does not accept them now; the same records must come again.
            DataError: a record has no schema or key, or the database refuses it, and nothing tolerates that.
            FatalTaskError: the database will not accept them.
        """
        changes = self._changes(records)
        try:
            if changes:
                with self._connection() as connection:
                    self._write(connection, changes)
        except RetriableError as error:
            raise self._later(error) from error
        self._busy, self._is_stale = 0, False
        self._done.clear()

    def stop(self) -> None:
        """Close the connections."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = self._writer = None

    def _changes(self, records: Sequence[SinkRecord]) -> list[Change]:
        """Return the changes of records that an earlier, failed `put` of them has not written."""
        found = []
        for record in records:
            if id(record) in self._done:
                continue
            try:
                change = self._reader.read(record)
            except DataError as error:
                self._report(record, error)
                continue
            if change is None:
                log.warning("Ignored schema change event for topic '%s'. %s", record.topic, _SCHEMA_CHANGE)
            else:
                found.append(change)
        return found

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Return a connection of the pool; the first one shows what the server is. Raises as `put`."""
        assert self._engine is not None
        what = f"{shown(self._config)} cannot be reached"
        try:
            connection = self._engine.connect()
        except FAILURES as error:
            raise database_error(error, what) from error
        try:
            if self._writer is None:
                self._writer = Writer(self._config, dialect_of(self._config, self._engine), shown(self._config))
            yield connection
        finally:
            with contextlib.suppress(*FAILURES):
                connection.close()

    def _write(self, connection: Connection, changes: Sequence[Change]) -> None:
        assert self._writer is not None
        try:
            self._writer.write(connection, changes)
        except DataError as error:
            self._undo(connection, changes)
            if not self._errant.are_accepted:
                raise noted(error, _NOTE) from error
            self._write_singly(connection, changes[self._writer.applied :])
        except ConnectError:
            self._undo(connection, changes)
            raise

    def _write_singly(self, connection: Connection, changes: Sequence[Change]) -> None:
        """Find the records that the database refuses: each goes alone."""
        assert self._writer is not None
        for change in changes:
            try:
                self._writer.write(connection, [change])
            except DataError as error:
                self._undo(connection, ())
                self._report(change.record, error)
            except ConnectError:
                self._undo(connection, ())
                raise
            self._done[id(change.record)] = change.record

    def _undo(self, connection: Connection, changes: Sequence[Change]) -> None:
        """Roll back, and remember what is committed nevertheless."""
        assert self._writer is not None
        with contextlib.suppress(*FAILURES):
            connection.rollback()
        for change in changes[: self._writer.applied]:
            self._done[id(change.record)] = change.record

    def _later(self, error: RetriableError) -> ConnectError:
        """Return the error that `put` raises for a passing one, which may have lasted too long."""
        if self._writer is not None:
            self._writer.forget_tables()
        if isinstance(error, StaleTableError):
            if self._is_stale:
                return FatalTaskError(str(error))
            self._is_stale = True
        if isinstance(error, BusyError):
            self._busy += 1
            if self._busy > self._config.max_retries:
                return noted(
                    FatalTaskError(f"Exceeded max retries {self._config.max_retries} times, failed to flush records: {error}"), _NOTE
                )
        self._context.retry_after(self._config.retry_seconds)
        return noted(error, _NOTE)

    def _report(self, record: SinkRecord, error: DataError) -> None:
        self._errant.report(record, error)
        self._done[id(record)] = record
