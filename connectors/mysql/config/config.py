"""The connector's configuration as it is used (`MySqlConnectorConfig.java`); `properties.py` defines the properties.

`MySqlMode` says when a start reads structures, when it reads rows, and whether changes are streamed (`snapshot.mode`).
`ConnectionSettings` says how to reach the server; it can be held without the driver.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from connect_py.api import Password
from connect_py.api.config import ConfigType, ConfigValue, parse_value
from connect_py.errors import ConfigError, FatalTaskError
from connectors.engine.config import OLD_NAMES, ParsedConfig, skipped_operations, with_defaults, with_present_mode, with_present_names
from connectors.engine.plugins.custom_converters import CustomConverters
from connectors.engine.plugins.post_processors import Reselect, add_problems, plugin_problems
from connectors.engine.properties import Config, validate, warn_of_unused
from connectors.engine.relational.column_rules import ColumnRules
from connectors.engine.relational.tables import KeyRules, NameFilter, TableFilters, TableId, parse_regexes
from connectors.engine.snapshot.modes import SnapshotMode, StoredPosition, custom
from connectors.engine.topic_naming import DATABASE_STRATEGY
from connectors.mysql.config.properties import EXTENSIONS, MARIADB_PROPERTIES, PROPERTIES, UNLISTED, WITHOUT_EFFECT, properties_of
from connectors.mysql.config.value_options import ValueOptions

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MySqlMode:
    """One mode.

    Attributes:
        data: what must be stored for rows to be read.
        schema: the same for structures; a start that reads rows reads structures first.
        streams: whether changes are followed afterwards.
        when_position_lost: rows are read when the server no longer has the log of the stored position; otherwise that fails the task.
        keeps_position: streaming resumes from the stored position, not from the snapshot's.
        when_history_lost: structures are read when the schema history is lost, and streaming resumes from the stored position; otherwise
            that fails the task.
    """

    name: str
    data: frozenset[StoredPosition]
    schema: frozenset[StoredPosition]
    streams: bool = True
    when_position_lost: bool = False
    keeps_position: bool = False
    when_history_lost: bool = False

    def reads_data(self, stored: StoredPosition) -> bool:
        """Return whether a start with this stored position reads rows."""
        return stored in self.data

    def reads_schema(self, stored: StoredPosition) -> bool:
        """Return whether a start with this stored position reads structures.

        Raises:
            FatalTaskError: an unfinished snapshot is stored and the mode takes none.
        """
        if stored is StoredPosition.UNFINISHED_SNAPSHOT and stored not in self.data | self.schema:
            raise FatalTaskError(
                "The connector previously stopped while taking a snapshot, but now the connector is configured to never allow "
                "snapshots. Reconfigure the connector to use snapshots initially or when needed."
            )
        return stored in self.data | self.schema


_EVER: Final = frozenset(StoredPosition)
_NEW: Final = frozenset({StoredPosition.NONE, StoredPosition.UNFINISHED_SNAPSHOT})
_NEVER: Final[frozenset[StoredPosition]] = frozenset()

MODES: Final = {
    mode.name: mode
    for mode in (
        MySqlMode("always", _EVER, _EVER),
        MySqlMode("initial", _NEW, _NEW),
        MySqlMode("initial_only", _NEW, _NEW, streams=False),
        MySqlMode("no_data", _NEVER, _NEW),
        MySqlMode("recovery", _NEVER, _EVER, keeps_position=True, when_history_lost=True),
        MySqlMode("when_needed", _NEW, _NEW, when_position_lost=True),
    )
}


def configuration_based(raw: Mapping[str, str]) -> MySqlMode:
    """Return the mode `configuration_based`: the properties decide at every start, whatever is stored."""

    def says(name: str) -> bool:
        return raw.get(f"snapshot.mode.configuration.based.{name}", "false").strip().lower() == "true"

    data, schema = says("snapshot.data"), says("snapshot.schema")
    return MySqlMode(
        "configuration_based",
        _EVER if data else _NEVER,
        _EVER if data or schema else _NEVER,
        streams=says("start.stream"),
        when_position_lost=says("snapshot.on.data.error"),
        when_history_lost=says("snapshot.on.schema.error"),
    )


def of_custom(mode: SnapshotMode) -> MySqlMode:
    """Return a mode that an installed package adds (`snapshot.mode=custom`); where rows are read, structures are."""
    stored = {
        StoredPosition.NONE: mode.without_offset,
        StoredPosition.UNFINISHED_SNAPSHOT: mode.when_unfinished,
        StoredPosition.STREAMING: mode.when_finished,
    }
    data = frozenset(position for position, wanted in stored.items() if wanted)
    return MySqlMode(mode.name, data, data | _NEW, streams=mode.streams, when_position_lost=mode.when_position_lost)


@dataclass(frozen=True)
class ConnectionSettings:
    """How to reach the server. Never printed.

    Attributes:
        connect_timeout: seconds.
        query_timeout: seconds that one statement may take until its answer begins; 0 is unlimited.
        ssl_mode: ``database.ssl.mode`` in lower case, with `_`.
        ssl_ca: a PEM file or PKCS #12 store of certificates to trust, which ssl_ca_password opens; None trusts the system's.
        allows_public_key: Connector/J's ``allowPublicKeyRetrieval``, see `connectors.mysql.server.connection`.
        ssl_cert: such a file or store with our own certificate and its key, which ssl_cert_password opens.
    """

    host: str
    port: int
    user: str
    password: Password | None
    connect_timeout: float = 30.0
    query_timeout: float = 0.0
    ssl_mode: str = "preferred"
    ssl_ca: str | None = None
    ssl_ca_password: Password | None = None
    ssl_cert: str | None = None
    ssl_cert_password: Password | None = None
    allows_public_key: bool = False


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """Heartbeats distinguish a server with nothing to send from one that is gone, since nothing reports that a connection is half open.

    Attributes:
        period: seconds after which a server without events is asked to send a heartbeat.
        limit: seconds for which nothing may arrive; None is unlimited.
    """

    period: float = 10.0
    limit: float | None = 60.0


USUAL_HEARTBEATS: Final = Heartbeats()
_SHORTEST_PERIOD = 0.1


def heartbeats_within(interval: float, *, limited: bool) -> Heartbeats:
    """Return at least three heartbeats in the given seconds, at most ten seconds apart; `limited`: nothing may be missing for longer than
    that."""
    period = max(min(USUAL_HEARTBEATS.period, interval / 3), _SHORTEST_PERIOD)
    return Heartbeats(period, max(interval, 3 * period) if limited else None)


#: The release whose records these are; shown in `source.version` and as the plug-in's version.
VERSION: Final = "3.6.1.Final"
SYSTEM_DATABASES: Final = frozenset({"mysql", "performance_schema", "sys", "information_schema"})


#: MariaDB's TLS modes by the names of MySQL's.
_TLS_MODES: Final = {"disable": "disabled", "trust": "required", "verify-ca": "verify_ca", "verify-full": "verify_identity"}

_OLD_NAMES: Final = {
    **{old: new for old, new in OLD_NAMES.items() if old != "event.deserialization.failure.handling.mode"},
    "database.history": "schema.history.internal",
    "gtid.new.channel.position": "gtid.source.includes",
}
_OLD_HISTORY: Final = "database.history."
_OVERRIDES: Final = "snapshot.select.statement.overrides"
_HISTORY: Final = "schema.history.internal."
#: `never` read the log from its beginning; the structures that this needs are those of the present, as of `no_data`.
_OLD_MODES: Final = {"never": "no_data", "schema_only": "no_data", "schema_only_recovery": "recovery"}
_KAFKA_HISTORY: Final = ("io.debezium.storage.kafka.history.KafkaSchemaHistory", "io.debezium.relational.history.KafkaDatabaseHistory")


def present_config(config: Config) -> tuple[dict[str, str | None], list[str]]:
    """Return the configuration in current names and modes, and a warning for each that was old."""
    renamed = {
        name.replace(_OLD_HISTORY, _HISTORY, 1) if name.removeprefix("internal.").startswith(_OLD_HISTORY) else name: text
        for name, text in config.items()
    }
    present, warnings = with_present_names(renamed, _OLD_NAMES)
    warnings += [
        f"'{name}' is the old name of '{_HISTORY}{name.removeprefix(_OLD_HISTORY)}'" for name in config if name.startswith(_OLD_HISTORY)
    ]
    return present, warnings + with_present_mode(present, _OLD_MODES)


def validate_config(config: Config, connector: str = "mysql") -> list[ConfigValue]:
    """Return every property's value and problems, without asking the server. Does not raise."""
    present = present_config(config)[0]
    found = validate(properties_of(connector), present)
    found += validate({name: known for name, known in {**UNLISTED, **EXTENSIONS}.items() if name in present}, present)
    add_problems(found, plugin_problems(present, reselects=True))
    return found


