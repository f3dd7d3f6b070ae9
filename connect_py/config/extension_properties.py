"""Properties that Connect does not have. Answers show them only for configurations that use them, so that all others are Connect's own."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api import ConfigDef, Connector, SinkConnector
from connect_py.config.restart_policy import DEFINITION as RESTARTS
from connect_py.config.sink_properties import SINK

_LETTERS = "errors.deadletterqueue."


def extension_keys(connector: type[Connector], config: Mapping[str, str | None]) -> ConfigDef:
    """The keys of the extensions that a configuration uses: restarts of failed tasks, dead letters of sources."""
    keys = list(RESTARTS.keys.values()) if any(name in config for name in RESTARTS.keys) else []
    if not issubclass(connector, SinkConnector) and any(name.startswith(_LETTERS) for name in config):
        keys += [key for key in SINK if key.name.startswith(_LETTERS)]
    return ConfigDef(keys)
