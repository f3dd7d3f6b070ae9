"""What installed packages add to connectors: entry points of their metadata.

It is looked for only where something is named that is not built in: reading the metadata of all packages takes some 25 ms of CPU, a tenth
of a task's start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from connect_py.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


_T = TypeVar("_T")


def extensions(group: str, name: str | None = None) -> Sequence[EntryPoint]:
    """Return the entry points of a group, or those of one name in it."""
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group) if name is None else entry_points(group=group, name=name))


def properties_below(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the properties whose names start with a prefix, without it."""
    return {name.removeprefix(prefix): text for name, text in config.items() if name.startswith(prefix)}


def aliases(text: str | None) -> list[str]:
    """Return the names of a list, in order."""
    return [alias.strip() for alias in (text or "").split(",") if alias.strip()]


def make_plugin(group: str, what: str, name: str, base: Callable[..., _T]) -> _T:
    """Make an object of an installed class.

    Args:
        group: of the entry points.
        what: names the kind in errors.
        name: of the entry point.

    Raises:
        ConfigError: there is none of that name, or it cannot be made.
    """
    entry = next(iter(extensions(group, name)), None)
    if entry is None:
        known = ", ".join(sorted({found.name for found in extensions(group)})) or "none"
        raise ConfigError(
            f"There is no {what} {name}. Installed are: {known}. Java classes cannot be loaded; a package offers Python's as "
            f"entry points of the group {group}"
        )
    try:
        plugin = entry.load()()
    except Exception as error:
        raise ConfigError(f"The {what} {name} cannot be made: {error}") from error
    if not isinstance(plugin, base):  # type: ignore[arg-type]  # an abstract class, which mypy takes for a function here
        raise ConfigError(f"The {what} {name} is a {type(plugin).__name__}, not a {base.__name__}")
    found: _T = plugin
    return found