#: Connector/J's property, under either of the prefixes by which Debezium passes it on.
_PUBLIC_KEY: Final = ("driver.allowPublicKeyRetrieval", "database.allowPublicKeyRetrieval")


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
    reselect: Reselect | None = None
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
    def heartbeats(self) -> Heartbeats:
        """`connect.keep.alive` and its interval."""
        return heartbeats_within(self.number("connect.keep.alive.interval.ms") / 1000, limited=self.flag("connect.keep.alive"))

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
    def unread_statements(self) -> tuple[re.Pattern[str], ...]:
        """`schema.history.internal.ddl.filter`: statements that are neither read nor kept, in addition to those that never are.

        Debezium puts ``internal.`` before that name (`SchemaHistory.DDL_FILTER`); both count.
        """
        filters = [self.raw.get(f"{prefix}{_HISTORY}ddl.filter") for prefix in ("", "internal.")]
        found = [each for text in filters for each in parse_regexes(text)]
        return tuple(re.compile(each.pattern, each.flags | re.DOTALL) for each in found)

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
    warn_of_unused(WITHOUT_EFFECT, properties_of(connector), present)
    raw = with_defaults({**properties_of(connector), **UNLISTED, **EXTENSIONS}, {"topic.naming.strategy": DATABASE_STRATEGY, **present})
    mode = raw["snapshot.mode"].strip().lower()
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
        reselect=Reselect.parse(raw),
        gtid_sources=NameFilter.parse(raw.get("gtid.source.includes"), raw.get("gtid.source.excludes")),
        skipped=skipped_operations(raw),
        signal_table=_table_id(signal_tables[0]) if signal_tables else None,
    )


