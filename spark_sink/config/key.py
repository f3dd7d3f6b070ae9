"""One property's definition."""

from __future__ import annotations

from typing import Any

from connect_py.api.config import ConfigKey, ConfigType, Importance

PREFIX = "lakehouse."


def key(name: str, default: Any, documentation: str, type_: ConfigType = ConfigType.STRING, **more: Any) -> ConfigKey:
    """A key by its name without `PREFIX`."""
    importance = more.pop("importance", Importance.MEDIUM)
    return ConfigKey(PREFIX + name, type_, default, importance, documentation, **more)
