"""The properties of the MySQL connector (mysql.md §1): what they are, how they are checked, what they say (`MySqlConnectorConfig.java`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from connect_py.api.config import ConfigType, ConfigValue, parse_value
from connect_py.errors import ConfigError
from connectors.engine.config import COMMON, OLD_NAMES, ParsedConfig, skipped_operations, validate_own, with_defaults, with_present_names
from connectors.engine.custom_converters import CustomConverters
from connectors.engine.layout import COLUMN_RULES, DELIVERY, RECORDS, SNAPSHOTS, SOURCE_TYPES
from connectors.engine.plugin_checks import add_problems, plugin_problems
from connectors.engine.properties import (
    HIGH,
    LIST,
    LOW,
    MED,
    WL,
    WM,
    WS,
    B,
    C,
    Config,
    I,
    L,
    P,
    Property,
    S,
    arrange,
    is_int,
    non_negative_int,
    non_negative_long,
    not_beside,
    positive_int,
    positive_long,
    prop,
    regexes,
    required,
    validate,
)
from connectors.engine.relational.column_rules import ColumnRules
from connectors.engine.relational.filters import NameFilter, TableFilters
from connectors.engine.relational.keys import KeyRules
from connectors.engine.relational.table import TableId
from connectors.engine.snapshot.modes import custom
from connectors.mysql.modes import MODES, MySqlMode, configuration_based, of_custom
from connectors.mysql.settings import ConnectionSettings
from connectors.mysql.types.base import ValueOptions

log = logging.getLogger(__name__)

#: The release whose records these are; shown in `source.version` and as the plug-in's version.
VERSION: Final = "3.6.1.Final"
SYSTEM_DATABASES: Final = frozenset({"mysql", "performance_schema", "sys", "information_schema"})


def _locking_mode(text: str | None, _: Config) -> str | None:
    """`snapshot.locking.mode`, beside the check of its values: the reference says it twice."""
    modes = ("minimal", "minimal_percona", "custom", "none", "minimal_percona_no_table_locks", "extended")
    return None if text is None or text.strip().lower() in modes else "Must be a valid snapshot.locking.mode value"


def _time_mode(text: str | None, _: Config) -> str | None:
    """`time.precision.mode`: one of other connectors' is none of this one."""
    adaptive = text is not None and text.strip().lower() == "adaptive"
    return "The 'adaptive' time.precision.mode is no longer supported" if adaptive else None


