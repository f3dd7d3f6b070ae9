"""Properties of the PostgreSQL connector (postgres.md §2), and their parsed form."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from connect_py.api import ConfigType, ConfigValue, Password
from connect_py.api.config import parse_value
from connect_py.errors import ConfigError
from connectors.engine.config import COMMON, OLD_NAMES, ParsedConfig, skipped_operations, with_defaults, with_present_names
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
    N,
    P,
    S,
    arrange,
    is_boolean,
    is_int,
    more_than_zero,
    non_negative_long,
    not_beside,
    positive_int,
    prop,
    regexes,
    required,
    validate,
)
from connectors.engine.relational.column_rules import ColumnRules
from connectors.engine.relational.filters import NameFilter, TableFilters
from connectors.engine.relational.keys import KeyRules
from connectors.engine.relational.table import TableId
from connectors.engine.snapshot.modes import MODES, SnapshotMode, configuration_based, custom
from connectors.postgres.settings import ConnectionSettings
from connectors.postgres.values import ValueOptions

log = logging.getLogger(__name__)

#: The release whose records these are; shown in `source.version` and as the plug-in's version.
VERSION: Final = "3.6.1.Final"

_SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}")
_IDENTITY_ENTRY = r"^\s*([^\s:]+):(DEFAULT|FULL|NOTHING|INDEX [^:]+)\s*$"


def _slot_name(text: str | None, _: Config) -> str | None:
    if text is None or _SLOT_NAME.fullmatch(text.strip()):
        return None
    return "Valid replication slot name must contain only digits, lowercase characters and underscores with length <= 63"


def _plugin(text: str | None, _: Config) -> str | None:
    if text is not None and text.strip().lower() == "decoderbufs":
        return "decoderbufs is not supported here; set plugin.name=pgoutput, which is part of PostgreSQL since version 10 and needs nothing installed"
    return None


#: As Debezium's message shows it.
_SHOWN_IDENTITY_ENTRY = r"(?i)^\s*(?<tablepredicate>[^\s:]+):(?<replicaidentity>DEFAULT|(INDEX) (?<indexname>.\w*)|FULL|NOTHING)\s*$"


def _replica_identities(text: str | None, _: Config) -> str | None:
    if text is None:
        return None
    if not text.strip():
        return "Must not be empty"
    for entry in text.split(","):
        if not re.match(_IDENTITY_ENTRY, entry, re.IGNORECASE):
            return f"{entry} has an invalid format (expecting '{_SHOWN_IDENTITY_ENTRY}')"
    return None


_OWN = (
    prop("database.port", I, "5432", HIGH, WS, "Port", "Port of the database server.", is_int),
    prop("database.dbname", S, None, HIGH, WM, "Database", "The database whose changes are captured.", required),
    prop("plugin.name", S, "pgoutput", MED, WM, "Plugin", "The server's decoding plug-in. Always pgoutput here.", _plugin, values=("decoderbufs", "pgoutput")),
    prop("slot.name", S, "debezium", MED, WM, "Slot", "Replication slot of this connector; created when it is missing. One connector a slot.", _slot_name),
    prop("publication.name", S, "dbz_publication", MED, WM, "Publication", "Publication that says which tables' changes the server sends."),
    prop("publication.autocreate.mode", S, "all_tables", MED, WM, "Publication Auto Create Mode", "Whether a missing publication is made: for all tables, for the captured ones (filtered), without tables, or not (disabled).", values=("no_tables", "filtered", "disabled", "all_tables")),
    prop("replica.identity.autoset.values", S, None, MED, WL, "Replica Identity Auto Set Values", "Replica identities to set: `<table regex>:<DEFAULT|FULL|NOTHING|INDEX name>`, comma-separated.", _replica_identities),
    prop("slot.drop.on.stop", B, "false", MED, N, "Drop slot on stop", "Whether an orderly stop drops the slot. Changes made while stopped are then lost."),
    prop("slot.failover", B, "false", MED, N, "Create failover slot", "Whether the slot is made to survive a fail-over (server version 17 and later)."),
    prop("slot.stream.params", S, None, LOW, WL, "Optional parameters to pass to the logical decoder when the stream is started.", "More options of the plug-in: `name=value`, joined by semicolons."),
    prop("database.initial.statements", S, None, LOW, WL, "Initial statements", "SQL that each ordinary connection runs first, separated by semicolons."),
    prop("database.sslmode", S, "prefer", MED, WM, "SSL mode", "libpq's sslmode.", values=("allow", "prefer", "disable", "verify-ca", "require", "verify-full")),
    prop("database.sslcert", S, None, MED, WL, "SSL Client Certificate", "File of the client's certificate."),
    prop("database.sslpassword", P, None, MED, WM, "SSL Client Key Password", "Password of the client's key."),
    prop("database.sslrootcert", S, None, MED, WL, "SSL Root Certificate", "File of the authorities' certificates."),
    prop("database.sslkey", S, None, MED, WL, "SSL Client Key", "File of the client's key (PEM)."),
    prop("slot.max.retries", I, "6", LOW, N, "Retry count", "How often a slot that is in use is tried again.", is_int),
    prop("slot.retry.delay.ms", L, "10000", LOW, N, "Retry delay", "Longest pause between those tries, in ms; the first ones come sooner.", is_int, more_than_zero),
    prop("database.sslfactory", S, None, MED, WL, "SSL Root Certificate", "A Java class; accepted and not used."),
    prop("status.update.interval.ms", I, "10000", MED, WS, "Status update interval (ms)", "How often the server hears that we are alive, in ms.", positive_int),
    prop("lsn.flush.timeout.ms", L, "30000", MED, WS, "LSN flush timeout (ms)", "How long a confirmation to the server may take, in ms.", positive_int),
    prop("lsn.flush.timeout.action", S, "fail", MED, WM, "LSN flush timeout action", "What to do when it takes longer.", values=("fail", "warn", "ignore")),
    prop("database.tcpKeepAlive", B, "true", MED, WS, "TCP keep-alive probe", "Whether TCP probes idle connections.", is_boolean),
    prop("xmin.fetch.interval.ms", L, "0", MED, WS, "Xmin fetch interval (ms)", "How often the slot's xmin is read for `source.xmin`, in ms; 0 is never.", non_negative_long),
    prop("lsn.flush.mode", S, None, LOW, WS, "LSN flush mode", "Who confirms positions to the server: connector, connector_and_driver or manual.", values=("connector_and_driver", "connector", "manual")),
    prop("flush.lsn.source", B, "true", LOW, WS, "Boolean to determine if Debezium should flush LSN in the source database", "Old form of lsn.flush.mode: false is manual.", is_boolean),
    prop("memory.management.schemas.class", C, "io.debezium.relational.ConcurrentMapTableMappingStorage", LOW, WL, "Schema storage class", "Accepted and not used."),
    prop("memory.management.tables.class", C, "io.debezium.relational.ConcurrentMapTableMappingStorage", LOW, WL, "Table storage class", "Accepted and not used."),
    prop("snapshot.mode", S, "initial", MED, WS, "Snapshot mode", "When the present rows are read: initial, initial_only, no_data, always, when_needed, configuration_based.", values=("always", "initial_only", "configuration_based", "when_needed", "initial", "custom", "no_data")),
    prop("snapshot.isolation.mode", S, "serializable", LOW, WS, "Snapshot isolation mode", "Accepted; a snapshot is always one REPEATABLE READ transaction.", values=("read_uncommitted", "repeatable_read", "read_committed", "serializable")),
    prop("snapshot.locking.mode", S, "none", LOW, WS, "Snapshot locking mode", "Whether a snapshot locks its tables.", values=("shared", "custom", "none")),
    prop("hstore.handling.mode", S, "json", LOW, WM, "HStore Handling", "How hstore columns look.", values=("json", "map")),
    prop("interval.handling.mode", S, "numeric", LOW, WM, "Interval Handling", "How intervals look.", values=("string", "numeric")),
    prop("schema.refresh.mode", S, "columns_diff", MED, WS, "Schema refresh mode", "Accepted; pgoutput tells of every change of structure.", values=("columns_diff", "columns_diff_exclude_unchanged_toast")),
    prop("message.prefix.include.list", LIST, None, MED, WL, "Include Logical Decoding Message Prefixes", "Regexes of the prefixes of logical messages to capture.", regexes),
    prop("message.prefix.exclude.list", LIST, None, MED, WL, "Exclude Logical Decoding Message Prefixes", "Regexes of the prefixes to leave out.", regexes, not_beside("message.prefix.include.list")),
    prop("publish.via.partition.root", B, "false", MED, WS, "Publish via partition root", "Whether a publication made here sends partitions' changes as the root table's.", is_boolean),
    prop("include.unknown.datatypes", B, "false", MED, WS, "Include unknown datatypes", "Whether columns of unknown types appear, as binary."),
    prop("sourceinfo.struct.maker", C, "io.debezium.connector.postgresql.PostgresSourceInfoStructMaker", LOW, WM, "Source info struct maker class", "Accepted and not used."),
)  # fmt: skip

_LAYOUT = {
    "Postgres": [
        "topic.prefix",
        "database.hostname",
        "database.port",
        "database.user",
        "database.password",
        "database.dbname",
        "database.query.timeout.ms",
        "plugin.name",
        "slot.name",
        "publication.name",
        "publication.autocreate.mode",
        "replica.identity.autoset.values",
        "slot.drop.on.stop",
        "slot.failover",
        "slot.stream.params",
        "database.initial.statements",
        "database.sslmode",
        "database.sslcert",
        "database.sslpassword",
        "database.sslrootcert",
        "database.sslkey",
        "slot.max.retries",
        "slot.retry.delay.ms",
        "database.sslfactory",
        "status.update.interval.ms",
        "lsn.flush.timeout.ms",
        "lsn.flush.timeout.action",
        "database.tcpKeepAlive",
        "xmin.fetch.interval.ms",
        "skipped.operations",
        "lsn.flush.mode",
        "flush.lsn.source",
    ],
    "Connector": [
        "event.processing.failure.handling.mode",
        "max.batch.size",
        "max.queue.size",
        "poll.interval.ms",
        "max.queue.size.in.bytes",
        "provide.transaction.metadata",
        "snapshot.delay.ms",
        "streaming.delay.ms",
        "snapshot.include.collection.list",
        "snapshot.fetch.size",
        "snapshot.max.threads",
        "snapshot.max.threads.multiplier",
        "legacy.snapshot.max.threads",
        "snapshot.mode.custom.name",
        "snapshot.mode.configuration.based.snapshot.data",
        "snapshot.mode.configuration.based.snapshot.schema",
        "snapshot.mode.configuration.based.start.stream",
        "snapshot.mode.configuration.based.snapshot.on.schema.error",
        "snapshot.mode.configuration.based.snapshot.on.data.error",
        "retriable.restart.connector.wait.ms",
        "query.fetch.size",
        "errors.max.retries",
        "incremental.snapshot.watermarking.strategy",
        "connection.validation.timeout.ms",
        "executor.shutdown.timeout.ms",
        "extended.headers.enabled",
        "guardrail.collections.max",
        "guardrail.collections.limit.action",
        "custom.sanitize.pattern",
        "statistics.metrics.enabled",
        "decimal.handling.mode",
        "time.precision.mode",
        "snapshot.lock.timeout.ms",
        "memory.management.schemas.class",
        "memory.management.tables.class",
        "snapshot.mode",
        "snapshot.isolation.mode",
        "snapshot.query.mode",
        "snapshot.query.mode.custom.name",
        "snapshot.locking.mode.custom.name",
        "snapshot.locking.mode",
        "hstore.handling.mode",
        "binary.handling.mode",
        "schema.name.adjustment.mode",
        "interval.handling.mode",
        "schema.refresh.mode",
        "incremental.snapshot.chunk.size",
        "unavailable.value.placeholder",
        "message.prefix.include.list",
        "message.prefix.exclude.list",
        "publish.via.partition.root",
    ],
    "Events": [
        "converters",
        "post.processors",
        "tombstones.on.delete",
        "heartbeat.interval.ms",
        "heartbeat.topics.prefix",
        "signal.data.collection",
        "signal.poll.interval.ms",
        "signal.enabled.channels",
        "topic.naming.strategy",
        "notification.enabled.channels",
        "notification.sink.topic.name",
        "transaction.metadata.factory",
        "custom.metric.tags",
        "column.include.list",
        "column.exclude.list",
        "table.include.list",
        "table.exclude.list",
        "table.ignore.builtin",
        "schema.include.list",
        "schema.exclude.list",
        "message.key.columns",
        "snapshot.select.statement.overrides",
        "column.mask.hash.([^.]+).with.salt.(.+)",
        "column.mask.with.(d+).chars",
        "column.truncate.to.(d+).chars",
        "include.schema.comments",
        "column.propagate.source.type",
        "datatype.propagate.source.type",
        "snapshot.tables.order.by.row.count",
        "heartbeat.action.query",
        "include.unknown.datatypes",
        "sourceinfo.struct.maker",
    ],
}

PROPERTIES: Final = arrange((*COMMON, *_OWN), _LAYOUT)

_OLD_NAMES: Final = {**OLD_NAMES, "slot.drop_on_stop": "slot.drop.on.stop"}
_OLD_MODES: Final = {"never": "no_data", "schema_only": "no_data", "exported": "initial", "initial_schema_only": "no_data"}
#: Properties that libpq knows by another name.
_SSL = {"database.sslmode": "sslmode", "database.sslcert": "sslcert", "database.sslkey": "sslkey", "database.sslrootcert": "sslrootcert"}


def is_system_table(table: TableId) -> bool:
    """Tables that are never captured (postgres.md §1)."""
    schema = table.schema.lower()
    return schema in ("pg_catalog", "information_schema") or schema.startswith("pg_temp") or table.table == "spatial_ref_sys"


#: Properties that would change *what* is sent and are not built yet: refused, because leaving them out would send values that the user wants hidden,
#: rows that the user wants left out, or a form that nobody expects.
_REFUSED: Final = (
    (re.compile(r"converters"), "converters"),
    (re.compile(r"post\.processors"), "post.processors"),
)
#: Values that stand for such a thing.
_REFUSED_VALUES: Final = {"snapshot.query.mode": "custom", "snapshot.locking.mode": "custom"}
#: Properties that add something: a warning says that it is not there yet.
_NOT_YET: Final = {
    "skip.messages.without.change": "false",
    "snapshot.max.threads": "1",
    "snapshot.tables.order.by.row.count": "disabled",
    "xmin.fetch.interval.ms": "0",
}


def _refusals(config: Config) -> dict[str, str]:
    """Shown property → problem, for what is given and not built."""
    found = {}
    for name, text in config.items():
        for pattern, shown in _REFUSED:
            if text and pattern.fullmatch(name):
                found[shown] = (
                    f"{name} is not supported yet; without it the records would not be what you ask for, so the connector does not start"
                )
    for name, refused in _REFUSED_VALUES.items():
        if (config.get(name) or "").strip().lower() == refused:
            found[name] = f"{refused} needs a Java class and is not supported"
    return found


def present_config(config: Config) -> tuple[dict[str, str | None], list[str]]:
    """The configuration in present names and modes, and a warning for each that was old."""
    present, warnings = with_present_names(config, _OLD_NAMES)
    mode = (present.get("snapshot.mode") or "").strip().lower()
    if mode in _OLD_MODES:
        present["snapshot.mode"] = _OLD_MODES[mode]
        warnings.append(f"snapshot.mode '{mode}' is the old name of '{_OLD_MODES[mode]}'")
    return present, warnings


def validate_config(config: Config) -> list[ConfigValue]:
    """Every property's value and problems, without asking the server. Does not raise."""
    present = present_config(config)[0]
    found = validate(PROPERTIES, present)
    refused = _refusals(present)
    for value in found:
        if value.name in refused and not value.errors:
            value.errors.append(f"The '{value.name}' value is invalid: {refused[value.name]}")
    return found


