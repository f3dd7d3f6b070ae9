"""How a forked process shows the name of its task in place of its server's. Imported by every task, so it imports little."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

log = logging.getLogger(__name__)

#: What stands in the fork server's command line where a task has its name, with room for that.
FORK_SERVER = "(fork server)".ljust(200, ".")


def show_name(name: str) -> None:
    """Write a task's name over the placeholder in the process's command line, for `ps`. Linux only; elsewhere the placeholder stays."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # not for every task: it takes milliseconds

    try:
        fields = Path("/proc/self/stat").read_text().rpartition(") ")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5)
        found = ctypes.string_at(start, end - start).find(FORK_SERVER.encode())
        if found >= 0:
            text = name.encode()[: len(FORK_SERVER)]
            ctypes.memmove(start + found, text.ljust(len(FORK_SERVER), b"\0"), len(FORK_SERVER))
    except (OSError, ValueError, IndexError):
        log.debug("The task's name could not be shown", exc_info=True)