_OWN = (
    prop("database.port", I, "3306", HIGH, WS, "Port", "Port of the database server.", is_int),
    prop("database.initial.statements", S, None, LOW, WL, "Initial statements", "Statements to run on every new connection, with `;` between them."),
    prop("database.server.id", L, None, HIGH, WL, "Cluster ID", "Number by which the server knows this connector as a replica; no other replica may have it.", required, positive_long),
    prop("database.server.id.offset", L, "10000", HIGH, WL, "Cluster ID offset", "Added to the number for further connections to the log."),
    prop("database.ssl.keystore", S, None, MED, WL, "SSL Keystore", "A PEM file with our certificate and its key."),
    prop("database.ssl.keystore.password", P, None, MED, WM, "SSL Keystore Password", "Password of the key in that file."),
    prop("database.ssl.truststore", S, None, MED, WL, "SSL Truststore", "A PEM file with the certificates to trust."),
    prop("database.ssl.truststore.password", P, None, MED, WM, "SSL Truststore Password", "Accepted; certificates to trust need none."),
    prop("database.jdbc.driver", C, "com.mysql.cj.jdbc.Driver", LOW, WM, "JDBC Driver Class Name", "Accepted and not used."),
    prop("database.protocol", S, "jdbc:mysql", LOW, WM, "JDBC Protocol", "Accepted and not used."),
    prop("database.ssl.mode", S, "preferred", MED, WM, "SSL mode", "Whether connections are encrypted, and whose certificate is accepted.", values=("verify_identity", "disabled", "preferred", "required", "verify_ca")),
    prop("connect.timeout.ms", I, "30000", MED, WS, "Connection Timeout (ms)", "How long a connection may take, in ms.", positive_int),
    prop("connect.keep.alive", B, "true", LOW, WS, "Keep connection alive (true/false)", "Accepted; a broken connection to the log is always noticed and made again."),
    prop("connect.keep.alive.interval.ms", L, "60000", LOW, WS, "Keep alive interval (ms)", "Accepted; the server's heartbeats come every ten seconds.", positive_long),
    prop("use.nongraceful.disconnect", B, "false", MED, WS, "Use Non-graceful Disconnect", "Accepted; connections to the log are always just closed."),
    prop("binlog.net.write.timeout", L, "0", MED, WS, "Binlog Net Write Timeout", "Server's limit in seconds for sending to us; 0 leaves it as it is.", non_negative_long),
    prop("binlog.net.read.timeout", L, "0", MED, WS, "Binlog Net Read Timeout", "Server's limit in seconds for hearing from us; 0 leaves it as it is.", non_negative_long),
    prop("snapshot.mode", S, "initial", LOW, WS, "Snapshot mode", "When structures and present rows are read.", values=("always", "initial_only", "configuration_based", "when_needed", "initial", "custom", "no_data", "recovery")),
    prop("time.precision.mode", S, "adaptive_time_microseconds", MED, WS, "Time Precision", "How dates and times look.", _time_mode, values=("adaptive", "adaptive_time_microseconds", "isostring", "microseconds", "nanoseconds", "connect")),
    prop("bigint.unsigned.handling.mode", S, "long", MED, WS, "The mode for handling bigint-unsigned values", "Whether the largest half of BIGINT UNSIGNED wraps around (long) or all are decimals (precise).", values=("precise", "long")),
    prop("snapshot.locking.fallback", S, "flush", LOW, WS, "Snapshot locking fallback", "How tables are locked where the global lock is refused: flushed first, as the reference does, or where that is refused too just locked (ours).", values=("flush", "lock")),
    prop("value.consistency", S, "reference", LOW, WS, "Value consistency", "Whether snapshots show values as the reference's do (reference), or as the stream does (unified; ours).", values=("reference", "unified")),
    prop("enable.time.adjuster", B, "true", LOW, WS, "Enable Time Adjuster", "Accepted; the server has made years of two digits whole before they are stored."),
    prop("min.row.count.to.stream.results", I, "1000", LOW, WM, "Stream result set of size", "Accepted; results are always streamed.", non_negative_int),
    prop("incremental.snapshot.allow.schema.changes", B, "false", LOW, WS, "Allow schema changes during incremental snapshot if supported.", "Whether structures may change while an incremental snapshot runs."),
    prop("snapshot.locking.mode", S, "minimal", LOW, WS, "Snapshot locking mode", "How long a snapshot keeps others from writing.", _locking_mode, values=("minimal", "minimal_percona", "custom", "none", "minimal_percona_no_table_locks", "extended")),
    prop("ddl.parser.type", S, "default", LOW, WS, "DDL Parser Type", "Accepted and not used.", values=("default", "legacy")),
    prop("schema.history.internal", C, "io.debezium.storage.kafka.history.KafkaSchemaHistory", LOW, WL, "Database schema history class", "Where the schema history is kept."),
    prop("schema.history.internal.skip.unparseable.ddl", B, "false", LOW, WS, "Skip DDL statements that cannot be parsed", "Whether statements that cannot be understood are passed over."),
    prop("schema.history.internal.store.only.captured.tables.ddl", B, "false", LOW, WS, "Store only DDL that modifies tables that are captured based on include/exclude lists", "Whether the history holds captured tables only."),
    prop("schema.history.internal.store.only.captured.databases.ddl", B, "false", LOW, WS, "Store only DDL that modifies tables of databases that are captured based on include/exclude lists", "Whether the history holds captured databases only."),
    prop("include.schema.changes", B, "true", MED, WS, "Include database schema changes", "Whether statements that change structures become records of the topic that is called like the prefix."),
    prop("include.query", B, "false", MED, WS, "Include original SQL query with in change events", "Whether records show the statement that made them, where the server logs it."),
    prop("database.include.list", LIST, None, HIGH, WL, "Include Databases", "Regexes of the databases to capture; all without it.", regexes),
    prop("database.exclude.list", LIST, None, MED, WL, "Exclude Databases", "Regexes of databases that are not captured.", regexes, not_beside("database.include.list")),
    prop("binlog.buffer.size", I, "0", MED, WM, "Binlog reader buffer size", "Accepted; the server logs transactions when they are committed, so none is rolled back in the log.", non_negative_int),
    prop("event.deserialization.failure.handling.mode", S, "fail", MED, WS, "Event deserialization failure handling", "Old name of event.processing.failure.handling.mode.", values=("warn", "fail", "ignore", "skip")),
    prop("inconsistent.schema.handling.mode", S, "fail", MED, WS, "Inconsistent schema failure handling", "What to do with rows of a captured table whose structure is not known.", values=("warn", "fail", "ignore", "skip")),
    prop("gtid.source.filter.dml.events", B, "true", MED, WS, "Filter DML events", "Whether changes of servers that the GTID filter leaves out make no records."),
    prop("gtid.ignore.on.recovery", B, "false", LOW, WS, "Ignore GTID on recovery", "Whether a start uses file and position although GTIDs are known."),
    prop("gtid.source.includes", LIST, None, HIGH, WL, "Include GTID sources", "Regexes of the UUIDs of servers whose transactions count."),
    prop("gtid.source.excludes", S, None, MED, WL, "Exclude GTID sources", "Regexes of the UUIDs of servers whose transactions do not count.", not_beside("gtid.source.includes")),
    prop("sourceinfo.struct.maker", C, "io.debezium.connector.mysql.MySqlSourceInfoStructMaker", LOW, WM, "Source info struct maker class", "Accepted and not used."),
)  # fmt: skip

