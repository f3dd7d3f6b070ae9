"""What a package adds to the signals and notifications of database sources: a signal, a channel for signals, one for notifications.

They are found by the entry points `connect_py.signals`, `connect_py.signal_channels` and `connect_py.notification_channels`. All run on the
task's thread, between two reads of the database: they must not wait for long.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)


def announce(signal: Any) -> None:
    """The signal `acme-announce`: writes its data's `text` to the task's log. What a signal raises is a line there, too."""
    log.info("Announcement %s: %s", signal.id, signal.data.get("text", ""))


class FolderChannel:
    """Signals as files: each ``*.json`` of `signal.acme.folder` is one, ``{"id": …, "type": …, "data": {…}}``, in the order of names.

    A file is removed when the offsets topic holds what its signal brought about, so that none is lost when the task is killed.
    """

    def __init__(self, config: Mapping[str, str], connector: str) -> None:
        self._folder = Path(config["signal.acme.folder"])
        self._read: list[Path] = []

    def read(self) -> Iterable[Mapping[str, Any]]:
        """New files."""
        found = [path for path in sorted(self._folder.glob("*.json")) if path not in self._read]
        self._read += found
        return [json.loads(path.read_text()) for path in found]

    def committed(self) -> None:
        """Everything that was read is durable."""
        for path in self._read:
            path.unlink(missing_ok=True)
        self._read.clear()

    def close(self) -> None:
        """Nothing is open."""


def journal(config: Mapping[str, str], connector: str) -> Callable[[Any], None]:
    """The notification channel `acme-journal`: one JSON line each in the file `notification.acme.journal`."""
    path = Path(config["notification.acme.journal"])

    def write(notification: Any) -> None:
        line = {"connector": connector, "id": notification.id, "type": notification.type, **notification.additional_data}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    return write
