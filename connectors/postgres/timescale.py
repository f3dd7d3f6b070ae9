"""Changes of TimescaleDB's chunks as changes of their hypertables (`io.debezium.connector.postgresql.transforms.timescaledb.TimescaleDb`).

TimescaleDB keeps the rows of a hypertable, and those of a continuous aggregate, in chunks, which are tables of a schema of its own.
TimescaleDB's catalog says which chunk belongs to what. The transform reads it over a connection of its own (`database.*` among its
properties), opened for the first chunk, and reads it again for each chunk that is not known yet.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Header, Importance, SinkRecord, SourceRecord, Width
from connect_py.api.config import Password
from connect_py.data import Struct
from connect_py.data.schema import STRING
from connect_py.errors import ConfigError, RetriableError
from connect_py.transforms.debezium import DebeziumTransform, change_of, option, struct_of
from connectors.postgres.config import ConnectionSettings
from connectors.postgres.errors import ServerError
from connectors.postgres.server.connection import Connection

log = logging.getLogger(__name__)

_CHUNKS = (
    "SELECT c.schema_name, c.table_name, h.schema_name, h.table_name FROM _timescaledb_catalog.chunk c "
    "LEFT JOIN _timescaledb_catalog.hypertable h ON c.hypertable_id = h.id"
)
_AGGREGATES = (
    "SELECT h.schema_name, h.table_name, a.user_view_schema, a.user_view_name FROM _timescaledb_catalog.continuous_agg a "
    "LEFT JOIN _timescaledb_catalog.hypertable h ON a.mat_hypertable_id = h.id"
)
_SSL = ("sslmode", "sslcert", "sslkey", "sslrootcert")
#: The catalog is small: a server that takes longer does not answer.
QUERY_SECONDS = 60.0
_HEADER = "__debezium_timescaledb_"

#: Schema and name.
_Table = tuple[str | None, str | None]


class TimescaleDb(DebeziumTransform):
    """Renames table, schema and topic of events of chunks; headers keep the chunk, and the hypertable of an aggregate."""

    java_name = "io.debezium.connector.postgresql.transforms.timescaledb.TimescaleDb"
    KEYS = (
        option(
            "schema.list",
            ConfigType.LIST,
            "_timescaledb_internal",
            Importance.HIGH,
            Width.MEDIUM,
            "The list of TimescaleDB data schemas",
            "The schemas that hold chunks.",
        ),
        option(
            "target.topic.prefix",
            ConfigType.STRING,
            "timescaledb",
            Importance.MEDIUM,
            Width.MEDIUM,
            "The prefix of TimescaleDB topic names",
            "What the topics of hypertables and aggregates begin with; a dot, schema and name follow.",
        ),
    )

    def configure(self, config: Mapping[str, str]) -> None:
        """Read the properties, prefix stripped, the `database.*` ones of the catalog's server among them. Raises ConfigError."""
        super().configure(config)
        self._config = {name.removeprefix("database."): value.strip() for name, value in config.items() if name.startswith("database.")}
        self._connection: Connection | None = None
        self._hypertables: dict[_Table, _Table] = {}
        self._aggregates: dict[_Table, _Table] = {}

    def use(self, config: Mapping[str, Any]) -> None:
        self._schemas = set(config["schema.list"]) or {"_timescaledb_internal"}
        self._prefix: str = config["target.topic.prefix"]

    def apply(self, record: SourceRecord | SinkRecord) -> SourceRecord | SinkRecord:
        """Return the record of the hypertable or aggregate; one of no chunk is left alone.

        Raises:
            RetriableError: the catalog cannot be read now.
        """
        envelope = change_of(record)
        source = None if envelope is None else struct_of(envelope, "source")
        if envelope is None or source is None or source["schema"] not in self._schemas or source["table"] is None:
            return record
        chunk = (source["schema"], source["table"])
        hypertable = self._hypertable(chunk)
        if hypertable is None:
            log.warning("Unable to find hypertable for chunk '%s.%s'", *chunk)
            return record
        aggregate = self._aggregates.get(hypertable)
        schema, table = aggregate or hypertable
        moved = Struct(source.schema, source.values)
        moved["schema"], moved["table"] = schema, table
        value = Struct(envelope.schema, envelope.values)
        value["source"] = moved
        added = {"chunk_table": chunk[1], "chunk_schema": chunk[0]}
        if aggregate is not None:
            added |= {"hypertable_table": hypertable[1], "hypertable_schema": hypertable[0]}
        headers = [*record.headers, *(Header(f"{_HEADER}{name}", text, STRING) for name, text in added.items())]
        return replace(record, topic=f"{self._prefix}.{schema}.{table}", value=value, headers=headers)

    def close(self) -> None:
        """Close the connection to the catalog."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _hypertable(self, chunk: _Table) -> _Table | None:
        if chunk not in self._hypertables:
            try:
                self._load()
            except ServerError as error:
                self.close()
                raise RetriableError(f"Failed to read TimescaleDB metadata: {error}. The record is kept and tried again.") from None
        return self._hypertables.get(chunk)

    def _load(self) -> None:
        self._connection = self._connection or Connection(self._settings(), "Debezium TimescaleDB metadata", query_seconds=QUERY_SECONDS)
        self._hypertables = {(row[0], row[1]): (row[2], row[3]) for row in self._connection.query(_CHUNKS)}
        self._aggregates = {(row[0], row[1]): (row[2], row[3]) for row in self._connection.query(_AGGREGATES)}

    def _settings(self) -> ConnectionSettings:
        given = self._config
        missing = [name for name in ("hostname", "user", "dbname") if not given.get(name)]
        if missing:
            names = ", ".join(f"database.{name}" for name in missing)
            raise ConfigError(f"TimescaleDb reads TimescaleDB's catalog: its properties need {names}, as the connector's do")
        password = given.get("password")
        return ConnectionSettings(
            host=given["hostname"],
            port=int(given.get("port", "5432")),
            user=given["user"],
            password=None if password is None else Password(password),
            database=given["dbname"],
            more=tuple((name, given[name]) for name in _SSL if given.get(name)),
        )
