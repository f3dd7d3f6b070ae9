"""``connect-py spark-archive``: make the archive of classes that lets the sink's JVM start with half of the CPU."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from connect_py.errors import ConnectError


def spark_archive(arguments: Sequence[str], usage: str) -> int:
    """See the module's text; returns the exit code."""
    if arguments:
        print(f"connect-py spark-archive takes no arguments\n\n{usage}", file=sys.stderr, end="")
        return 1
    from spark_sink.spark import archive

    try:
        made = archive.make()
    except ConnectError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{made}: {made.stat().st_size // 2**20} MB")
    return 0
