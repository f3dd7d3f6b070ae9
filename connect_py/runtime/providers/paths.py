"""Which paths a provider may read (`org.apache.kafka.common.config.internals.AllowedPaths`)."""

from __future__ import annotations

import os
from pathlib import Path

from connect_py.errors import ConfigError

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
