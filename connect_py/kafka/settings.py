"""Java client properties as librdkafka's: one table of names, and the few rules that are no renaming.

Sources: `ProducerConfig.java`, `ConsumerConfig.java`, `AdminClientConfig.java`, `CommonClientConfigs.java`; librdkafka's CONFIGURATION.md.
Names that only mean something in a JVM are left out silently, unknown ones with one warning a process. Nothing reaches librdkafka under a
name that isn't in this table, so a connector's override cannot load code into the worker (`plugin.library.paths`).
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping

from connect_py.errors import ConfigError
from connect_py.kafka.security import security_settings

log = logging.getLogger(__name__)

#: Java's Integer.MAX_VALUE, with which Connect asks for "no delivery timeout"; librdkafka says 0.
INT_MAX = 2**31 - 1


class ClientKind(enum.Enum):
    """Which of Kafka's clients a set of properties is for."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


_ALL = frozenset(ClientKind)
_PRODUCER = frozenset({ClientKind.PRODUCER})
_CONSUMER = frozenset({ClientKind.CONSUMER})
_DATA = _PRODUCER | _CONSUMER

Convert = Callable[[str], object]


def _number(value: str) -> int:
    return int(value.strip())


def _at_least(low: int) -> Convert:
    return lambda value: max(low, _number(value))


def _within(low: int, high: int) -> Convert:
    return lambda value: min(high, max(low, _number(value)))


