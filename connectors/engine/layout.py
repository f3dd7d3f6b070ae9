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
