"""Warn at the start about worker properties that are accepted and do nothing, or that are unknown. Pure.

A properties file of Kafka Connect is taken as it is, so a property that only means something in a JVM is no error. But it is not passed
over in silence either: you set it because you expect something. docs/configuration.md lists the state of every property.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connect_py.api import ConfigDef
from connect_py.api.config import ConfigType, parse_value
from connect_py.config.client_overrides import override_policy
from connect_py.config.restart_policy import DEFINITION as RESTARTS
from connect_py.config.unknown_properties import closest, unknown_sentence
from connect_py.config.worker import DISTRIBUTED, STANDALONE, split_listener
from connect_py.kafka.settings import ClientKind, client_definitions, is_client_property
from connect_py.providers.resolver import PROVIDERS

#: Connect's properties that other modules read from the raw properties (`RestServerConfig.java`, `DistributedConfig.java`).
_READ_ELSEWHERE = frozenset(
    {
        "access.control.allow.methods",
        "access.control.allow.origin",
        "admin.listeners",
        "header.converter.plugin.version",
        "inter.worker.key.generation.algorithm",
        "inter.worker.key.size",
        "inter.worker.key.ttl.ms",
        "inter.worker.signature.algorithm",
        "inter.worker.verification.algorithms",
        "key.converter.plugin.version",
        "rebalance.timeout.ms",
        "response.http.headers.config",
        "rest.extension.classes",
        "value.converter.plugin.version",
        "worker.sync.timeout.ms",
        "worker.unsync.backoff.ms",
    }
)

_JAVA_CLASS = "it names a Java class, and this worker loads none"
_INTERNAL_JSON = "Kafka 3.0 removed it: what the worker itself writes is JSON without schemas"

#: Property → why it does nothing here.
_NO_EFFECT = {
    "internal.key.converter": _INTERNAL_JSON,
    "internal.value.converter": _INTERNAL_JSON,
    "interceptor.classes": _JAVA_CLASS,
    "metric.reporters": f"{_JAVA_CLASS}; GET /metrics shows the figures",
    "auto.include.jmx.reporter": "there is no JMX; GET /metrics shows the figures",
    "partitioner.class": _JAVA_CLASS,
    "rest.host.name": "Kafka 3.0 removed it; set listeners",
    "rest.port": "Kafka 3.0 removed it; set listeners",
    "sasl.client.callback.handler.class": _JAVA_CLASS,
    "sasl.login.callback.handler.class": _JAVA_CLASS,
    "sasl.login.class": _JAVA_CLASS,
    "sasl.oauthbearer.jwt.retriever.class": _JAVA_CLASS,
    "sasl.oauthbearer.jwt.validator.class": _JAVA_CLASS,
    "security.providers": _JAVA_CLASS,
    "ssl.engine.factory.class": _JAVA_CLASS,
}

_OF_PRINCIPAL = (
    "The policy Principal is deprecated, as in Kafka Connect: set connector.client.config.override.policy=Allowlist and "
    "connector.client.config.override.allowlist=sasl.jaas.config,sasl.mechanism,security.protocol, which is the same."
)

#: Hosts of listeners that are every interface.
_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104

#: Provider → the parameter that limits it, and what it may read without.
_LIMITS = {
    "FileConfigProvider": ("allowed.paths", "every file of key=value lines that the worker may read"),
    "DirectoryConfigProvider": ("allowed.paths", "every file that the worker may read"),
    "EnvVarConfigProvider": ("allowlist.pattern", "every environment variable of the worker"),
}

#: Families in which the converter, the broker or the provider knows what a name means.
_OPEN = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "config.storage.",
    "offset.storage.",
    "status.storage.",
    "listeners.https.",
    "admin.listeners.https.",
    "metrics.context.",
    "internal.",
)
_CLIENTS = {f"{kind.value}.": kind for kind in ClientKind}


def worker_warnings(properties: Mapping[str, str], definition: ConfigDef) -> list[str]:
    """Return a sentence for each property that has no effect, and for each that leaves a door open.

    Args:
        definition: of the mode in which the worker starts; properties of the other mode are passed over, as one file may serve both.
    """
    known = {*DISTRIBUTED.keys, *STANDALONE.keys, *definition.keys, *RESTARTS.keys, *_READ_ELSEWHERE}
    sentences = [_OF_PRINCIPAL] if override_policy(properties).name == "Principal" else []
    sentences += _open_doors(properties)
    for name in properties:
        sentence = _sentence(name, properties, known)
        if sentence:
            sentences.append(sentence)
    return sentences


def _open_doors(properties: Mapping[str, str]) -> list[str]:
    """Return a sentence for each thing that anybody can reach, or have, by the worker's configuration."""
    sentences = []
    has_users = bool(properties.get("rest.basic.auth.file", "").strip() or properties.get("rest.extension.classes", "").strip())
    for name, default, asks in (("listeners", "http://:8083", has_users), ("admin.listeners", "", False)):
        for listener in parse_value(name, properties.get(name) or default, ConfigType.LIST):
            scheme, host, _ = split_listener(listener)
            if scheme == "http" and host in _EVERYWHERE and not asks:
                who = "change log levels" if name == "admin.listeners" else "create connectors, which act with this worker's rights"
                sentences.append(
                    f"Anybody who reaches {listener} may {who}. Let {name} be a loopback address or https, set rest.basic.auth.file, or "
                    "put a proxy in front; see SECURITY.md."
                )
    for alias in parse_value(PROVIDERS, properties.get(PROVIDERS, ""), ConfigType.LIST):
        kind = properties.get(f"{PROVIDERS}.{alias}.class", "").strip().rpartition(".")[2]
        if kind in _LIMITS and not properties.get(f"{PROVIDERS}.{alias}.param.{_LIMITS[kind][0]}", "").strip():
            limit, what = _LIMITS[kind]
            sentences.append(
                f"Any connector may read {what} by the config provider '{alias}'. Set {PROVIDERS}.{alias}.param.{limit} to limit it."
            )
    return sentences


