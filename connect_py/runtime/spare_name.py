"""How a process that was started before its task was known comes to show its task's name. Imported by every task, so it imports little."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

log = logging.getLogger(__name__)

#: What stands in the command line of a spare in place of the task's name, with room for that.
SPARE = "(spare)".ljust(200, ".")


def show_name(name: str) -> None:
    """Write a task's name over the placeholder in the process's command line, for `ps`. Linux only; elsewhere the placeholder stays."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # not for every task: it takes milliseconds

    try:
        fields = Path("/proc/self/stat").read_text().rpartition(") ")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5)
        found = ctypes.string_at(start, end - start).find(SPARE.encode())
        if found >= 0:
            text = name.encode()[: len(SPARE)]
            ctypes.memmove(start + found, text.ljust(len(SPARE), b"\0"), len(SPARE))
    except (OSError, ValueError, IndexError):
        log.debug("The task's name could not be shown", exc_info=True)
