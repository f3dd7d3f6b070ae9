"""Compose the properties of each of a worker's Kafka clients (`Worker.java`: base*Configs; the `Kafka*BackingStore`s).

Order, later wins: fixed base, the worker's `producer.` / `consumer.` / `admin.` properties, the connector's `producer.override.` /
`consumer.override.` / `admin.override.`. The worker's own clients (internal topics, shared admin) take its top-level client properties.
Everything here is a plain mapping by Java's names; `settings` translates it where a client is made.

One deliberate difference: Connect gives source producers `enable.idempotence=false` and `max.in.flight.requests.per.connection=1`, which
may duplicate after a lost answer. The idempotent producer lets the broker drop what a retry repeats, so `enable.idempotence` is left to its
default, true. (It could have five requests of a partition under way; librdkafka, which counts records in their place, has one.)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import StrEnum

from connect_py.errors import ConfigError
from connect_py.kafka.settings import INT_MAX, ClientKind, is_client_property, librdkafka_config

__all__ = [
    "ClientKind",
    "ExactlyOnceSupport",
    "connector_admin_properties",
    "dead_letter_admin_properties",
    "dead_letter_producer_properties",
    "internal_properties",
    "is_exactly_once",
    "librdkafka_config",
    "sink_consumer_properties",
    "source_producer_properties",
    "transactional_id",
    "transactional_producer_properties",
]

log = logging.getLogger(__name__)

EXACTLY_ONCE_SUPPORT = "exactly.once.source.support"

_CLIENT_PREFIXES = ("admin.", "producer.", "consumer.")

#: Source producers fill batches: a stream of rows makes batches near 1 MB, which is what compression and the broker's request rate gain
#: from (64 KiB batches cost 1.7 times the CPU, Java's 16 KiB 3.5 times). 8 MiB of queue hold eight such batches, of which one is under way;
#: Java's 32 MiB cost a fifth more CPU (caches) and 25 MiB of memory. All measured with 3.3 kB rows and lz4. A topic that the broker is
#: creating is asked for again after 20, 60 and 140 ms: a broker takes some 30 ms, and Java's 100 ms were a third of the time to a first
#: record.
_PRODUCER_BASE = {
    "acks": "all",
    "max.block.ms": str(2**63 - 1),
    "delivery.timeout.ms": str(INT_MAX),
    "batch.size": "1000000",
    "buffer.memory": "8388608",
    "retry.backoff.ms": "20",
}

#: ``transaction.timeout.ms`` of Java's producer, and librdkafka's.
TRANSACTION_MS = "60000"

_CONSUMER_BASE = {"enable.auto.commit": "false", "auto.offset.reset": "earliest"}


def source_producer_properties(
    worker: Mapping[str, str], connector: str, task: int, connector_config: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return properties of the producer of a source task, client id `connector-producer-C-N`."""
    return _compose(worker, {**_PRODUCER_BASE, "client.id": f"connector-producer-{connector}-{task}"}, "producer.", connector_config)


