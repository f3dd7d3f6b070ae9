"""Decide which client settings a connector may override (KIP-458, and KIP-1188's allow-list; `connector/policy/*.java`). Pure.

``connector.client.config.override.policy`` is All, None, Principal or Allowlist, by alias or Java class name. Kafka's default is All, by
which anyone who may create a connector decides which cluster the worker connects to, with which files and as whom. The default here is
Allowlist with `HARMLESS`: everything that tunes a client, and nothing that says where it connects, who it is, or what it reads or loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from connect_py.api import Connector, SinkConnector
from connect_py.api.config import ConfigType, parse_value
from connect_py.api.storage import OWN_OFFSETS_TOPIC
from connect_py.data.java_map import in_java_order
from connect_py.errors import ConfigError
from connect_py.kafka.client import is_exactly_once
from connect_py.kafka.security import refuse_login_module
from connect_py.kafka.settings import ClientKind

POLICY = "connector.client.config.override.policy"
ALLOWLIST = "connector.client.config.override.allowlist"

#: Client settings that only tune: sizes, times, retries, compression, offsets, and the names under which a client reports itself.
#: `transactional.id` (it fences other producers), `enable.auto.commit` (it commits records that no sink has seen) and whatever names an
#: address, a file, a login or a class are not among them.
HARMLESS = frozenset(
    """
    acks batch.size buffer.memory compression.type compression.gzip.level compression.lz4.level compression.zstd.level delivery.timeout.ms
    enable.idempotence linger.ms max.block.ms max.in.flight.requests.per.connection max.request.size
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.ignore.keys retries transaction.timeout.ms
    allow.auto.create.topics auto.offset.reset check.crcs default.api.timeout.ms exclude.internal.topics fetch.max.bytes fetch.max.wait.ms
    fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms isolation.level
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records partition.assignment.strategy session.timeout.ms
    client.dns.lookup client.id client.rack connections.max.idle.ms enable.metrics.push metadata.max.age.ms metadata.max.idle.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metrics.num.samples metrics.recording.level metrics.sample.window.ms
    receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms
    send.buffer.bytes socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    """.split()  # noqa: SIM905  # sixty quoted words read worse
)

_PRINCIPAL = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})
_SUFFIX = "ConnectorClientConfigOverridePolicy"
_PACKAGE = "org.apache.kafka.connect.connector.policy."
_HINT = f" (The worker's default allows what tunes a client. Its property {POLICY}=All allows everything, as Kafka Connect's default does.)"


@dataclass(frozen=True)
class OverridePolicy:
    """A policy.

    Attributes:
        name: as error texts have it.
        allowed: the settings it allows, None for all.
        is_default: it was not chosen, so its errors say how to choose another.
    """

    name: str
    allowed: frozenset[str] | None
    is_default: bool = False

    def refusal(self, setting: str) -> str | None:
        """Return why a setting may not be overridden, in Connect's words; None when it may."""
        if self.allowed is None or setting in self.allowed:
            return None
        text = f"The '{self.name}' policy does not allow '{setting}' to be overridden in the connector configuration."
        return text + _HINT if self.is_default else text


def override_policy(worker: Mapping[str, str]) -> OverridePolicy:
    """Return the policy that a worker's properties name.

    Raises:
        ConfigError: there is no such policy. Kafka loads policies of others; no configuration value is loaded here.
    """
    listed = worker.get(ALLOWLIST)
    given = (worker.get(POLICY) or "").strip()
    if not given:
        return OverridePolicy("Allowlist", HARMLESS, is_default=True) if listed is None else OverridePolicy("Allowlist", _names(listed))
    name = given.removeprefix(_PACKAGE).removesuffix(_SUFFIX)
    if name == "Allowlist":
        return OverridePolicy(name, _names(listed or ""))
    known = {"All": None, "None": frozenset[str](), "Principal": _PRINCIPAL}
    if name not in known:
        raise ConfigError(f"Invalid value {given} for configuration {POLICY}: it must be one of All, None, Principal or Allowlist.")
    return OverridePolicy(name, known[name])


def clients_of(connector: type[Connector], worker: Mapping[str, str], config: Mapping[str, str | None]) -> list[ClientKind]:
    """Return the kinds of clients that a connector's tasks use, in the order of validation answers (`AbstractHerder.connectorUses…`)."""

    def has(key: str) -> bool:
        return bool((config.get(key) or "").strip())

    if issubclass(connector, SinkConnector):
        return list(ClientKind) if has("errors.deadletterqueue.topic.name") else [ClientKind.CONSUMER]
    own_offsets = has(OWN_OFFSETS_TOPIC) or is_exactly_once(worker)
    if own_offsets and "group.id" in worker:  # standalone workers have no offsets topics
        return list(ClientKind)
    creates_topics = any(key.startswith("topic.creation.") for key in config)
    return [ClientKind.PRODUCER, ClientKind.ADMIN] if creates_topics else [ClientKind.PRODUCER]


def overrides_of(config: Mapping[str, str | None], kind: ClientKind) -> dict[str, str | None]:
    """Return a connector's overrides for a kind of client, without prefix, in the order of Java's map."""
    return overrides_under(config, override_prefix(kind))


def overrides_under(config: Mapping[str, str | None], prefix: str) -> dict[str, str | None]:
    """As `overrides_of`, of properties whose names begin with a prefix."""
    own = {key.removeprefix(prefix): value for key, value in in_java_order(config, copied=True).items() if key.startswith(prefix)}
    return in_java_order(own)


def override_prefix(kind: ClientKind) -> str:
    """``producer.override.`` and its like."""
    return f"{kind.value}.override."


def override_error(policy: OverridePolicy, setting: str, value: str | None) -> str | None:
    """What is wrong with one override, None when nothing is. Login modules that Kafka does not allow are refused under every policy."""
    refused = policy.refusal(setting)
    if refused is None and setting == "sasl.jaas.config" and value:
        try:
            refuse_login_module(value)
        except ConfigError as error:
            return str(error)
    return refused


def require_allowed(
    worker: Mapping[str, str], config: Mapping[str, str], kinds: Iterable[ClientKind], prefixes: Iterable[str] = ()
) -> None:
    """Check a connector's overrides once more where its clients are made: a stored configuration may be older than the policy.

    Args:
        prefixes: of settings of clients that the connector makes itself (`Connector.client_prefixes`).

    Raises:
        ConfigError: an override is not allowed. No client was made.
    """
    policy = override_policy(worker)
    refused = [
        error
        for prefix in (*map(override_prefix, kinds), *prefixes)
        for setting, value in overrides_under(config, prefix).items()
        if (error := override_error(policy, setting, value))
    ]
    if refused:
        raise ConfigError(f"Client Config Overrides not allowed: {' '.join(refused)}")


def _names(listed: str) -> frozenset[str]:
    return frozenset(name for name in parse_value(ALLOWLIST, listed, ConfigType.LIST) if name)
