"""What a connector's configuration means: its framework keys, and the rules between them. Pure.

`connector_definition` is `ConnectorConfig.enrich`: the common keys, the source's or sink's, and those of every transform and predicate
that the configuration names. `sink_topic_errors` is `SinkConnectorConfig.validate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from connect_py.api import ConfigDef, ConfigKey, ConfigType, Connector, SinkConnector
from connect_py.api.config import parse_value
from connect_py.config.connector_properties import COMMON
from connect_py.config.plugin_properties import converter_key, converter_version_key, step_keys
from connect_py.config.sink_properties import SINK
from connect_py.config.source_properties import SOURCE
from connect_py.errors import ConfigError
from connect_py.log.redact import SANITIZE_FLAGS, SANITIZE_PATTERN
from connect_py.log.user_regex import SlowRegexError, matching
from connect_py.plugins.registry import Plugins

NAME = "name"
CONNECTOR_CLASS = "connector.class"
CONNECTOR_VERSION = "connector.plugin.version"
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
        keys += step_keys(plugins, config, "transformation", f"transforms.{alias}", alias)
    for alias in _aliases(config, "predicates"):
        keys += step_keys(plugins, config, "predicate", f"predicates.{alias}", alias)
    return ConfigDef({key.name: key for key in keys}.values())


def refused_definition(connector: type[Connector], plugins: Plugins) -> ConfigDef:
    """All that is checked of a configuration whose connector is not there in the wanted version: the common keys, without defaults for
    converters (`AbstractHerder.validateConnectorConfig`)."""

    def bare(key: ConfigKey) -> ConfigKey:
        if key.name in CONVERTERS:
            return replace(converter_key(plugins, key, CONVERTERS[key.name], None, {}), recommender=None)
        return _for_worker(key, connector, plugins, {}, {}) if key.name == CONNECTOR_VERSION else key

    return ConfigDef(map(bare, COMMON))


def sink_topic_errors(config: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """(key, error) pairs of a sink's topics and dead letter topic."""
    listed, pattern = (config.get(TOPICS) or "").strip(), config.get(TOPICS_REGEX) or ""
    dead_letters = (config.get(DEAD_LETTER_TOPIC) or "").strip()
    errors: list[tuple[str, str]] = []
    if bool(listed) == bool(pattern.strip()):
        text = f"{TOPICS} and {TOPICS_REGEX} are mutually exclusive options, but both are set."
        errors = [(key, text if listed else f"Must configure one of {TOPICS} or {TOPICS_REGEX}") for key in (TOPICS, TOPICS_REGEX)]
    if not dead_letters:
        return errors
    topics = list(dict.fromkeys(topic for topic in parse_value(TOPICS, listed, ConfigType.LIST) if topic))
    if dead_letters in topics:
        shown = ", ".join(topics)
        text = f"The DLQ topic '{dead_letters}' may not be included in the list of topics ('{TOPICS}=[{shown}]') consumed by the connector"
        errors.append((TOPICS, text))
    try:
        if pattern.strip() and matching(pattern, [dead_letters]):
            text = (
                f"The DLQ topic '{dead_letters}' may not be matched by the regex for the topics ('{TOPICS_REGEX}={pattern}') "
                "consumed by the connector"
            )
            errors.append((TOPICS_REGEX, text))
    except SlowRegexError as error:
        errors.append((TOPICS_REGEX, f"Invalid value for configuration {TOPICS_REGEX}: {error}"))
    except ConfigError:
        pass  # the property's own check says it
    return errors


def sanitize_errors(config: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """(key, error) pairs of Debezium's regex for names of secrets, which the worker itself matches."""
    try:
        matching(config.get(SANITIZE_PATTERN) or "", config, SANITIZE_FLAGS)
    except SlowRegexError as error:
        return [(SANITIZE_PATTERN, f"Invalid value for configuration {SANITIZE_PATTERN}: {error}")]
    except ConfigError:
        pass  # it hides nothing, as in Debezium
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
        return converter_key(plugins, key, CONVERTERS[key.name], _workers_converter(worker, key.name), config)
    if key.name == CONNECTOR_VERSION:
        return replace(key, default=connector.version, recommender=lambda _n, _v: [connector.version])
    converter = key.name.removesuffix(".plugin.version")
    if key.name.endswith(".plugin.version") and converter in CONVERTERS:
        name = config.get(converter) if config.get(converter) is not None else _workers_converter(worker, converter)
        return converter_version_key(plugins, key, CONVERTERS[converter], name or "", config)
    return key


def _workers_converter(worker: Mapping[str, str], key: str) -> str | None:
    return worker.get(key, DEFAULT_HEADER_CONVERTER if key == "header.converter" else None)


def _aliases(config: Mapping[str, str | None], key: str) -> list[str]:
    return list(dict.fromkeys(parse_value(key, config.get(key) or "", ConfigType.LIST)))
