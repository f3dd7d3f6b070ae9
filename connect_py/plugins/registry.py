"""Find plugins by their Java class names.

`discover` reads which class belongs to a Java class name: from the entry points of the worker's environment, and from those of the folders
on ``plugin.path``. It reads only metadata (``*.dist-info/entry_points.txt``), imports nothing and runs no ``.pth`` file. A folder of
``plugin.path`` is what ``pip install --target FOLDER package`` makes, or a folder that holds such folders, one for each plugin, as in
Kafka Connect (`PluginUtils.pluginLocations`).

One Java class name is one plugin: the environment's own wins over a folder's, and of several folders the one with the newest distribution;
a warning names the losers. Kafka Connect can run several versions of a plugin at a time, since each has a class loader of its own; one
Python process cannot.

A module is imported when its plugin is first used, so the worker runs without the drivers of connectors that are not used. Nothing else is
ever imported by name: a text from a configuration is only looked up here (docs/design.md, decision 2).

Aliases follow `PluginUtils.computeAliases`: the simple class name, and the simple name without its kind (``FileStreamSource``, ``Json``);
an alias that fits several plugins, of whatever kinds, names none of them.

A `Plugins` is immutable except for its memory of what was loaded and what could not be; any thread may use it.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connect_py.api import Connector, SinkConnector, SourceConnector
from connect_py.errors import BadRequestError, ConfigError
from connect_py.extras import install_command
from connect_py.plugins.versions import VersionNotFoundError, compare_versions, parse_requirement

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
    # a task's process receives all plugins, and would pay 20 ms of CPU for it
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
        points = [point for point in distribution.entry_points if point.group == GROUP]
        if points:
            metadata = distribution.metadata  # which is parsed each time
            for point in points:
                yield point.name, PluginEntry(point.value, folder, metadata["Name"], metadata["Version"])


def _folders(plugin_path: Sequence[str]) -> list[Path]:
    """Return folders with distributions in them; each once. What cannot be read is skipped with a warning, as Connect does."""
    found: dict[Path, None] = {}
    for given in filter(None, plugin_path):
        root = Path(given).absolute()
        try:
            content = sorted(root.iterdir())
        except OSError as error:
            log.warning("plugin.path: %s is ignored, it cannot be listed: %s", given, error.strerror)
            continue
        holders = [path for path in (root, *content) if any(path.glob("*.dist-info"))]
        if content and not holders:  # the container image names a folder that is empty as long as nobody mounts one
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


#: Kinds in the order of ``GET /connector-plugins``, with the suffix that an alias may leave out.
KINDS = {
    "sink": "Connector",
    "source": "Connector",
    "transformation": "Transformation",
    "predicate": "Predicate",
    "converter": "Converter",
    "header_converter": "HeaderConverter",
}

#: How a class that is no connector shows its kind: by a method.
_MARKS = {
    "transformation": "apply",
    "predicate": "test",
    "converter": "from_connect_data",
    "header_converter": "from_connect_header",
}

#: In Debezium's image these are an add-on that is not there, so their short names are Kafka's; so they stay where both are there.
_WITHOUT_ALIAS = frozenset({"io.debezium.transforms.Filter"})

#: Python module → extra of the distribution that brings it.
_EXTRAS = {
    "psycopg": "postgres",
    "pymysql": "mysql",
    "sqlglot": "mysql",
    "sqlalchemy": "jdbc",
    "pymongo": "mongodb",
    "bson": "mongodb",
    "pyspark": "spark",
    "cel": "scripting",
}


class Plugins:
    """The installed plugins.

    Args:
        entries: Java class name → what metadata says of it, just ``module:attribute``, or the class itself.
    """

    def __init__(self, entries: Mapping[str, str | PluginEntry | type[Any]]) -> None:
        self.references = {name: _entry(entry) for name, entry in entries.items()}
        self._loaded: dict[str, type[Any]] = {name: entry for name, entry in entries.items() if isinstance(entry, type)}
        self._unloadable: dict[str, str] = {}
        self._by_alias: dict[str, type[Connector]] = {}

    @classmethod
    def discover(cls, plugin_path: Sequence[str] = ()) -> Plugins:
        """Return what is installed in the worker's environment and in the folders of ``plugin.path``."""
        return cls(discover(plugin_path))

    @classmethod
    def from_message(cls, message: Mapping[str, Mapping[str, str]]) -> Plugins:
        """`references` again, after they have been JSON: what a task's process receives."""
        return cls({name: PluginEntry(**entry) for name, entry in message.items()})

    def load(self, java_name: str) -> type[Any]:
        """Return the class of a plugin.

        Raises:
            ConfigError: there is none of that name, or it cannot be imported; the text says which extra brings a missing package. That is
                logged the first time and holds until the worker is restarted.
        """
        if java_name in self._loaded:
            return self._loaded[java_name]
        if java_name in self._unloadable:
            raise ConfigError(self._unloadable[java_name])
        entry = self.references.get(java_name)
        if entry is None:
            raise ConfigError(f"Class {java_name} could not be found.")
        try:
            self._loaded[java_name] = plugin = _import(java_name, entry)
        except ConfigError as error:
            self._unloadable[java_name] = str(error)
            log.warning("A plugin is not available: %s", error)
            raise
        return plugin

    def of_kind(self, *kinds: str) -> Iterator[tuple[str, type[Any]]]:
        """(Java class name, class) of every plugin of these kinds that can be loaded, by name."""
        for name in sorted(self.references):
            try:
                plugin = self.load(name)
            except ConfigError:
                continue
            if any(kind in kinds for kind in kinds_of(plugin)):
                yield name, plugin

    def resolve(self, name: str) -> str | None:
        """Return the Java class name of a class name or alias; None when there is none or the alias fits several.

        Raises:
            ConfigError: a plugin that may be meant cannot be loaded.
        """
        if name in self.references:
            return name
        matches = self._matches(name)
        return matches[0] if len(matches) == 1 else None

    def find(self, name: str, *kinds: str) -> type[Any] | None:
        """Return the plugin of a class name or alias, None when there is none of these kinds.

        Raises:
            ConfigError: it is there, but a Python package that it needs is missing.
        """
        java_name = self.resolve(name)
        if java_name is None:
            return None
        plugin = self.load(java_name)
        return plugin if any(kind in kinds for kind in kinds_of(plugin)) else None

    def connector(self, name: str) -> type[Connector]:
        """Return a connector by class name or alias; other kinds of plugins do not make its alias ambiguous (`Plugins.connectorClass`).

        Raises:
            BadRequestError: there is none, the alias fits several, or a package it needs is missing.
        """
        known = self._by_alias.get(name)
        if known is not None:
            return known
        try:
            candidates = [name] if name in self.references else self._matches(name)
            found = {java: plugin for java in candidates if _is_connector(plugin := self.load(java))}
        except ConfigError as error:
            raise BadRequestError(str(error)) from error
        if len(found) == 1:
            return self._by_alias.setdefault(name, next(iter(found.values())))
        if found:
            raise BadRequestError(
                f"More than one connector matches alias {name}. Please use full package and class name instead. "
                f"Classes found: {', '.join(found)}"
            )
        available = ", ".join(f"{java} ({kinds_of(plugin)[0]}, {plugin.version})" for java, plugin in self.of_kind("sink", "source"))
        raise BadRequestError(
            f"Failed to find any class that implements Connector and which name matches {name}, available connectors are: {available}"
        )

    def require_version(self, java_name: str, wanted: str | None) -> None:
        """Check a ``…plugin.version`` property against what is installed.

        Raises:
            ConfigError: the range is malformed, or the plugin cannot be loaded.
            VersionNotFoundError: what is installed is outside of it.
        """
        requirement = parse_requirement(wanted)
        if requirement is None:
            return
        installed = self.load(java_name).version
        if installed is None or not requirement.contains(installed):
            raise VersionNotFoundError(java_name, requirement, installed or "undefined")

    def _matches(self, alias: str) -> list[str]:
        """Plugins that an alias fits. Only those are loaded whose name could fit, since the kind decides how a name is shortened."""
        suffixes = set(KINDS.values())
        possible = [
            java
            for java in sorted(self.references)
            if java not in _WITHOUT_ALIAS and alias in {simple := _simple_name(java), *(simple.removesuffix(suffix) for suffix in suffixes)}
        ]
        return [java for java in possible if alias in aliases(java, self.load(java))]


