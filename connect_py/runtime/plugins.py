"""Plugins by their Java class names.

The entry points of group ``connect_py.plugins`` map a Java class name to ``module:attribute``. A module is imported when its plugin is
first used, so the worker runs without the drivers of connectors that nobody uses. Nothing else is ever imported by name: a text from a
configuration is only looked up here (docs/design.md, decision 2).

Aliases follow `PluginUtils.java`: the simple class name, and the simple name without its kind (``FileStreamSource``, ``Json``); an
alias that fits several plugins of one kind names none of them.

A `Plugins` is immutable but for the cache of loaded classes; any thread may use it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from connect_py.api import Connector, SinkConnector, SourceConnector
from connect_py.errors import BadRequestError, ConfigError

GROUP = "connect_py.plugins"

#: Kinds in the order of ``GET /connector-plugins``, with the suffix that an alias may leave out.
KINDS = {
    "sink": "Connector",
    "source": "Connector",
    "transformation": "Transformation",
    "predicate": "Predicate",
    "converter": "Converter",
    "header_converter": "HeaderConverter",
}

#: Python module → extra of the distribution that brings it.
_EXTRAS = {"psycopg": "postgres", "pymysql": "mysql", "sqlglot": "mysql", "pymongo": "mongodb", "bson": "mongodb", "pyspark": "spark"}


class Plugins:
    """The installed plugins.

    Args:
        references: Java class name → ``module:attribute``, as entry points have them.
    """

    def __init__(self, references: Mapping[str, str]) -> None:
        self.references = dict(references)
        self._loaded: dict[str, type[Any]] = {}

    @classmethod
    def discover(cls) -> Plugins:
        """What is installed on this machine."""
        return cls({point.name: point.value for point in entry_points(group=GROUP)})

    def load(self, java_name: str) -> type[Any]:
        """The class of a plugin.

        Raises:
            ConfigError: there is none of that name, or a Python package that it needs is missing; the text says which extra brings it.
        """
        if java_name in self._loaded:
            return self._loaded[java_name]
        reference = self.references.get(java_name)
        if reference is None:
            raise ConfigError(f"Class {java_name} could not be found.")
        module, _, attribute = reference.partition(":")
        try:
            plugin = getattr(importlib.import_module(module), attribute)
        except ImportError as error:
            raise ConfigError(_missing(java_name, error)) from error
        self._loaded[java_name] = plugin
        return plugin  # type: ignore[no-any-return]

    def of_kind(self, *kinds: str) -> Iterator[tuple[str, type[Any]]]:
        """(Java class name, class) of every plugin of these kinds that can be loaded, by name."""
        for name in sorted(self.references):
            try:
                plugin = self.load(name)
            except ConfigError:
                continue
            if any(kind in kinds for kind in kinds_of(plugin)):
                yield name, plugin

    def find(self, name: str, *kinds: str) -> type[Any] | None:
        """The plugin of a class name or alias, None when there is none of these kinds.

        Raises:
            ConfigError: it is there, but a Python package that it needs is missing.
        """
        if name in self.references:
            plugin = self.load(name)
            return plugin if any(kind in kinds for kind in kinds_of(plugin)) else None
        matches = [java for java, plugin in self.of_kind(*kinds) if name in aliases(java, plugin)]
        if len(matches) == 1:
            return self.load(matches[0])
        if not matches:
            self._explain_unloadable(name)
        return None

    def connector(self, name: str) -> type[Connector]:
        """A connector by class name or alias.

        Raises:
            BadRequestError: there is none, the alias fits several, or a package it needs is missing.
        """
        try:
            plugin = self.find(name, "sink", "source")
        except ConfigError as error:
            raise BadRequestError(str(error)) from error
        if plugin is not None:
            return plugin
        matches = [java for java, found in self.of_kind("sink", "source") if name in aliases(java, found)]
        if matches:
            raise BadRequestError(
                f"More than one connector matches alias {name}. Please use full package and class name instead. "
                f"Classes found: {', '.join(matches)}"
            )
        available = ", ".join(f"{java} ({kinds_of(found)[0]}, {found.version})" for java, found in self.of_kind("sink", "source"))
        raise BadRequestError(
            f"Failed to find any class that implements Connector and which name matches {name}, available connectors are: {available}"
        )

    def _explain_unloadable(self, alias: str) -> None:
        """A plugin whose driver is missing cannot say its kind; its name is enough to tell the user what to install."""
        for java in self.references:
            simple = java.rpartition(".")[2]
            if alias in (simple, simple.removesuffix("Connector")):
                self.load(java)


def kinds_of(plugin: type[Any]) -> list[str]:
    """The kinds of a plugin class, in the order of `KINDS`."""
    if inspect.isclass(plugin) and issubclass(plugin, Connector):
        return ["sink"] if issubclass(plugin, SinkConnector) else ["source"] if issubclass(plugin, SourceConnector) else []
    marks = {
        "transformation": "apply",
        "predicate": "test",
        "converter": "from_connect_data",
        "header_converter": "from_connect_header",
    }
    return [kind for kind, method in marks.items() if hasattr(plugin, method)]


def aliases(java_name: str, plugin: type[Any]) -> set[str]:
    """Short names by which configurations may call a plugin."""
    simple = java_name.rpartition(".")[2].rpartition("$")[2]
    return {simple} | {simple.removesuffix(KINDS[kind]) for kind in kinds_of(plugin)}


def _missing(java_name: str, error: ImportError) -> str:
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra:
        return f"{java_name} needs the Python package {package}, which is not installed: pip install 'connect-py-worker[{extra}]'"
    return f"{java_name} cannot be loaded: {error}"