@dataclass(frozen=True)
class PostgresConfig(ParsedConfig):
    """A valid configuration, parsed. `raw` has the present names and every default that is a text."""

    raw: Mapping[str, str]
    topic_prefix: str
    connection: ConnectionSettings
    slot: str
    publication: str
    publication_mode: str
    snapshot_mode: SnapshotMode
    filters: TableFilters
    message_prefixes: NameFilter
    keys: KeyRules
    values: ValueOptions
    column_rules: ColumnRules
    skipped: frozenset[str]
    skipped_explicitly: bool
    signal_table: TableId | None = None
    statements: Mapping[str, str] = field(default_factory=dict)
    version: str = VERSION

    @property
    def database(self) -> str:
        """`database.dbname`."""
        return self.connection.database

    @property
    def user(self) -> str:
        """`database.user`."""
        return self.connection.user

    @property
    def confirms_positions(self) -> bool:
        """Whether we tell the server what it may discard (`lsn.flush.mode` other than manual)."""
        mode = self.choice("lsn.flush.mode")
        return mode != "manual" if mode else self.flag("flush.lsn.source")


def parse_config(config: Config) -> PostgresConfig:
    """Parse what the task is given; old names are logged as warnings.

    Raises:
        ConfigError: with every problem.
    """
    present, warnings = present_config(config)
    for warning in warnings:
        log.warning(warning)
    for name, nothing in _NOT_YET.items():
        if (present.get(name) or nothing).strip().lower() != nothing:
            log.warning("%s=%s is accepted but not built yet: it has no effect", name, present[name])
    problems = [error for value in validate_config(present) for error in value.errors]
    if problems:
        raise ConfigError("Error configuring an instance of PostgresConnectorTask: " + " ".join(problems))
    raw = with_defaults(PROPERTIES, present)
    signal_tables = [part.strip() for part in raw.get("signal.data.collection", "").split(",") if part.strip()]
    return PostgresConfig(
        raw=raw,
        topic_prefix=raw["topic.prefix"].strip(),
        connection=_settings(raw),
        slot=raw["slot.name"].strip(),
        publication=raw["publication.name"].strip(),
        publication_mode=raw["publication.autocreate.mode"].strip().lower(),
        snapshot_mode=_snapshot_mode(raw),
        filters=TableFilters(
            schemas=NameFilter.parse(raw.get("schema.include.list"), raw.get("schema.exclude.list")),
            tables=NameFilter.parse(raw.get("table.include.list"), raw.get("table.exclude.list")),
            columns=NameFilter.parse(raw.get("column.include.list"), raw.get("column.exclude.list")),
            snapshot=NameFilter.parse(raw.get("snapshot.include.collection.list"), None),
            is_system=is_system_table,
            forced=frozenset(signal_tables),
        ),
        message_prefixes=NameFilter.parse(raw.get("message.prefix.include.list"), raw.get("message.prefix.exclude.list")),
        keys=KeyRules.parse(raw.get("message.key.columns")),
        values=ValueOptions.from_config(raw),
        column_rules=ColumnRules.parse(raw),
        skipped=skipped_operations(raw),
        skipped_explicitly=present.get("skipped.operations") is not None,
        signal_table=_table_id(signal_tables[0]) if signal_tables else None,
        statements=_statements(raw),
    )