_LAYOUT = {
    "MySQL": [
        "topic.prefix",
        "database.hostname",
        "database.port",
        "database.user",
        "database.password",
        "database.query.timeout.ms",
        "database.initial.statements",
        "database.server.id",
        "database.server.id.offset",
        "database.ssl.keystore",
        "database.ssl.keystore.password",
        "database.ssl.truststore",
        "database.ssl.truststore.password",
        "database.jdbc.driver",
        "database.protocol",
        "database.ssl.mode",
    ],
    "Connector": [
        *DELIVERY,
        "skipped.operations",
        *SNAPSHOTS,
        "decimal.handling.mode",
        "snapshot.lock.timeout.ms",
        "connect.timeout.ms",
        "connect.keep.alive",
        "connect.keep.alive.interval.ms",
        "use.nongraceful.disconnect",
        "binlog.net.write.timeout",
        "binlog.net.read.timeout",
        "snapshot.mode",
        "snapshot.query.mode",
        "snapshot.query.mode.custom.name",
        "bigint.unsigned.handling.mode",
        "time.precision.mode",
        "enable.time.adjuster",
        "schema.name.adjustment.mode",
        "min.row.count.to.stream.results",
        "incremental.snapshot.chunk.size",
        "incremental.snapshot.allow.schema.changes",
        "snapshot.locking.mode",
        "ddl.parser.type",
        "value.consistency",
        "snapshot.locking.fallback",
    ],
    "History Storage": [
        "schema.history.internal",
        "schema.history.internal.skip.unparseable.ddl",
        "schema.history.internal.store.only.captured.tables.ddl",
        "schema.history.internal.store.only.captured.databases.ddl",
    ],
    "Events": [
        *RECORDS,
        "column.include.list",
        "column.exclude.list",
        "table.include.list",
        "table.exclude.list",
        *COLUMN_RULES,
        "include.schema.changes",
        *SOURCE_TYPES,
        "include.query",
        "table.ignore.builtin",
        "database.include.list",
        "database.exclude.list",
        "binlog.buffer.size",
        "event.deserialization.failure.handling.mode",
        "inconsistent.schema.handling.mode",
        "gtid.source.filter.dml.events",
        "gtid.ignore.on.recovery",
        "gtid.source.includes",
        "gtid.source.excludes",
        "sourceinfo.struct.maker",
    ],
}