def _sentence(name: str, properties: Mapping[str, str], known: set[str]) -> str | None:
    family = next((prefix for prefix in _CLIENTS if name.startswith(prefix)), "")
    setting = name.removeprefix(family)
    if setting in _NO_EFFECT:
        return f"The worker's property '{name}' has no effect: {_NO_EFFECT[setting]}."
    if name in known:
        return None
    if family:
        settings = client_definitions(_CLIENTS[family])
        return None if setting in settings else unknown_sentence(f"The {_CLIENTS[family].value} setting of {family}*,", setting, settings)
    if name.startswith(f"{PROVIDERS}."):
        return _of_provider(name, properties)
    if name.startswith(_OPEN):
        meant = _slip(name, known)
        return f"The worker's property '{name}' is not known. Did you mean '{meant}'?" if meant else None
    if is_client_property(name):
        return None
    return unknown_sentence("The worker's property", name, {*known, *(each for kind in ClientKind for each in client_definitions(kind))})


def _slip(name: str, known: Iterable[str]) -> str | None:
    """Return a known name of the same family that differs by a slip only: other settings may stand in the family too."""
    meant = closest(name, (each for each in known if each.startswith(_OPEN)))
    return meant if meant is not None and abs(len(meant) - len(name)) <= 1 and meant.count(".") == name.count(".") else None


def _of_provider(name: str, properties: Mapping[str, str]) -> str | None:
    listed = parse_value(PROVIDERS, properties.get(PROVIDERS, ""), ConfigType.LIST)
    alias, _, rest = name.removeprefix(f"{PROVIDERS}.").partition(".")
    if alias not in listed:
        return f"The worker's property '{name}' has no effect: {PROVIDERS} does not list '{alias}'."
    if rest != "class" and not rest.startswith("param."):
        return unknown_sentence("The worker's property", name, [f"{PROVIDERS}.{alias}.class", f"{PROVIDERS}.{alias}.param."])
    return None
