"""Validate connector configurations (`runtime/AbstractHerder.validateConnectorConfig`), in Connect's order and with its counts.

Runs on the thread of the request: a connector's own check may ask a live server.

Overrides of client settings are entries of the answer, too (`AbstractHerder.validateClientOverrides`). One thing differs from Connect: a
value that is not of its setting's type is an error of that setting, where Connect answers 500.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from connect_py.api import ConfigDef, ConfigKey, ConfigValue, Connector, Password, SinkConnector
from connect_py.api.config import DeferredValues, parse_value
from connect_py.api.storage import OWN_OFFSETS_TOPIC
from connect_py.config.client_overrides import OverridePolicy, clients_of, override_error, override_policy, override_prefix, overrides_under
from connect_py.config.connector import (
    CONNECTOR_CLASS,
    CONNECTOR_VERSION,
    CONVERTERS,
    NAME,
    connector_definition,
    enriched_definition,
    extension_keys,
    refused_definition,
    sanitize_errors,
    sink_group,
    sink_topic_errors,
)
from connect_py.config.restart_policy import DEFINITION as RESTARTS
from connect_py.config.unknown_properties import unknown_properties
from connect_py.data.java_map import in_java_order
from connect_py.errors import BadRequestError, ConfigError
from connect_py.herder.base import ConfigInfos
from connect_py.kafka.client import is_exactly_once
from connect_py.kafka.settings import ClientKind, client_definitions
from connect_py.log.lines import hiding
from connect_py.log.redact import HIDDEN, MIN_LENGTH, is_secret_name, readable, redactor
from connect_py.plugins.registry import Plugins
from connect_py.plugins.versions import VersionNotFoundError
from connect_py.providers.resolver import Resolved, Resolver, variables_in

log = logging.getLogger(__name__)


Entry = tuple[ConfigKey | None, ConfigValue]


def override_entries(connector: type[Connector], worker: Mapping[str, str], config: Mapping[str, str | None]) -> list[Entry]:
    """Entries of every override for a client that the connector uses: producer, consumer, admin, then consumers that it makes itself."""
    policy, used = override_policy(worker), clients_of(connector, worker, config)
    clients = [(kind, override_prefix(kind)) for kind in ClientKind if kind in used]
    clients += [(ClientKind.CONSUMER, prefix) for prefix in connector.client_prefixes]
    return [entry for kind, prefix in clients for entry in _of_client(policy, kind, prefix, config)]


def _of_client(policy: OverridePolicy, kind: ClientKind, prefix: str, config: Mapping[str, str | None]) -> list[Entry]:
    definitions = client_definitions(kind)
    entries: list[Entry] = []
    for setting, text in overrides_under(config, prefix).items():
        key, found = definitions.get(setting), ConfigValue(prefix + setting)
        try:
            found.value = parse_value(setting, text, key.type) if key else Password(text) if text and is_secret_name(setting) else text
        except ConfigError as error:
            found.errors.append(str(error))
        refused = override_error(policy, setting, text)
        if refused is not None:
            found.errors.append(refused)
        entries.append((replace(key, name=prefix + setting, display_name=setting) if key else None, found))
    return entries


_NULL = "Null value can not be supplied as the configuration value."
_NO_OWN_BOUNDARIES = (
    "The connector does not support connector-defined transaction boundaries with the given configuration. "
    "Please reconfigure it to use a different transaction boundary definition."
)
_NULL_BOUNDARIES = (
    "This connector has returned a null value from its canDefineTransactionBoundaries method, which is not permitted. The connector will "
    "be treated as if it cannot define its own transaction boundaries, and cannot be configured with 'transaction.boundary' set to "
    "'connector'."
)
_NOT_ONCE = "The connector does not support exactly-once semantics with the provided configuration."
_SAYS_NOTHING = (
    "The connector does not implement the API required for preflight validation of exactly-once source support. Please consult the "
    "documentation for the connector to determine whether it supports exactly-once semantics, and then consider reconfiguring the "
    'connector to use the value "requested" for this property (which will disable this preflight check and allow the connector to be '
    "created)."
)
_NO_OWN_OFFSETS = (
    f"The property '{OWN_OFFSETS_TOPIC}' has no effect: a standalone worker keeps the offsets of all connectors in its file "
    "(offset.storage.file.filename)."
)
#: Characters of an error, which may be what a server said.
_MAX_ERROR = 4000

_GROUP_OVERRIDE = "consumer.override.group.id"

#: validateAllConverterConfigs.
_CONVERTER_ORDER = ("header.converter", "key.converter", "value.converter")


def validate(
    plugins: Plugins,
    worker: Mapping[str, str],
    written: Mapping[str, str | None],
    variables: Resolver | None = None,
    *,
    connects: bool = True,
) -> ConfigInfos:
    """Check a configuration.

    What is checked has the values of its variables; what is answered has the variables, and no error repeats a value.

    Args:
        worker: the worker's properties, for defaults and for what connectors may override.
        written: the configuration as its owner wrote it.
        variables: the worker's config providers.
        connects: whether the connector may ask its server; else only the properties' own rules are looked at.

    Raises:
        BadRequestError: there is no ``connector.class``, or no such class, or a provider cannot read what it is asked for.
    """
    try:
        resolved = (variables or Resolver()).resolve(written, owner=None)
    except ConfigError as error:
        raise BadRequestError(str(error)) from error
    with hiding(resolved.secrets):
        infos = check(plugins, worker, written, resolved.values, connects=connects)
    if resolved.values != dict(written):
        return _with_variables(infos, written, resolved)
    return infos


def check(
    plugins: Plugins,
    worker: Mapping[str, str],
    written: Mapping[str, str | None],
    config: Mapping[str, str | None],
    *,
    connects: bool = True,
) -> ConfigInfos:
    """Check a configuration whose variables have been resolved. The answer holds secrets.

    Args:
        config: the values of what was `written`.
        connects: whether the connector may ask its servers.

    Raises:
        BadRequestError: as `validate`.
    """
    class_name = config.get(CONNECTOR_CLASS)
    if class_name is None:
        shown = ", ".join(
            f"{name}={HIDDEN if value and is_secret_name(name) else 'null' if value is None else value}"
            for name, value in in_java_order(written, copied=True).items()
        )
        raise BadRequestError(f"Connector config {{{shown}}} contains no connector type")
    connector = plugins.connector(class_name.strip())
    try:
        plugins.require_version(connector.java_name, config.get(CONNECTOR_VERSION))
    except VersionNotFoundError as error:
        return _wrong_version(plugins, connector, config, str(error))
    except ConfigError as error:
        raise BadRequestError(str(error)) from error
    framework = enriched_definition(connector, plugins, worker, config).merged(extension_keys(connector, config))
    values = {value.name: value for value in framework.validate(config)}
    _apply_rules(values, connector, worker, config)
    for name, value in config.items():
        if value is None:
            values.setdefault(name, ConfigValue(name)).errors.append(_NULL)
    converters = {key: _converter_entries(plugins, config, key, values[key]) for key in CONVERTERS}
    own = connector.config_def()
    values |= {value.name: value for value in _own_values(connector, config, connects=connects)}
    for name, problem in sanitize_errors(config):
        values.setdefault(name, ConfigValue(name, config[name])).errors.append(problem)
    definitions = {**framework.keys, **own.keys}
    entries: list[Entry] = [(None, value) for name, value in in_java_order(values).items() if name not in definitions]
    entries += [(definition, values.get(name) or ConfigValue(name)) for name, definition in definitions.items()]
    errors = sum(len(value.errors) for _, value in entries)
    more = [*override_entries(connector, worker, config), *(entry for key in _CONVERTER_ORDER for entry in converters[key])]
    errors += sum(1 for _, value in more if value.errors)
    groups = [*framework.groups(), *own.groups(), *(key.group for key, _ in more if key is not None and key.group is not None)]
    known = {*definitions, *RESTARTS.keys, *(value.name for key, value in more if key is not None)}
    warnings = unknown_properties(connector, written, known | _passed_on(plugins, config))
    if (config.get(OWN_OFFSETS_TOPIC) or "").strip() and "group.id" not in worker and not issubclass(connector, SinkConnector):
        warnings.append(_NO_OWN_OFFSETS)
    return ConfigInfos(class_name, errors, list(dict.fromkeys(groups)), [*entries, *more], warnings)


def _passed_on(plugins: Plugins, config: Mapping[str, str | None]) -> set[str]:
    """Return the properties that a converter passes on to other converters, below prefixes of its own (``open_prefixes``)."""
    found: set[str] = set()
    for key in CONVERTERS:
        try:
            plugin = plugins.find((config.get(key) or "").strip(), "converter", "header_converter")
        except ConfigError:
            continue  # its own error says so
        prefixes = tuple(f"{key}.{prefix}" for prefix in getattr(plugin, "open_prefixes", ()))
        found |= {name for name in config if prefixes and name.startswith(prefixes)}
    return found


def _with_variables(infos: ConfigInfos, written: Mapping[str, str | None], resolved: Resolved) -> ConfigInfos:
    """Return the answer with the variables in place of their values, and without the values in errors and names."""
    redact = redactor(secret for secret in resolved.secrets if len(secret) >= MIN_LENGTH)
    entries: list[Entry] = []
    for key, value in infos.configs:
        value.errors = [redact(error) for error in value.errors]
        value.recommended_values = DeferredValues(partial(_redacted, redact, value.recommended_values))
        if variables_in(written.get(value.name)) and not isinstance(value.value, Password):
            value.value = written[value.name]
        value.name = redact(value.name)  # a part of it may be the value of another property
        if key is not None and key.name != value.name:
            key = replace(key, name=value.name, display_name=redact(key.display_name), group=key.group and redact(key.group))
        entries.append((key, value))
    return replace(infos, configs=entries, groups=[redact(group) for group in infos.groups])


def _redacted(redact: Callable[[str], str], values: Sequence[Any]) -> list[Any]:
    return [redact(each) if isinstance(each, str) else each for each in values]


def raise_if_invalid(infos: ConfigInfos) -> None:
    """Raises BadRequestError with Connect's text that lists the errors (`AbstractHerder.maybeAddConfigErrors`); warnings are logged."""
    name = next((value.value for _, value in infos.configs if value.name == NAME), None)
    for warning in infos.warnings:
        log.warning("Connector %s: %s", name, warning)
    if not infos.error_count:
        return
    listed = "".join(f"\n{error}" for _, value in infos.configs for error in value.errors)
    raise BadRequestError(
        f"Connector configuration is invalid and contains the following {infos.error_count} error(s):{listed}\n"
        "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
    )