PROPERTIES: Final = arrange((*COMMON, *_OWN), _LAYOUT)


def properties_of(connector: str) -> dict[str, Property]:
    """Of `mysql` or `mariadb`."""
    return MARIADB_PROPERTIES if connector == "mariadb" else PROPERTIES


def _of_mariadb() -> dict[str, Property]:
    """MySQL's but for the driver's and the parser's, with MariaDB's own modes (mysql.md §21; `MariaDbConnectorConfig.java`)."""
    own = {property_.key.name: property_ for property_ in _OWN if property_.key.name not in _NOT_OF_MARIADB}
    for property_ in _OF_MARIADB:
        own[property_.key.name] = property_
    layout = {
        "MariaDB" if group == "MySQL" else group: [name for name in names if name not in _NOT_OF_MARIADB]
        for group, names in _LAYOUT.items()
    }
    return arrange((*COMMON, *own.values()), layout)


_NOT_OF_MARIADB: Final = ("database.jdbc.driver", "database.protocol", "ddl.parser.type")
_OF_MARIADB: Final = (
    prop("database.ssl.mode", S, "disable", MED, WM, "SSL mode", "Whether connections are encrypted, and whose certificate is accepted.", values=("disable", "trust", "verify-ca", "verify-full")),
    prop("snapshot.locking.mode", S, "minimal", LOW, WS, "Snapshot locking mode", "How long a snapshot keeps others from writing.", _locking_mode, values=("custom", "minimal", "extended", "none")),
    prop("sourceinfo.struct.maker", C, "io.debezium.connector.mariadb.MariaDbSourceInfoStructMaker", LOW, WM, "Source info struct maker class", "Accepted and not used."),
    prop("gtid.source.includes", LIST, None, HIGH, WL, "Include GTID sources", "Regexes of the sources, as domain-server, whose transactions count."),
    prop("gtid.source.excludes", S, None, MED, WL, "Exclude GTID sources", "Regexes of the sources, as domain-server, whose transactions do not count.", not_beside("gtid.source.includes")),
)  # fmt: skip
MARIADB_PROPERTIES: Final = _of_mariadb()
#: MariaDB's TLS modes by the names of MySQL's.
_TLS_MODES: Final = {"disable": "disabled", "trust": "required", "verify-ca": "verify_ca", "verify-full": "verify_identity"}

_OLD_NAMES: Final = {
    **{old: new for old, new in OLD_NAMES.items() if old != "event.deserialization.failure.handling.mode"},
    "database.history": "schema.history.internal",
    "gtid.new.channel.position": "gtid.source.includes",
}
_KEY_PASSWORD: Final = "database.ssl.keystore.password"  # noqa: S105  # a name
_OLD_HISTORY: Final = "database.history."
_OVERRIDES: Final = "snapshot.select.statement.overrides"
_HISTORY: Final = "schema.history.internal."
_OLD_MODES: Final = {"never": "never", "schema_only": "no_data", "schema_only_recovery": "recovery"}
_KAFKA_HISTORY: Final = ("io.debezium.storage.kafka.history.KafkaSchemaHistory", "io.debezium.relational.history.KafkaDatabaseHistory")


def present_config(config: Config) -> tuple[dict[str, str | None], list[str]]:
    """The configuration in present names and modes, and a warning for each that was old."""
    renamed = {
        f"{_HISTORY}{name.removeprefix(_OLD_HISTORY)}" if name.startswith(_OLD_HISTORY) else name: text for name, text in config.items()
    }
    present, warnings = with_present_names(renamed, _OLD_NAMES)
    warnings += [
        f"'{name}' is the old name of '{_HISTORY}{name.removeprefix(_OLD_HISTORY)}'" for name in config if name.startswith(_OLD_HISTORY)
    ]
    mode = (present.get("snapshot.mode") or "").strip().lower()
    if mode in _OLD_MODES and _OLD_MODES[mode] != mode:
        present["snapshot.mode"] = _OLD_MODES[mode]
        warnings.append(f"snapshot.mode '{mode}' is the old name of '{_OLD_MODES[mode]}'")
    return present, warnings