def _kilobytes(value: str) -> int:
    return max(1, _number(value) // 1024)


def _buffer(value: str) -> int:
    return max(0, _number(value))


def _timeout(value: str) -> int:
    number = _number(value)
    return 0 if number >= INT_MAX else max(1, number)


def _boolean(value: str) -> bool:
    return value.strip().lower() == "true"


def _lower(value: str) -> str:
    return value.strip().lower()


def _text(value: str) -> str:
    return value.strip()


_ASSIGNORS = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def _assignors(value: str) -> str:
    names = [name.strip() for name in value.split(",") if name.strip()]
    found = [_ASSIGNORS[name] for name in names if name in _ASSIGNORS]
    # librdkafka refuses a list that mixes eager and cooperative ones, which Java allows for a rolling change
    if "cooperative-sticky" in found:
        return found[0] if found[0] != "cooperative-sticky" else "cooperative-sticky"
    return ",".join(found) or "range,roundrobin"


#: Java's name -> (librdkafka's name, clients that know it, conversion).
_NAMES: dict[str, tuple[str, frozenset[ClientKind], Convert]] = {
    "bootstrap.servers": ("bootstrap.servers", _ALL, _text),
    "client.id": ("client.id", _ALL, _text),
    "client.rack": ("client.rack", _CONSUMER, _text),
    "client.dns.lookup": ("client.dns.lookup", _ALL, _lower),
    "connections.max.idle.ms": ("connections.max.idle.ms", _ALL, _buffer),
    "metadata.max.age.ms": ("topic.metadata.refresh.interval.ms", _ALL, _within(1000, 3_600_000)),
    "metadata.recovery.strategy": ("metadata.recovery.strategy", _ALL, _lower),
    "reconnect.backoff.ms": ("reconnect.backoff.ms", _ALL, _within(1, 3_600_000)),
    "reconnect.backoff.max.ms": ("reconnect.backoff.max.ms", _ALL, _within(1, 3_600_000)),
    "request.timeout.ms": ("socket.timeout.ms", _ALL, _within(10, 300_000)),
    "socket.connection.setup.timeout.ms": ("socket.connection.setup.timeout.ms", _ALL, _at_least(1000)),
    "send.buffer.bytes": ("socket.send.buffer.bytes", _ALL, _buffer),
    "receive.buffer.bytes": ("socket.receive.buffer.bytes", _ALL, _buffer),
    "enable.metrics.push": ("enable.metrics.push", _ALL, _boolean),
    "retry.backoff.ms": ("retry.backoff.ms", _PRODUCER, _within(1, 300_000)),
    "retry.backoff.max.ms": ("retry.backoff.max.ms", _PRODUCER, _within(1, 300_000)),
    "acks": ("acks", _PRODUCER, _lower),
    "batch.size": ("batch.size", _PRODUCER, _at_least(1)),
    "buffer.memory": ("queue.buffering.max.kbytes", _PRODUCER, _kilobytes),
    "compression.type": ("compression.type", _PRODUCER, _lower),
    "compression.gzip.level": ("compression.level", _PRODUCER, _number),
    "compression.lz4.level": ("compression.level", _PRODUCER, _number),
    "compression.zstd.level": ("compression.level", _PRODUCER, _number),
    "delivery.timeout.ms": ("message.timeout.ms", _PRODUCER, _timeout),
    "enable.idempotence": ("enable.idempotence", _PRODUCER, _boolean),
    "linger.ms": ("linger.ms", _PRODUCER, _within(0, 900_000)),
    "max.in.flight.requests.per.connection": ("max.in.flight.requests.per.connection", _PRODUCER, _at_least(1)),
    "max.request.size": ("message.max.bytes", _PRODUCER, _within(1000, 1_000_000_000)),
    "retries": ("retries", _PRODUCER, _number),
    "transaction.timeout.ms": ("transaction.timeout.ms", _PRODUCER, _at_least(1000)),
    "transactional.id": ("transactional.id", _PRODUCER, _text),
    "allow.auto.create.topics": ("allow.auto.create.topics", _CONSUMER, _boolean),
    "auto.commit.interval.ms": ("auto.commit.interval.ms", _CONSUMER, _number),
    "auto.offset.reset": ("auto.offset.reset", _CONSUMER, lambda value: _lower(value).replace("none", "error")),
    "check.crcs": ("check.crcs", _CONSUMER, _boolean),
    "enable.auto.commit": ("enable.auto.commit", _CONSUMER, _boolean),
    "fetch.max.bytes": ("fetch.max.bytes", _CONSUMER, _number),
    "fetch.max.wait.ms": ("fetch.wait.max.ms", _CONSUMER, _number),
    "fetch.min.bytes": ("fetch.min.bytes", _CONSUMER, _at_least(1)),
    "group.id": ("group.id", _CONSUMER, _text),
    "group.instance.id": ("group.instance.id", _CONSUMER, _text),
    "group.protocol": ("group.protocol", _CONSUMER, _lower),
    "group.remote.assignor": ("group.remote.assignor", _CONSUMER, _text),
    "heartbeat.interval.ms": ("heartbeat.interval.ms", _CONSUMER, _number),
    "isolation.level": ("isolation.level", _CONSUMER, _lower),
    "max.partition.fetch.bytes": ("max.partition.fetch.bytes", _CONSUMER, _number),
    "max.poll.interval.ms": ("max.poll.interval.ms", _CONSUMER, _number),
    "partition.assignment.strategy": ("partition.assignment.strategy", _CONSUMER, _assignors),
    "session.timeout.ms": ("session.timeout.ms", _CONSUMER, _number),
}

#: Known to Java and of no meaning here, or handled by our own code (`max.block.ms`, `max.poll.records`, security).
_SILENT = frozenset(
    {
        "auto.include.jmx.reporter",
        "bootstrap.controllers",
        "config.providers",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "security.providers",
        "socket.connection.setup.timeout.max.ms",
        "transaction.two.phase.commit.enable",
        "value.deserializer",
        "value.serializer",
    }
)
_SILENT_PREFIXES = ("ssl.", "sasl.", "security.", "metrics.context.", "internal.", "config.providers.")

_CLIENT_NAMES = frozenset(_NAMES) | _SILENT

_warned: set[str] = set()


def is_client_property(name: str) -> bool:
    """Whether a top-level worker property is one of Kafka's client properties."""
    return name in _CLIENT_NAMES or name.startswith(_SILENT_PREFIXES)


def librdkafka_config(properties: Mapping[str, str], kind: ClientKind) -> dict[str, object]:
    """Settings for a librdkafka client from a client's Java properties.

    Raises:
        ConfigError: a value that cannot be used; the text names the property, and its value only where that is no secret.
    """
    found: dict[str, object] = {"enable.metrics.push": False, **security_settings(properties)}
    for name, value in properties.items():
        if value is None:
            continue
        entry = _NAMES.get(name)
        if entry is None:
            if not is_client_property(name):
                _warn_once(name, kind)
            continue
        setting, kinds, convert = entry
        if kind not in kinds or (name.startswith("compression.") and name.endswith(".level") and not _level_applies(name, properties)):
            continue
        try:
            found[setting] = convert(value)
        except ValueError:
            raise ConfigError(f"Invalid value {value} for configuration {name}: Not a number of type INT") from None
    if kind is ClientKind.PRODUCER:
        _producer_rules(found, properties)
    elif kind is ClientKind.CONSUMER:
        # Java reads uncommitted records unless told otherwise, librdkafka doesn't
        found.setdefault("isolation.level", "read_uncommitted")
    return found


def _level_applies(name: str, properties: Mapping[str, str]) -> bool:
    return name == f"compression.{properties.get('compression.type', 'none').strip().lower()}.level"


def _producer_rules(found: dict[str, object], properties: Mapping[str, str]) -> None:
    # Java's hash of the key (murmur2): the same key must go on to the same partition when a topic changes hands
    found["partitioner"] = "murmur2_random"
    largest = found.setdefault("message.max.bytes", 1_048_576)
    queue = found.setdefault("queue.buffering.max.kbytes", 32_768)
    if isinstance(largest, int) and isinstance(queue, int):
        # a record that the queue cannot hold at all would wait for room for ever
        found["queue.buffering.max.kbytes"] = max(queue, largest // 1024 + 1)
    acks = found.get("acks", "all")
    in_flight = found.get("max.in.flight.requests.per.connection", 5)
    if "enable.idempotence" not in properties:
        # as ProducerConfig.postProcessAndValidateIdempotenceConfigs: on, unless another setting rules it out
        found["enable.idempotence"] = acks in ("all", "-1") and isinstance(in_flight, int) and in_flight <= 5 and found.get("retries") != 0
    if found["enable.idempotence"]:
        if acks not in ("all", "-1"):
            raise ConfigError("Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence.")
        if isinstance(in_flight, int) and in_flight > 5:
            raise ConfigError("Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent producer.")


def _warn_once(name: str, kind: ClientKind) -> None:
    if name not in _warned:
        _warned.add(name)
        log.warning("Client property '%s' (of a Kafka %s client) is not known and has no effect", name, kind.value)
