"""Values from properties files: ``${file:/etc/secrets/db.properties:password}`` (`FileConfigProvider.java`)."""

from __future__ import annotations

import logging
from collections.abc import Collection

from connect_py.api.provider import ConfigData
from connect_py.data.java_properties import parse_properties
from connect_py.errors import ConfigError
from connect_py.providers.paths import PathProvider

log = logging.getLogger(__name__)


class FileConfigProvider(PathProvider):
    """Reads the file anew each time, so a rotated secret is seen by the next start."""

    java_name = "org.apache.kafka.common.config.provider.FileConfigProvider"

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        """Values of a properties file; a path outside of ``allowed.paths`` has none. Raises ConfigError."""
        if not path:
            return ConfigData({})
        file = self.permit(path)
        if file is None:
            return ConfigData({})
        try:
            found = parse_properties(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            log.error("Could not read properties from file %s: %s", path, getattr(error, "strerror", None) or "it is not UTF-8 text")
            raise ConfigError(f"Could not read properties from file {path}") from None
        return ConfigData({key: found[key] for key in keys if key in found})