def validate_config(config: Config, connector: str = "mysql") -> list[ConfigValue]:
    """Every property's value and problems, without asking the server. Does not raise."""
    present = present_config(config)[0]
    found = [*validate(properties_of(connector), present), *validate_own(present)]
    add_problems(found, plugin_problems(present, reselects=False))
    return found


@dataclass(frozen=True)
class MySqlConfig(ParsedConfig):
    """A valid configuration, parsed. `raw` has the present names and every default that is a text.

    Attributes:
        connector: `mysql` or `mariadb`, as records show it.
    """

    raw: Mapping[str, str]
    connector: str
    topic_prefix: str
    connection: ConnectionSettings
    server_id: int
    snapshot_mode: MySqlMode
    filters: TableFilters
    keys: KeyRules
    values: ValueOptions
    column_rules: ColumnRules
    gtid_sources: NameFilter
    skipped: frozenset[str]
    signal_table: TableId | None = None
    converters: CustomConverters = field(default_factory=CustomConverters)
    version: str = VERSION

    @property
    def skips_unchanged(self) -> bool:
        """`skip.messages.without.change`."""
        return self.choice("skip.messages.without.change") == "true"

    @property
    def log_timeouts(self) -> dict[str, int]:
        """`binlog.net.write.timeout` and `binlog.net.read.timeout`, where they are given, by the server's names."""
        seconds = {f"net_{side}_timeout": self.number(f"binlog.net.{side}.timeout") for side in ("write", "read")}
        return {name: value for name, value in seconds.items() if value > 0}

    @property
    def read_only(self) -> bool:
        """`read.only`: nothing is written to the server, not even watermarks."""
        return self.choice("read.only") == "true"

    @property
    def statements(self) -> dict[str, str]:
        """`snapshot.select.statement.overrides`: statements by the names of the tables that they are read in place of."""
        names = [part.strip() for part in self.raw.get(_OVERRIDES, "").split(",") if part.strip()]
        return {name: statement for name in names if (statement := self.raw.get(f"{_OVERRIDES}.{name}"))}

    @property
    def history_topic(self) -> str:
        """Topic of the schema history."""
        return self.raw[f"{_HISTORY}kafka.topic"].strip()

    @property
    def history_client(self) -> dict[str, str]:
        """Client properties of the schema history's topic."""
        client = {"bootstrap.servers": self.raw[f"{_HISTORY}kafka.bootstrap.servers"]}
        for role in ("consumer.", "producer."):
            prefix = _HISTORY + role
            client |= {name.removeprefix(prefix): text for name, text in self.raw.items() if name.startswith(prefix)}
        return client


