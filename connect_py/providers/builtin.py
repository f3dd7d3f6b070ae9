"""Provide configuration values from files, directories and environment variables, as Kafka's own providers do.

- `FileConfigProvider`: properties files, ``${file:/etc/secrets/db.properties:password}``.
- `DirectoryConfigProvider`: the files of a directory, one value in each, as Kubernetes mounts secrets, ``${dir:/etc/secrets:password}``.
- `EnvVarConfigProvider` (KIP-887): environment variables of the worker, ``${env:DB_PASSWORD}``.

`AllowedPaths` says which paths a provider may read (`org.apache.kafka.common.config.internals.AllowedPaths`).
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from connect_py.api.provider import ConfigData, ConfigProvider
from connect_py.data.java_properties import parse_properties
from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError

log = logging.getLogger(__name__)


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
        """Return values of variables. Raises ConfigError when there is a path, since variables have none."""
        if path:
            raise ConfigError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return ConfigData({key: self._environ[key] for key in keys if key in self._environ and self._permits(key)})

    def _permits(self, name: str) -> bool:
        return self._allowed is None or self._allowed.fullmatch(name) is not None


#: The property, below ``config.providers.NAME.param.``.
ALLOWED_PATHS = "allowed.paths"


class AllowedPaths:
    """The value of ``allowed.paths``: everything when it is not set.

    Raises:
        ConfigError: a path is relative or does not exist.
    """

    def __init__(self, value: str | None) -> None:
        self._allowed = [_absolute(path) for path in value.split(",")] if value else None

    def permit(self, path: str) -> Path | None:
        """Return the path to read, None when it lies outside. ``..`` is taken out first, so it leads nowhere else."""
        if self._allowed is None:
            return Path(path)
        normal = Path(os.path.normpath(path))
        return normal if any(normal.is_relative_to(allowed) for allowed in self._allowed) else None


def _absolute(path: str) -> Path:
    normal = Path(os.path.normpath(path.strip()))
    if not normal.is_absolute():
        raise ConfigError(f"Path {normal} is not absolute")
    if not normal.exists():
        raise ConfigError(f"Path {normal} does not exist")
    return normal


class PathProvider(ConfigProvider):
    """What providers share that read paths: the parameter ``allowed.paths``, and what is said of a path outside of it."""

    def __init__(self) -> None:
        self._paths = AllowedPaths(None)

    def configure(self, parameters: Mapping[str, str]) -> None:
        """Take ``allowed.paths``. Raises ConfigError."""
        self._paths = AllowedPaths(parameters.get(ALLOWED_PATHS))

    def permit(self, path: str) -> Path | None:
        """Return the path to read; None, with a warning, when it lies outside of ``allowed.paths``."""
        permitted = self._paths.permit(path)
        if permitted is None:
            log.warning("The path %s is not allowed to be accessed: it lies outside of %s", path, ALLOWED_PATHS)
        return permitted


class FileConfigProvider(PathProvider):
    """Read the file each time, so that the next start sees a rotated secret."""

    java_name = "org.apache.kafka.common.config.provider.FileConfigProvider"

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        """Return values of a properties file; a path outside of ``allowed.paths`` has none. Raises ConfigError."""
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


class DirectoryConfigProvider(PathProvider):
    """The key is the name of a regular file, the value its whole text, a last line end included."""

    java_name = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        """Return texts of files; a path that is no directory, or lies outside of ``allowed.paths``, has none. Raises ConfigError."""
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
