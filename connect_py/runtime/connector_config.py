"""What a connector's configuration means: its framework keys, and the rules between them. Pure.

`connector_definition` is `ConnectorConfig.enrich`: the common keys, the source's or sink's, and those of every transform and predicate
that the configuration names. `sink_topic_errors` is `SinkConnectorConfig.validate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigDef, ConfigKey, ConfigType, Connector, Importance, SinkConnector, Width
from connect_py.api.config import REQUIRED, Validator, invalid, parse_value
from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError
from connect_py.runtime.connector_keys import COMMON, SINK, SOURCE
from connect_py.runtime.plugins import Plugins

NAME = "name"
CONNECTOR_CLASS = "connector.class"
TASK_CLASS = "task.class"
TOPICS = "topics"
TOPICS_REGEX = "topics.regex"
DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"

CONVERTERS = {"key.converter": "converter", "value.converter": "converter", "header.converter": "header_converter"}
DEFAULT_HEADER_CONVERTER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


def connector_definition(connector: type[Connector]) -> ConfigDef:
    """The framework's keys of a source or sink connector, without those of transforms."""
    return ConfigDef([*COMMON, *(SINK if issubclass(connector, SinkConnector) else SOURCE)])


def enriched_definition(
    connector: type[Connector], plugins: Plugins, worker: Mapping[str, str], config: Mapping[str, str | None]
) -> ConfigDef:
    """The framework's keys for one configuration: defaults are the worker's, and each transform and predicate brings its own keys."""
    keys = [_for_worker(key, connector, plugins, worker, config) for key in connector_definition(connector).keys.values()]
    for alias in _aliases(config, "transforms"):
        keys += _plugin_keys(plugins, config, "transformation", f"transforms.{alias}", alias)
    for alias in _aliases(config, "predicates"):
        keys += _plugin_keys(plugins, config, "predicate", f"predicates.{alias}", alias)
    return ConfigDef({key.name: key for key in keys}.values())


