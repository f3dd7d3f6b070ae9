"""Properties of the MySQL and MariaDB connectors: definitions, checks and order. `config.py` reads their values."""

from __future__ import annotations

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
    Property,
    WithoutEffect,
    arrange,
    is_boolean,
    is_class_name,
    is_int,
    non_negative_int,
    non_negative_long,
    not_beside,
    one_of,
    positive_int,
    positive_long,
    prop,
    regexes,
    required,
)

_STORAGE = "io.debezium.relational.ConcurrentMapTableMappingStorage"


def _locking_mode(text: str | None, _: Config) -> str | None:
    """Check `snapshot.locking.mode` in addition to its values: Debezium reports it twice."""
    modes = ("minimal", "minimal_percona", "custom", "none", "minimal_percona_no_table_locks", "extended")
    return None if text is None or text.strip().lower() in modes else "Must be a valid snapshot.locking.mode value"


#: `BinlogConnectorConfig.validateGtidSetExcludes`.
_no_gtid_includes = not_beside("gtid.source.includes", "Cannot specify GTID excludes when includes are provided.")

_TIME_MODES = ("adaptive", "adaptive_time_microseconds", "isostring", "microseconds", "nanoseconds", "connect")


def _time_mode(text: str | None, _: Config) -> str | None:
    """Check `time.precision.mode`: some modes of other connectors are none of this one."""
    adaptive = text is not None and text.strip().lower() == "adaptive"
    return "The 'adaptive' time.precision.mode is no longer supported" if adaptive else None