def transactional_producer_properties(
    worker: Mapping[str, str], connector: str, task: int, connector_config: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return properties of the producer of an exactly-once source task, transactional id `G-C-N` (`ExactlyOnceSourceTaskBuilder`)."""
    found = source_producer_properties(worker, connector, task, connector_config)
    forced = {"enable.idempotence": "true", "transactional.id": transactional_id(worker, connector, task)}
    for name, value in forced.items():
        given = found.get(name)
        if given is not None and given.strip() != value:
            log.warning("The value '%s' of %s is overridden with '%s', because the task is an exactly-once source", given, name, value)
    if found["delivery.timeout.ms"] == _PRODUCER_BASE["delivery.timeout.ms"]:
        # a record that is not delivered in the time of its transaction never will be
        found["delivery.timeout.ms"] = found.get("transaction.timeout.ms", TRANSACTION_MS)
    return {**found, **forced}


class ExactlyOnceSupport(StrEnum):
    """The values of ``exactly.once.source.support`` (KIP-618; `DistributedConfig.ExactlyOnceSourceSupport`)."""

    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"

    @classmethod
    def of(cls, worker: Mapping[str, str]) -> ExactlyOnceSupport:
        """Read a worker's property, in any case. Raises ConfigError."""
        text = worker.get(EXACTLY_ONCE_SUPPORT, "").strip()
        try:
            return cls(text.lower() or cls.DISABLED)
        except ValueError:
            names = ", ".join(cls)
            raise ConfigError(f"Invalid value {text} for configuration {EXACTLY_ONCE_SUPPORT}: it must be one of {names}.") from None

    @property
    def has_transactional_leader(self) -> bool:
        """Whether the leader writes the configuration topic in transactions."""
        return self is not ExactlyOnceSupport.DISABLED


def is_exactly_once(worker: Mapping[str, str]) -> bool:
    """Return whether a worker's sources write in transactions. Raises ConfigError."""
    return ExactlyOnceSupport.of(worker) is ExactlyOnceSupport.ENABLED


def transactional_id(worker: Mapping[str, str], connector: str, task: int) -> str:
    """Return the id of a task's producer (`Worker.taskTransactionalId`)."""
    return f"{worker.get('group.id', '')}-{connector}-{task}"


def sink_consumer_properties(
    worker: Mapping[str, str], connector: str, task: int, connector_config: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return properties of the consumer of a sink task: group `connect-C`, client id `connector-consumer-C-N`."""
    base = {**_CONSUMER_BASE, "group.id": f"connect-{connector}", "client.id": f"connector-consumer-{connector}-{task}"}
    return _compose(worker, base, "consumer.", connector_config)


def connector_admin_properties(
    worker: Mapping[str, str], connector: str, task: int, connector_config: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return properties of a task's admin client: the worker's top-level ones are its base, client id `connector-adminclient-C-N`."""
    base = {**_top_level(worker), "client.id": f"connector-adminclient-{connector}-{task}"}
    return _compose(worker, base, "admin.", connector_config)


def dead_letter_producer_properties(
    worker: Mapping[str, str], connector: str, task: int, connector_config: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return properties of the producer of a sink task's dead letter queue, client id `connector-dlq-producer-C-N`."""
    base = {**_PRODUCER_BASE, "linger.ms": "10", "client.id": f"connector-dlq-producer-{connector}-{task}"}
    return _compose(worker, base, "producer.", connector_config)


def dead_letter_admin_properties(
    worker: Mapping[str, str], connector: str, task: int, connector_config: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return properties of the admin client that creates a dead letter queue, client id `connector-dlq-adminclient-C-N`."""
    base = {**_top_level(worker), "client.id": f"connector-dlq-adminclient-{connector}-{task}"}
    return _compose(worker, base, "admin.", connector_config)


def internal_properties(worker: Mapping[str, str], suffix: str) -> dict[str, str]:
    """Return properties of a client of the worker itself, client id `<group.id>[-<client.id>]-<suffix>`.

    Args:
        suffix: configs, offsets, statuses or shared-admin.
    """
    base = worker.get("group.id", "connect-standalone")
    if worker.get("client.id"):
        base += "-" + worker["client.id"]
    return {"bootstrap.servers": "localhost:9092", **_top_level(worker), "client.id": f"{base}-{suffix}"}


def _top_level(worker: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in worker.items() if is_client_property(name) and not name.startswith(_CLIENT_PREFIXES)}


def _compose(worker: Mapping[str, str], base: Mapping[str, str], prefix: str, connector_config: Mapping[str, str] | None) -> dict[str, str]:
    found = {"bootstrap.servers": worker.get("bootstrap.servers", "localhost:9092"), **base}
    for source, start in ((worker, prefix), (connector_config or {}, prefix + "override.")):
        for name, value in source.items():
            if name.startswith(start) and not (source is worker and name.startswith(prefix + "override.")):
                found[name[len(start) :]] = value
    return found
