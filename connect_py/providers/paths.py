"""Which paths a provider may read (`org.apache.kafka.common.config.internals.AllowedPaths`)."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from connect_py.api.provider import ConfigProvider
from connect_py.errors import ConfigError

log = logging.getLogger(__name__)

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
        """The path to read, None when it lies outside. ``..`` is taken out first, so it leads nowhere else."""
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
        """The path to read; None, with a warning, when it lies outside of ``allowed.paths``."""
        permitted = self._paths.permit(path)
        if permitted is None:
            log.warning("The path %s is not allowed to be accessed: it lies outside of %s", path, ALLOWED_PATHS)
        return permitted
