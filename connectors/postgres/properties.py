"""Properties of the PostgreSQL connector: definitions, checks and order. `config.py` parses them."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Final

from connect_py.api import Width
from connectors.engine.config import COMMON, OWN, UNLISTED_NAMES
from connectors.engine.properties import (
    BOOLEAN,
    CLASS_NAME,
    COLUMN_RULES,
    COMMON_WITHOUT_EFFECT,
    DELIVERY,
    HIGH,
    INT,
    JAVA_CLASS,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    RECORDS,
    SNAPSHOTS,
    SOURCE_TYPES,
    STRING,
    Config,
    WithoutEffect,
    arrange,
    is_boolean,
    is_int,
    more_than_zero,
    non_negative_long,
    not_beside,
    positive_int,
    positive_long,
    prop,
    regexes,
    required,
)

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


def _replica_identities(text: str | None, _: Config) -> tuple[str, ...]:
    if text is None:
        return ()
    bad = [entry for entry in text.split(",") if not re.match(_IDENTITY_ENTRY, entry, re.IGNORECASE)]
    problems = tuple(f"{entry} has an invalid format (expecting '{_SHOWN_IDENTITY_ENTRY}')" for entry in bad)
    return problems if text else ("Must not be empty", *problems)


_OWN = (
    prop("database.port", INT, "5432", HIGH, Width.SHORT, "Port", "Port of the database server.", is_int),
    prop("database.dbname", STRING, None, HIGH, Width.MEDIUM, "Database", "The database whose changes are captured.", required),
    prop("plugin.name", STRING, "pgoutput", MEDIUM, Width.MEDIUM, "Plugin", "The server's decoding plug-in. Always pgoutput here.", _plugin, values=("decoderbufs", "pgoutput")),
    prop("slot.name", STRING, "debezium", MEDIUM, Width.MEDIUM, "Slot", "Replication slot of this connector; created when it is missing. One connector a slot.", _slot_name),
    prop("publication.name", STRING, "dbz_publication", MEDIUM, Width.MEDIUM, "Publication", "Publication that says which tables' changes the server sends."),
    prop("publication.autocreate.mode", STRING, "all_tables", MEDIUM, Width.MEDIUM, "Publication Auto Create Mode", "Whether a missing publication is made: for all tables, for the captured ones (filtered), without tables, or not (disabled).", values=("no_tables", "filtered", "disabled", "all_tables")),
    prop("replica.identity.autoset.values", STRING, None, MEDIUM, Width.LONG, "Replica Identity Auto Set Values", "Replica identities to set: `<table regex>:<DEFAULT|FULL|NOTHING|INDEX name>`, comma-separated.", _replica_identities),
    prop("slot.drop.on.stop", BOOLEAN, "false", MEDIUM, Width.NONE, "Drop slot on stop", "Whether an orderly stop drops the slot. Changes made while stopped are then lost."),
    prop("slot.failover", BOOLEAN, "false", MEDIUM, Width.NONE, "Create failover slot", "Whether the slot is made to survive a fail-over (server version 17 and later)."),
    prop("slot.stream.params", STRING, None, LOW, Width.LONG, "Optional parameters to pass to the logical decoder when the stream is started.", "More options of the plug-in: `name=value`, joined by semicolons."),
    prop("database.initial.statements", STRING, None, LOW, Width.LONG, "Initial statements", "SQL that each ordinary connection runs first, separated by semicolons."),
    prop("database.sslmode", STRING, "prefer", MEDIUM, Width.MEDIUM, "SSL mode", "libpq's sslmode.", values=("allow", "prefer", "disable", "verify-ca", "require", "verify-full")),
    prop("database.sslcert", STRING, None, MEDIUM, Width.LONG, "SSL Client Certificate", "File of the client's certificate."),
    prop("database.sslpassword", PASSWORD, None, MEDIUM, Width.MEDIUM, "SSL Client Key Password", "Password of the client's key."),
    prop("database.sslrootcert", STRING, None, MEDIUM, Width.LONG, "SSL Root Certificate", "File of the authorities' certificates."),
    prop("database.sslkey", STRING, None, MEDIUM, Width.LONG, "SSL Client Key", "File of the client's key (PEM)."),
    prop("slot.max.retries", INT, "6", LOW, Width.NONE, "Retry count", "How often a slot that is in use is tried again.", is_int),
    prop("slot.retry.delay.ms", LONG, "10000", LOW, Width.NONE, "Retry delay", "Longest pause between those tries, in ms; the first ones come sooner.", is_int, more_than_zero),
    prop("database.sslfactory", STRING, None, MEDIUM, Width.LONG, "SSL Root Certificate", "A Java class; accepted and not used."),
    prop("status.update.interval.ms", INT, "10000", MEDIUM, Width.SHORT, "Status update interval (ms)", "How often the server hears that we are alive, in ms.", positive_int),
    prop("lsn.flush.timeout.ms", LONG, "30000", MEDIUM, Width.SHORT, "LSN flush timeout (ms)", "How long a confirmation to the server may take, in ms.", positive_int),
    prop("lsn.flush.timeout.action", STRING, "fail", MEDIUM, Width.MEDIUM, "LSN flush timeout action", "What to do when it takes longer.", values=("fail", "warn", "ignore")),
    prop("database.tcpKeepAlive", BOOLEAN, "true", MEDIUM, Width.SHORT, "TCP keep-alive probe", "Whether TCP probes idle connections.", is_boolean),
    prop("xmin.fetch.interval.ms", LONG, "0", MEDIUM, Width.SHORT, "Xmin fetch interval (ms)", "How often the slot's xmin is read for `source.xmin`, in ms; 0 is never.", non_negative_long),
    prop("lsn.flush.mode", STRING, None, LOW, Width.SHORT, "LSN flush mode", "Who confirms positions to the server: connector, connector_and_driver or manual.", values=("connector_and_driver", "connector", "manual")),
    prop("flush.lsn.source", BOOLEAN, "true", LOW, Width.SHORT, "Boolean to determine if Debezium should flush LSN in the source database", "Old form of lsn.flush.mode: false is manual.", is_boolean),
    prop("memory.management.schemas.class", CLASS_NAME, "io.debezium.relational.ConcurrentMapTableMappingStorage", LOW, Width.LONG, "Schema storage class", "Accepted and not used."),
    prop("memory.management.tables.class", CLASS_NAME, "io.debezium.relational.ConcurrentMapTableMappingStorage", LOW, Width.LONG, "Table storage class", "Accepted and not used."),
    prop("snapshot.mode", STRING, "initial", MEDIUM, Width.SHORT, "Snapshot mode", "When the present rows are read: initial, initial_only, no_data, always, when_needed, configuration_based.", values=("always", "initial_only", "configuration_based", "when_needed", "initial", "custom", "no_data")),
    prop("snapshot.isolation.mode", STRING, "serializable", LOW, Width.SHORT, "Snapshot isolation mode", "Accepted; a snapshot is always one REPEATABLE READ transaction.", values=("read_uncommitted", "repeatable_read", "read_committed", "serializable")),
    prop("snapshot.locking.mode", STRING, "none", LOW, Width.SHORT, "Snapshot locking mode", "Whether a snapshot locks its tables.", values=("shared", "custom", "none")),
    prop("hstore.handling.mode", STRING, "json", LOW, Width.MEDIUM, "HStore Handling", "How hstore columns look.", values=("json", "map")),
    prop("interval.handling.mode", STRING, "numeric", LOW, Width.MEDIUM, "Interval Handling", "How intervals look.", values=("string", "numeric")),
    prop("schema.refresh.mode", STRING, "columns_diff", MEDIUM, Width.SHORT, "Schema refresh mode", "Accepted; pgoutput tells of every change of structure.", values=("columns_diff", "columns_diff_exclude_unchanged_toast")),
    prop("message.prefix.include.list", LIST, None, MEDIUM, Width.LONG, "Include Logical Decoding Message Prefixes", "Regexes of the prefixes of logical messages to capture.", regexes),
    prop("message.prefix.exclude.list", LIST, None, MEDIUM, Width.LONG, "Exclude Logical Decoding Message Prefixes", "Regexes of the prefixes to leave out.", regexes, not_beside("message.prefix.include.list")),
    prop("publish.via.partition.root", BOOLEAN, "false", MEDIUM, Width.SHORT, "Publish via partition root", "Whether a publication made here sends partitions' changes as the root table's.", is_boolean),
    prop("include.unknown.datatypes", BOOLEAN, "false", MEDIUM, Width.SHORT, "Include unknown datatypes", "Whether columns of unknown types appear, as binary."),
    prop("sourceinfo.struct.maker", CLASS_NAME, "io.debezium.connector.postgresql.PostgresSourceInfoStructMaker", LOW, Width.MEDIUM, "Source info struct maker class", "Accepted and not used."),
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
        *DELIVERY,
        *SNAPSHOTS,
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
        *RECORDS,
        "column.include.list",
        "column.exclude.list",
        "table.include.list",
        "table.exclude.list",
        "table.ignore.builtin",
        "schema.include.list",
        "schema.exclude.list",
        *COLUMN_RULES,
        *SOURCE_TYPES,
        "include.unknown.datatypes",
        "sourceinfo.struct.maker",
    ],
}

PROPERTIES: Final = arrange((*COMMON, *_OWN), _LAYOUT)


def _directory(text: str | None, _: Config) -> str | None:
    if not text or Path(text.strip()).is_dir():
        return None
    return (
        f"There is no directory {text.strip()} on the worker's machine; create it, or leave the property out to use {tempfile.gettempdir()}"
    )


#: Properties that Debezium does not have. Answers show one only where it is given, so that all others are Debezium's own.
EXTENSIONS: Final = {
    known.key.name: known
    for known in (
        *OWN,
        prop("connection.silence.timeout.ms", LONG, "60000", LOW, Width.SHORT, "Silence of the server", "How long the server may say nothing on the replication connection, although it is asked to, before the connection is made again; 0 is for ever.", non_negative_long),
        prop("large.transaction.streaming", BOOLEAN, "false", LOW, Width.SHORT, "Stream large transactions", "Whether the server sends large transactions while they are open (protocol version 2 of pgoutput, server version 14 and later), so that they wait here and not on its disk."),
        prop("large.transaction.memory.bytes", LONG, "16777216", LOW, Width.MEDIUM, "Memory for open transactions", "How much of open transactions is kept in memory before the largest goes to a temporary file.", positive_long),
        prop("large.transaction.directory", STRING, None, LOW, Width.LONG, "Directory of open transactions", "Where those files are; the system's directory for temporary files without it.", _directory),
    )
}  # fmt: skip

#: Properties that Debezium reads and does not list: they have an effect, and answers show one only where it is given. Like there, a value
#: that is none stands for the default.
UNLISTED: Final = {
    known.key.name: known
    for known in (
        prop("read.only", STRING, "false", LOW, Width.SHORT, "Read only", "Whether incremental snapshots write no watermarks."),
        prop("skip.messages.without.change", STRING, "false", LOW, Width.SHORT, "Skip messages without change", "Whether updates that change no captured column are left out; needs REPLICA IDENTITY FULL."),
        prop("incremental.snapshot.allow.schema.changes", STRING, "false", LOW, Width.SHORT, "Allow schema changes during incremental snapshot if supported.", "Accepted; a change of structure inside of a chunk always makes it be read again."),
        prop("event.converting.failure.handling.mode", STRING, "warn", MEDIUM, Width.SHORT, "Event converting failure handling", "What to do with a value that has no form under its column's schema: null and a warning, null (skip), or fail the task."),
        prop("money.fraction.digits", STRING, "2", LOW, Width.SHORT, "Money fraction digits", "Digits behind the point of money."),
        prop("offset.mismatch.strategy", STRING, "no_validation", LOW, Width.MEDIUM, "Offset mismatch strategy", "Which of the stored offset and the slot's position a start trusts: no_validation, trust_offset, trust_slot, trust_greater_lsn."),
        prop("slot.seek.to.known.offset.on.start", STRING, "false", LOW, Width.SHORT, "Seek to the known offset on start", "Old form of offset.mismatch.strategy: true is trust_offset."),
        *UNLISTED_NAMES,
    )
}  # fmt: skip

#: What is accepted and changes nothing.
WITHOUT_EFFECT: Final[WithoutEffect] = {
    **COMMON_WITHOUT_EFFECT,
    "plugin.name": (False, "pgoutput is the only one"),
    "database.sslfactory": (True, JAVA_CLASS),
    "lsn.flush.timeout.ms": (False, "a confirmation is one message to the server, for which nothing waits"),
    "lsn.flush.timeout.action": (False, "a confirmation is one message to the server, for which nothing waits"),
    "snapshot.fetch.size": (False, "COPY streams rows as they are read"),
    "query.fetch.size": (False, "COPY streams rows as they are read"),
    "table.ignore.builtin": (False, "publications hold no tables of the system"),
    "snapshot.isolation.mode": (False, "a snapshot is always one REPEATABLE READ transaction"),
    "snapshot.mode.configuration.based.snapshot.schema": (False, "structures come from the catalog at every start"),
    "snapshot.mode.configuration.based.snapshot.on.schema.error": (True, "there is no schema history that could be lost"),
    "include.schema.comments": (True, "as in Debezium, whose PostgreSQL connector does not read comments"),
    "schema.refresh.mode": (False, "pgoutput tells of every change of structure"),
}
