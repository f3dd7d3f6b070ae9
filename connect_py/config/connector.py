"""Read a connector's configuration: its framework properties, the rules between them, and its secrets.

`connector_definition` is `ConnectorConfig.enrich`: the common properties, the source's or sink's, and those of every transform and
predicate that the configuration names. `sink_topic_errors` is `SinkConnectorConfig.validate`.

Plugins are named as `EnrichablePlugin` (ConnectorConfig.java), `PluginsRecommenders.java` and KIP-891 have it. A class is read first, then
checked: a name that nothing answers to has one error and no value; a plugin of another kind, or one outside of the required version, keeps
its full class name as value. A version that is not available is an error of both properties, the class's and its own. The properties of a
class that has an error are not shown.

`secrets_of` asks the definitions of all parts: connector, transforms, predicates and converters. A plugin may give its password any name
(``transforms.mask.phrase``); its definition knows.

Pure, except that a class is imported to be asked for its own properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigDef, ConfigKey, ConfigType, Connector, SinkConnector
from connect_py.api.config import REQUIRED, DeferredValues, Importance, Validator, Width, invalid, parse_value
from connect_py.config.connector_properties import COMMON, SINK, SOURCE
from connect_py.config.restart_policy import DEFINITION as RESTARTS
from connect_py.errors import BadRequestError, ConfigError, ConnectError
from connect_py.log.redact import MIN_LENGTH, SANITIZE_FLAGS, SANITIZE_PATTERN, secret_values
from connect_py.log.user_regex import SlowRegexError, matching
from connect_py.plugins.registry import Plugins
from connect_py.plugins.versions import VersionNotFoundError, parse_requirement

Config = Mapping[str, str | None]

#: Kind → the interface that messages name.
_INTERFACES = {
    "converter": "Converter",
    "header_converter": "HeaderConverter",
    "transformation": "Transformation",
    "predicate": "Predicate",
}

_NEGATE = ConfigKey("negate", ConfigType.BOOLEAN, "false", Importance.MEDIUM, "Whether the configured predicate should be negated.")
_PREDICATE = ConfigKey(
    "predicate",
    ConfigType.STRING,
    None,
    Importance.MEDIUM,
    "The alias of a predicate used to determine whether to apply this transformation.",
)


def converter_key(plugins: Plugins, key: ConfigKey, kind: str, default: str | None, config: Config) -> ConfigKey:
    """``key.converter`` and its siblings, with the worker's converter as default and the installed ones to choose from."""
    wanted = config.get(f"{key.name}.plugin.version") if config.get(key.name) else None

    def check(name: str, value: Any) -> None:
        _require_kind(plugins, kind, value)
        if value is not None and _is_wellformed(wanted):
            _require_version(plugins, value, wanted)

    return replace(key, default=default, parser=_class_name(plugins), validator=check, recommender=_installed(plugins, kind))


def converter_version_key(plugins: Plugins, key: ConfigKey, kind: str, name: str, config: Config) -> ConfigKey:
    """``key.converter.plugin.version``: of the class `name`, which is the connector's converter or else the worker's."""
    found = find_quietly(plugins, name, kind)
    is_own = bool(config.get(key.name.removesuffix(".plugin.version")))

    def check(_name: str, value: Any) -> None:
        if is_own and found is not None:
            _require_version(plugins, found.java_name, value)
        else:
            parse_requirement(value)

    return replace(
        key,
        default=found.version if found else None,
        recommender=_versions(found),
        validator=check,
        visible=_is_known(plugins, name),
    )


