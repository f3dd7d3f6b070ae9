"""A config provider that reads values from JSON files: ``${json:/run/secrets/acme.json:feed.token}``."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from connect_py.api import ConfigData, ConfigProvider
from connect_py.errors import ConfigError


class JsonFileConfigProvider(ConfigProvider):
    """The path is a file with one object; ``param.root``, where it is given, is a folder that files must be in."""

    java_name = "com.acme.connect.JsonFileConfigProvider"

    def configure(self, parameters: Mapping[str, str]) -> None:
        """Take properties."""
        root = parameters.get("root")
        self._root = Path(root).resolve() if root else None

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        """The keys that are in the file. Errors name the file, never what is in it."""
        file = Path(path).resolve()
        if self._root is not None and not file.is_relative_to(self._root):
            raise ConfigError(f"The file {path} is outside of {self._root}, the only folder that this provider reads.")
        try:
            found = json.loads(file.read_text())
        except OSError as error:
            raise ConfigError(f"The file {path} cannot be read: {error.strerror}.") from error
        except ValueError:
            raise ConfigError(f"The file {path} is not JSON.") from None
        return ConfigData({key: str(found[key]) for key in keys if key in found})
