"""A directory for what Spark's JVM keeps on disk while it lives: copies of its libraries (65 MB), shuffles, what the heap has no room for.

A JVM removes such things when it ends, but not when it is killed, and a task that is restarted whenever memory is short would fill the
disk. So they are put below a directory that goes with its `Scratch`, and those of processes that were killed go when the next one starts.
Whether a directory's process lives is told by a lock on a file in it, which also holds between containers that share the place.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "connect-py-spark-"
_LOCK = "lock"


class Scratch:
    """This process's; `remove` gives it back."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # The file has its name only when it is locked, so nobody takes the directory of a process that is about to lock it.
        self._lock = os.open(self.path / f".{_LOCK}", os.O_RDWR | os.O_CREAT, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: nobody else will remove it
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            (self.path / f".{_LOCK}").rename(self.path / _LOCK)

    def remove(self) -> None:
        """With all that is in it. Idempotent."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def remove_left_behind() -> list[Path]:
    """Remove the directories of processes that are dead, and say which. Those of other users stay."""
    return [path for path in Path(tempfile.gettempdir()).glob(_PREFIX + "*") if _removed(path)]


def _removed(path: Path) -> bool:
    try:
        if path.is_symlink() or path.stat().st_uid != os.geteuid():
            return False
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
        return True
    except OSError:
        return False  # it is in use
    finally:
        os.close(lock)
