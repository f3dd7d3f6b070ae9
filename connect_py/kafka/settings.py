"""Translate Java client properties to librdkafka's: one table of names with how values become librdkafka's, and the few rules that do more.

Sources: `ProducerConfig.java`, `ConsumerConfig.java`, `AdminClientConfig.java`, `CommonClientConfigs.java`; librdkafka's CONFIGURATION.md.
Names that only mean something in a JVM are left out silently, unknown ones with one warning a process. Nothing reaches librdkafka under a
name that isn't in this table, so a connector's override cannot load code into the worker (`plugin.library.paths`). A conversion of a value
raises ValueError for what is no number.

`refused_value` finds values of the right type that the Java clients refuse when they are made. `client_definitions` has the definitions of
the Java clients' properties, as validation answers show them; their table is `client_definitions.json`: one property a line, with the
clients that have it in this form. Both are Kafka 4.3's.
"""

from __future__ import annotations

import enum
import functools
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from connect_py.api.config import REQUIRED, ConfigKey, ConfigType, Importance
from connect_py.errors import ConfigError
from connect_py.kafka.security import security_settings

log = logging.getLogger(__name__)


#: Java's Integer.MAX_VALUE, with which Connect asks for "no delivery timeout"; librdkafka says 0.
INT_MAX = 2**31 - 1

Convert = Callable[[str], object]


def number(value: str) -> int:
    """Return a number as it is."""
    return int(value.strip())


def at_least(low: int) -> Convert:
    """Return a number, or this bound of librdkafka's when it is smaller."""
    return lambda value: max(low, number(value))


def within(low: int, high: int) -> Convert:
    """Return a number within librdkafka's bounds."""
    return lambda value: min(high, max(low, number(value)))


def kilobytes(value: str) -> int:
    """Return bytes as whole kilobytes."""
    return max(1, number(value) // 1024)


def buffer(value: str) -> int:
    """Return a size of which -1 leaves the choice to the system: librdkafka's 0."""
    return max(0, number(value))


def timeout(value: str) -> int:
    """Milliseconds, of which the largest means none."""
    given = number(value)
    return 0 if given >= INT_MAX else max(1, given)


def boolean(value: str) -> bool:
    """true in any case, everything else is false."""
    return value.strip().lower() == "true"


def lower(value: str) -> str:
    """Return a word that librdkafka writes small."""
    return value.strip().lower()


def text(value: str) -> str:
    """Return a text without blanks around it."""
    return value.strip()


#: `org.apache.kafka.common.internals.Topic`.
_TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")

#: `Utils.HOST_PORT_PATTERN`.
_ADDRESS = re.compile(r"(?:[a-zA-Z][a-zA-Z\d+.-]*://)?\[?([0-9a-zA-Z\-._%:]+)\]?:([0-9]+)", re.ASCII)


def is_topic_name(name: str) -> bool:
    """Return whether a topic can have this name."""
    return _TOPIC_NAME.fullmatch(name) is not None


def addresses(value: str) -> str:
    """Return a list of brokers. Raises ConfigError: one has no port (`ClientUtils.parseAndValidateAddresses`)."""
    given = [address.strip() for address in value.split(",") if address.strip()]
    for address in given:
        if not _ADDRESS.fullmatch(address):
            raise ConfigError(f"Invalid url in bootstrap.servers: {address}")
    if not given:
        raise ConfigError("No bootstrap urls given in bootstrap.servers")
    return ",".join(given)


_ASSIGNORS = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def assignors(value: str) -> str:
    """Return Java's classes of partition assignors as librdkafka's names; others are left out."""
    names = [name.strip() for name in value.split(",") if name.strip()]
    found = [_ASSIGNORS[name] for name in names if name in _ASSIGNORS]
    # librdkafka refuses a list that mixes eager and cooperative ones, which Java allows for a rolling change
    if "cooperative-sticky" in found:
        return found[0] if found[0] != "cooperative-sticky" else "cooperative-sticky"
    return ",".join(found) or "range,roundrobin"


def offset_reset(value: str) -> str:
    """`none` is `error` there. A duration, which librdkafka does not know, is for offsets that are gone: the earliest."""
    return "earliest" if reset_seconds(value) is not None else lower(value).replace("none", "error")


_BY_DURATION = "by_duration"
_DURATION = re.compile(r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d{0,9})?)S)?)?", re.IGNORECASE)