_OWN = (
    prop("database.port", INT, "3306", HIGH, Width.SHORT, "Port", "Port of the database server.", is_int),
    prop("database.initial.statements", STRING, None, LOW, Width.LONG, "Initial statements", "Statements to run on every new connection, with `;` between them."),
    prop("database.server.id", LONG, None, HIGH, Width.LONG, "Cluster ID", "Number by which the server knows this connector as a replica; no other replica may have it.", required, positive_long),
    prop("database.server.id.offset", LONG, "10000", HIGH, Width.LONG, "Cluster ID offset", "Added to the number for further connections to the log."),
    prop("database.ssl.keystore", STRING, None, MEDIUM, Width.LONG, "SSL Keystore", "A PEM file or PKCS #12 store with our certificate and its key."),
    prop("database.ssl.keystore.password", PASSWORD, None, MEDIUM, Width.MEDIUM, "SSL Keystore Password", "Password of that store, or of the key in that file."),
    prop("database.ssl.truststore", STRING, None, MEDIUM, Width.LONG, "SSL Truststore", "A PEM file or PKCS #12 store with the certificates to trust."),
    prop("database.ssl.truststore.password", PASSWORD, None, MEDIUM, Width.MEDIUM, "SSL Truststore Password", "Password of that store."),
    prop("database.jdbc.driver", CLASS_NAME, "com.mysql.cj.jdbc.Driver", LOW, Width.MEDIUM, "JDBC Driver Class Name", "Accepted and not used.", is_class_name),
    prop("database.protocol", STRING, "jdbc:mysql", LOW, Width.MEDIUM, "JDBC Protocol", "Accepted and not used."),
    prop("database.ssl.mode", STRING, "preferred", MEDIUM, Width.MEDIUM, "SSL mode", "Whether connections are encrypted, and whose certificate is accepted.", values=("verify_identity", "disabled", "preferred", "required", "verify_ca")),
    prop("connect.timeout.ms", INT, "30000", MEDIUM, Width.SHORT, "Connection Timeout (ms)", "How long a connection may take, in ms.", positive_int),
    prop("connect.keep.alive", BOOLEAN, "true", LOW, Width.SHORT, "Keep connection alive (true/false)", "Whether a connection to the log on which nothing comes any more, not even the server's heartbeats, is given up and made again.", is_boolean),
    prop("connect.keep.alive.interval.ms", LONG, "60000", LOW, Width.SHORT, "Keep alive interval (ms)", "How long nothing may come on the connection to the log, in ms. The server is asked for a heartbeat every ten seconds, or three times in this time where that is shorter.", positive_int),
    prop("use.nongraceful.disconnect", BOOLEAN, "false", MEDIUM, Width.SHORT, "Use Non-graceful Disconnect", "Accepted; connections to the log are always just closed."),
    prop("binlog.net.write.timeout", LONG, "0", MEDIUM, Width.SHORT, "Binlog Net Write Timeout", "Server's limit in seconds for sending to us; 0 leaves it as it is.", non_negative_long),
    prop("binlog.net.read.timeout", LONG, "0", MEDIUM, Width.SHORT, "Binlog Net Read Timeout", "Server's limit in seconds for hearing from us; 0 leaves it as it is.", non_negative_long),
    prop("snapshot.mode", STRING, "initial", LOW, Width.SHORT, "Snapshot mode", "When structures and present rows are read.", values=("always", "initial_only", "configuration_based", "when_needed", "initial", "custom", "no_data", "recovery")),
    prop("time.precision.mode", STRING, "adaptive_time_microseconds", MEDIUM, Width.SHORT, "Time Precision", "How dates and times look.", _time_mode, one_of(_TIME_MODES), values=_TIME_MODES),
    # Debezium checks these two twice, and reports them twice
    prop("table.include.list", LIST, None, HIGH, Width.LONG, "Include Tables", "Regexes of the tables to capture; all without it.", regexes, regexes),
    prop("bigint.unsigned.handling.mode", STRING, "long", MEDIUM, Width.SHORT, "The mode for handling bigint-unsigned values", "Whether the largest half of BIGINT UNSIGNED wraps around (long) or all are decimals (precise).", values=("precise", "long")),
    prop("enable.time.adjuster", BOOLEAN, "true", LOW, Width.SHORT, "Enable Time Adjuster", "Whether dates of the years 1 to 99 are shown as of 1970 to 2069."),
    prop("min.row.count.to.stream.results", INT, "1000", LOW, Width.MEDIUM, "Stream result set of size", "Accepted; results are always streamed.", non_negative_long),
    prop("incremental.snapshot.allow.schema.changes", BOOLEAN, "false", LOW, Width.SHORT, "Allow schema changes during incremental snapshot if supported.", "Whether structures may change while an incremental snapshot runs."),
    prop("snapshot.locking.mode", STRING, "minimal", LOW, Width.SHORT, "Snapshot locking mode", "How long a snapshot keeps others from writing.", _locking_mode, values=("minimal", "minimal_percona", "custom", "none", "minimal_percona_no_table_locks", "extended")),
    prop("ddl.parser.type", STRING, "default", LOW, Width.SHORT, "DDL Parser Type", "Accepted and not used.", values=("default", "legacy")),
    prop("schema.history.internal", CLASS_NAME, "io.debezium.storage.kafka.history.KafkaSchemaHistory", LOW, Width.LONG, "Database schema history class", "Where the schema history is kept."),
    prop("schema.history.internal.skip.unparseable.ddl", BOOLEAN, "false", LOW, Width.SHORT, "Skip DDL statements that cannot be parsed", "Whether statements that cannot be understood are passed over."),
    prop("schema.history.internal.store.only.captured.tables.ddl", BOOLEAN, "false", LOW, Width.SHORT, "Store only DDL that modifies tables that are captured based on include/exclude lists", "Whether the history holds captured tables only."),
    prop("schema.history.internal.store.only.captured.databases.ddl", BOOLEAN, "false", LOW, Width.SHORT, "Store only DDL that modifies tables of databases that are captured based on include/exclude lists", "Whether the history holds captured databases only."),
    prop("include.schema.changes", BOOLEAN, "true", MEDIUM, Width.SHORT, "Include database schema changes", "Whether statements that change structures become records of the topic that is called like the prefix."),
    prop("include.query", BOOLEAN, "false", MEDIUM, Width.SHORT, "Include original SQL query with in change events", "Whether records show the statement that made them, where the server logs it."),
    prop("database.include.list", LIST, None, HIGH, Width.LONG, "Include Databases", "Regexes of the databases to capture; all without it.", regexes),
    prop("database.exclude.list", LIST, None, MEDIUM, Width.LONG, "Exclude Databases", "Regexes of databases that are not captured.", regexes, not_beside("database.include.list")),
    prop("binlog.buffer.size", INT, "0", MEDIUM, Width.MEDIUM, "Binlog reader buffer size", "Accepted; the server logs transactions when they are committed, so none is rolled back in the log.", non_negative_int),
    prop("event.deserialization.failure.handling.mode", STRING, "fail", MEDIUM, Width.SHORT, "Event deserialization failure handling", "Old name of event.processing.failure.handling.mode.", values=("warn", "fail", "ignore", "skip")),
    prop("inconsistent.schema.handling.mode", STRING, "fail", MEDIUM, Width.SHORT, "Inconsistent schema failure handling", "What to do with rows of a captured table whose structure is not known.", values=("warn", "fail", "ignore", "skip")),
    prop("gtid.source.filter.dml.events", BOOLEAN, "true", MEDIUM, Width.SHORT, "Filter DML events", "Whether changes of servers that the GTID filter leaves out make no records."),
    prop("gtid.ignore.on.recovery", BOOLEAN, "false", LOW, Width.SHORT, "Ignore GTID on recovery", "Whether a start uses file and position although GTIDs are known."),
    prop("gtid.source.includes", LIST, None, HIGH, Width.LONG, "Include GTID sources", "Regexes of the UUIDs of servers whose transactions count."),
    prop("gtid.source.excludes", STRING, None, MEDIUM, Width.LONG, "Exclude GTID sources", "Regexes of the UUIDs of servers whose transactions do not count.", _no_gtid_includes),
    prop("memory.management.schemas.class", CLASS_NAME, _STORAGE, LOW, Width.LONG, "Schema storage class", "Accepted and not used."),
    prop("memory.management.tables.class", CLASS_NAME, _STORAGE, LOW, Width.LONG, "Table storage class", "Accepted and not used."),
    prop("sourceinfo.struct.maker", CLASS_NAME, "io.debezium.connector.mysql.MySqlSourceInfoStructMaker", LOW, Width.MEDIUM, "Source info struct maker class", "Accepted and not used."),
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
        "memory.management.schemas.class",
        "memory.management.tables.class",
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
    """Return the properties of `mysql` or `mariadb`."""
    return MARIADB_PROPERTIES if connector == "mariadb" else PROPERTIES


def _of_mariadb() -> dict[str, Property]:
    """Return MySQL's properties except the driver's and the parser's, with MariaDB's own modes (`MariaDbConnectorConfig.java`)."""
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
    prop("database.ssl.mode", STRING, "disable", MEDIUM, Width.MEDIUM, "SSL mode", "Whether connections are encrypted, and whose certificate is accepted.", values=("disable", "trust", "verify-ca", "verify-full")),
    prop("snapshot.locking.mode", STRING, "minimal", LOW, Width.SHORT, "Snapshot locking mode", "How long a snapshot keeps others from writing.", _locking_mode, values=("custom", "minimal", "extended", "none")),
    prop("sourceinfo.struct.maker", CLASS_NAME, "io.debezium.connector.mariadb.MariaDbSourceInfoStructMaker", LOW, Width.MEDIUM, "Source info struct maker class", "Accepted and not used."),
    prop("gtid.source.includes", LIST, None, HIGH, Width.LONG, "Include GTID sources", "Regexes of the sources, as domain-server, whose transactions count."),
    prop("gtid.source.excludes", STRING, None, MEDIUM, Width.LONG, "Exclude GTID sources", "Regexes of the sources, as domain-server, whose transactions do not count.", _no_gtid_includes),
)  # fmt: skip
MARIADB_PROPERTIES: Final = _of_mariadb()

