"""Properties of the sink (`JdbcSinkConnectorConfig.java`, `SinkConnectorConfig.java`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

from connect_py.api import ConfigDef, ConfigKey, ConfigType, Importance, Width
from connect_py.api.config import Password
from connect_py.errors import ConfigError
from connectors.engine.sink_records import TargetNames
from connectors.jdbc.address import URL, Address, parse_address
from connectors.jdbc.naming import DEFAULT_COLUMNS, DEFAULT_TABLES, OLD_TABLES, PASSTHROUGH, SINK_COLUMNS, field_filter

VERSION: Final = "3.6.1.Final"
INSERT_MODES: Final = ("insert", "upsert", "update")
KEY_MODES: Final = ("none", "kafka", "record_key", "record_value", "record_header")
EVOLUTIONS: Final = ("none", "basic")
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

#: Read, though Debezium defines them nowhere that a client could see.
UNLISTED: Final = ("use.reduction.buffer", "connection.provider", "hibernate.")
_NO_HIBERNATE: Final = "statements and connections are SQLAlchemy's, there is no Hibernate"
#: Accepted, and why it changes nothing. A name that ends with a dot stands for all that begin with it.
WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "connection.pool.min_size": "a task opens one connection, when it needs it",
    "connection.provider": _NO_HIBERNATE,
    "hibernate.": _NO_HIBERNATE,
    "connection.restart.on.errors": "a lost connection is always opened again",
    "collection.table.format": "collection.name.format names the table, and knows ${source.schema} and ${source.table}",
    "dialect.postgres.unnest.insert.enabled": "rows of a batch go to the server in one pipeline",
    "dialect.sqlserver.identity.insert": "there is no dialect for SQL Server",
}


def _one_of(*allowed: str) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if value is not None and str(value).lower() not in allowed:
            raise ConfigError(f"The '{name}' value is invalid: Value must be one of {', '.join(allowed)}")

    return check


def _class_of(*names: str) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if value not in names:
            raise ConfigError(f"Invalid value {value} for configuration {name}: Class {value} could not be found.")

    return check


def _zone(name: str, value: Any) -> None:
    try:
        ZoneInfo(str(value))
    except (ValueError, OSError, KeyError):
        raise ConfigError(f"The '{name}' value is invalid: {value} is no time zone. Set it to one such as UTC or Europe/Berlin.") from None


def _at_least(minimum: int) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if value is not None and value < minimum:
            raise ConfigError(f"The '{name}' value is invalid: it must be at least {minimum}")

    return check


_Row = tuple[str, ConfigType, Any, Importance, Width, str, str, Callable[[str, Any], None] | None]
_S, _I, _L, _B = ConfigType.STRING, ConfigType.INT, ConfigType.LONG, ConfigType.BOOLEAN
_BATCH = (
    "Specifies how many records to attempt to batch together into the destination table, when possible. You can also configure the "
    "connector’s underlying consumer’s max.poll.records using consumer.override.max.poll.records in the connector configuration."
)
_FORMAT = "A format string for the table, which may contain '${topic}' as a placeholder for the original topic name."
_TABLES = (
    "Name of the strategy class that defines the collection name from the topic name. It implements the CollectionNamingStrategy interface."
)
_TABLE_CLASSES = (DEFAULT_TABLES, PASSTHROUGH, OLD_TABLES)

_ROWS: Final[tuple[_Row, ...]] = (
    (URL, _S, None, _HIGH, Width.LONG, "Hostname", "Valid JDBC URL", None),
    (
        "connection.username",
        _S,
        None,
        _HIGH,
        Width.SHORT,
        "User",
        "Name of the database user to be used when connecting to the connection.",
        None,
    ),
    (
        "connection.password",
        ConfigType.PASSWORD,
        None,
        _HIGH,
        Width.SHORT,
        "Password",
        "Password of the database user to be used when connecting to the connection.",
        None,
    ),
    (
        "connection.pool.min_size",
        _I,
        5,
        _LOW,
        Width.SHORT,
        "Connection pool minimum size",
        "Minimum number of connection in the connection pool",
        None,
    ),
    (
        "connection.pool.max_size",
        _I,
        32,
        _LOW,
        Width.SHORT,
        "Connection pool maximum size",
        "Maximum number of connection in the connection pool",
        None,
    ),
    ("connection.pool.timeout", _L, 1800, _LOW, Width.SHORT, "Connection pool timeout", "Connection pool timeout", None),
    (
        "insert.mode",
        _S,
        "insert",
        _LOW,
        Width.SHORT,
        "The insertion mode to use",
        "The insertion mode to use. 'insert' - the default mode, uses standard SQL insert statements; 'upsert' - uses upsert semantics for "
        "the database if its supported and requires setting primary.key.mode and primary.key.fields;'update' - uses update semantics for "
        "the database if its supported.",
        _one_of(*INSERT_MODES),
    ),
    (
        "delete.enabled",
        _B,
        False,
        _LOW,
        Width.SHORT,
        "Controls whether records can be deleted by the connector",
        "Whether to treat `null` record values as deletes. Requires primary.key.mode to be `record.key`.",
        None,
    ),
    (
        "truncate.enabled",
        _B,
        False,
        _LOW,
        Width.SHORT,
        "Controls whether tables can be truncated by the connector",
        "Whether to process debezium event `t` as truncate statement.",
        None,
    ),
    ("collection.name.format", _S, "${topic}", _MEDIUM, Width.MEDIUM, "A format string for the collection name", _FORMAT, None),
    ("table.name.format", _S, "${topic}", _MEDIUM, Width.MEDIUM, "A format string for the collection name", _FORMAT, None),
    ("primary.key.mode", _S, "none", _HIGH, Width.SHORT, "Primary key mode", "The primary key mode.", _one_of(*KEY_MODES)),
    (
        "primary.key.fields",
        _S,
        None,
        _LOW,
        Width.MEDIUM,
        "Comma-separated list of primary key field names",
        "A comma-separated list of primary key field names. This is interpreted differently depending on primary.key.mode.",
        None,
    ),
    (
        "schema.evolution",
        _S,
        "none",
        _LOW,
        Width.SHORT,
        "Controls how schema evolution is handled by the sink connector",
        "Controls how schema evolution is handled by the sink connector",
        _one_of(*EVOLUTIONS),
    ),
    (
        "quote.identifiers",
        _B,
        False,
        _LOW,
        Width.SHORT,
        "Controls whether table, column, or other identifiers are quoted",
        "When enabled, table, column, and other identifiers are quoted based on the database dialect. When disabled, only explicit cases "
        "where the dialect requires quoting will be used, such as names starting with an underscore.",
        None,
    ),
    *(
        (name, ConfigType.CLASS, DEFAULT_TABLES, _LOW, Width.LONG, "CollectionNamingStrategy class", _TABLES, _class_of(*_TABLE_CLASSES))
        for name in ("collection.naming.strategy", "table.naming.strategy")
    ),
    (
        "column.naming.strategy",
        ConfigType.CLASS,
        DEFAULT_COLUMNS,
        _LOW,
        Width.LONG,
        "Name of the strategy class that implements the ColumnNamingStrategy interface",
        "Name of the strategy class that implements the ColumnNamingStrategy interface.",
        _class_of(DEFAULT_COLUMNS, SINK_COLUMNS),
    ),
    (
        "collection.table.format",
        _S,
        "${table}",
        _MEDIUM,
        Width.LONG,
        "Format string using table name",
        "Alternative format that uses table name instead of topic name. Use ${schema} for schema name and ${table} for table name.",
        None,
    ),
    *(
        (
            name,
            _S,
            "UTC",
            _MEDIUM,
            Width.SHORT,
            "The timezone used when inserting temporal values.",
            "The timezone used when inserting temporal values. Defaults to UTC.",
            _zone,
        )
        for name in ("use.time.zone", "database.time_zone")
    ),
    (
        "dialect.postgres.postgis.schema",
        _S,
        "public",
        _LOW,
        Width.LONG,
        "Name of the schema where postgis extension is installed",
        "Name of the schema where postgis extension is installed. Default is public",
        None,
    ),
    (
        "dialect.postgres.unnest.insert.enabled",
        _B,
        False,
        _MEDIUM,
        Width.SHORT,
        "Enable UNNEST-based batch inserts for PostgreSQL",
        "When enabled, uses PostgreSQL UNNEST() for batch inserts. Without effect here: rows of a batch go to the server in one pipeline.",
        None,
    ),
    (
        "dialect.sqlserver.identity.insert",
        _B,
        False,
        _LOW,
        Width.SHORT,
        "Allowing to insert explicit value for identity column in table for SQLSERVER.",
        "Allowing to insert explicit value for identity column in table for SQLSERVER.",
        None,
    ),
    ("batch.size", _I, 500, _MEDIUM, Width.SHORT, _BATCH, _BATCH, _at_least(1)),
    (
        "field.include.list",
        ConfigType.LIST,
        None,
        _MEDIUM,
        Width.LONG,
        "Include Fields",
        "A comma-separated list of names of fields that should be written, as field or topic:field.",
        None,
    ),
    (
        "field.exclude.list",
        ConfigType.LIST,
        None,
        _MEDIUM,
        Width.LONG,
        "Exclude Fields",
        "A comma-separated list of names of fields that should not be written, as field or topic:field.",
        None,
    ),
    (
        "flush.max.retries",
        _I,
        5,
        _LOW,
        Width.SHORT,
        "Max retry count",
        "Max retry count when fail to flush. In case of retriable exceptions, the flush will be retried for the defined max retry count. "
        "Default is 5.",
        _at_least(0),
    ),
    (
        "flush.retry.delay.ms",
        _L,
        1000,
        _LOW,
        Width.SHORT,
        "Delay to retry flush",
        "Delay to retry when fail to flush",
        _at_least(0),
    ),
    (
        "connection.restart.on.errors",
        _B,
        False,
        _LOW,
        Width.SHORT,
        "Restart connection on errors",
        "Specifies whether the connector should attempt to restart the connection automatically upon connection-related errors. Without "
        "effect here: a lost connection is always opened again.",
        None,
    ),
    (
        "cloud.events.schema.name.pattern",
        _S,
        r".*CloudEvents\.Envelope$",
        _LOW,
        Width.LONG,
        "CloudEvents messages schema name pattern",
        "Regular expression pattern to identify CloudEvents messages by matching the schema name with this pattern.",
        None,
    ),
)

DEFINITION: Final = ConfigDef(
    ConfigKey(name, type_, default, importance, text, "Connector", index, width, title, check)
    for index, (name, type_, default, importance, width, title, text, check) in enumerate(_ROWS, 1)
)


@dataclass(frozen=True)
class SinkConfig:
    """A valid configuration.

    Attributes:
        insert_mode: insert, upsert or update.
        key_mode: where primary keys come from (``primary.key.mode``).
        key_fields: which of those fields count; empty for all.
        is_field_written: whether a field of a topic is written.
        evolves: whether tables are created and widened.
        quotes: whether names keep their case (``quote.identifiers``).
        reduces: whether only the last change of a row in a batch is written.
        retry_seconds: before what failed is tried again.
        event_pattern: which schema names are CloudEvents.
    """

    address: Address
    user: str
    password: Password | None
    pool_size: int
    pool_seconds: int
    insert_mode: str
    deletes: bool
    truncates: bool
    tables: TargetNames
    key_mode: str
    key_fields: tuple[str, ...]
    is_field_written: Callable[[str, str], bool]
    evolves: bool
    quotes: bool
    zone: ZoneInfo
    postgis_schema: str
    batch_size: int
    reduces: bool
    max_retries: int
    retry_seconds: float
    event_pattern: re.Pattern[str]


def problems(config: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """Return what is wrong between properties, as (property, message); `DEFINITION` checks each by itself."""
    found = []
    mode = (config.get("insert.mode") or "insert").strip().lower()
    if not config.get(URL):
        found.append((URL, f"The '{URL}' value is invalid: A value is required"))
    else:
        try:
            address = parse_address(str(config[URL]))
        except ConfigError as error:
            found.append((URL, str(error)))
        else:
            if address.kind != "sqlite" and not config.get("connection.username"):
                found.append(("connection.username", "The 'connection.username' value is invalid: A value is required"))
    if mode == "upsert" and "primary.key.mode" not in config:
        fields = "" if "primary.key.fields" in config else " and 'primary.key.fields'"
        found.append(("insert.mode", f"When using UPSERT, please define 'primary.key.mode'{fields}."))
    key_mode = (config.get("primary.key.mode") or "none").strip().lower()
    if (config.get("delete.enabled") or "").strip().lower() == "true" and key_mode != "record_key":
        found.append(
            ("delete.enabled", "When 'delete.enabled' is set to 'true', the 'primary.key.mode' option must be set to 'record_key'.")
        )
    if config.get("field.include.list") and config.get("field.exclude.list"):
        found.append(("field.exclude.list", "Cannot define both column.exclude.list and column.include.list. Please specify only one."))
    try:
        re.compile(config.get("cloud.events.schema.name.pattern") or "")
    except re.error as error:
        found.append(("cloud.events.schema.name.pattern", f"The pattern of CloudEvents' schema names is invalid: {error}"))
    return found


def parse_config(config: Mapping[str, str]) -> SinkConfig:
    """Parse what the task is given. ``table.*`` and ``database.time_zone`` are older names, which count where the newer one is missing.

    Raises:
        ConfigError: with the first problem.
    """
    parsed = DEFINITION.parse(config)
    for _, message in problems(config):
        raise ConfigError(message)

    def newer(name: str, older: str) -> str:
        found: str = parsed[older] if name not in config and older in config else parsed[name]
        return found

    def lists(name: str) -> str:
        return ",".join(parsed[name] or ())

    keys = (parsed["primary.key.fields"] or "").split(",")
    return SinkConfig(
        address=parse_address(parsed[URL]),
        user=parsed["connection.username"] or "",
        password=parsed["connection.password"],
        pool_size=max(parsed["connection.pool.max_size"], 1),
        pool_seconds=max(parsed["connection.pool.timeout"], 1),
        insert_mode=parsed["insert.mode"].lower(),
        deletes=parsed["delete.enabled"],
        truncates=parsed["truncate.enabled"],
        tables=TargetNames(
            "table",
            newer("collection.name.format", "table.name.format"),
            is_passthrough=newer("collection.naming.strategy", "table.naming.strategy") == PASSTHROUGH,
        ),
        key_mode=parsed["primary.key.mode"].lower(),
        key_fields=tuple(key.strip() for key in keys if key.strip()),
        is_field_written=field_filter(lists("field.include.list"), lists("field.exclude.list")),
        evolves=parsed["schema.evolution"].lower() == "basic",
        quotes=parsed["quote.identifiers"],
        zone=ZoneInfo(newer("use.time.zone", "database.time_zone")),
        postgis_schema=parsed["dialect.postgres.postgis.schema"],
        batch_size=parsed["batch.size"],
        reduces=config.get("use.reduction.buffer", "false").strip().lower() == "true",
        max_retries=parsed["flush.max.retries"],
        retry_seconds=parsed["flush.retry.delay.ms"] / 1000,
        event_pattern=re.compile(parsed["cloud.events.schema.name.pattern"]),
    )