def reset_seconds(value: str) -> float | None:
    """Return how far back `auto.offset.reset=by_duration:P7D` begins, in seconds (KIP-1106); None for other values.

    Raises:
        ConfigError: it is no duration, or less than nothing.
    """
    word, colon, text = value.strip().partition(":")
    if word.lower() != _BY_DURATION:
        return None
    wrong = f"Invalid value {value.strip()} for configuration auto.offset.reset: "
    if not colon or not text:
        raise ConfigError(f"{wrong}<:duration> part is missing in by_duration auto offset reset strategy.")
    found = _DURATION.fullmatch(text)
    if found is None:
        is_negative = _DURATION.fullmatch(text.replace("-", "")) is not None
        problem = "Negative duration is not supported" if is_negative else "Unable to parse duration string"
        raise ConfigError(f"{wrong}{problem} in by_duration offset reset strategy.")
    days, hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


_WORDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "producer": {"acks": ("all", "-1", "0", "1"), "compression.type": ("none", "gzip", "snappy", "lz4", "zstd")},
    "consumer": {"isolation.level": ("read_committed", "read_uncommitted")},
}
_MINIMUMS: Final[Mapping[str, Mapping[str, int]]] = {
    "producer": {
        "batch.size": 0,
        "buffer.memory": 0,
        "delivery.timeout.ms": 0,
        "linger.ms": 0,
        "max.block.ms": 0,
        "max.in.flight.requests.per.connection": 1,
        "max.request.size": 0,
        "receive.buffer.bytes": -1,
        "request.timeout.ms": 0,
        "retries": 0,
        "retry.backoff.ms": 0,
        "send.buffer.bytes": -1,
    },
    "consumer": {"fetch.max.bytes": 0, "fetch.min.bytes": 0, "max.poll.interval.ms": 1, "max.poll.records": 1},
}


def refused_value(client: str, name: str, value: str) -> str | None:
    """Return what is wrong with a value, in Kafka's words; None where it is allowed, or no number (which its conversion reports).

    Args:
        client: producer, consumer or admin.
    """
    text = value.strip()
    if client == "consumer" and name == "auto.offset.reset":
        try:
            reset_seconds(text)
        except ConfigError as error:
            return str(error)
    words = _WORDS.get(client, {}).get(name)
    if words is not None and text not in words:
        return f"Invalid value {text} for configuration {name}: String must be one of: {', '.join(words)}"
    least = _MINIMUMS.get(client, {}).get(name)
    if least is not None and text.removeprefix("-").isdecimal() and int(text) < least:
        return f"Invalid value {text} for configuration {name}: Value must be at least {least}"
    return None