def step_keys(plugins: Plugins, config: Config, kind: str, prefix: str, alias: str) -> list[ConfigKey]:
    """``<prefix>.type``, its version, and the keys of the transform or predicate that it names."""
    title, group = ("Transformation", f"Transforms: {alias}") if kind == "transformation" else ("Predicate", f"Predicates: {alias}")
    name, wanted = (config.get(f"{prefix}.type") or "").strip(), config.get(f"{prefix}.plugin.version")
    found = find_quietly(plugins, name, kind)

    def check_type(_name: str, value: Any) -> None:
        if kind == "transformation" and f"{prefix}.negate" in config and f"{prefix}.predicate" not in config:
            raise ConfigError(
                f"Config '{prefix}.negate' was provided but there is no config '{prefix}.predicate' defining a predicate to be negated."
            )
        _require_kind(plugins, kind, value)
        if value is not None:
            _require_version(plugins, value, wanted)

    def check_version(_name: str, value: Any) -> None:
        if found is not None:
            _require_version(plugins, found.java_name, value)
        elif name:
            parse_requirement(value)

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
            check_type,
            recommender=_installed(plugins, kind),
            parser=_class_name(plugins),
        ),
        ConfigKey(
            f"{prefix}.plugin.version",
            ConfigType.STRING,
            found.version if found else None,
            Importance.HIGH,
            f"Version of the '{alias}' {title.lower()}.",
            group,
            1,
            Width.LONG,
            f"{title} version for {alias}",
            recommender=_versions(found),
            # a default that a check refuses cannot be defined; that a class has no version is no mistake of the configuration
            validator=check_version if f"{prefix}.plugin.version" in config else None,
        ),
    ]
    if found is None or not _accepts(plugins, found.java_name, wanted):
        return keys
    own = dict(found.config_def().keys)
    if kind == "transformation":
        own = {
            **{name: key for name, key in own.items() if name not in ("negate", "predicate")},
            "negate": _NEGATE,
            "predicate": _PREDICATE,
        }
    for order, key in enumerate(_in_embedded_order(own.values()), 2):
        checked = key.validator and _as_named(key.name, key.validator)
        shown = key.display_name or key.name
        within = f"{group}: {key.group}" if key.group is not None else group
        keys.append(replace(key, name=f"{prefix}.{key.name}", group=within, order=order, display_name=shown, validator=checked))
    return keys


def _in_embedded_order(keys: Iterable[ConfigKey]) -> list[ConfigKey]:
    """By group, place in the group, whether a value is required, importance and name (`ConfigDef.embed`, `sortedConfigs`)."""
    keys = list(keys)
    groups = list(dict.fromkeys(key.group for key in keys if key.group is not None))
    importance = list(Importance)

    def place(key: ConfigKey) -> tuple[int, int, bool, int, str]:
        group = -1 if key.group is None else groups.index(key.group)
        return group, key.order, not key.required, importance.index(key.importance), key.name

    return sorted(keys, key=place)


def find_quietly(plugins: Plugins, name: str | None, kind: str) -> type[Any] | None:
    """Return a plugin, or None for whatever reason."""
    try:
        return plugins.find(name.strip(), kind) if name else None
    except ConfigError:
        return None


def _is_known(plugins: Plugins, name: str) -> bool:
    try:
        return plugins.resolve(name.strip()) is not None
    except ConfigError:
        return False


def _class_name(plugins: Plugins) -> Callable[[str, str], str]:
    """Reads a class name or alias into the full class name (`ConfigDef.parseType`, CLASS)."""

    def parse(key: str, text: str) -> str:
        name = plugins.resolve(text.strip())
        if name is None:
            variants = _variants(plugins, text.strip())
            if variants:
                return text.strip()  # there is such a class in Java; that it is abstract is for the check to say
            raise invalid(key, text.strip(), f"Class {text.strip()} could not be found.")
        plugins.load(name)
        return name

    return parse


def _require_kind(plugins: Plugins, kind: str, value: str | None) -> None:
    """`Utils.ensureConcreteSubclass`. Raises ConfigError."""
    if value is None:
        return
    if value not in plugins.references:
        variants = ", ".join(_variants(plugins, value))
        raise ConfigError(f"This class is abstract and cannot be created. Did you mean {variants}?")
    if plugins.find(value, kind) is None:
        raise ConfigError(f"Class class {value} does not implement the {_INTERFACES[kind]} interface")


def _variants(plugins: Plugins, name: str) -> list[str]:
    """``X$Key`` and ``X$Value`` of a name ``X``."""
    return [java for java in sorted(plugins.references) if name and java.startswith(f"{name}$")]


def _require_version(plugins: Plugins, java_name: str, wanted: str | None) -> None:
    try:
        plugins.require_version(java_name, wanted)
    except BadRequestError as error:
        raise ConfigError(str(error)) from error


def _accepts(plugins: Plugins, java_name: str, wanted: str | None) -> bool:
    try:
        plugins.require_version(java_name, wanted)
    except (ConfigError, VersionNotFoundError):
        return False
    return True


