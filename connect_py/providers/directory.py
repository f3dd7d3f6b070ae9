"""Values from the files of a directory, one a file, as Kubernetes mounts secrets: ``${dir:/etc/secrets:password}``
(`DirectoryConfigProvider.java`)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

from connect_py.api.provider import ConfigData
from connect_py.errors import ConfigError
from connect_py.providers.paths import PathProvider

log = logging.getLogger(__name__)


class DirectoryConfigProvider(PathProvider):
    """The key is the name of a regular file, the value its whole text, a last line end included."""

    java_name = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        """Texts of files; a path that is no directory, or lies outside of ``allowed.paths``, has none. Raises ConfigError."""
        if not path:
            return ConfigData({})
        directory = self.permit(path)
        if directory is None:
            return ConfigData({})
        if not directory.is_dir():
            log.warning("The path %s is not a directory", path)
            return ConfigData({})
        # a key is compared with the names that are there, so it cannot lead out of the directory
        try:
            files = [file for file in directory.iterdir() if file.name in keys and file.is_file()]
        except OSError as error:
            log.error("Could not list directory %s: %s", directory, error.strerror)
            raise ConfigError(f"Could not list directory {directory}") from None
        return ConfigData({file.name: _read(file) for file in files})


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        log.error("Could not read file %s for property %s: %s", file, file.name, getattr(error, "strerror", None) or "it is not UTF-8 text")
        raise ConfigError(f"Could not read file {file} for property {file.name}") from None