class ClientKind(enum.Enum):
    """Which of Kafka's clients a set of properties is for."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


_ALL = frozenset(ClientKind)
_PRODUCER = frozenset({ClientKind.PRODUCER})
_CONSUMER = frozenset({ClientKind.CONSUMER})

#: Where librdkafka has another name for the same thing.
_RENAMED = {
    "buffer.memory": "queue.buffering.max.kbytes",
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "delivery.timeout.ms": "message.timeout.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}

#: Java's names by the clients that know them and by how a value is translated, bounds included.
_TABLE: tuple[tuple[frozenset[ClientKind], Convert, str], ...] = (
    (_ALL, addresses, "bootstrap.servers"),
    (_ALL, text, "client.id"),
    (_ALL, lower, "client.dns.lookup metadata.recovery.strategy"),
    (_ALL, buffer, "connections.max.idle.ms send.buffer.bytes receive.buffer.bytes"),
    (_ALL, boolean, "enable.metrics.push"),
    (_ALL, within(1000, 3_600_000), "metadata.max.age.ms"),
    (_ALL, within(1, 3_600_000), "reconnect.backoff.ms reconnect.backoff.max.ms"),
    (_ALL, within(10, 300_000), "request.timeout.ms"),
    (_ALL, at_least(1000), "socket.connection.setup.timeout.ms"),
    (_PRODUCER, lower, "acks compression.type"),
    (_PRODUCER, text, "transactional.id"),
    (_PRODUCER, boolean, "enable.idempotence"),
    (_PRODUCER, number, "compression.gzip.level compression.lz4.level compression.zstd.level retries"),
    (_PRODUCER, at_least(1), "batch.size max.in.flight.requests.per.connection"),
    (_PRODUCER, at_least(1000), "transaction.timeout.ms"),
    (_PRODUCER, within(0, 900_000), "linger.ms"),
    (_PRODUCER, within(1, 300_000), "retry.backoff.ms retry.backoff.max.ms"),
    (_PRODUCER, within(1000, 1_000_000_000), "max.request.size"),
    (_PRODUCER, kilobytes, "buffer.memory"),
    (_PRODUCER, timeout, "delivery.timeout.ms"),
    (_CONSUMER, lower, "group.protocol isolation.level"),
    (_CONSUMER, text, "client.rack group.id group.instance.id group.remote.assignor"),
    (_CONSUMER, boolean, "allow.auto.create.topics check.crcs enable.auto.commit"),
    (_CONSUMER, number, "auto.commit.interval.ms fetch.max.bytes fetch.max.wait.ms heartbeat.interval.ms max.partition.fetch.bytes"),
    (_CONSUMER, number, "max.poll.interval.ms session.timeout.ms"),
    (_CONSUMER, at_least(1), "fetch.min.bytes"),
    (_CONSUMER, offset_reset, "auto.offset.reset"),
    (_CONSUMER, assignors, "partition.assignment.strategy"),
)

#: Java's name -> (librdkafka's name, clients that know it, conversion).
_NAMES = {name: (_RENAMED.get(name, name), clients, convert) for clients, convert, names in _TABLE for name in names.split()}

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
_OF_OPENSSL = "the clients use OpenSSL, and the machine's policy for it"
_OF_REFRESH = "librdkafka renews a login by itself"
#: Property of clients → why it does nothing here, although it would change something in Java.
CLIENT_NO_EFFECT: Final[Mapping[str, str]] = {
    "exclude.internal.topics": "internal topics are never read by a pattern",
    "partitioner.ignore.keys": "records with a key go where the key says",
    **dict.fromkeys(("ssl.cipher.suites", "ssl.enabled.protocols", "ssl.protocol", "ssl.provider"), _OF_OPENSSL),
    **dict.fromkeys(("ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "ssl.secure.random.implementation"), _OF_OPENSSL),
    **dict.fromkeys(("sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter"), _OF_REFRESH),
    **dict.fromkeys(("sasl.login.refresh.min.period.seconds", "sasl.login.refresh.buffer.seconds"), _OF_REFRESH),
}

_SILENT_PREFIXES = ("ssl.", "sasl.", "security.", "metrics.context.", "internal.", "config.providers.")

_CLIENT_NAMES = frozenset(_NAMES) | _SILENT

_warned: set[str] = set()


def is_client_property(name: str) -> bool:
    """Return whether a top-level worker property is one of Kafka's client properties."""
    return name in _CLIENT_NAMES or name.startswith(_SILENT_PREFIXES)


def librdkafka_config(properties: Mapping[str, str], kind: ClientKind) -> dict[str, object]:
    """Return settings for a librdkafka client from a client's Java properties.

    Raises:
        ConfigError: a value that cannot be used; the text names the property, and its value only where that is no secret.
    """
    found: dict[str, object] = {"enable.metrics.push": False, **security_settings(properties)}
    for name, value in properties.items():
        if value is None:
            continue
        if refused := refused_value(kind.value, name, value):
            raise ConfigError(refused)
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
        # Java reads uncommitted records unless configured otherwise, librdkafka doesn't
        found.setdefault("isolation.level", "read_uncommitted")
    found.setdefault("socket.timeout.ms", _request_ms(found))
    return found


#: Java's default of `request.timeout.ms`. librdkafka waits for a minute, and says nothing of a broker that has fallen silent meanwhile.
_REQUEST_MS = 30_000


def _request_ms(found: Mapping[str, object]) -> int:
    """Return how long an answer is waited for. librdkafka refuses a transaction that ends before its first request would."""
    transaction = found.get("transaction.timeout.ms")
    return max(900, min(_REQUEST_MS, transaction - 100)) if isinstance(transaction, int) else _REQUEST_MS


def _level_applies(name: str, properties: Mapping[str, str]) -> bool:
    return name == f"compression.{properties.get('compression.type', 'none').strip().lower()}.level"


def _producer_rules(found: dict[str, object], properties: Mapping[str, str]) -> None:
    # Java's hash of the key (murmur2): the same key must stay in the same partition when a topic changes hands
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


_DEFINITIONS = Path(__file__).with_name("client_definitions.json")


@functools.cache
def client_definitions(kind: ClientKind) -> Mapping[str, ConfigKey]:
    """Name → definition of a client's properties."""
    return {entry["name"]: _key(entry) for entry in orjson.loads(_DEFINITIONS.read_bytes()) if kind.value in entry["clients"]}


def _key(entry: Mapping[str, Any]) -> ConfigKey:
    default = REQUIRED if entry.get("required") else entry.get("default")
    importance = Importance(entry["importance"])
    return ConfigKey(entry["name"], ConfigType(entry["type"]), default, importance, entry["documentation"], entry.get("group"))