#: Properties that Debezium does not have. Answers show one only where it is given, so that all others are Debezium's own.
EXTENSIONS: Final = {
    known.key.name: known
    for known in (
        *OWN,
        prop("binlog.row.image.minimal", STRING, "refuse", LOW, Width.SHORT, "Minimal row images", "Whether a server whose binlog_row_image is MINIMAL is refused, as the reference does, or its rows are shown with what the log has of them (accept).", values=("refuse", "accept")),
        prop("snapshot.locking.fallback", STRING, "flush", LOW, Width.SHORT, "Snapshot locking fallback", "How tables are locked where the global lock is refused: flushed first, as the reference does, or where that is refused too just locked (ours).", values=("flush", "lock")),
        prop("value.consistency", STRING, "reference", LOW, Width.SHORT, "Value consistency", "Whether snapshots show values as the reference's do (reference), or as the stream does (unified; ours).", values=("reference", "unified")),
    )
}  # fmt: skip

#: Properties that Debezium reads and does not list: they have an effect, and answers show one only where it is given.
UNLISTED: Final = {
    known.key.name: known
    for known in (
        prop("read.only", STRING, "false", LOW, Width.SHORT, "Read only", "Whether incremental snapshots write no watermarks."),
        prop("skip.messages.without.change", STRING, "false", LOW, Width.SHORT, "Skip messages without change", "Whether updates that change no captured column are left out."),
        prop("event.converting.failure.handling.mode", STRING, "warn", MEDIUM, Width.SHORT, "Event converting failure handling", "What to do with a value that has no form under its column's schema: null and a warning, null (skip), or fail the task."),
        prop("binary.handling.mode", STRING, "bytes", LOW, Width.MEDIUM, "Binary Handling", "How binary columns look: bytes, base64, base64-url-safe or hex."),
        prop("unavailable.value.placeholder", STRING, "__debezium_unavailable_value", MEDIUM, Width.MEDIUM, "Unavailable value placeholder", "Stands for a value that the log does not have; after `hex:` come octets."),
        prop("resolve.create.table.like.schema", STRING, "false", LOW, Width.SHORT, "Resolve CREATE TABLE LIKE", "Accepted; the structure of a table that was made like an unknown one is always looked up."),
        *(prop(name, STRING, "false", LOW, Width.MEDIUM, "Allow Public Key Retrieval", "Whether the password may be sent under a public key that the server sends over a connection without TLS.") for name in ("driver.allowPublicKeyRetrieval", "database.allowPublicKeyRetrieval")),
        prop("snapshot.locking.mode.custom.name", STRING, None, MEDIUM, Width.MEDIUM, "Snapshot Locking Mode Custom Name", "Accepted; snapshot.locking.mode=custom is refused."),
        *UNLISTED_NAMES,
    )
}  # fmt: skip

