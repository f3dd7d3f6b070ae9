"""What installed packages add to connectors: entry points of their metadata.

It is looked for only where something is named that is not built in: reading the metadata of all packages takes some 25 ms of CPU, a tenth
of a task's start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.metadata import EntryPoint


def extensions(group: str, name: str | None = None) -> Sequence[EntryPoint]:
    """Return the entry points of a group, or those of one name in it."""
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group) if name is None else entry_points(group=group, name=name))