def _entry(given: str | PluginEntry | type[Any]) -> PluginEntry:
    if isinstance(given, type):
        return PluginEntry(f"{given.__module__}:{given.__qualname__}")
    return PluginEntry(given) if isinstance(given, str) else given


def kinds_of(plugin: type[Any]) -> list[str]:
    """Return the kinds of a plugin class, in the order of `KINDS`."""
    if not inspect.isclass(plugin):
        return []
    if issubclass(plugin, Connector):
        return ["sink"] if issubclass(plugin, SinkConnector) else ["source"] if issubclass(plugin, SourceConnector) else []
    return [kind for kind, method in _MARKS.items() if hasattr(plugin, method)]


def aliases(java_name: str, plugin: type[Any]) -> set[str]:
    """Short names by which configurations may call a plugin."""
    simple = _simple_name(java_name)
    return {simple} | {simple.removesuffix(KINDS[kind]) for kind in kinds_of(plugin)}


def _simple_name(java_name: str) -> str:
    return java_name.rpartition(".")[2].rpartition("$")[2]


def _is_connector(plugin: type[Any]) -> bool:
    return kinds_of(plugin)[:1] in (["sink"], ["source"])


def _import(java_name: str, entry: PluginEntry) -> type[Any]:
    """Import a plugin's class. A folder of ``plugin.path`` comes last on `sys.path`: what the worker itself needs is never replaced."""
    if entry.folder and entry.folder not in sys.path:
        sys.path.append(entry.folder)
    module_name, _, attribute = entry.target.partition(":")
    try:
        module = importlib.import_module(module_name)
        plugin = getattr(module, attribute)
    except ImportError as error:
        raise ConfigError(_missing(java_name, error)) from error
    except Exception as error:
        raise ConfigError(f"{java_name} cannot be loaded from {entry.target}: {type(error).__name__}: {error}") from error
    origin = getattr(module, "__file__", None)
    if entry.folder and origin and not Path(origin).resolve().is_relative_to(Path(entry.folder).resolve()):
        raise ConfigError(
            f"{java_name} cannot be loaded: its module {module_name} in {entry.folder} is hidden by {origin}. Rename one of them, or run "
            "the plugins in workers of their own."
        )
    _complete(java_name, entry, plugin)
    return plugin  # type: ignore[no-any-return]


def _complete(java_name: str, entry: PluginEntry, plugin: Any) -> None:
    """Give a class the name and version that its distribution knows, where it states none itself."""
    if "java_name" not in vars(plugin):  # what a base class says is the base's name
        plugin.java_name = java_name
    if getattr(plugin, "version", None) is None:
        plugin.version = entry.version or None
    if plugin.java_name != java_name:
        raise ConfigError(
            f"{java_name} cannot be loaded: its class {entry.target} calls itself {plugin.java_name}. The entry point of "
            f"{entry.distribution or 'its package'} and the class must agree."
        )


def _missing(java_name: str, error: ImportError) -> str:
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra:
        return f"{java_name} needs the Python package {package}, which is not installed: {install_command(extra)}"
    return f"{java_name} cannot be loaded: {error}"