def plugin_keys(plugins: Plugins, name: str, plugin: type[Any]) -> Sequence[ConfigKey]:
    """Return definitions of one plugin: its own, then the framework's that it does not redefine."""
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
    for name in (CONNECTOR_CLASS, CONNECTOR_VERSION):
        values[name].errors.append(error)
    entries: list[Entry] = [(key, values[name]) for name, key in definition.keys.items()]
    errors = sum(len(value.errors) for value in values.values())
    return ConfigInfos(config[CONNECTOR_CLASS] or "", errors, definition.groups(), entries)


def _own_values(connector: type[Connector], config: Mapping[str, str | None], *, connects: bool) -> Sequence[ConfigValue]:
    try:
        found = connector().validate(config) if connects else connector().check_config(config)
    except Exception as error:  # a connector's check must not turn a request into a 500
        log.warning("%s could not check a configuration", connector.java_name, exc_info=True)
        found = [ConfigValue(CONNECTOR_CLASS, connector.java_name, errors=[f"The configuration could not be checked: {error}"])]
    for value in found:
        value.errors = [readable(error, _MAX_ERROR) for error in value.errors]
    return found


def _apply_rules(
    values: dict[str, ConfigValue], connector: type[Connector], worker: Mapping[str, str], config: Mapping[str, str | None]
) -> None:
    """The rules between properties: `SinkConnectorConfig.validate`, and `DistributedHerder`'s for sinks and sources."""
    if not issubclass(connector, SinkConnector):
        if str(values["exactly.once.support"].value).lower() == "required" and not values["exactly.once.support"].errors:
            if not is_exactly_once(worker):
                values["exactly.once.support"].errors.append("This worker does not have exactly-once source support enabled.")
            values["exactly.once.support"].errors += _answer(
                connector, "exactly_once_support", config, {False: _NOT_ONCE, None: _SAYS_NOTHING}
            )
        if str(values["transaction.boundary"].value).lower() == "connector" and not values["transaction.boundary"].errors:
            refusals = {False: _NO_OWN_BOUNDARIES, None: _NULL_BOUNDARIES}
            values["transaction.boundary"].errors += _answer(connector, "can_define_transaction_boundaries", config, refusals)
        return
    for key, error in sink_topic_errors(config):
        values.setdefault(key, ConfigValue(key)).errors.append(error)
    name, worker_group = config.get(NAME), worker.get("group.id")
    if not worker_group:
        return
    if _GROUP_OVERRIDE in config:
        found = values.setdefault(_GROUP_OVERRIDE, ConfigValue(_GROUP_OVERRIDE, config[_GROUP_OVERRIDE]))
        if config[_GROUP_OVERRIDE] == worker_group:
            found.errors.append(f"Consumer group {worker_group} conflicts with Connect worker group {worker_group}")
    elif name and sink_group(name, config) == worker_group:
        values[NAME].errors.append(f"Consumer group for sink connector named {name} conflicts with Connect worker group {worker_group}")


