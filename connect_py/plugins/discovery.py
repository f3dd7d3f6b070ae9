"""Where plugins are found: entry points of the worker's environment, and of the folders on ``plugin.path``.

Only metadata is read (``*.dist-info/entry_points.txt``), nothing is imported and no ``.pth`` file is run. A folder of ``plugin.path`` is
what ``pip install --target FOLDER package`` makes, or a folder that holds such folders, one a plugin, as Kafka Connect's is laid out
(`PluginUtils.pluginLocations`).

One Java class name is one plugin: the environment's own wins over a folder's, and of several folders the one with the newest distribution;
a warning names the losers. Kafka Connect can run several versions of a plugin at a time, since each has a class loader of its own; one
Python process cannot.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from connect_py.plugins.versions import compare_versions

if TYPE_CHECKING:
    from importlib.metadata import Distribution

log = logging.getLogger(__name__)

GROUP = "connect_py.plugins"

#: This project's own distribution: pip puts a copy into a ``--target`` folder when a plugin depends on it.
OWN_DISTRIBUTION = "connect-py-worker"


@dataclass(frozen=True)
class PluginEntry:
    """What metadata says of one plugin.

    Attributes:
        target: ``module:attribute``.
        folder: the ``plugin.path`` folder that it is in; empty for the worker's environment.
        distribution: the package that brings it.
        version: of that package.
    """

    target: str
    folder: str = ""
    distribution: str = ""
    version: str = ""


def discover(plugin_path: Sequence[str] = ()) -> dict[str, PluginEntry]:
    """Java class name → entry, of everything that is installed."""
    # a task's process is told of all plugins, and would pay 20 ms of CPU for it
    from importlib.metadata import distributions

    found: dict[str, PluginEntry] = {}
    for name, entry in _entries(distributions(), ""):
        found.setdefault(name, entry)
    for folder in _folders(plugin_path):
        for name, entry in _entries(distributions(path=[str(folder)]), str(folder)):
            if entry.distribution.lower() == OWN_DISTRIBUTION:
                continue
            found[name] = _choose(name, found.get(name), entry)
    return found


def _entries(installed: Iterable[Distribution], folder: str) -> Iterable[tuple[str, PluginEntry]]:
    for distribution in installed:
        for point in distribution.entry_points:
            if point.group == GROUP:
                yield point.name, PluginEntry(point.value, folder, distribution.name, distribution.version)


def _folders(plugin_path: Sequence[str]) -> list[Path]:
    """Folders with distributions in them; each once. What cannot be read is skipped with a warning, as Connect does."""
    found: dict[Path, None] = {}
    for given in filter(None, plugin_path):
        root = Path(given).absolute()
        try:
            inside = [path for path in sorted(root.iterdir()) if path.is_dir()]
        except OSError as error:
            log.warning("plugin.path: %s is ignored, it cannot be listed: %s", given, error.strerror)
            continue
        holders = [path for path in (root, *inside) if any(path.glob("*.dist-info"))]
        if not holders:
            log.warning(
                "plugin.path: %s holds no Python package. Plugins are put there by `pip install --target %s PACKAGE`; Java archives are "
                "of no use to this worker.",
                given,
                root / "PLUGIN",
            )
        found.update(dict.fromkeys(holders))
    return list(found)


def _choose(name: str, known: PluginEntry | None, entry: PluginEntry) -> PluginEntry:
    if known is None:
        return entry
    wins = bool(known.folder) and compare_versions(entry.version, known.version) > 0
    chosen, other = (entry, known) if wins else (known, entry)
    log.warning(
        "%s is installed twice: %s %s from %s is used, %s %s from %s is not",
        name,
        chosen.distribution,
        chosen.version,
        chosen.folder or "the worker's environment",
        other.distribution,
        other.version,
        other.folder,
    )
    return chosen