def _is_wellformed(wanted: str | None) -> bool:
    try:
        parse_requirement(wanted)
    except ConfigError:
        return False
    return True


def _installed(plugins: Plugins, kind: str) -> Callable[[str, Mapping[str, Any]], Sequence[Any]]:
    """Recommend all plugins of a kind. What kind a plugin is of is known once it is imported, and a connector that is created needs few:
    importing all of them took the first request to a worker one to two seconds."""
    names = DeferredValues(lambda: [name for name, _ in plugins.of_kind(kind)])
    return lambda _name, _values: names


def _versions(found: type[Any] | None) -> Callable[[str, Mapping[str, Any]], Sequence[Any]]:
    known = [found.version] if found is not None and found.version else []
    return lambda _name, _values: known


def _as_named(name: str, validator: Validator) -> Validator:
    """Wrap a plugin's validator: it knows its key without the prefix, and says so in its messages (`ConfigDef.embed`)."""
    return lambda _prefixed, value: validator(name, value)


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
    """Return the framework's keys of a source or sink connector, without those of transforms."""
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
    """Return the consumer group of a sink connector (`SinkUtils.java`)."""
    return config.get("consumer.override.group.id") or f"connect-{connector}"


def max_tasks(config: Mapping[str, str | None]) -> int:
    """``tasks.max``. Raises ConfigError."""
    return int(parse_value("tasks.max", config.get("tasks.max") or "1", ConfigType.INT))


def _for_worker(
    key: ConfigKey, connector: type[Connector], plugins: Plugins, worker: Mapping[str, str], config: Mapping[str, str | None]
) -> ConfigKey:
    """Return a common key with the worker's default and the installed choices."""
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


_LETTERS = "errors.deadletterqueue."


def extension_keys(connector: type[Connector], config: Mapping[str, str | None]) -> ConfigDef:
    """Return the keys of the extensions that a configuration uses: restarts of failed tasks, dead letters of sources."""
    keys = list(RESTARTS.keys.values()) if any(name in config for name in RESTARTS.keys) else []
    if not issubclass(connector, SinkConnector) and any(name.startswith(_LETTERS) for name in config):
        keys += [key for key in SINK if key.name.startswith(_LETTERS)]
    return ConfigDef(keys)


def secrets_of(plugins: Plugins, config: Mapping[str, str | None]) -> set[str]:
    """Return the secret values; parts whose class is not installed are judged by the names of their properties."""
    try:
        found = secret_values(config, plugins.connector(config.get(CONNECTOR_CLASS) or "").config_def())
    except ConnectError:
        found = secret_values(config)
    values = map(config.get, secret_names_of(plugins, config))
    return found.union(value for value in values if value and len(value.strip()) >= MIN_LENGTH)


def secret_names_of(plugins: Plugins, config: Mapping[str, str | None]) -> set[str]:
    """Return the properties that definitions of converters, transforms and predicates say are secret."""
    return {
        prefix + name
        for prefix, definition in _definitions(plugins, config)
        for name, key in definition.keys.items()
        if key.type is ConfigType.PASSWORD
    }


def _definitions(plugins: Plugins, config: Mapping[str, str | None]) -> Iterator[tuple[str, ConfigDef]]:
    """(prefix of its properties, definition) of every part but the connector itself."""
    parts: list[tuple[str, str | None, tuple[str, ...]]] = [(f"{key}.", config.get(key), (kind,)) for key, kind in CONVERTERS.items()]
    for listing, kind in (("transforms", "transformation"), ("predicates", "predicate")):
        for alias in _listed_aliases(listing, config.get(listing)):
            parts.append((f"{listing}.{alias}.", config.get(f"{listing}.{alias}.type"), (kind,)))
    for prefix, name, kinds in parts:
        try:
            plugin = plugins.find(name.strip(), *kinds) if name else None
            if plugin is not None:
                yield prefix, plugin.config_def()
        except (ConnectError, AttributeError):
            continue  # it cannot be loaded, or is no plugin of this kind; validation says so


def _listed_aliases(name: str, value: str | None) -> list[str]:
    try:
        return list(parse_value(name, value or "", ConfigType.LIST))
    except ConnectError:
        return []
