"""The folder for what is fetched once: jars, and a readable copy of PostgreSQL."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_folder() -> Path:
    """`$CONNECT_PY_CACHE`, or `connect-py` in the user's cache folder."""
    given = os.environ.get("CONNECT_PY_CACHE")
    if given:
        return Path(given).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "connect-py"


def make_once(target: Path, fill: Callable[[Path], object]) -> Path:
    """Make a folder once, atomically: `fill` gets a new folder beside it, which is renamed when it is complete.

    Two processes may do it at the same time; the second one's work is thrown away.

    Returns:
        `target`.
    """
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        fill(folder)
        folder.chmod(0o755)
        try:
            folder.rename(target)
        except OSError:
            if not target.exists():
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target
