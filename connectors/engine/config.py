"""Properties that all database connectors share (`CommonConnectorConfig.java`), their old names, and what the engine reads from them."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api import ConfigValue, Width
from connectors.engine.properties import (
    BOOLEAN,
    CLASS_NAME,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    STRING,
    Config,
    Property,
    is_boolean,
    is_int,
    is_name,
    is_not_blank_name,
    key_columns,
    needed_when,
    new_tables,
    non_negative_int,
    non_negative_long,
    not_beside,
    not_zero,
    one_collection,
    operations,
    pairs,
    positive_int,
    positive_long,
    positive_queue,
    prop,
    queue_over_batch,
    regexes,
    required,
    sink_topic,
    validate,
)

COMMON: tuple[Property, ...] = (
    prop("topic.prefix", STRING, None, HIGH, Width.MEDIUM, "Topic prefix", "First part of every topic's name; also the name of the source in offsets and records. Never change it.", required, is_not_blank_name),
    prop("database.hostname", STRING, None, HIGH, Width.MEDIUM, "Hostname", "Host name or address of the database server.", required, is_name),
    prop("database.user", STRING, None, HIGH, Width.SHORT, "User", "Database user of the connector.", required),
    prop("database.password", PASSWORD, None, HIGH, Width.SHORT, "Password", "Password of that user."),
    prop("database.query.timeout.ms", INT, "600000", LOW, Width.NONE, "Query timeout", "How long one statement may take, in ms; 0 is for ever."),
    prop("event.processing.failure.handling.mode", STRING, "fail", MEDIUM, Width.SHORT, "Event deserialization failure handling", "What to do with an event that cannot be processed: fail the task, warn, or skip it.", values=("warn", "fail", "ignore", "skip")),
    prop("max.batch.size", INT, "2048", MEDIUM, Width.SHORT, "Change event batch size", "Most records of one batch.", positive_int),
    prop("max.queue.size", INT, "8192", MEDIUM, Width.SHORT, "Change event buffer size", "Most records on their way between the database and Kafka; larger than max.batch.size.", positive_queue, queue_over_batch),
    prop("poll.interval.ms", LONG, "500", MEDIUM, Width.SHORT, "Poll interval (ms)", "How long to wait for new events, in ms. Here events are passed on as they arrive.", positive_int),
    prop("max.queue.size.in.bytes", LONG, "0", MEDIUM, Width.LONG, "Change event buffer size in bytes", "Most bytes on their way; 0 leaves it to the number of records.", non_negative_long),
    prop("provide.transaction.metadata", BOOLEAN, "false", LOW, Width.SHORT, "Store transaction metadata information in a dedicated topic.", "Whether BEGIN and END of transactions become records and events carry their place in them."),
    prop("snapshot.delay.ms", LONG, "0", LOW, Width.MEDIUM, "Snapshot Delay (milliseconds)", "Pause before a snapshot, in ms.", non_negative_long),
    prop("streaming.delay.ms", LONG, "0", LOW, Width.MEDIUM, "Streaming Delay (milliseconds)", "Pause between a snapshot and streaming, in ms.", non_negative_long),
    prop("snapshot.include.collection.list", LIST, None, MEDIUM, Width.LONG, "Snapshot mode include data collection", "Regexes of the tables that a snapshot reads; all captured ones without it.", regexes),
    prop("snapshot.fetch.size", INT, None, MEDIUM, Width.MEDIUM, "Snapshot fetch size", "Rows fetched at once while a snapshot reads. COPY streams, so PostgreSQL needs none.", non_negative_int),
    prop("snapshot.max.threads", INT, "1", MEDIUM, Width.SHORT, "Snapshot maximum threads", "How many connections read a snapshot.", positive_int),
    prop("snapshot.max.threads.multiplier", INT, "1", MEDIUM, Width.SHORT, "Snapshot maximum thread multiplier", "Chunks of a table for each connection of a parallel snapshot.", positive_int),
    prop("legacy.snapshot.max.threads", BOOLEAN, "false", LOW, Width.SHORT, "Enforces using a single thread per table regardless of table size", "Whether a parallel snapshot gives each table to one connection as a whole."),
    prop("snapshot.mode.custom.name", STRING, None, MEDIUM, Width.MEDIUM, "Snapshot Mode Custom Name", "Name of the snapshotter of snapshot.mode=custom.", needed_when("snapshot.mode", "custom")),
    prop("snapshot.mode.configuration.based.snapshot.data", BOOLEAN, "false", MEDIUM, Width.MEDIUM, "Snapshot mode property based snapshot data", "With snapshot.mode=configuration_based: whether every start reads the data."),
    prop("snapshot.mode.configuration.based.snapshot.schema", BOOLEAN, "false", MEDIUM, Width.MEDIUM, "Snapshot mode property based snapshot schema", "With snapshot.mode=configuration_based: whether every start reads the structures."),
    prop("snapshot.mode.configuration.based.start.stream", BOOLEAN, "false", MEDIUM, Width.MEDIUM, "Snapshot mode property based start stream", "With snapshot.mode=configuration_based: whether changes are followed."),
    prop("snapshot.mode.configuration.based.snapshot.on.schema.error", BOOLEAN, "false", MEDIUM, Width.MEDIUM, "Snapshot mode property based snapshot on schema error", "With snapshot.mode=configuration_based: whether lost structures are read again."),
    prop("snapshot.mode.configuration.based.snapshot.on.data.error", BOOLEAN, "false", MEDIUM, Width.MEDIUM, "Snapshot mode property based snapshot on data error", "With snapshot.mode=configuration_based: whether the data are read again when the log no longer reaches back."),
    prop("retriable.restart.connector.wait.ms", LONG, "10000", LOW, Width.MEDIUM, "Retriable restart wait (ms)", "Longest pause before the task connects again after a passing failure, in ms.", positive_long),
    prop("query.fetch.size", INT, "0", MEDIUM, Width.MEDIUM, "Query fetch size", "Rows fetched at once by other queries; 0 is the driver's own size.", non_negative_int),
    prop("errors.max.retries", INT, "-1", LOW, Width.MEDIUM, "The maximum number of retries", "How often to connect again after a passing failure before the task fails; -1 is for ever, 0 never.", is_int),
    prop("incremental.snapshot.watermarking.strategy", STRING, "INSERT_INSERT", LOW, Width.MEDIUM, "Incremental snapshot watermarking strategy", "Whether a window's end inserts into the signal table or deletes its begin.", values=("insert_delete", "insert_insert")),
    prop("connection.validation.timeout.ms", LONG, "60000", LOW, Width.SHORT, "Connection validation timeout (ms)", "How long the connection test of a validation may take, in ms.", positive_long),
    prop("executor.shutdown.timeout.ms", LONG, "4000", MEDIUM, Width.MEDIUM, "Executor shutdown timeout (ms)", "How long a stopping task may take, in ms.", positive_long),
    prop("internal.legacy.snapshot.max.threads", BOOLEAN, "false", LOW, Width.SHORT, "Enforces using a single thread per table regardless of table size", "Accepted; legacy.snapshot.max.threads is what counts."),
    prop("internal.log.position.check.enable", BOOLEAN, "true", MEDIUM, Width.MEDIUM, "Enable/Disable log position check", "Whether a start of PostgreSQL's looks whether the slot still has its position; others always look."),
    prop("internal.advanced.metrics.enable", BOOLEAN, "false", MEDIUM, Width.MEDIUM, "Enable/Disable advance metrics", "Accepted; docs/metrics.md lists what is measured."),
    prop("internal.snapshot.scan.all.columns.force", BOOLEAN, "false", LOW, Width.SHORT, "Snapshot force scan all columns of all tables", "Accepted; structures are read of the tables that count."),
    prop("openlineage.integration.enabled", BOOLEAN, "false", LOW, Width.SHORT, "Enables OpenLineage integration", "Accepted; no lineage is reported."),
    prop("openlineage.integration.config.file.path", STRING, "./openlineage.yml", LOW, Width.LONG, "Path to OpenLineage file configuration", "Accepted; no lineage is reported."),
    prop("openlineage.integration.job.namespace", STRING, None, LOW, Width.LONG, "Namespace used for Debezium job", "Accepted; no lineage is reported."),
    prop("openlineage.integration.job.description", STRING, "Debezium change data capture job", LOW, Width.LONG, "Description used for Debezium job", "Accepted; no lineage is reported."),
    prop("openlineage.integration.job.tags", LIST, None, LOW, Width.LONG, "Debezium job tags", "Accepted; no lineage is reported."),
    prop("openlineage.integration.job.owners", LIST, None, LOW, Width.LONG, "Debezium job owners", "Accepted; no lineage is reported."),
    prop("openlineage.integration.dataset.kafka.bootstrap.servers", STRING, None, LOW, Width.LONG, "Kafka bootstrap server used in Kafka Connect deployment", "Accepted; no lineage is reported."),
    prop("extended.headers.enabled", BOOLEAN, "true", LOW, Width.SHORT, "Enable/Disable extended headers", "Whether records carry the headers __debezium.context.*.", is_boolean),
    prop("guardrail.collections.max", INT, "0", MEDIUM, Width.SHORT, "Maximum number of collections or tables", "Most tables that may be captured; 0 is any number.", non_negative_int),
    prop("guardrail.collections.limit.action", STRING, "warn", MEDIUM, Width.SHORT, "Guardrail collections limit action", "What to do above that number.", values=("warn", "fail")),
    prop("custom.sanitize.pattern", STRING, None, LOW, Width.LONG, "Custom pattern for masking sensitive configuration", "Regex of further property names whose values are secrets."),
    prop("statistics.metrics.enabled", BOOLEAN, "true", MEDIUM, Width.SHORT, "Enable collecting statistics metrics like latencies", "Whether latencies are measured."),
    prop("decimal.handling.mode", STRING, "precise", MEDIUM, Width.SHORT, "Decimal Handling", "How decimals look: precise (bytes with a scale), string or double.", values=("string", "double", "precise")),
    prop("time.precision.mode", STRING, "adaptive", MEDIUM, Width.SHORT, "Time Precision", "How dates and times look.", values=("adaptive", "adaptive_time_microseconds", "isostring", "microseconds", "nanoseconds", "connect")),
    prop("snapshot.lock.timeout.ms", LONG, "10000", MEDIUM, Width.LONG, "Snapshot lock timeout (ms)", "How long a snapshot waits for table locks, in ms."),
    prop("snapshot.query.mode", STRING, "select_all", LOW, Width.SHORT, "Snapshot query mode", "How a snapshot's queries are made.", values=("custom", "select_all")),
    prop("snapshot.query.mode.custom.name", STRING, None, MEDIUM, Width.MEDIUM, "Snapshot Query Mode Custom Name", "Name of the implementation of snapshot.query.mode=custom.", needed_when("snapshot.query.mode", "custom")),
    prop("snapshot.locking.mode.custom.name", STRING, None, MEDIUM, Width.MEDIUM, "Snapshot Locking Mode Custom Name", "Name of the implementation of snapshot.locking.mode=custom.", needed_when("snapshot.locking.mode", "custom")),
    prop("binary.handling.mode", STRING, "bytes", LOW, Width.MEDIUM, "Binary Handling", "How binary columns look.", values=("bytes", "base64", "hex", "base64-url-safe")),
    prop("schema.name.adjustment.mode", STRING, "none", LOW, Width.MEDIUM, "Schema Name Adjustment", "Whether schema names are made to fit Avro.", values=("none", "avro_unicode", "avro")),
    prop("incremental.snapshot.chunk.size", INT, "1024", MEDIUM, Width.MEDIUM, "Incremental snapshot chunk size", "Rows of a chunk of an incremental snapshot.", non_negative_int, not_zero),
    prop("unavailable.value.placeholder", STRING, "__debezium_unavailable_value", MEDIUM, Width.MEDIUM, "Unavailable value placeholder", "Stands for a value that the database did not send; after `hex:` come octets."),
    prop("converters", STRING, None, LOW, Width.MEDIUM, "List of prefixes defining custom values converters.", "Aliases of custom value converters."),
    prop("post.processors", STRING, None, LOW, Width.MEDIUM, "List of change event post processors.", "Aliases of post-processors."),
    prop("tombstones.on.delete", BOOLEAN, "true", MEDIUM, Width.SHORT, "Change the behaviour of Debezium with regards to delete operations", "Whether a delete is followed by a null value, so that a compacted topic forgets the key.", is_boolean),
    prop("heartbeat.interval.ms", INT, "0", MEDIUM, Width.MEDIUM, "Connector heartbeat interval (milli-seconds)", "How often a heartbeat record is sent, in ms; 0 is never.", non_negative_int),
    prop("heartbeat.topics.prefix", STRING, "__debezium-heartbeat", LOW, Width.MEDIUM, "A prefix used for naming of heartbeat topics", "First part of the heartbeat topic's name."),
    prop("heartbeat.action.query", STRING, None, LOW, Width.MEDIUM, "An optional query to execute with every heartbeat", "A statement that each heartbeat runs in the database."),
    prop("signal.data.collection", LIST, None, MEDIUM, Width.MEDIUM, "Signaling data collection", "The table through which signals come.", one_collection),
    prop("signal.poll.interval.ms", LONG, "5000", MEDIUM, Width.SHORT, "Signal processor poll interval", "How often the other signal channels are looked at, in ms.", positive_int),
    prop("signal.enabled.channels", LIST, "source", MEDIUM, Width.LONG, "Enabled channels names", "Channels through which signals come."),
    prop("topic.naming.strategy", CLASS_NAME, "io.debezium.schema.SchemaTopicNamingStrategy", MEDIUM, Width.MEDIUM, "Topic naming strategy class", "How topics are named."),
    prop("notification.enabled.channels", LIST, None, MEDIUM, Width.LONG, "Enabled notification channels names", "Channels on which the connector tells what it does."),
    prop("notification.sink.topic.name", STRING, None, HIGH, Width.LONG, "Notification topic name", "Topic of the notification channel `sink`.", sink_topic),
    prop("transaction.metadata.factory", CLASS_NAME, "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory", LOW, Width.MEDIUM, "Factory class to create transaction context & transaction struct maker classes", "Kept for compatibility."),
    prop("custom.metric.tags", LIST, None, LOW, Width.MEDIUM, "Customize metric tags", "Tags of metrics, `name=value`.", pairs),
    prop("column.include.list", LIST, None, MEDIUM, Width.LONG, "Include Columns", "Regexes of the columns in records; all without it.", regexes),
    prop("column.exclude.list", LIST, None, MEDIUM, Width.LONG, "Exclude Columns", "Regexes of columns that records leave out.", regexes, not_beside("column.include.list")),
    prop("table.include.list", LIST, None, HIGH, Width.LONG, "Include Tables", "Regexes of the tables to capture; all without it.", regexes),
    prop("table.exclude.list", LIST, None, MEDIUM, Width.LONG, "Exclude Tables", "Regexes of tables that are not captured.", regexes, not_beside("table.include.list")),
    prop("table.ignore.builtin", BOOLEAN, "true", LOW, Width.SHORT, "Ignore system databases", "Whether the server's own tables are left out.", is_boolean),
    prop("schema.include.list", LIST, None, HIGH, Width.LONG, "Include Schemas", "Regexes of the schemas to capture; all without it.", regexes),
    prop("schema.exclude.list", LIST, None, MEDIUM, Width.LONG, "Exclude Schemas", "Regexes of schemas that are not captured.", regexes, not_beside("schema.include.list")),
    prop("message.key.columns", STRING, None, MEDIUM, Width.LONG, "Columns PK mapping", "Columns that make the key instead of the primary key: `<table regex>:<column>,<column>;…`.", key_columns),
    prop("snapshot.select.statement.overrides", STRING, None, MEDIUM, Width.LONG, "List of tables where the default select statement used during snapshotting should be overridden.", "Tables that a snapshot reads with a statement of one's own."),
    prop("column.mask.hash.([^.]+).with.salt.(.+)", STRING, None, MEDIUM, Width.LONG, "Mask Columns Using Hash and Salt", "Regexes of columns whose values are replaced by a hash."),
    prop("column.mask.with.(d+).chars", STRING, None, MEDIUM, Width.NONE, "Mask Columns With n Asterisks", "Regexes of columns whose values are replaced by asterisks.", is_int),
    prop("column.truncate.to.(d+).chars", INT, None, MEDIUM, Width.NONE, "Truncate Columns To n Characters", "Regexes of columns whose values are cut.", is_int),
    prop("include.schema.comments", BOOLEAN, "false", MEDIUM, Width.SHORT, "Include Table and Column Comments", "Whether comments become part of schemas.", is_boolean),
    prop("column.propagate.source.type", LIST, None, MEDIUM, Width.NONE, "Propagate Source Types by Columns", "Regexes of columns whose database type becomes part of schemas.", regexes),
    prop("datatype.propagate.source.type", LIST, None, MEDIUM, Width.NONE, "Propagate Source Types by Data Type", "Regexes of types that become part of schemas.", regexes),
    prop("snapshot.tables.order.by.row.count", STRING, "disabled", MEDIUM, Width.NONE, "Initial snapshot tables order by row count", "Whether a snapshot begins with the small or the large tables.", values=("disabled", "ascending", "descending")),
    prop("skipped.operations", LIST, "t", LOW, Width.SHORT, "Skipped Operations", "Operations that make no records: c, u, d, t, or none.", operations),
)  # fmt: skip

#: Properties that Debezium does not have, of every database connector that hosts incremental snapshots. Answers show one only where it is
#: given, so that all others are Debezium's own.
OWN: tuple[Property, ...] = (
    prop("signal.conditions.enabled", BOOLEAN, "true", LOW, Width.SHORT, "Conditions of signals", "Whether signals may choose rows by conditions and statements of their own, which the connector's user runs.", is_boolean),
    prop("snapshot.new.tables", STRING, "off", LOW, Width.MEDIUM, "Snapshot of new tables", "Whether a table that a running connector begins to capture is read by an incremental snapshot.", new_tables, values=("off", "incremental")),
    prop("incremental.snapshot.chunk.time.ms", LONG, "0", LOW, Width.MEDIUM, "Incremental snapshot chunk time", "How long reading a chunk should take, in ms: chunks become larger or smaller for it. 0 leaves them at incremental.snapshot.chunk.size.", non_negative_long),
)  # fmt: skip

#: How names are made, which Debezium reads for databases of tables and does not list.
UNLISTED_NAMES: tuple[Property, ...] = (
    prop("field.name.adjustment.mode", STRING, "none", LOW, Width.MEDIUM, "Field Name Adjustment", "Whether names of fields are made to fit Avro.", values=("none", "avro_unicode", "avro")),
    prop("topic.delimiter", STRING, ".", MEDIUM, Width.MEDIUM, "Topic delimiter", "Between the parts of topics' names."),
    prop("topic.transaction", STRING, "transaction", LOW, Width.MEDIUM, "Transaction topic", "Last part of the name of the transactions' topic."),
    prop("topic.heartbeat.prefix", STRING, "__debezium-heartbeat", LOW, Width.MEDIUM, "Prefix of the heartbeat topic", "First part of the name of the heartbeats' topic."),
    prop("topic.heartbeat.name", STRING, None, LOW, Width.MEDIUM, "Heartbeat topic", "The whole name of the heartbeats' topic."),
    prop("topic.cache.size", STRING, "10000", LOW, Width.SHORT, "Topic cache size", "Accepted and not used."),
)  # fmt: skip

#: Beginnings of names that are not in the tables: settings of drivers, of a signal's or the schema history's clients, of custom
#: converters' parts, and everything that Debezium calls internal.
OPEN_PREFIXES = (
    *(known.key.name for known in OWN),
    "database.ssl",
    "driver.",
    "internal.",
    "openlineage.",
    # not among the reference's definitions, which reads it all the same
    "read.only",
    "schema.history.internal.",
    "signal.",
    "notification.",
    "snapshot.select.statement.overrides.",
    "snapshot.mode.custom.",
)

#: 1.x name → present name.
OLD_NAMES: Mapping[str, str] = {
    "database.server.name": "topic.prefix",
    "event.deserialization.failure.handling.mode": "event.processing.failure.handling.mode",
    "toasted.value.placeholder": "unavailable.value.placeholder",
    "transaction.topic": "topic.transaction",
    **{f"{kind}.whitelist": f"{kind}.include.list" for kind in ("database", "schema", "table", "column", "collection")},
    **{f"{kind}.blacklist": f"{kind}.exclude.list" for kind in ("database", "schema", "table", "column", "collection")},
}


def with_present_names(config: Config, old_names: Mapping[str, str]) -> tuple[dict[str, str | None], list[str]]:
    """Return a configuration with old names replaced, and a warning for each; where both are given the present name counts."""
    present = dict(config)
    warnings = []
    for old, new in old_names.items():
        if old in present:
            value = present.pop(old)
            if present.get(new) is None:
                present[new] = value
                warnings.append(f"'{old}' is an old name of '{new}'; it was taken as that, please rename it")
            else:
                warnings.append(f"'{old}' is an old name of '{new}', which is given too; the old one was left out")
    return present, warnings


def with_present_mode(present: dict[str, str | None], old_modes: Mapping[str, str]) -> list[str]:
    """Replace an old name of a `snapshot.mode`, and warn of it: tutorials and configurations of releases before 2.6 have them."""
    mode = (present.get("snapshot.mode") or "").strip().lower()
    if mode not in old_modes:
        return []
    present["snapshot.mode"] = old_modes[mode]
    return [f"snapshot.mode '{mode}' is the old name of '{old_modes[mode]}'; it was taken as that, please rename it"]


def with_defaults(properties: Mapping[str, Property], present: Config) -> dict[str, str]:
    """Return what is given, and the defaults of what is not, where they are texts."""
    raw = {name: p.key.default for name, p in properties.items() if isinstance(p.key.default, str)}
    raw.update({name: text for name, text in present.items() if text is not None})
    return raw


def skipped_operations(raw: Mapping[str, str]) -> frozenset[str]:
    """Return the operations that make no records (`skipped.operations`): c, u, d, t; `none` stands for no operation."""
    return frozenset(part.strip().lower() for part in raw["skipped.operations"].split(",") if part.strip()) - {"none"}


def validate_own(present: Config) -> list[ConfigValue]:
    """Return the value and problems of each property of `OWN` that is given."""
    return validate({known.key.name: known for known in OWN if known.key.name in present}, present)


class ParsedConfig:
    """Reads properties of a valid configuration by their types.

    Attributes:
        raw: the texts of all properties that are given or have a default, by present names.
        topic_prefix: `topic.prefix`.
    """

    raw: Mapping[str, str]
    topic_prefix: str

    def flag(self, name: str) -> bool:
        """Return a BOOLEAN property."""
        return self.raw[name].strip().lower() == "true"

    def seconds(self, name: str) -> float:
        """Return a property that is in milliseconds, in seconds."""
        return int(self.raw[name]) / 1000

    def number(self, name: str) -> int:
        """Return an INT or LONG property."""
        return int(self.raw[name])

    def choice(self, name: str, default: str = "") -> str:
        """Return a property with a few values, in lower case."""
        return self.raw.get(name, default).strip().lower()

    @property
    def deletes_close_windows(self) -> bool:
        """Whether an incremental snapshot's high watermark is the deletion of its low one."""
        return self.choice("incremental.snapshot.watermarking.strategy") == "insert_delete"

    def names(self, name: str) -> list[str]:
        """Return a LIST property of names, in lower case."""
        return [part.strip().lower() for part in self.raw.get(name, "").split(",") if part.strip()]
