"""Runs of names that groups of all database connectors share, in the order of `CommonConnectorConfig.CONFIG_DEFINITION`, and those among
them that none reads."""

from __future__ import annotations

from typing import Final

DELIVERY: Final = (
    "event.processing.failure.handling.mode",
    "max.batch.size",
    "max.queue.size",
    "poll.interval.ms",
    "max.queue.size.in.bytes",
    "provide.transaction.metadata",
)

SNAPSHOTS: Final = (
    "snapshot.delay.ms",
    "streaming.delay.ms",
    "snapshot.include.collection.list",
    "snapshot.fetch.size",
    "snapshot.max.threads",
    "snapshot.max.threads.multiplier",
    "legacy.snapshot.max.threads",
    "internal.legacy.snapshot.max.threads",
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
    "internal.log.position.check.enable",
    "internal.advanced.metrics.enable",
    "connection.validation.timeout.ms",
    "executor.shutdown.timeout.ms",
    "openlineage.integration.enabled",
    "openlineage.integration.config.file.path",
    "openlineage.integration.job.namespace",
    "openlineage.integration.job.description",
    "openlineage.integration.job.tags",
    "openlineage.integration.job.owners",
    "openlineage.integration.dataset.kafka.bootstrap.servers",
    "extended.headers.enabled",
    "guardrail.collections.max",
    "guardrail.collections.limit.action",
    "custom.sanitize.pattern",
    "statistics.metrics.enabled",
)

RECORDS: Final = (
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
)

COLUMN_RULES: Final = (
    "message.key.columns",
    "snapshot.select.statement.overrides",
    "column.mask.hash.([^.]+).with.salt.(.+)",
    "column.mask.with.(d+).chars",
    "column.truncate.to.(d+).chars",
)

SOURCE_TYPES: Final = (
    "include.schema.comments",
    "column.propagate.source.type",
    "datatype.propagate.source.type",
    "internal.snapshot.scan.all.columns.force",
    "snapshot.tables.order.by.row.count",
    "heartbeat.action.query",
)

_NO_LINEAGE = "no lineage is reported to OpenLineage"
#: What is accepted and changes nothing: whether a task warns of a value other than the default, and why.
COMMON_WITHOUT_EFFECT: Final[dict[str, tuple[bool, str]]] = {
    "internal.legacy.snapshot.max.threads": (False, "tables are cut into chunks; legacy.snapshot.max.threads changes that"),
    "internal.advanced.metrics.enable": (False, "what can be measured is measured once a batch, which costs nothing"),
    "internal.snapshot.scan.all.columns.force": (False, "structures are read of the tables that count"),
    "openlineage.integration.enabled": (True, _NO_LINEAGE),
    "openlineage.integration.config.file.path": (False, _NO_LINEAGE),
    "openlineage.integration.job.namespace": (False, _NO_LINEAGE),
    "openlineage.integration.job.description": (False, _NO_LINEAGE),
    "openlineage.integration.job.tags": (False, _NO_LINEAGE),
    "openlineage.integration.job.owners": (False, _NO_LINEAGE),
    "openlineage.integration.dataset.kafka.bootstrap.servers": (False, _NO_LINEAGE),
}
