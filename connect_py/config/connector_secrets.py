"""The secrets of a connector's configuration, with what the definitions of all its parts say: connector, transforms, predicates,
converters. A plugin may call its password as it likes (``transforms.mask.phrase``); its definition knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from connect_py.api import ConfigDef, ConfigType
from connect_py.api.config import parse_value
from connect_py.config.connector import CONNECTOR_CLASS, CONVERTERS
from connect_py.errors import ConnectError
from connect_py.log.redact import MIN_LENGTH, secret_values
from connect_py.plugins.registry import Plugins


def secrets_of(plugins: Plugins, config: Mapping[str, str | None]) -> set[str]:
    """The secret values; parts whose class is not installed are judged by the names of their properties."""
    try:
        found = secret_values(config, plugins.connector(config.get(CONNECTOR_CLASS) or "").config_def())
    except ConnectError:
        found = secret_values(config)
    for prefix, definition in _definitions(plugins, config):
        for name, key in definition.keys.items():
            value = config.get(prefix + name) if key.type is ConfigType.PASSWORD else None
            if value and len(value.strip()) >= MIN_LENGTH:
                found.add(value)
    return found


def _definitions(plugins: Plugins, config: Mapping[str, str | None]) -> Iterator[tuple[str, ConfigDef]]:
    """(prefix of its properties, definition) of every part but the connector itself."""
    parts: list[tuple[str, str | None, tuple[str, ...]]] = [(f"{key}.", config.get(key), (kind,)) for key, kind in CONVERTERS.items()]
    for listing, kind in (("transforms", "transformation"), ("predicates", "predicate")):
        for alias in _aliases(listing, config.get(listing)):
            parts.append((f"{listing}.{alias}.", config.get(f"{listing}.{alias}.type"), (kind,)))
    for prefix, name, kinds in parts:
        try:
            plugin = plugins.find(name.strip(), *kinds) if name else None
            if plugin is not None:
                yield prefix, plugin.config_def()
        except (ConnectError, AttributeError):
            continue  # it cannot be loaded, or is no plugin of this kind; validation says so


def _aliases(name: str, value: str | None) -> list[str]:
    try:
        return list(parse_value(name, value or "", ConfigType.LIST))
    except ConnectError:
        return []
