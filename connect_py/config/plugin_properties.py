"""The properties by which a configuration names plugins and their versions (`EnrichablePlugin` in ConnectorConfig.java,
`PluginsRecommenders.java`, KIP-891). Pure, but that a class is imported to be asked for its own properties.

A class is read first, then checked: a name that nothing answers to has one error and no value; a plugin of another kind, or one outside of
the wanted version, keeps its full class name as value. A version that cannot be had is an error of both properties, the class's and its
own. The properties of a class that has an error are not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py.api.config import REQUIRED, ConfigKey, ConfigType, Importance, Validator, Width, invalid
from connect_py.errors import BadRequestError, ConfigError
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
    """A plugin, or None for whatever reason."""
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
    names = [name for name, _ in plugins.of_kind(kind)]
    return lambda _name, _values: names


def _versions(found: type[Any] | None) -> Callable[[str, Mapping[str, Any]], Sequence[Any]]:
    known = [found.version] if found is not None and found.version else []
    return lambda _name, _values: known


def _as_named(name: str, validator: Validator) -> Validator:
    """A plugin's validator knows its key without the prefix, and says so in its messages (`ConfigDef.embed`)."""
    return lambda _prefixed, value: validator(name, value)
