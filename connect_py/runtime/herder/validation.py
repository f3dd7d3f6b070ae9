"""Validation of connector configurations (`runtime/AbstractHerder.validateConnectorConfig`), in Connect's order and with its counts.

Runs on the thread of the request: a connector's own check may ask a live server.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigDef, ConfigKey, ConfigValue, Connector, SinkConnector
from connect_py.data.java_map import in_java_order
from connect_py.errors import BadRequestError, ConfigError
from connect_py.runtime.chain import with_prefix
from connect_py.runtime.connector_config import (
    CONNECTOR_CLASS,
    CONNECTOR_VERSION,
    CONVERTERS,
    NAME,
    connector_definition,
    enriched_definition,
    refused_definition,
    sink_group,
    sink_topic_errors,
)
from connect_py.runtime.herder.base import ConfigInfos
from connect_py.runtime.plugin_versions import VersionNotFoundError
from connect_py.runtime.plugins import Plugins

log = logging.getLogger(__name__)

Entry = tuple[ConfigKey | None, ConfigValue]

_NULL = "Null value can not be supplied as the configuration value."


def validate(plugins: Plugins, worker: Mapping[str, str], config: Mapping[str, str | None]) -> ConfigInfos:
    """Check a configuration.

    Args:
        worker: the worker's properties, for defaults.

    Raises:
        BadRequestError: there is no ``connector.class``, or no such class.
    """
    class_name = config.get(CONNECTOR_CLASS)
    if class_name is None:
        shown = ", ".join(
            f"{name}={'[hidden]' if 'password' in name.lower() else value}" for name, value in in_java_order(config, copied=True).items()
        )
        raise BadRequestError(f"Connector config {{{shown}}} contains no connector type")
    connector = plugins.connector(class_name.strip())
    try:
        plugins.require_version(connector.java_name, config.get(CONNECTOR_VERSION))
    except VersionNotFoundError as error:
        return _wrong_version(plugins, connector, config, str(error))
    except ConfigError as error:
        raise BadRequestError(str(error)) from error
    framework = enriched_definition(connector, plugins, worker, config)
    values = {value.name: value for value in framework.validate(config)}
    _add(values, _connector_rules(connector, worker, config))
    for name, value in config.items():
        if value is None:
            values.setdefault(name, ConfigValue(name)).errors.append(_NULL)
    own = connector.config_def()
    values.update({value.name: value for value in _own_values(connector, config)})
    definitions = {**framework.keys, **own.keys}
    entries: list[Entry] = [(None, value) for name, value in values.items() if name not in definitions]
    entries += [(definition, values.get(name) or ConfigValue(name)) for name, definition in definitions.items()]
    errors = sum(len(value.errors) for _, value in entries)
    groups = list(dict.fromkeys([*framework.groups(), *own.groups()]))
    for key in reversed(CONVERTERS):
        more = [] if values[key].errors else _converter_entries(plugins, config, key)
        entries += more
        errors += sum(1 for _, value in more if value.errors)
        groups += [d.group for d, _ in more if d is not None and d.group and d.group not in groups]
    return ConfigInfos(class_name, errors, list(dict.fromkeys(groups)), entries)


def raise_if_invalid(infos: ConfigInfos) -> None:
    """Raises BadRequestError with Connect's text that lists the errors (`AbstractHerder.maybeAddConfigErrors`)."""
    if not infos.error_count:
        return
    listed = "".join(f"\n{error}" for _, value in infos.configs for error in value.errors)
    raise BadRequestError(
        f"Connector configuration is invalid and contains the following {infos.error_count} error(s):{listed}\n"
        "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
    )


def plugin_keys(plugins: Plugins, name: str, plugin: type[Any]) -> Sequence[ConfigKey]:
    """Definitions of one plugin: its own, then the framework's that it does not redefine."""
    own: ConfigDef = plugin.config_def()
    keys = list(own.keys.values())
    if issubclass(plugin, Connector):
        for key in connector_definition(plugin).keys.values():
            if key.name not in own.keys:
                keys.append(replace(key, default=plugin.version) if key.name == CONNECTOR_VERSION else key)
    return keys


def _wrong_version(plugins: Plugins, connector: type[Connector], config: Mapping[str, str | None], error: str) -> ConfigInfos:
    """The wanted version of the connector is not installed: only what all connectors have in common is looked at."""
    definition = refused_definition(connector, plugins)
    values = {value.name: value for value in definition.validate(config)}
    _add(values, [(CONNECTOR_CLASS, error), (CONNECTOR_VERSION, error)])
    entries: list[Entry] = [(key, values[name]) for name, key in definition.keys.items()]
    errors = sum(len(value.errors) for value in values.values())
    return ConfigInfos(config[CONNECTOR_CLASS] or "", errors, definition.groups(), entries)


def _own_values(connector: type[Connector], config: Mapping[str, str | None]) -> Sequence[ConfigValue]:
    try:
        return connector().validate(config)
    except Exception as error:  # a connector's check must not turn a request into a 500
        log.warning("%s could not check a configuration", connector.java_name, exc_info=True)
        return [ConfigValue(CONNECTOR_CLASS, connector.java_name, errors=[f"The configuration could not be checked: {error}"])]


def _connector_rules(connector: type[Connector], worker: Mapping[str, str], config: Mapping[str, str | None]) -> list[tuple[str, str]]:
    if not issubclass(connector, SinkConnector):
        if (config.get("exactly.once.support") or "").strip().lower() == "required":
            return [("exactly.once.support", "This worker does not have exactly-once source support enabled.")]
        return []
    found = sink_topic_errors(config)
    name, worker_group = config.get(NAME) or "", worker.get("group.id")
    if worker_group and sink_group(name, config) == worker_group:
        if config.get("consumer.override.group.id"):
            found.append(
                ("consumer.override.group.id", f"Consumer group {worker_group} conflicts with Connect worker group {worker_group}")
            )
        else:
            found.append((NAME, f"Consumer group for sink connector named {name} conflicts with Connect worker group {worker_group}"))
    return found


def _add(values: dict[str, ConfigValue], errors: Sequence[tuple[str, str]]) -> None:
    for name, error in errors:
        values.setdefault(name, ConfigValue(name)).errors.append(error)


def _converter_entries(plugins: Plugins, config: Mapping[str, str | None], key: str) -> list[Entry]:
    """The keys of a converter that the connector itself names, with their prefix."""
    name = (config.get(key) or "").strip()
    if not name:
        return []
    try:
        found = plugins.find(name, CONVERTERS[key])
    except ConfigError:
        return []
    if found is None:
        return []
    given = {k: v for k, v in config.items() if v is not None}
    own = with_prefix(given, f"{key}.")
    own.setdefault("converter.type", key.partition(".")[0])
    definition: ConfigDef = found.config_def()
    entries: list[Entry] = []
    for value in definition.validate(own):
        value.name = f"{key}.{value.name}"
        entries.append((replace(definition.keys[value.name.removeprefix(f"{key}.")], name=value.name), value))
    return entries
