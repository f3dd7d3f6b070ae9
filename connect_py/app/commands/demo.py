"""`connect-py demo`."""

from __future__ import annotations

from collections.abc import Sequence

from connect_py.app.demo import main


def demo(arguments: Sequence[str], _usage: str) -> int:
    """Tell the tutorial on servers of its own. Returns the exit code."""
    return main(arguments)
