"""What the worker's operator allows plugins, beyond what a connector's configuration can ask for.

A connector's configuration comes from anyone who may call the REST API; these permissions come from the worker's own properties, which only
its operator writes. The worker sets them in its own process, where configurations are validated, and each task's process sets them from
the message that the worker starts it with.

Threads: set once at the start of a process, read by any thread.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from connect_py.errors import ConfigError

#: Folders below which the file connectors may read and write, separated by commas. Kafka took its file connectors off the default class
#: path for the lack of such a bound (KAFKA-13748).
FILE_PATHS = "file.connectors.allowed.paths"

_file_paths: tuple[str, ...] = ()


def permit(worker: Mapping[str, str]) -> None:
    """Take the permissions from the worker's properties. Raises ConfigError when a path is relative."""
    global _file_paths  # one worker, one set of permissions a process
    paths = tuple(path for each in worker.get(FILE_PATHS, "").split(",") if (path := each.strip()))
    for path in paths:
        if not os.path.isabs(path):
            raise ConfigError(f"{FILE_PATHS} has {path}, which is no absolute path. Nothing was started.")
    _file_paths = paths


def allowed_file(name: str, value: str) -> str:
    """Return the real path of a file that a connector names: absolute, without `..` and symbolic links.

    Args:
        name: the connector's property, for the error.
        value: the path as the connector has it; a relative one begins at the process's working directory.

    Raises:
        ConfigError: it is not below a folder that the worker's operator allows. The text names the worker's property.
    """
    if "\0" in value:
        raise ConfigError(f"Invalid value for configuration {name}: a path has no NUL character.")
    real = os.path.realpath(value)
    if any(_is_below(real, os.path.realpath(folder)) for folder in _file_paths):
        return real
    allowed = f"It allows {', '.join(_file_paths)}." if _file_paths else "It allows none, because the property is not set."
    raise ConfigError(
        f"Invalid value {value} for configuration {name}: the worker's property {FILE_PATHS} does not allow this path. {allowed} "
        "Ask the worker's operator to add the file's folder to it, and restart the worker."
    )


def _is_below(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder
