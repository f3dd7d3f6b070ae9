"""Properties that all database connectors share (debezium-common §17), their old names (§19), and what the engine reads from them."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api import ConfigValue
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
    Property,
    S,
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
    prop("topic.prefix", S, None, HIGH, WM, "Topic prefix", "First part of every topic's name; also the name of the source in offsets and records. Never change it.", required, is_not_blank_name),
    prop("database.hostname", S, None, HIGH, WM, "Hostname", "Host name or address of the database server.", required, is_name),
    prop("database.user", S, None, HIGH, WS, "User", "Database user of the connector.", required),
    prop("database.password", P, None, HIGH, WS, "Password", "Password of that user."),
    prop("database.query.timeout.ms", I, "600000", LOW, N, "Query timeout", "How long one statement may take, in ms; 0 is for ever."),
    prop("event.processing.failure.handling.mode", S, "fail", MED, WS, "Event deserialization failure handling", "What to do with an event that cannot be processed: fail the task, warn, or skip it.", values=("warn", "fail", "ignore", "skip")),
    prop("max.batch.size", I, "2048", MED, WS, "Change event batch size", "Most records of one batch.", positive_int),
    prop("max.queue.size", I, "8192", MED, WS, "Change event buffer size", "Most records on their way between the database and Kafka; larger than max.batch.size.", positive_queue, queue_over_batch),
    prop("poll.interval.ms", L, "500", MED, WS, "Poll interval (ms)", "How long to wait for new events, in ms. Here events are passed on as they arrive.", positive_int),
    prop("max.queue.size.in.bytes", L, "0", MED, WL, "Change event buffer size in bytes", "Most bytes on their way; 0 leaves it to the number of records.", non_negative_long),
    prop("provide.transaction.metadata", B, "false", LOW, WS, "Store transaction metadata information in a dedicated topic.", "Whether BEGIN and END of transactions become records and events carry their place in them."),
    prop("snapshot.delay.ms", L, "0", LOW, WM, "Snapshot Delay (milliseconds)", "Pause before a snapshot, in ms.", non_negative_long),
    prop("streaming.delay.ms", L, "0", LOW, WM, "Streaming Delay (milliseconds)", "Pause between a snapshot and streaming, in ms.", non_negative_long),
    prop("snapshot.include.collection.list", LIST, None, MED, WL, "Snapshot mode include data collection", "Regexes of the tables that a snapshot reads; all captured ones without it.", regexes),
    prop("snapshot.fetch.size", I, None, MED, WM, "Snapshot fetch size", "Rows fetched at once while a snapshot reads. COPY streams, so PostgreSQL needs none.", non_negative_int),
    prop("snapshot.max.threads", I, "1", MED, WS, "Snapshot maximum threads", "How many connections read a snapshot.", positive_int),
    prop("snapshot.max.threads.multiplier", I, "1", MED, WS, "Snapshot maximum thread multiplier", "Chunks of a table for each connection of a parallel snapshot.", positive_int),
    prop("legacy.snapshot.max.threads", B, "false", LOW, WS, "Enforces using a single thread per table regardless of table size", "Whether a parallel snapshot gives each table to one connection as a whole."),
    prop("snapshot.mode.custom.name", S, None, MED, WM, "Snapshot Mode Custom Name", "Name of the snapshotter of snapshot.mode=custom.", needed_when("snapshot.mode", "custom")),
    prop("snapshot.mode.configuration.based.snapshot.data", B, "false", MED, WM, "Snapshot mode property based snapshot data", "With snapshot.mode=configuration_based: whether every start reads the data."),
    prop("snapshot.mode.configuration.based.snapshot.schema", B, "false", MED, WM, "Snapshot mode property based snapshot schema", "With snapshot.mode=configuration_based: whether every start reads the structures."),
    prop("snapshot.mode.configuration.based.start.stream", B, "false", MED, WM, "Snapshot mode property based start stream", "With snapshot.mode=configuration_based: whether changes are followed."),
    prop("snapshot.mode.configuration.based.snapshot.on.schema.error", B, "false", MED, WM, "Snapshot mode property based snapshot on schema error", "With snapshot.mode=configuration_based: whether lost structures are read again."),
    prop("snapshot.mode.configuration.based.snapshot.on.data.error", B, "false", MED, WM, "Snapshot mode property based snapshot on data error", "With snapshot.mode=configuration_based: whether the data are read again when the log no longer reaches back."),
    prop("retriable.restart.connector.wait.ms", L, "10000", LOW, WM, "Retriable restart wait (ms)", "Longest pause before the task connects again after a passing failure, in ms.", positive_long),
    prop("query.fetch.size", I, "0", MED, WM, "Query fetch size", "Rows fetched at once by other queries; 0 is the driver's own size.", non_negative_int),
    prop("errors.max.retries", I, "-1", LOW, WM, "The maximum number of retries", "How often to connect again after a passing failure before the task fails; -1 is for ever, 0 never.", is_int),
    prop("incremental.snapshot.watermarking.strategy", S, "INSERT_INSERT", LOW, WM, "Incremental snapshot watermarking strategy", "Whether a window's end inserts into the signal table or deletes its begin.", values=("insert_delete", "insert_insert")),
    prop("connection.validation.timeout.ms", L, "60000", LOW, WS, "Connection validation timeout (ms)", "How long the connection test of a validation may take, in ms.", positive_long),
    prop("executor.shutdown.timeout.ms", L, "4000", MED, WM, "Executor shutdown timeout (ms)", "How long a stopping task may take, in ms.", positive_long),
    prop("internal.legacy.snapshot.max.threads", B, "false", LOW, WS, "Enforces using a single thread per table regardless of table size", "Accepted; legacy.snapshot.max.threads is what counts."),
    prop("internal.log.position.check.enable", B, "true", MED, WM, "Enable/Disable log position check", "Whether a start of PostgreSQL's looks whether the slot still has its position; others always look."),
    prop("internal.advanced.metrics.enable", B, "false", MED, WM, "Enable/Disable advance metrics", "Accepted; docs/metrics.md lists what is measured."),
    prop("internal.snapshot.scan.all.columns.force", B, "false", LOW, WS, "Snapshot force scan all columns of all tables", "Accepted; structures are read of the tables that count."),
    prop("openlineage.integration.enabled", B, "false", LOW, WS, "Enables OpenLineage integration", "Accepted; no lineage is reported."),
    prop("openlineage.integration.config.file.path", S, "./openlineage.yml", LOW, WL, "Path to OpenLineage file configuration", "Accepted; no lineage is reported."),
    prop("openlineage.integration.job.namespace", S, None, LOW, WL, "Namespace used for Debezium job", "Accepted; no lineage is reported."),
    prop("openlineage.integration.job.description", S, "Debezium change data capture job", LOW, WL, "Description used for Debezium job", "Accepted; no lineage is reported."),
    prop("openlineage.integration.job.tags", LIST, None, LOW, WL, "Debezium job tags", "Accepted; no lineage is reported."),
    prop("openlineage.integration.job.owners", LIST, None, LOW, WL, "Debezium job owners", "Accepted; no lineage is reported."),
    prop("openlineage.integration.dataset.kafka.bootstrap.servers", S, None, LOW, WL, "Kafka bootstrap server used in Kafka Connect deployment", "Accepted; no lineage is reported."),
    prop("extended.headers.enabled", B, "true", LOW, WS, "Enable/Disable extended headers", "Whether records carry the headers __debezium.context.*.", is_boolean),
    prop("guardrail.collections.max", I, "0", MED, WS, "Maximum number of collections or tables", "Most tables that may be captured; 0 is any number.", non_negative_int),
    prop("guardrail.collections.limit.action", S, "warn", MED, WS, "Guardrail collections limit action", "What to do above that number.", values=("warn", "fail")),
    prop("custom.sanitize.pattern", S, None, LOW, WL, "Custom pattern for masking sensitive configuration", "Regex of further property names whose values are secrets."),
    prop("statistics.metrics.enabled", B, "true", MED, WS, "Enable collecting statistics metrics like latencies", "Whether latencies are measured."),
    prop("decimal.handling.mode", S, "precise", MED, WS, "Decimal Handling", "How decimals look: precise (bytes with a scale), string or double.", values=("string", "double", "precise")),
    prop("time.precision.mode", S, "adaptive", MED, WS, "Time Precision", "How dates and times look.", values=("adaptive", "adaptive_time_microseconds", "isostring", "microseconds", "nanoseconds", "connect")),
    prop("snapshot.lock.timeout.ms", L, "10000", MED, WL, "Snapshot lock timeout (ms)", "How long a snapshot waits for table locks, in ms."),
    prop("snapshot.query.mode", S, "select_all", LOW, WS, "Snapshot query mode", "How a snapshot's queries are made.", values=("custom", "select_all")),
    prop("snapshot.query.mode.custom.name", S, None, MED, WM, "Snapshot Query Mode Custom Name", "Name of the implementation of snapshot.query.mode=custom.", needed_when("snapshot.query.mode", "custom")),
    prop("snapshot.locking.mode.custom.name", S, None, MED, WM, "Snapshot Locking Mode Custom Name", "Name of the implementation of snapshot.locking.mode=custom.", needed_when("snapshot.locking.mode", "custom")),
    prop("binary.handling.mode", S, "bytes", LOW, WM, "Binary Handling", "How binary columns look.", values=("bytes", "base64", "hex", "base64-url-safe")),
    prop("schema.name.adjustment.mode", S, "none", LOW, WM, "Schema Name Adjustment", "Whether schema names are made to fit Avro.", values=("none", "avro_unicode", "avro")),
    prop("incremental.snapshot.chunk.size", I, "1024", MED, WM, "Incremental snapshot chunk size", "Rows of a chunk of an incremental snapshot.", non_negative_int, not_zero),
    prop("unavailable.value.placeholder", S, "__debezium_unavailable_value", MED, WM, "Unavailable value placeholder", "Stands for a value that the database did not send; after `hex:` come octets."),
    prop("converters", S, None, LOW, WM, "List of prefixes defining custom values converters.", "Aliases of custom value converters."),
    prop("post.processors", S, None, LOW, WM, "List of change event post processors.", "Aliases of post-processors."),
    prop("tombstones.on.delete", B, "true", MED, WS, "Change the behaviour of Debezium with regards to delete operations", "Whether a delete is followed by a null value, so that a compacted topic forgets the key.", is_boolean),
    prop("heartbeat.interval.ms", I, "0", MED, WM, "Connector heartbeat interval (milli-seconds)", "How often a heartbeat record is sent, in ms; 0 is never.", non_negative_int),
    prop("heartbeat.topics.prefix", S, "__debezium-heartbeat", LOW, WM, "A prefix used for naming of heartbeat topics", "First part of the heartbeat topic's name."),
    prop("heartbeat.action.query", S, None, LOW, WM, "An optional query to execute with every heartbeat", "A statement that each heartbeat runs in the database."),
    prop("signal.data.collection", LIST, None, MED, WM, "Signaling data collection", "The table through which signals come.", one_collection),
    prop("signal.poll.interval.ms", L, "5000", MED, WS, "Signal processor poll interval", "How often the other signal channels are looked at, in ms.", positive_int),
    prop("signal.enabled.channels", LIST, "source", MED, WL, "Enabled channels names", "Channels through which signals come."),
    prop("topic.naming.strategy", C, "io.debezium.schema.SchemaTopicNamingStrategy", MED, WM, "Topic naming strategy class", "How topics are named."),
    prop("notification.enabled.channels", LIST, None, MED, WL, "Enabled notification channels names", "Channels on which the connector tells what it does."),
    prop("notification.sink.topic.name", S, None, HIGH, WL, "Notification topic name", "Topic of the notification channel `sink`.", sink_topic),
    prop("transaction.metadata.factory", C, "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory", LOW, WM, "Factory class to create transaction context & transaction struct maker classes", "Kept for compatibility."),
    prop("custom.metric.tags", LIST, None, LOW, WM, "Customize metric tags", "Tags of metrics, `name=value`.", pairs),
    prop("column.include.list", LIST, None, MED, WL, "Include Columns", "Regexes of the columns in records; all without it.", regexes),
    prop("column.exclude.list", LIST, None, MED, WL, "Exclude Columns", "Regexes of columns that records leave out.", regexes, not_beside("column.include.list")),
    prop("table.include.list", LIST, None, HIGH, WL, "Include Tables", "Regexes of the tables to capture; all without it.", regexes),
    prop("table.exclude.list", LIST, None, MED, WL, "Exclude Tables", "Regexes of tables that are not captured.", regexes, not_beside("table.include.list")),
    prop("table.ignore.builtin", B, "true", LOW, WS, "Ignore system databases", "Whether the server's own tables are left out.", is_boolean),
    prop("schema.include.list", LIST, None, HIGH, WL, "Include Schemas", "Regexes of the schemas to capture; all without it.", regexes),
    prop("schema.exclude.list", LIST, None, MED, WL, "Exclude Schemas", "Regexes of schemas that are not captured.", regexes, not_beside("schema.include.list")),
    prop("message.key.columns", S, None, MED, WL, "Columns PK mapping", "Columns that make the key instead of the primary key: `<table regex>:<column>,<column>;…`.", key_columns),
    prop("snapshot.select.statement.overrides", S, None, MED, WL, "List of tables where the default select statement used during snapshotting should be overridden.", "Tables that a snapshot reads with a statement of one's own."),
    prop("column.mask.hash.([^.]+).with.salt.(.+)", S, None, MED, WL, "Mask Columns Using Hash and Salt", "Regexes of columns whose values are replaced by a hash."),
    prop("column.mask.with.(d+).chars", S, None, MED, N, "Mask Columns With n Asterisks", "Regexes of columns whose values are replaced by asterisks.", is_int),
    prop("column.truncate.to.(d+).chars", I, None, MED, N, "Truncate Columns To n Characters", "Regexes of columns whose values are cut.", is_int),
    prop("include.schema.comments", B, "false", MED, WS, "Include Table and Column Comments", "Whether comments become part of schemas.", is_boolean),
    prop("column.propagate.source.type", LIST, None, MED, N, "Propagate Source Types by Columns", "Regexes of columns whose database type becomes part of schemas.", regexes),
    prop("datatype.propagate.source.type", LIST, None, MED, N, "Propagate Source Types by Data Type", "Regexes of types that become part of schemas.", regexes),
    prop("snapshot.tables.order.by.row.count", S, "disabled", MED, N, "Initial snapshot tables order by row count", "Whether a snapshot begins with the small or the large tables.", values=("disabled", "ascending", "descending")),
    prop("skipped.operations", LIST, "t", LOW, WS, "Skipped Operations", "Operations that make no records: c, u, d, t, or none.", operations),
)  # fmt: skip

#: Properties that Debezium does not have, of every database connector that hosts incremental snapshots. Answers show one only where it is
#: given, so that all others are Debezium's own.
OWN: tuple[Property, ...] = (
    prop("signal.conditions.enabled", B, "true", LOW, WS, "Conditions of signals", "Whether signals may choose rows by conditions and statements of their own, which the connector's user runs.", is_boolean),
    prop("snapshot.new.tables", S, "off", LOW, WM, "Snapshot of new tables", "Whether a table that a running connector begins to capture is read by an incremental snapshot.", new_tables, values=("off", "incremental")),
    prop("incremental.snapshot.chunk.time.ms", L, "0", LOW, WM, "Incremental snapshot chunk time", "How long reading a chunk should take, in ms: chunks become larger or smaller for it. 0 leaves them at incremental.snapshot.chunk.size.", non_negative_long),
)  # fmt: skip

#: How names are made, which Debezium reads for databases of tables and does not list.
UNLISTED_NAMES: tuple[Property, ...] = (
    prop("field.name.adjustment.mode", S, "none", LOW, WM, "Field Name Adjustment", "Whether names of fields are made to fit Avro.", values=("none", "avro_unicode", "avro")),
    prop("topic.delimiter", S, ".", MED, WM, "Topic delimiter", "Between the parts of topics' names."),
    prop("topic.transaction", S, "transaction", LOW, WM, "Transaction topic", "Last part of the name of the transactions' topic."),
    prop("topic.heartbeat.prefix", S, "__debezium-heartbeat", LOW, WM, "Prefix of the heartbeat topic", "First part of the name of the heartbeats' topic."),
    prop("topic.heartbeat.name", S, None, LOW, WM, "Heartbeat topic", "The whole name of the heartbeats' topic."),
    prop("topic.cache.size", S, "10000", LOW, WS, "Topic cache size", "Accepted and not used."),
)  # fmt: skip

#: Beginnings of names that are not in the tables: settings of drivers, of a signal's or the schema history's clients, of custom
#: converters' parts, and whatever Debezium calls internal.
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
    """A configuration with old names replaced, and a warning for each; where both are given the present name counts."""
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
    """What is given, and the defaults of what is not, where they are texts."""
    raw = {name: p.key.default for name, p in properties.items() if isinstance(p.key.default, str)}
    raw.update({name: text for name, text in present.items() if text is not None})
    return raw


def skipped_operations(raw: Mapping[str, str]) -> frozenset[str]:
    """The letters of `skipped.operations`; `none` stands for no letter."""
    return frozenset(part.strip().lower() for part in raw["skipped.operations"].split(",") if part.strip()) - {"none"}


def validate_own(present: Config) -> list[ConfigValue]:
    """The value and problems of each property of `OWN` that is given."""
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
        """A BOOLEAN property."""
        return self.raw[name].strip().lower() == "true"

    def seconds(self, name: str) -> float:
        """A property that is in milliseconds."""
        return int(self.raw[name]) / 1000

    def number(self, name: str) -> int:
        """An INT or LONG property."""
        return int(self.raw[name])

    def choice(self, name: str, default: str = "") -> str:
        """A property with a few values, in small letters."""
        return self.raw.get(name, default).strip().lower()

    def names(self, name: str) -> list[str]:
        """A LIST property of names, in small letters."""
        return [part.strip().lower() for part in self.raw.get(name, "").split(",") if part.strip()]
