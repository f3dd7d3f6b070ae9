"""Properties that are accepted and change nothing: what several connectors say of them, and the warning of a task that is given one."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from connectors.engine.properties import Config, Property

log = logging.getLogger(__name__)

#: By name: whether a task warns of a value other than the default, and why the property has no effect.
WithoutEffect = Mapping[str, tuple[bool, str]]

CLASS: Final = "it names a Java class, which cannot be loaded"
_NO_LINEAGE = "no lineage is reported to OpenLineage"
_QUEUE = "rows go from the socket to the producer without a queue; a batch ends after 2,000 rows or 4 MB"
#: Of the connectors of relational databases.
COMMON_WITHOUT_EFFECT: Final[WithoutEffect] = {
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
    "memory.management.schemas.class": (True, CLASS),
    "memory.management.tables.class": (True, CLASS),
    "sourceinfo.struct.maker": (True, CLASS),
    "transaction.metadata.factory": (True, CLASS),
    "max.batch.size": (False, _QUEUE),
    "max.queue.size.in.bytes": (False, _QUEUE),
    "executor.shutdown.timeout.ms": (False, "there are no executors; task.shutdown.graceful.timeout.ms of the worker bounds a stop"),
    "statistics.metrics.enabled": (False, "latencies are measured once a batch, which costs nothing"),
    "custom.metric.tags": (True, "figures are labelled with connector, task and server"),
    "snapshot.query.mode.custom.name": (False, "snapshot.query.mode=custom is refused"),
    "snapshot.locking.mode.custom.name": (False, "snapshot.locking.mode=custom is refused"),
    "incremental.snapshot.allow.schema.changes": (False, "a change of structure inside of a chunk always makes it be read again"),
    "heartbeat.topics.prefix": (True, "as in Debezium; topic.heartbeat.prefix names the topic"),
    "topic.cache.size": (False, "names of topics are made once a structure"),
}


def warn_of_unused(unused: WithoutEffect, properties: Mapping[str, Property], present: Config) -> None:
    """Nobody shall wait for what a property does not do."""
    for name, (warns, why) in unused.items():
        text = present.get(name)
        default = properties[name].key.default if name in properties else None
        if warns and text and text.strip().lower() != str(default or "").lower():
            log.warning("%s=%s has no effect: %s", name, text, why)
