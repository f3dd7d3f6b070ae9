"""Define and read the worker's own properties (`WorkerConfig.java`, `DistributedConfig.java`, `StandaloneConfig.java`), and warn at the
start about those that do nothing. Pure.

Client settings at the top level and below ``producer.``, ``consumer.``, ``admin.`` are not listed here: `connect_py.kafka.client` composes
them from the raw properties.

A properties file of Kafka Connect is taken as it is, so a property that only means something in a JVM is no error. But it is not passed
over in silence either, nor is an unknown one: you set it because you expect something. docs/configuration.md lists the state of every
property.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from connect_py.api import ConfigDef, ConfigKey, ConfigType, Importance
from connect_py.api.config import REQUIRED, between, one_of, one_of_ignoring_case, parse_value, valid_partitions, valid_replicas
from connect_py.api.permissions import FILE_PATHS
from connect_py.config.client_overrides import override_policy
from connect_py.config.restart_policy import DEFINITION as RESTARTS
from connect_py.config.restart_policy import RestartPolicy
from connect_py.config.unknown_properties import closest, unknown_sentence
from connect_py.errors import ConfigError
from connect_py.kafka.client import EXACTLY_ONCE_SUPPORT, ExactlyOnceSupport
from connect_py.kafka.settings import CLIENT_NO_EFFECT, ClientKind, client_definitions, is_client_property
from connect_py.providers.resolver import PROVIDERS

#: A task is a process of about 35 MB: one request must not exhaust a machine. More than Connect's users commonly have.
MAX_TASKS_OF_CONNECTOR = 100
MAX_TASKS_OF_WORKER = 1000

#: How long a request waits for the end of a rebalance: longer than one takes, and shorter than clients wait.
CONFLICT_WAIT_MS = 10_000

FACTS_INTERVAL = "source.facts.interval.ms"
#: A stalled source is to be known within 30 s, which takes three looks.
FACTS_INTERVAL_MS = 10_000

TASKS_OF_CONNECTOR = "tasks.max.per.connector"
TASKS_OF_WORKER = "tasks.max.per.worker"

_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

_BOTH = (
    ConfigKey("bootstrap.servers", ConfigType.LIST, "localhost:9092", _HIGH, "Brokers to ask first, as host:port."),
    ConfigKey("key.converter", ConfigType.CLASS, REQUIRED, _HIGH, "Converter of keys for connectors that name none."),
    ConfigKey("value.converter", ConfigType.CLASS, REQUIRED, _HIGH, "Converter of values for connectors that name none."),
    ConfigKey(
        "header.converter",
        ConfigType.CLASS,
        "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        _LOW,
        "Converter of headers for connectors that name none.",
    ),
    ConfigKey(
        "task.shutdown.graceful.timeout.ms", ConfigType.LONG, 5000, _LOW, "How long tasks may take to end before they are killed.", None, -1
    ),
    ConfigKey(
        TASKS_OF_CONNECTOR,
        ConfigType.INT,
        MAX_TASKS_OF_CONNECTOR,
        _MEDIUM,
        "The most tasks that a connector may have, whatever its tasks.max: each is a process.",
        validator=between(1),
    ),
    ConfigKey(
        TASKS_OF_WORKER, ConfigType.INT, MAX_TASKS_OF_WORKER, _MEDIUM, "The most tasks that run on this worker.", validator=between(1)
    ),
    ConfigKey(
        "task.fork.server",
        ConfigType.BOOLEAN,
        True,
        _LOW,
        "Whether tasks are forked from a process that has imported what they need, so that they start at once and share its memory.",
    ),
    ConfigKey("offset.flush.interval.ms", ConfigType.LONG, 60000, _LOW, "Time between two commits of a source task's offsets."),
    ConfigKey("offset.flush.timeout.ms", ConfigType.LONG, 5000, _LOW, "How long a commit may take."),
    ConfigKey("listeners", ConfigType.LIST, "http://:8083", _LOW, "Addresses of the REST API."),
    ConfigKey("rest.advertised.host.name", ConfigType.STRING, None, _LOW, "Host name that other workers and clients should use."),
    ConfigKey("rest.advertised.port", ConfigType.INT, None, _LOW, "Port that other workers and clients should use."),
    ConfigKey("rest.advertised.listener", ConfigType.STRING, None, _LOW, "Scheme that other workers should use: http or https."),
    ConfigKey("rest.allowed.hosts", ConfigType.LIST, None, _LOW, "Host names by which clients may call the REST API; by default any."),
    ConfigKey("rest.basic.auth.file", ConfigType.STRING, None, _LOW, "File of users of the REST API."),
    ConfigKey(
        "rest.ui",
        ConfigType.STRING,
        "full",
        _LOW,
        "The page /ui: full, read-only (no buttons that change something) or off.",
        validator=one_of_ignoring_case("full", "read-only", "off"),
    ),
    ConfigKey(
        "rest.ui.records",
        ConfigType.BOOLEAN,
        False,
        _LOW,
        "Whether the page /ui shows keys and values of rows where a lakehouse table differs from its source.",
    ),
    ConfigKey("rest.redact.secrets", ConfigType.BOOLEAN, False, _LOW, "Whether answers show [hidden] in place of secrets."),
    ConfigKey("topic.tracking.enable", ConfigType.BOOLEAN, True, _LOW, "Whether topics in use are noted."),
    ConfigKey("topic.tracking.allow.reset", ConfigType.BOOLEAN, True, _LOW, "Whether the notes may be reset."),
    ConfigKey("topic.creation.enable", ConfigType.BOOLEAN, True, _LOW, "Whether source connectors may have topics created."),
    ConfigKey("plugin.path", ConfigType.LIST, None, _LOW, "Folders with plugins, as pip install --target makes them."),
    ConfigKey(
        "plugin.discovery",
        ConfigType.STRING,
        "hybrid_warn",
        _LOW,
        "Accepted; all four mean the same here, since plugins are found by metadata alone.",
        validator=one_of_ignoring_case("only_scan", "hybrid_warn", "hybrid_fail", "service_load"),
    ),
    ConfigKey(
        FILE_PATHS,
        ConfigType.LIST,
        "",
        _MEDIUM,
        "Folders below which FileStreamSource and FileStreamSink may read and write; standalone, by default the working directory.",
    ),
    ConfigKey("config.providers", ConfigType.LIST, "", _LOW, "Providers of values for placeholders."),
    ConfigKey("metrics.sample.window.ms", ConfigType.LONG, 30000, _LOW, "Length of one sample of a rate.", validator=between(1)),
    ConfigKey("metrics.num.samples", ConfigType.INT, 2, _LOW, "How many samples a rate is taken from.", validator=between(1)),
    ConfigKey(
        "metrics.recording.level",
        ConfigType.STRING,
        "INFO",
        _LOW,
        "Accepted; everything is recorded at every level.",
        validator=one_of("INFO", "DEBUG", "TRACE"),
    ),
    ConfigKey("metric.reporters", ConfigType.LIST, "", _LOW, "Accepted and not used: Prometheus scrapes /metrics."),
    ConfigKey(
        FACTS_INTERVAL,
        ConfigType.LONG,
        FACTS_INTERVAL_MS,
        _LOW,
        "How often each connector's database is asked for the state of its log, also while the task is stopped; 0: never.",
        validator=between(0),
    ),
    ConfigKey(
        "health.listeners",
        ConfigType.LIST,
        None,
        _LOW,
        "Addresses of /health without a password, for probes, in addition to the REST API's.",
    ),
    ConfigKey("metrics.listeners", ConfigType.LIST, None, _LOW, "Addresses of /metrics: by default those of the REST API, empty for none."),
    ConfigKey(
        "connector.client.config.override.policy",
        ConfigType.STRING,
        None,
        _MEDIUM,
        "Which client settings a connector may override: All, None, Principal or Allowlist; by default those that only tune a client.",
    ),
    ConfigKey(
        "connector.client.config.override.allowlist",
        ConfigType.LIST,
        None,
        _MEDIUM,
        "Client settings that a connector may override.",
    ),
)

#: In milliseconds (`DistributedConfig.java`).
GROUP_TIMINGS = ConfigDef(
    [
        ConfigKey(
            "session.timeout.ms",
            ConfigType.INT,
            10_000,
            _HIGH,
            "After how long without a heartbeat a worker is out of the group.",
            validator=between(1),
        ),
        ConfigKey("heartbeat.interval.ms", ConfigType.INT, 3_000, _HIGH, "Time between two heartbeats.", validator=between(1)),
        ConfigKey("rebalance.timeout.ms", ConfigType.INT, 60_000, _HIGH, "How long workers have to join a round.", validator=between(1)),
        ConfigKey(
            "worker.sync.timeout.ms",
            ConfigType.INT,
            3_000,
            _MEDIUM,
            "How long a worker may take to read the configuration, before it leaves the group.",
            validator=between(1),
        ),
        ConfigKey(
            "worker.unsync.backoff.ms",
            ConfigType.INT,
            300_000,
            _MEDIUM,
            "How long it stays away then, with connect.protocol=eager.",
            validator=between(1),
        ),
        ConfigKey("scheduled.rebalance.max.delay.ms", ConfigType.INT, 300_000, _LOW, "Wait for a lost worker.", validator=between(0)),
    ]
)


def _replicas(name: str, topic: str) -> ConfigKey:
    documentation = f"Replicas of the {topic} topic, -1 for the broker's default."
    return ConfigKey(name, ConfigType.SHORT, 3, _LOW, documentation, validator=valid_replicas)


def _partitions(name: str, default: int, topic: str) -> ConfigKey:
    documentation = f"Partitions of the {topic} topic when it is created, -1 for the broker's default."
    return ConfigKey(name, ConfigType.INT, default, _LOW, documentation, validator=valid_partitions)


_DISTRIBUTED = (
    ConfigKey("group.id", ConfigType.STRING, REQUIRED, _HIGH, "Name of the Connect cluster."),
    ConfigKey("config.storage.topic", ConfigType.STRING, REQUIRED, _HIGH, "Topic of connector configurations."),
    ConfigKey("offset.storage.topic", ConfigType.STRING, REQUIRED, _HIGH, "Topic of source offsets."),
    ConfigKey("status.storage.topic", ConfigType.STRING, REQUIRED, _HIGH, "Topic of statuses."),
    _replicas("config.storage.replication.factor", "config"),
    _replicas("offset.storage.replication.factor", "offset"),
    _replicas("status.storage.replication.factor", "status"),
    _partitions("offset.storage.partitions", 25, "offset"),
    _partitions("status.storage.partitions", 5, "status"),
    ConfigKey(
        "connect.protocol",
        ConfigType.STRING,
        "sessioned",
        _LOW,
        "Group protocol.",
        validator=one_of_ignoring_case("eager", "compatible", "sessioned"),
    ),
    ConfigKey(
        EXACTLY_ONCE_SUPPORT,
        ConfigType.STRING,
        ExactlyOnceSupport.DISABLED.value,
        _HIGH,
        "Exactly-once delivery of sources.",
        validator=one_of_ignoring_case(*ExactlyOnceSupport),
    ),
    ConfigKey(
        "drain.mode",
        ConfigType.STRING,
        "auto",
        _LOW,
        "Whether the work of a worker that ends goes to the others at once (auto), or waits for its return as in Kafka Connect (leave).",
        validator=one_of_ignoring_case("auto", "leave"),
    ),
    ConfigKey(
        "rest.conflict.wait.ms",
        ConfigType.LONG,
        CONFLICT_WAIT_MS,
        _LOW,
        "How long a request waits for the end of a rebalance before it is refused.",
        validator=between(0),
    ),
    *GROUP_TIMINGS.keys.values(),
)

_STANDALONE = (ConfigKey("offset.storage.file.filename", ConfigType.STRING, REQUIRED, _HIGH, "File of source offsets."),)

_ONLY_OF_GROUPS = frozenset({"group.id", EXACTLY_ONCE_SUPPORT})

DISTRIBUTED = ConfigDef([*_BOTH, *_DISTRIBUTED])
STANDALONE = ConfigDef([*_BOTH, *_STANDALONE])

#: RestServer.java
_LISTENER = re.compile(r"^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


@dataclass(frozen=True)
class WorkerConfig:
    """What the runtime reads of the worker's properties.

    Attributes:
        raw: all properties as given; stores, clients and tasks read theirs from here.
        origins: where a property's value is from, for people: `file` and its path, or `environment` and the variable. What is not there has
            a default.
        defaults: by name, as text, of the properties that this mode has and that were not given; None: no value.
    """

    raw: Mapping[str, str]
    listeners: Sequence[str]
    graceful_shutdown_seconds: float
    flush_interval_seconds: float
    flush_timeout_seconds: float
    topic_tracking: bool
    topic_tracking_reset: bool
    topic_creation: bool
    group_id: str | None
    redact_secrets: bool
    plugin_path: Sequence[str]
    max_tasks_of_connector: int = MAX_TASKS_OF_CONNECTOR
    max_tasks: int = MAX_TASKS_OF_WORKER
    has_fork_server: bool = True
    exactly_once: ExactlyOnceSupport = ExactlyOnceSupport.DISABLED
    conflict_wait_seconds: float = CONFLICT_WAIT_MS / 1000
    facts_seconds: float = FACTS_INTERVAL_MS / 1000
    shows_records: bool = False
    origins: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    defaults: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def parse(cls, properties: Mapping[str, str], definition: ConfigDef = DISTRIBUTED) -> WorkerConfig:
        """Check the worker's properties.

        Raises:
            ConfigError: one is missing or malformed, or asks for what this worker does not have.
        """
        values = definition.parse(properties)
        listeners = values["listeners"] or ["http://:8083"]
        for listener in listeners:
            split_listener(listener)
        override_policy(properties)
        RestartPolicy.of(properties, {})
        # one file may serve both modes, and what only a group has must not reach what reads the raw properties of a standalone worker
        raw = {name: value for name, value in properties.items() if name in definition.keys or name not in _ONLY_OF_GROUPS}
        return cls(
            raw=raw,
            listeners=listeners,
            graceful_shutdown_seconds=values["task.shutdown.graceful.timeout.ms"] / 1000,
            flush_interval_seconds=values["offset.flush.interval.ms"] / 1000,
            flush_timeout_seconds=values["offset.flush.timeout.ms"] / 1000,
            topic_tracking=values["topic.tracking.enable"],
            topic_tracking_reset=values["topic.tracking.allow.reset"],
            topic_creation=values["topic.creation.enable"],
            group_id=values.get("group.id"),
            redact_secrets=values["rest.redact.secrets"],
            plugin_path=values["plugin.path"] or (),
            max_tasks_of_connector=values[TASKS_OF_CONNECTOR],
            max_tasks=values[TASKS_OF_WORKER],
            has_fork_server=values["task.fork.server"],
            exactly_once=ExactlyOnceSupport.of(raw),
            conflict_wait_seconds=values.get("rest.conflict.wait.ms", CONFLICT_WAIT_MS) / 1000,
            facts_seconds=values[FACTS_INTERVAL] / 1000,
            shows_records=values["rest.ui.records"],
            defaults={name: None if key.default is None else str(key.default) for name, key in definition.keys.items() if name not in raw},
        )

    def worker_id(self, bound: Sequence[str] = ()) -> str:
        """``<advertised host>:<advertised port>``: as configured, else of the advertised listener, else this machine's address.

        Args:
            bound: URLs that the REST server listens on, in the order of `listeners`, for listeners with port 0.
        """
        number = self._advertised_listener()
        _, host, port = split_listener(self.listeners[number])
        if port == 0 and len(bound) > number:
            port = split_listener(bound[number])[2]
        advertised = self.raw.get("rest.advertised.host.name") or host
        if not advertised or advertised in ("0.0.0.0", "::"):  # noqa: S104
            advertised = _local_address()
        return f"{advertised}:{self.raw.get('rest.advertised.port') or port}"

    @property
    def advertised_scheme(self) -> str:
        """By which other workers reach this one: ``rest.advertised.listener``, else http if there is such a listener, else https."""
        given = (self.raw.get("rest.advertised.listener") or "").strip().lower()
        schemes = [split_listener(listener)[0] for listener in self.listeners]
        return given or ("http" if "http" in schemes else "https")

    def _advertised_listener(self) -> int:
        """Return the first listener of the advertised scheme, the first of all when there is none (a proxy in front speaks it then)."""
        schemes = [split_listener(listener)[0] for listener in self.listeners]
        return schemes.index(self.advertised_scheme) if self.advertised_scheme in schemes else 0


def split_listener(listener: str) -> tuple[str, str, int]:
    """(scheme, host, port) of a listener. Raises ConfigError."""
    match = _LISTENER.match(listener.strip())
    if match is None:
        raise ConfigError(f"Listener doesn't have the right format (protocol://hostname:port): {listener}")
    scheme = match[1].lower()
    if scheme not in ("http", "https"):
        raise ConfigError(f'Listener protocol must be either "http" or "https": {listener}')
    return scheme, match[2], int(match[3])


def _local_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


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
        "response.http.headers.config",
        "rest.extension.classes",
        "value.converter.plugin.version",
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
    **CLIENT_NO_EFFECT,
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