_STREAMS = "results are streamed as they are read"
_PRODUCER = "records of a snapshot go to the history without an answer to each; all are awaited at its end"
_HISTORY_WAITS = "a broker that says nothing for a minute is a passing failure, after which the task tries again"
#: What is accepted and changes nothing.
WITHOUT_EFFECT: Final[WithoutEffect] = {
    **COMMON_WITHOUT_EFFECT,
    "internal.log.position.check.enable": (False, "a start always looks whether the log still has its position"),
    "database.jdbc.driver": (True, JAVA_CLASS),
    "database.protocol": (False, "the connector speaks the server's protocol itself"),
    "ddl.parser.type": (False, "there is one parser, for statements of both kinds of servers"),
    "use.nongraceful.disconnect": (False, "connections to the log are always just closed"),
    "poll.interval.ms": (False, "events are passed on as they arrive"),
    "binlog.buffer.size": (False, "the server logs a transaction when it is committed, so that none has to be held back"),
    "snapshot.fetch.size": (False, _STREAMS),
    "query.fetch.size": (False, _STREAMS),
    "min.row.count.to.stream.results": (False, _STREAMS),
    "resolve.create.table.like.schema": (False, "the structure of a table that was made like an unknown one is always looked up"),
    "schema.history.internal.memory.optimization": (False, "structures share their parts in any case"),
    "schema.history.internal.prefer.ddl": (True, "structures that a record holds are taken as they stand there"),
    "schema.history.internal.kafka.buffer.batch.size": (False, _PRODUCER),
    "schema.history.internal.name": (False, "the history's clients are called after its topic"),
    "schema.history.internal.kafka.recovery.attempts": (False, _HISTORY_WAITS),
    "schema.history.internal.kafka.recovery.poll.interval.ms": (False, _HISTORY_WAITS),
    "schema.history.internal.kafka.query.timeout.ms": (False, _HISTORY_WAITS),
    "schema.history.internal.kafka.create.timeout.ms": (False, _HISTORY_WAITS),
}
