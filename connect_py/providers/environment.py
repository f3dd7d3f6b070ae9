"""Values from environment variables of the worker: ``${env:DB_PASSWORD}`` (`EnvVarConfigProvider.java`, KIP-887)."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

from connect_py.api.provider import ConfigData, ConfigProvider
from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError

#: The property, below ``config.providers.NAME.param.``: a Java regex that a variable's whole name must match.
ALLOWLIST_PATTERN = "allowlist.pattern"


class EnvVarConfigProvider(ConfigProvider):
    """Every variable that ``allowlist.pattern`` allows; all of them when it is not set."""

    java_name = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._allowed: re.Pattern[str] | None = None

    def configure(self, parameters: Mapping[str, str]) -> None:
        """Take ``allowlist.pattern``. Raises ConfigError."""
        if ALLOWLIST_PATTERN in parameters:
            self._allowed = compile_java_regex(parameters[ALLOWLIST_PATTERN])

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        """Values of variables. Raises ConfigError when there is a path, since variables have none."""
        if path:
            raise ConfigError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return ConfigData({key: self._environ[key] for key in keys if key in self._environ and self._permits(key)})

    def _permits(self, name: str) -> bool:
        return self._allowed is None or self._allowed.fullmatch(name) is not None