def sink_topic_errors(config: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """(key, error) pairs of a sink's topics and dead letter topic."""
    topics = [topic for topic in parse_value(TOPICS, config.get(TOPICS) or "", ConfigType.LIST) if topic]
    pattern = (config.get(TOPICS_REGEX) or "").strip()
    dead_letters = (config.get(DEAD_LETTER_TOPIC) or "").strip()
    if topics and pattern:
        both = f"{TOPICS} and {TOPICS_REGEX} are mutually exclusive options, but both are set."
        return [(TOPICS, both), (TOPICS_REGEX, both)]
    if not topics and not pattern:
        neither = f"Must configure one of {TOPICS} or {TOPICS_REGEX}"
        return [(TOPICS, neither), (TOPICS_REGEX, neither)]
    if dead_letters and dead_letters in topics:
        listed = ", ".join(topics)
        text = f"The DLQ topic '{dead_letters}' may not be included in the list of topics ('{TOPICS}=[{listed}]') consumed by the connector"
        return [(TOPICS, text)]
    if dead_letters and pattern and _matches(pattern, dead_letters):
        text = (
            f"The DLQ topic '{dead_letters}' may not be matched by the regex for the topics ('{TOPICS_REGEX}={pattern}') "
            "consumed by the connector"
        )
        return [(TOPICS_REGEX, text)]
    return []


def sink_group(connector: str, config: Mapping[str, str | None]) -> str:
    """The consumer group of a sink connector (`SinkUtils.java`)."""
    return config.get("consumer.override.group.id") or f"connect-{connector}"


def max_tasks(config: Mapping[str, str | None]) -> int:
    """``tasks.max``. Raises ConfigError."""
    return int(parse_value("tasks.max", config.get("tasks.max") or "1", ConfigType.INT))


def _for_worker(
    key: ConfigKey, connector: type[Connector], plugins: Plugins, worker: Mapping[str, str], config: Mapping[str, str | None]
) -> ConfigKey:
    """A common key with the worker's default and the installed choices."""
    if key.name in CONVERTERS:
        kind = CONVERTERS[key.name]
        default = worker.get(key.name, DEFAULT_HEADER_CONVERTER if kind == "header_converter" else None)
        names = [name for name, _ in plugins.of_kind(kind)]
        return replace(key, default=default, validator=_class_of(plugins, kind), recommender=lambda _n, _v: names)
    if key.name == "connector.plugin.version":
        return replace(key, default=connector.version, recommender=lambda _n, _v: [connector.version])
    converter_key = key.name.removesuffix(".plugin.version")
    if key.name.endswith(".plugin.version") and converter_key in CONVERTERS:
        version = _version_of(plugins, config.get(converter_key) or worker.get(converter_key) or DEFAULT_HEADER_CONVERTER, converter_key)
        return replace(key, default=version, recommender=lambda _n, _v: [version] if version else [])
    return key


def _version_of(plugins: Plugins, name: str, converter_key: str) -> str | None:
    try:
        found = plugins.find(name, CONVERTERS[converter_key])
    except ConfigError:
        return None
    return found.version if found else None


def _aliases(config: Mapping[str, str | None], key: str) -> list[str]:
    return list(dict.fromkeys(alias for alias in parse_value(key, config.get(key) or "", ConfigType.LIST) if alias))


def _plugin_keys(plugins: Plugins, config: Mapping[str, str | None], kind: str, prefix: str, alias: str) -> list[ConfigKey]:
    """``<prefix>.type``, its version, and the keys of the class that it names (`EnrichablePlugin` in ConnectorConfig.java)."""
    title, group = ("Transformation", f"Transforms: {alias}") if kind == "transformation" else ("Predicate", f"Predicates: {alias}")
    names = [name for name, _ in plugins.of_kind(kind)]
    found = _find(plugins, (config.get(f"{prefix}.type") or "").strip(), kind)
    checks = [_concrete(plugins, title), _class_of(plugins, kind)]
    if kind == "transformation" and f"{prefix}.negate" in config and f"{prefix}.predicate" not in config:
        checks.append(_negate_without_predicate(prefix))
    version = found.version if found else None
    keys = [
        ConfigKey(
            f"{prefix}.type",
            ConfigType.CLASS,
            REQUIRED,
            Importance.HIGH,
            f"Class for the '{alias}' {title.lower()}.",
            group,
            0,
            Width.LONG,
            f"{title} type for {alias}",
            _all(checks),
            recommender=lambda _n, _v: names,
        ),
        ConfigKey(
            f"{prefix}.plugin.version",
            ConfigType.STRING,
            version,
            Importance.HIGH,
            f"Version of the '{alias}' {title.lower()}.",
            group,
            1,
            Width.LONG,
            f"{title} version for {alias}",
            recommender=lambda _n, _v: [version] if version else [],
        ),
    ]
    own = dict(found.config_def().keys) if found else {}
    if kind == "transformation":
        own.pop("negate", None)
        own.pop("predicate", None)
        own["negate"] = ConfigKey(
            "negate", ConfigType.BOOLEAN, "false", Importance.MEDIUM, "Whether the configured predicate should be negated."
        )
        own["predicate"] = ConfigKey(
            "predicate",
            ConfigType.STRING,
            None,
            Importance.MEDIUM,
            "The alias of a predicate used to determine whether to apply this transformation.",
        )
    for order, key in enumerate(own.values(), 2):
        shown = key.display_name or key.name
        checked = key.validator and _as_named(key.name, key.validator)
        keys.append(replace(key, name=f"{prefix}.{key.name}", group=group, order=order, display_name=shown, validator=checked))
    return keys


def _find(plugins: Plugins, name: str, kind: str) -> type[Any] | None:
    try:
        return plugins.find(name, kind) if name else None
    except ConfigError:
        return None


def _class_of(plugins: Plugins, kind: str) -> Any:
    """Validator: the class exists and is of the kind."""

    def check(name: str, value: Any) -> None:
        if value is None:
            return
        if plugins.find(value, kind) is None:
            raise invalid(name, value, f"Class {value} could not be found.")

    return check


def _concrete(plugins: Plugins, title: str) -> Any:
    """Validator: not the class above `X$Key` and `X$Value`, and no plugin of another kind (`Utils.ensureConcreteSubclass`)."""

    def check(_name: str, value: Any) -> None:
        variants = [name for name in sorted(plugins.references) if value and name.startswith(f"{value}$")]
        if variants:
            raise ConfigError(f"This class is abstract and cannot be created. Did you mean {', '.join(variants)}?")
        if value in plugins.references and plugins.find(value, title.lower()) is None:
            raise ConfigError(f"Class class {value} does not implement the {title} interface")

    return check


def _as_named(name: str, validator: Validator) -> Validator:
    """A plugin's validator knows its key without the prefix, and says so in its messages (`ConfigDef.embed`)."""
    return lambda _prefixed, value: validator(name, value)


def _negate_without_predicate(prefix: str) -> Any:
    def check(_name: str, _value: Any) -> None:
        raise ConfigError(
            f"Config '{prefix}.negate' was provided but there is no config '{prefix}.predicate' defining a predicate to be negated."
        )

    return check


def _all(checks: Sequence[Any]) -> Any:
    def check(name: str, value: Any) -> None:
        for one in checks:
            one(name, value)

    return check


def _matches(pattern: str, topic: str) -> bool:
    try:
        return compile_java_regex(pattern).fullmatch(topic) is not None
    except ConfigError:
        return False