def _table_id(text: str) -> TableId:
    """`schema.table`; a third part before them is the database."""
    parts = text.replace('"', "").split(".")
    if len(parts) < 2:
        raise ConfigError(f"'{text}' in signal.data.collection is not a table; write schema.table")
    return TableId(parts[-2], parts[-1])


def _statements(raw: Mapping[str, str]) -> dict[str, str]:
    """`snapshot.select.statement.overrides`: statements by the names of the tables that they are read in place of."""
    found = {}
    for table in filter(None, (part.strip() for part in raw.get("snapshot.select.statement.overrides", "").split(","))):
        statement = raw.get(f"snapshot.select.statement.overrides.{table}")
        if statement:
            found[table] = statement
        else:
            log.warning("snapshot.select.statement.overrides names %s, for which there is no statement: the whole table is read", table)
    return found


def _snapshot_mode(raw: Mapping[str, str]) -> SnapshotMode:
    name = raw["snapshot.mode"].strip().lower()
    if name == "configuration_based":

        def flag(suffix: str) -> bool:
            return raw[f"snapshot.mode.configuration.based.{suffix}"].strip().lower() == "true"

        return configuration_based(data=flag("snapshot.data"), streams=flag("start.stream"), on_data_error=flag("snapshot.on.data.error"))
    if name == "custom":
        return custom(raw["snapshot.mode.custom.name"].strip(), raw)
    if name not in MODES:
        raise ConfigError(f"Unable to find {name} snapshotter. Please check your configuration.")
    return MODES[name]


def _settings(raw: Mapping[str, str]) -> ConnectionSettings:
    more: list[tuple[str, str | Password]] = [(libpq, raw[name].strip()) for name, libpq in _SSL.items() if raw.get(name)]
    if raw.get("database.sslpassword"):
        more.append(("sslpassword", parse_value("database.sslpassword", raw["database.sslpassword"], ConfigType.PASSWORD)))
    if raw["database.tcpKeepAlive"].strip().lower() == "false":
        more.append(("keepalives", "0"))
    password = raw.get("database.password")
    return ConnectionSettings(
        host=raw["database.hostname"].strip(),
        port=int(raw["database.port"]),
        user=raw["database.user"].strip(),
        password=None if password is None else Password(password),
        database=raw["database.dbname"].strip(),
        more=tuple(more),
    )