def parse_config(config: Config, connector: str = "mysql") -> MySqlConfig:
    """Parse what the task is given; old names are logged as warnings.

    Raises:
        ConfigError: with every problem.
    """
    present, warnings = present_config(config)
    for warning in warnings:
        log.warning(warning)
    problems = [error for value in validate_config(present, connector) for error in value.errors]
    problems += [
        f"The '{name}' value is invalid: custom needs a Java class and is not supported"
        for name in ("snapshot.query.mode", "snapshot.locking.mode")
        if (present.get(name) or "").strip().lower() == "custom"
    ]
    problems += _history_problems(present)
    if problems:
        task = "MariaDbConnectorTask" if connector == "mariadb" else "MySqlConnectorTask"
        raise ConfigError(f"Error configuring an instance of {task}: " + " ".join(problems))
    raw = with_defaults(properties_of(connector), present)
    mode = raw["snapshot.mode"].strip().lower()
    _warn_of_unbuilt(raw)
    signal_tables = [part.strip() for part in raw.get("signal.data.collection", "").split(",") if part.strip()]
    return MySqlConfig(
        raw=raw,
        connector=connector,
        topic_prefix=raw["topic.prefix"].strip(),
        connection=_settings(raw),
        server_id=int(raw["database.server.id"]),
        snapshot_mode=_snapshot_mode(mode, raw),
        filters=TableFilters(
            schemas=NameFilter.parse(raw.get("database.include.list"), raw.get("database.exclude.list")),
            tables=NameFilter.parse(raw.get("table.include.list"), raw.get("table.exclude.list")),
            columns=NameFilter.parse(raw.get("column.include.list"), raw.get("column.exclude.list")),
            snapshot=NameFilter.parse(raw.get("snapshot.include.collection.list"), None),
            is_system=is_system_table if raw["table.ignore.builtin"].strip().lower() == "true" else lambda _: False,
            forced=frozenset(signal_tables),
        ),
        keys=KeyRules.parse(raw.get("message.key.columns")),
        values=ValueOptions.from_config(raw),
        column_rules=ColumnRules.parse(raw),
        converters=CustomConverters.parse(raw),
        gtid_sources=NameFilter.parse(raw.get("gtid.source.includes"), raw.get("gtid.source.excludes")),
        skipped=skipped_operations(raw),
        signal_table=_table_id(signal_tables[0]) if signal_tables else None,
    )


def _table_id(name: str) -> TableId:
    """`db.table`; the reference cuts at the first point too."""
    schema, _, table = name.replace("`", "").partition(".")
    return TableId(schema, table)


def _snapshot_mode(name: str, raw: Mapping[str, str]) -> MySqlMode:
    if name == "custom":
        return of_custom(custom(raw.get("snapshot.mode.custom.name", ""), raw))
    return configuration_based(raw) if name == "configuration_based" else MODES[name]


def _warn_of_unbuilt(raw: Mapping[str, str]) -> None:
    """Properties whose work is not done by this connector yet: nobody shall wait for it."""
    if raw["event.processing.failure.handling.mode"].strip().lower() != "fail":
        log.warning("event.processing.failure.handling.mode: an event that cannot be decoded fails the task whatever it says")


def is_system_table(table: TableId) -> bool:
    """Tables of the server's own databases."""
    return table.schema.lower() in SYSTEM_DATABASES


def _history_problems(config: Config) -> list[str]:
    kind = (config.get("schema.history.internal") or _KAFKA_HISTORY[0]).strip()
    if kind not in _KAFKA_HISTORY:
        return [f"The 'schema.history.internal' value is invalid: {kind} is not built; use {_KAFKA_HISTORY[0]}"]
    return [
        f"The '{_HISTORY}{name}' value is invalid: A value is required"
        for name in ("kafka.topic", "kafka.bootstrap.servers")
        if not (config.get(_HISTORY + name) or "").strip()
    ]


def _settings(raw: Mapping[str, str]) -> ConnectionSettings:
    password, key_password = raw.get("database.password"), raw.get(_KEY_PASSWORD)
    return ConnectionSettings(
        host=raw["database.hostname"].strip(),
        port=int(raw["database.port"]),
        user=raw["database.user"].strip(),
        password=None if password is None else parse_value("database.password", password, ConfigType.PASSWORD),
        connect_timeout=int(raw["connect.timeout.ms"]) / 1000,
        ssl_mode=_TLS_MODES.get(mode := raw["database.ssl.mode"].strip().lower(), mode),
        ssl_ca=raw.get("database.ssl.truststore"),
        ssl_cert=raw.get("database.ssl.keystore"),
        ssl_key=raw.get("database.ssl.keystore"),
        ssl_key_password=None if key_password is None else parse_value(_KEY_PASSWORD, key_password, ConfigType.PASSWORD),
    )


__all__ = ["PROPERTIES", "VERSION", "MySqlConfig", "parse_config", "present_config", "validate_config"]
