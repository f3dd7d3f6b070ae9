"""The configuration of the PostgreSQL connector in its parsed form, and what is refused of it.

`ConnectionSettings` holds libpq's parameters. No driver is needed for that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from connect_py.api import ConfigType, ConfigValue, Password
from connect_py.api.config import parse_value
from connect_py.errors import ConfigError
from connectors.engine.config import OLD_NAMES, ParsedConfig, skipped_operations, with_defaults, with_present_mode, with_present_names
from connectors.engine.plugins.custom_converters import CustomConverters
from connectors.engine.plugins.post_processors import Reselect, add_problems, plugin_problems
from connectors.engine.properties import Config, validate, warn_of_unused
from connectors.engine.relational.column_rules import ColumnRules
from connectors.engine.relational.tables import KeyRules, NameFilter, TableFilters, TableId
from connectors.engine.snapshot.modes import MODES, SnapshotMode, configuration_based, custom
from connectors.postgres.properties import EXTENSIONS, PROPERTIES, UNLISTED, WITHOUT_EFFECT
from connectors.postgres.types.columns import ValueOptions

log = logging.getLogger(__name__)


#: TCP connects that get no answer end after this; a firewall may drop packets.
CONNECT_TIMEOUT_SECONDS = 10
#: The connection ends when what was sent is not acknowledged for this long, and an idle one when the peer's machine does not answer probes
#: (sent after 20 s without traffic, then each 10 s) for as long: a failed-over server or a firewall that forgot the flow sends no reset.
TCP_TIMEOUT_MS = 60_000
#: A path that is no file: libpq then looks into no ~/.pgpass.
NO_PASSWORD_FILE = "/dev/null/none"  # noqa: S105  # a path
#: Text forms that the row encoders read; the timeouts of the role or database must not cut a long COPY; a watermark must be in the log when
#: its commit returns, because the stream waits for it (where commits are asynchronous it would wait 200 ms for the log's writer).
SESSION = (
    "-c DateStyle=ISO -c IntervalStyle=postgres -c TimeZone=UTC -c extra_float_digits=3 -c bytea_output=hex "
    "-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0 "
    "-c synchronous_commit=local"
)


@dataclass(frozen=True)
class ConnectionSettings:
    """How to reach the server: libpq's parameters. Never printed."""

    host: str
    port: int
    user: str
    password: Password | None
    database: str
    more: tuple[tuple[str, str | Password], ...] = field(default=())

    def conninfo(self, host: str, address: str, application: str, *, replication: bool = False) -> bytes:
        """Return the connection string; holds the password, which is given although there is none: libpq would look elsewhere for it.

        Args:
            host: the name, for certificates and messages.
            address: the number of the host, so that libpq does not look it up; it would block every thread.
        """
        parts: list[tuple[str, str]] = [
            ("host", host),
            ("hostaddr", address),
            ("port", str(self.port)),
            ("user", self.user),
            ("dbname", self.database),
            ("application_name", application),
            ("client_encoding", "UTF8"),
            ("options", SESSION),
            ("password", "" if self.password is None else self.password.reveal()),
            ("passfile", NO_PASSWORD_FILE),
            ("tcp_user_timeout", str(TCP_TIMEOUT_MS)),
            ("keepalives_idle", "20"),
            ("keepalives_interval", "10"),
            ("keepalives_count", "4"),
        ]
        if replication:
            parts.append(("replication", "database"))
        parts += [(name, value.reveal() if isinstance(value, Password) else value) for name, value in self.more]
        return " ".join(f"{name}='{_escaped(value)}'" for name, value in parts).encode()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


#: The release whose records these are; shown in `source.version` and as the plug-in's version.
VERSION: Final = "3.6.1.Final"

_OLD_NAMES: Final = {**OLD_NAMES, "slot.drop_on_stop": "slot.drop.on.stop"}
_OLD_MODES: Final = {"never": "no_data", "schema_only": "no_data", "exported": "initial", "initial_schema_only": "no_data"}
#: Properties that libpq knows by another name.
_SSL = {"database.sslmode": "sslmode", "database.sslcert": "sslcert", "database.sslkey": "sslkey", "database.sslrootcert": "sslrootcert"}


def is_system_table(table: TableId) -> bool:
    """Return whether a table is never captured."""
    schema = table.schema.lower()
    return schema in ("pg_catalog", "information_schema") or schema.startswith("pg_temp") or table.table == "spatial_ref_sys"


#: Values that would need a Java class: refused, because without it the records would not be what the user asks for.
REFUSED_VALUES: Final = {"snapshot.query.mode": "custom", "snapshot.locking.mode": "custom"}


def _refusals(config: Config) -> dict[str, str]:
    """Return shown property → problem: what is given and not there, and what is not installed or refuses its properties."""
    found = {}
    for name, refused in REFUSED_VALUES.items():
        if (config.get(name) or "").strip().lower() == refused:
            found[name] = f"{refused} needs a Java class and is not supported"
    return {**found, **plugin_problems(config, reselects=True)}


def present_config(config: Config) -> tuple[dict[str, str | None], list[str]]:
    """Return the configuration in present names and modes, and a warning for each that was old."""
    present, warnings = with_present_names(config, _OLD_NAMES)
    return present, warnings + with_present_mode(present, _OLD_MODES)


def validate_config(config: Config) -> list[ConfigValue]:
    """Return every property's value and problems, without asking the server. Does not raise."""
    present = present_config(config)[0]
    found = validate(PROPERTIES, present)
    found += validate({name: known for name, known in {**UNLISTED, **EXTENSIONS}.items() if name in present}, present)
    add_problems(found, _refusals(present))
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
    converters: CustomConverters = field(default_factory=CustomConverters)
    reselect: Reselect | None = None
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
    def signal_operations(self) -> frozenset[str]:
        """Operations on the signal table that the stream has to show, whatever `skipped.operations` leaves out."""
        if self.signal_table is None:
            return frozenset()
        return frozenset("cd" if self.deletes_close_windows else "c")

    @property
    def offset_mismatch_strategy(self) -> str:
        """`offset.mismatch.strategy`; an unknown name trusts the offset, as in Debezium."""
        found = self.choice("offset.mismatch.strategy")
        return "trust_offset" if found == "no_validation" and self.flag("slot.seek.to.known.offset.on.start") else found

    @property
    def confirms_positions(self) -> bool:
        """Whether we confirm to the server what it may discard (`lsn.flush.mode` other than manual)."""
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
    warn_of_unused(WITHOUT_EFFECT, {**PROPERTIES, **UNLISTED}, present)
    problems = [error for value in validate_config(present) for error in value.errors]
    if problems:
        raise ConfigError("Error configuring an instance of PostgresConnectorTask: " + " ".join(problems))
    raw = with_defaults({**PROPERTIES, **UNLISTED, **EXTENSIONS}, present)
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
        converters=CustomConverters.parse(raw),
        reselect=Reselect.parse(raw),
    )


def _table_id(text: str) -> TableId | None:
    """Parse `schema.table`; a third part before them is the database."""
    parts = text.replace('"', "").split(".")
    if len(parts) < 2:
        log.warning("signal.data.collection=%s is not a table, and no signal comes by it; write schema.table", text)
        return None
    return TableId(parts[-2], parts[-1])


def _statements(raw: Mapping[str, str]) -> dict[str, str]:
    """Parse `snapshot.select.statement.overrides`: SELECTs by the names of the tables that they replace."""
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