def _answer(
    connector: type[Connector], method: str, config: Mapping[str, str | None], refusals: Mapping[bool | None, str]
) -> Sequence[str]:
    """Return what a connector's answer about transactions means: nothing, or an error."""
    try:
        answer = getattr(connector(), method)({key: value for key, value in config.items() if value is not None})
    except Exception as error:  # a connector may raise anything
        log.warning("%s could not say whether it supports exactly-once delivery", connector.java_name, exc_info=True)
        said = readable(str(error), _MAX_ERROR)
        what = "An unexpected error occurred during validation"
        return [f"{what}: {said}" if said else f"{what}; please see the worker logs for more details."]
    return [refusals[answer]] if answer in refusals else []


def _converter_entries(plugins: Plugins, config: Mapping[str, str | None], key: str, chosen: ConfigValue) -> list[Entry]:
    """Return the properties of a converter that the connector itself names, with their prefix; nothing when the converter has errors."""
    name = (config.get(key) or "").strip()
    if not name or chosen.errors:
        return []
    try:
        found = plugins.find(name, CONVERTERS[key])
    except ConfigError:
        return []
    if found is None:
        return []
    given = {name.removeprefix(f"{key}."): value for name, value in config.items() if name.startswith(f"{key}.")}
    given.setdefault("converter.type", key.partition(".")[0])
    definition: ConfigDef = found.config_def()
    entries: list[Entry] = []
    for short, value in in_java_order({value.name: value for value in definition.validate(given)}).items():
        value.name = f"{key}.{short}"
        entries.append((replace(definition.keys[short], name=value.name, display_name=definition.keys[short].display_name or short), value))
    return entries