def _table_id(name: str) -> TableId:
    """Parse `db.table`; Debezium splits at the first point too."""
    schema, _, table = name.replace("`", "").partition(".")
    return TableId(schema, table)


def _snapshot_mode(name: str, raw: Mapping[str, str]) -> MySqlMode:
    if name == "custom":
        return of_custom(custom(raw.get("snapshot.mode.custom.name", ""), raw))
    return configuration_based(raw) if name == "configuration_based" else MODES[name]


def is_system_table(table: TableId) -> bool:
    """Return tables of the server's own databases."""
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
    def secret(name: str) -> Password | None:
        text = raw.get(name)
        return None if text is None else parse_value(name, text, ConfigType.PASSWORD)

    return ConnectionSettings(
        host=raw["database.hostname"].strip(),
        port=int(raw["database.port"]),
        user=raw["database.user"].strip(),
        password=secret("database.password"),
        connect_timeout=int(raw["connect.timeout.ms"]) / 1000,
        query_timeout=max(0, int(raw["database.query.timeout.ms"])) / 1000,
        ssl_mode=_TLS_MODES.get(mode := raw["database.ssl.mode"].strip().lower(), mode),
        ssl_ca=raw.get("database.ssl.truststore"),
        ssl_ca_password=secret("database.ssl.truststore.password"),
        ssl_cert=raw.get("database.ssl.keystore"),
        ssl_cert_password=secret("database.ssl.keystore.password"),
        allows_public_key=any(raw[name].strip().lower() == "true" for name in _PUBLIC_KEY),
    )


__all__ = ["MARIADB_PROPERTIES", "PROPERTIES", "VERSION", "MySqlConfig", "parse_config", "present_config", "validate_config"]
